"""What the submit page says of accounts: on a Space the one that is signed in, elsewhere a name."""

import pytest

from space.page import Services
from space.pages.submit import open_submit
from space.submit_html import elsewhere_html
from submissions.service import SubmissionService
from tests.space.conftest import shown_text


@pytest.fixture
def on_space(settings) -> SubmissionService:
    changes = {
        "space_id": "ada/board",
        "space_host": "ada-board.hf.space,judges.example",
        "state_lasts": True,
    }
    return SubmissionService(settings.model_copy(update=changes))


def test_on_a_space_the_lines_to_copy_send_a_token_and_no_name(on_space):
    text = shown_text(elsewhere_html(on_space))
    assert "Authorization: Bearer $HF_TOKEN" in text
    assert "export HF_TOKEN=" in text
    assert "SPACE=https://ada-board.hf.space " in text
    assert "account" not in text.lower()


def test_elsewhere_they_send_a_name_and_no_token(service):
    text = shown_text(elsewhere_html(service))
    assert "--account 'Ada Lovelace'" in text
    assert "-F account='Ada Lovelace'" in text
    assert "HF_TOKEN" not in text


def test_only_on_a_space_the_page_says_who_submits(service, on_space):
    line = 'data-account="anonymous"><a href="/sign-in"'
    assert line in open_submit(Services(on_space, None), "").html
    assert line not in open_submit(Services(service, None), "").html
