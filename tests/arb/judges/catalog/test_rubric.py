"""The rubric judge: criteria from the goal, ratings with steps, and success if all required ones are met."""

import pytest

from arb.judges.catalog.rubric import RubricJudge, read_rubric
from arb.judges.run.records import evidence_text
from arb.judges.types import Evidence, Reply
from tests.support.judges import by_purpose, images, judged, text, view

JUDGE = RubricJudge("rubric", "m")
CRITERIA = (
    "1 | required | outcome | Two teapots.\n2 | optional | process | No detour.\n"
    "3 | required | outcome | Blue."
)


def answer(rated: str, criteria: str = CRITERIA):
    done = judged(
        JUDGE, view(), by_purpose(criteria=Reply(criteria), verdict=Reply(rated, finish_reason="stop"))
    )
    return done.answer


def test_criteria_depend_on_the_goal_alone_and_ratings_see_the_run():
    many = view(actions=11)
    first, second = judged(JUDGE, many, by_purpose(criteria=Reply(CRITERIA))).calls
    assert first.messages == judged(JUDGE, view(actions=1)).calls[0].messages
    assert not images(first.messages) and "click" not in text(first.messages)
    assert CRITERIA in text(second.messages) and "click('11')" in text(second.messages)
    # eight of the twelve screenshots, at 0, 11/7, 22/7, … rounded: steps 1, 3, 4, 6, 7, 9, 10 and 12
    numbers = [1, 3, 4, 6, 7, 9, 10, 12]
    assert images(second.messages) == [many.steps[number - 1].screenshot for number in numbers]


def test_a_run_succeeds_if_all_required_criteria_are_met_whatever_the_optional_ones():
    rated = "1 | required | met | step 2 | There.\n2 | optional | not met | step 1 | A detour.\n"
    rated += "3 | required | met | - | x"
    assert (answer(rated).state, answer(rated).success) == ("ok", True)
    assert answer(rated).evidence == (
        Evidence(2, "outcome: Two teapots.", True, "There."),
        Evidence(1, "process: No detour.", False, "A detour."),
        Evidence(None, "outcome: Blue.", True, "x"),
    )
    assert answer(rated.replace("3 | required | met", "3 | required | not met")).success is False


@pytest.mark.parametrize(
    ("rated", "state"),
    [
        ("1 | required | met | step 2 | There.", "unparsed"),  # the third is missing
        ("1 | required | met | 2 | a\n3 | optional | met | 2 | b", "unparsed"),  # made optional
        ("1 | required | met | 2 | a\n3 | required | met | 2 | b\n4 | required | met | 2 | c", "unparsed"),
        ("It is fine.", "unparsed"),
        ("I cannot determine this.", "unsure"),
        ("| **1** | required | met | step 2 | a |\n| 3. | Required | Not met | – | b |", "ok"),
    ],
)
def test_ratings_have_to_be_of_exactly_the_required_criteria(rated, state):
    assert answer(rated).state == state


def test_without_readable_required_criteria_nothing_is_rated():
    done = judged(JUDGE, view(), by_purpose(criteria=Reply("1 | optional | outcome | x")))
    assert (len(done.calls), done.answer.state) == (1, "unparsed")
    failed = judged(JUDGE, view(), by_purpose(criteria=Reply(state="error")))
    assert (len(failed.calls), failed.answer.state) == (1, "error")


def test_a_reply_that_was_cut_off_has_no_verdict():
    cut = Reply("1 | required | met | step 2 | a\n3 | required | met | step 2 | b", finish_reason="length")
    done = judged(JUDGE, view(), by_purpose(criteria=Reply(CRITERIA), verdict=cut))
    assert done.answer.state == "truncated"


def test_a_rubric_has_at_most_twenty_criteria():
    assert len(read_rubric("\n".join(f"{n} | required | outcome | x" for n in range(1, 100)))) == 20


def test_a_criterion_that_is_a_sentence_has_one_full_stop_in_the_text_of_its_evidence():
    reached = {"step": 3, "criterion": "The page was reached.", "met": True}
    assert evidence_text(reached | {"text": "The title shows it."}) == (
        "met, step 3: The page was reached. The title shows it."
    )
    assert evidence_text({"criterion": "a goal", "text": "it shows"}) == "a goal. it shows"
