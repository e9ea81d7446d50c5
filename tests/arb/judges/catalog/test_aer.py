"""AER: the last page as picture or caption, three kinds of goal, and a captioner that fails."""

import pytest

from arb.judges.catalog.aer import AerJudge
from arb.judges.types import Reply
from tests.support.judges import GOAL, by_purpose, images, judged, text, view

AER_V = AerJudge("AER-V", "a-model")
AER_C = AerJudge("AER-C", "a-model", captioner="another-model")


def test_aer_v_sees_the_steps_and_the_last_screenshot_in_one_call():
    done = judged(AER_V, view())
    assert [call.role for call in done.calls] == ["judge"]
    assert images(done.last.messages) == [view().steps[-1].screenshot]
    said = text(done.last.messages)
    assert GOAL in said and "Action: click('2')\nReasoning: because of 2" in said
    assert done.answer.success is True


def test_aer_c_asks_its_captioner_and_reads_the_caption_instead_of_the_picture():
    done = judged(AER_C, view(), by_purpose(caption=Reply("a page that says {thanks}")))
    assert [(call.purpose, call.role) for call in done.calls] == [
        ("caption", "captioner"),
        ("verdict", "judge"),
    ]
    assert images(done.calls[0].messages) == [view().steps[-1].screenshot]
    assert GOAL not in text(done.calls[0].messages)  # a caption does not depend on the goal: it is shared
    assert images(done.last.messages) == []
    assert "a page that says {thanks}" in text(done.last.messages)


@pytest.mark.parametrize("judge", [AER_V, AER_C], ids=["AER-V", "AER-C"])
def test_without_a_screenshot_the_prompt_says_so_and_the_judge_decides_from_the_steps(judge):
    done = judged(judge, view(screenshots=False))
    assert [call.purpose for call in done.calls] == ["verdict"]
    assert "No screenshot of the page at the end was recorded" in text(done.last.messages)
    assert done.answer.state == "ok"


@pytest.mark.parametrize(
    ("caption", "state"),
    [
        (Reply(state="error", error="500"), "error"),
        (Reply(state="too_long", error="400"), "too_long"),
        (Reply(state="refused", error="filter"), "refused"),
        (Reply(None, refusal="I cannot"), "refused"),
        (Reply("A page", finish_reason="content_filter"), "refused"),
        (Reply(" ", finish_reason="length"), "truncated"),
        (Reply(None), "error"),
    ],
)
def test_without_the_caption_there_is_no_verdict_and_none_is_paid_for(caption, state):
    done = judged(AER_C, view(), by_purpose(caption=caption))
    assert [call.purpose for call in done.calls] == ["caption"]
    assert (done.answer.state, done.answer.success) == (state, None)


def test_pictures_of_the_goal_are_shown_to_the_judge_before_the_page():
    shown = view(goal_images=1)
    assert images(judged(AER_V, shown).last.messages) == [*shown.goal_images, shown.steps[-1].screenshot]
