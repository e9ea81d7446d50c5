"""WebJudge: key points, a rating for each screenshot, and a verdict on those that matter; all bounded."""

import pytest

from arb.judges.catalog.webjudge import WebJudge, spread
from arb.judges.types import Call, Reply, ViewStep
from tests.support.judges import GOAL, by_purpose, image, images, judged, parts, text, view

JUDGE = WebJudge("WebJudge", "a-model")


def rate(*ratings: int):
    """Replies that rate the screenshots of steps 1, 2, … so."""
    parse_rating = {image(step).sha256: rating for step, rating in enumerate(ratings, start=1)}

    def reply(call: Call) -> Reply:
        if call.purpose == "key points":
            return Reply("1. two teapots\n2. blue {ones}")
        if call.purpose == "rating":
            rating = parse_rating[images(call.messages)[-1].sha256]
            return Reply(f"**Reasoning**: it\nshows {rating}\n\n**Score**: {rating}")
        return Reply("Thoughts: so\nStatus: success")

    return reply


def shown_of(done) -> list[str]:
    return [picture.sha256 for picture in images(done.last.messages)]


def test_key_points_come_first_then_all_ratings_at_once_then_the_verdict():
    done = judged(JUDGE, view(actions=2), rate(1, 3, 5))
    assert [[call.purpose for call in stage] for stage in done.stages] == [
        ["key points"],
        ["rating"] * 3,
        ["verdict"],
    ]
    assert len(done.calls) == 3 + 2  # n screenshots and two
    assert all("2. blue {ones}" in text(call.messages) for call in done.calls[1:])
    assert all(GOAL in text(call.messages) for call in done.calls)
    assert done.answer.success is True


def test_key_points_are_drawn_from_the_goal_alone_so_that_runs_of_one_task_share_them():
    first, second = (judged(JUDGE, view(actions=n), rate(3, 3, 3)).calls[0] for n in (1, 2))
    assert first == second


def test_screenshots_rated_three_or_more_are_shown_in_order_after_what_they_show():
    done = judged(JUDGE, view(actions=3), rate(3, 2, 5, 4))
    assert shown_of(done) == [image(1).sha256, image(3).sha256, image(4).sha256]
    said = text(done.last.messages)
    assert "1. (step 1) it shows 3\n2. (step 3) it shows 5\n3. (step 4) it shows 4" in said
    assert "it shows 2" not in said and "Score" not in said
    assert "Action: click('2')" in said  # the step stays even where its screenshot is not shown
    assert isinstance(parts(done.last.messages)[1], str)  # all texts, and then all pictures
    assert len(parts(done.last.messages)) == 2 + 3


def test_every_screenshot_is_rated_and_fifty_are_shown_as_in_the_method():
    done = judged(JUDGE, view(actions=51), rate(*[3] * 52))
    assert [call.purpose for call in done.calls].count("rating") == 52
    assert shown_of(done) == [image(step).sha256 for step in range(1, 51)]


def test_of_more_than_may_be_rated_some_are_spread_evenly_with_the_first_and_the_last():
    # 11 screenshots, 3 rated: places 0, 5 and 10
    done = judged(WebJudge("WebJudge", "m", most_rated=3), view(actions=10), rate(*[3] * 11))
    assert [call.purpose for call in done.calls].count("rating") == 3
    assert shown_of(done) == [image(1).sha256, image(6).sha256, image(11).sha256]


@pytest.mark.parametrize("there", range(1, 60))
@pytest.mark.parametrize("most", [1, 2, 7, 50])
def test_a_bound_holds_and_no_screenshot_is_taken_twice(there, most):
    steps = [ViewStep(number, None, None, None, None) for number in range(there)]
    taken = [step.number for step in spread(steps, most)]
    assert len(set(taken)) == len(taken) == min(there, most)
    assert taken == sorted(taken) and taken[-1] == there - 1
    assert most == 1 or taken[0] == 0


def test_a_rating_that_cannot_be_read_or_was_refused_leaves_its_screenshot_out():
    for rating in (Reply("no idea"), Reply(state="refused"), Reply(state="too_long"), Reply(None)):
        done = judged(JUDGE, view(actions=1), by_purpose(rating=rating))
        assert images(done.last.messages) == []
        assert "No screenshot of the attempt was found to matter" in text(done.last.messages)
        assert done.answer.state == "ok"


def test_a_rating_that_failed_ends_the_judging_so_that_it_can_be_made_again():
    done = judged(JUDGE, view(actions=1), by_purpose(rating=Reply(state="error")))
    assert (done.answer.state, len(done.stages)) == ("error", 2)


def test_without_key_points_there_is_no_verdict():
    done = judged(JUDGE, view(), by_purpose(key_points=Reply(state="refused")))
    assert (done.answer.state, len(done.calls)) == ("refused", 1)


def test_without_screenshots_the_prompt_says_so_and_the_judge_decides_from_the_steps():
    done = judged(JUDGE, view(actions=1, screenshots=False))
    assert [call.purpose for call in done.calls] == ["key points", "verdict"]
    assert "No screenshot of the attempt was recorded" in text(done.last.messages)


def test_pictures_of_the_goal_go_with_every_call_and_come_first():
    shown = view(actions=1, goal_images=1)
    done = judged(JUDGE, shown)
    assert all(images(call.messages)[0] == shown.goal_images[0] for call in done.calls)
