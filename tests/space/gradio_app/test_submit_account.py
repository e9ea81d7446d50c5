"""What the submit page says of accounts: on a Space the one that is signed in, elsewhere a name."""

import pytest

from space.gradio_app.submit_page import page_values
from space.web.assets import StaticAssets
from space.web.frame import PageFrame
from submissions.service import SubmissionService
from tests.space.conftest import shown_text


def page_html(service) -> str:
    return PageFrame(StaticAssets()).html("submit/page.html", "Submit", "/submit", **page_values(service))


def elsewhere(service) -> str:
    """The lines to copy."""
    return shown_text(page_html(service).partition('id="elsewhere-title"')[2])


@pytest.fixture
def on_space(settings) -> SubmissionService:
    changes = {
        "space_id": "ada/board",
        "space_host": "ada-board.hf.space,judges.example",
        "state_lasts": True,
    }
    return SubmissionService(settings.model_copy(update=changes))


def test_on_a_space_the_lines_to_copy_send_a_token_and_no_name(on_space):
    text = elsewhere(on_space)
    assert "Authorization: Bearer $HF_TOKEN" in text
    assert "export HF_TOKEN=" in text
    assert "SPACE=https://ada-board.hf.space " in text
    assert "account" not in text.lower()


def test_elsewhere_they_send_a_name_and_no_token(service):
    text = elsewhere(service)
    assert "--account 'Ada Lovelace'" in text
    assert "-F account='Ada Lovelace'" in text
    assert "HF_TOKEN" not in text


def test_only_on_a_space_the_page_says_who_submits(service, on_space):
    line = 'data-account="anonymous"><a href="/sign-in"'
    assert line in page_html(on_space)
    assert line not in page_html(service)
