"""The Space of a suite of published metrics: its board and its texts, and that nobody can submit."""

import pytest

from arb.core.settings import Settings
from space.operations.health import readiness
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at
from tests.support.space_app import local_client
from tests.support.submissions import send

REASON = "this suite has only published metrics; its runs and labels are not public"


@pytest.fixture
def osreward(tmp_path):
    service = SubmissionsApp(Settings(suite="osreward", state_dir=tmp_path, labels="wheel"))
    yield service
    service.close()


def test_the_board_has_the_published_judges_and_says_that_nobody_can_submit(osreward):
    text = shown_text(page_at(osreward, "/"))
    assert "Claude-Opus-4-6" in text and REASON in text and "0 recorded runs" not in text
    assert len(osreward.records.board().rows) == 29


def test_about_says_how_many_counts_fit_and_how_many_would_by_chance(osreward):
    text = shown_text(page_at(osreward, "/about"))
    assert f"Nobody can submit to this suite: {REASON}." in text
    assert "Of 29 judges, 8 have such counts" in text and "the counts of 12 judges fit" in text
    assert "would fit 5.6 times on all runs alone, and 0.07 times together" in text


def test_a_judge_has_its_cost_and_its_hard_subset(osreward):
    text = shown_text(page_at(osreward, "/judge", id="published/gpt-4o"))
    assert "Its precision is not known. It finds 97 of 100 positives." in text  # 96.8 % recall, no counts
    assert "never says yes" not in text and "author " not in text
    assert "20.31" in text and "Hard" in text and "No whole numbers fit the printed metrics" in text


def test_health_says_why_submissions_are_off(osreward):
    facts = readiness(osreward)
    assert (facts["status"], facts["submissions"], facts["submissions_off_because"]) == ("ok", "off", REASON)
    assert local_client(osreward).get("/submit").status_code == 404


def test_a_prediction_file_is_refused(osreward):
    with pytest.raises(SubmissionError, match=f"submitting is off: {REASON}"):
        send(osreward, b'{"trajectory_id": "a/b/c", "success": true}\n')
    assert osreward.intake.is_off
