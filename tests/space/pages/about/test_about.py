"""The page About: short enough to read in two minutes, and the way to pages outside the menu."""

import re

import pytest

from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at
from tests.support.submissions import send, verdicts, with_rules

MOST_WORDS = 500


def words_outside_details(html: str) -> int:
    article = html.partition('<article class="about">')[2].partition("</article>")[0]
    return len(shown_text(re.sub(r"<details>.*?</details>", "", article, flags=re.DOTALL)).split())


@pytest.mark.parametrize("is_public", [True, False])
def test_about_has_at_most_500_words_before_anything_is_unfolded(service, is_public):
    with_rules(service, is_public=is_public)
    send(service, verdicts(service.suite))
    assert 200 < words_outside_details(page_at(service, "/about")) <= MOST_WORDS


@pytest.mark.slow
@pytest.mark.labels
def test_the_official_about_page_is_as_short_and_leads_to_the_paper(official_settings, tmp_path):
    service = SubmissionsApp(official_settings.model_copy(update={"state_dir": tmp_path}))
    html = page_at(service, "/about")
    assert words_outside_details(html) <= MOST_WORDS
    assert 'href="/paper"' in html and 'href="/rates"' in html and 'href="/disputes"' in html


def test_about_explains_the_sources_of_the_rows_that_the_board_has_and_no_others(tmp_path):
    service = SubmissionsApp(Settings(suite="devai", state_dir=tmp_path, labels="wheel"))
    text = shown_text(page_at(service, "/about"))
    service.close()
    assert "165 trajectories of 3 agents on 1 benchmark. Its test split has 165 of them, on 55 tasks." in text
    assert "Paper: this server scored published verdicts." in text and "Self-reported" not in text
    assert "a judge that gives every trajectory the same answer" in text
