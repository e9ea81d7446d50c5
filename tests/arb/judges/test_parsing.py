"""From replies to answers, and the probability of success where a reply has log-probabilities."""

import json
import math
import re
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.vocabulary import STATES
from arb.judges.parsing import MAX_REASONING_CHARS, parse_answer, parse_rating
from arb.judges.types import Answer, Reply, TokenProbability

answer_of_tags, answer_of_status, answer_of_rating = (
    partial(parse_answer, form=form) for form in ("tags", "status", "rating")
)
TAGS = "<reasoning>fine</reasoning><success>Successful</success><side>No</side><loop>Yes</loop>"


def test_the_three_ways_of_answering_give_answers():
    found = answer_of_tags(Reply(TAGS))
    assert found == Answer("ok", True, False, True, reasoning=TAGS)
    assert answer_of_status(Reply("Status: failure")) == Answer("ok", False, reasoning="Status: failure")
    assert answer_of_rating(Reply("Reward: 4")) == Answer("ok", True, reasoning="Reward: 4")


@pytest.mark.shared
def test_the_parser_reads_every_released_reply_of_webjudge_as_its_authors_did(shared):
    """Of 1,536 replies, 1,284 are about test. One verdict of the authors differs from its reply.

    17 of the 1,267 + 17 = 1,284 do not begin a line with the status: it follows the thoughts on their line.
    """
    folder = shared / "data" / "agent-reward-bench"
    names = {"webjudge_7B": "7b", "webjudge_gpt4o": "gpt-4o", "webjudge_o4_mini": "o4-mini"}
    verdicts = {}
    for name in names.values():
        lines = (folder / "verdicts" / f"webjudge-{name}.jsonl").read_text().splitlines()
        for row in map(json.loads, lines):
            verdicts[name, row["trajectory_id"]] = row["success"]
    replies = [json.loads(line) for line in (folder / "replies" / "webjudge.jsonl").read_text().splitlines()]
    without_line, agreeing, differing = 0, 0, []
    for row in replies:
        answer = answer_of_status(Reply(row["reply"]))
        assert answer.state == "ok" and answer.success is not None
        trajectory_id = f"{row['benchmark']}/{row['agent']}/{row['task_id']}"
        known = verdicts.get((names[row["judge"]], trajectory_id))
        if known is None:  # on dev
            continue
        without_line += not re.search(r"^\W*status:", row["reply"], re.IGNORECASE | re.MULTILINE)
        if answer.success == known:
            agreeing += 1
        else:
            differing.append((row["judge"], row["task_id"], row["reply"].rpartition("\n")[2]))
    assert (len(replies), without_line, agreeing) == (1_536, 17, 1_283)
    assert differing == [("webjudge_o4_mini", "webarena.677", "Status: success")]


@pytest.mark.parametrize("state", ["refused", "too_long", "error"])
def test_a_call_that_failed_ends_in_its_own_state(state):
    for form in ("tags", "status", "rating"):
        assert parse_answer(Reply(TAGS, state=state), form) == Answer(state)


def test_the_finish_reason_of_the_endpoint_counts():
    assert answer_of_tags(Reply("<reasoning>so", finish_reason="length")).state == "truncated"
    assert answer_of_tags(Reply(TAGS, finish_reason="content_filter")).state == "refused"
    assert answer_of_tags(Reply(None, refusal="no")).state == "refused"
    assert answer_of_tags(Reply(None)).state == "error"


def test_a_long_reply_is_shortened_in_the_prediction_file():
    found = answer_of_tags(Reply("x" * 5_000 + TAGS))
    assert found.success is True
    assert len(found.reasoning) == MAX_REASONING_CHARS
    assert answer_of_tags(Reply("  \n")).reasoning is None


@pytest.mark.parametrize(
    ("text", "rating"),
    [("Score: 4", 4), ("**Score**: 3.5", 3), ("Score: 5/5", 5), ("none", None), ("", None)],
)
def test_a_rating_is_a_whole_number_counted_down(text, rating):
    assert parse_rating(text) == rating


def tokens(*texts, rivals, at):
    """Tokens with log-probability 0, but for one: it and its rivals have these probabilities."""
    return tuple(
        TokenProbability(
            text,
            math.log(rivals[text]) if place == at else 0.0,
            tuple((rival, math.log(p)) for rival, p in rivals.items() if rival != text)
            if place == at
            else (("x", -9.0),),
        )
        for place, text in enumerate(texts)
    )


def reply(*texts, rivals, at):
    return Reply("".join(texts), logprobs=tokens(*texts, rivals=rivals, at=at))


def test_the_score_is_the_share_of_yes_at_the_token_that_decides():
    rivals = {"Success": 0.6, "Un": 0.2, "Maybe": 0.1, "\n": 0.1}
    # yes 0.6, no 0.2; "Maybe" and a line break begin neither answer: 0.6 / 0.8
    found = answer_of_tags(reply("<success>", "Success", "ful", "</success>", rivals=rivals, at=1))
    assert found.score == pytest.approx(0.75)


def test_the_token_is_the_last_answers_not_that_of_an_earlier_one():
    rivals = {" failure": 0.9, " success": 0.1}
    texts = ("Thoughts: Status: success?", "\nStatus:", " failure")
    found = answer_of_status(reply(*texts, rivals=rivals, at=2))
    assert (found.success, found.score) == (False, pytest.approx(0.1))


def test_a_token_that_begins_before_the_answer_is_read_from_it_on():
    rivals = {">Un": 0.7, ">Success": 0.3}
    found = answer_of_tags(reply("<", "success", ">Un", "successful", "</success>", rivals=rivals, at=2))
    assert found.score == pytest.approx(0.3)


def test_of_a_rating_yes_are_the_numbers_from_four():
    rivals = {"3": 0.5, "4": 0.3, "5": 0.1, "2": 0.1}
    found = answer_of_rating(reply("Reward", ": ", "3", rivals=rivals, at=2))
    assert (found.success, found.score) == (False, pytest.approx(0.4))


def test_without_probabilities_of_the_deciding_token_there_is_no_score():
    assert answer_of_tags(Reply(TAGS)).score is None
    other = tokens("Status: ", "failure", rivals={"failure": 0.9, "success": 0.1}, at=1)
    assert answer_of_status(Reply("Status: success", logprobs=other)).score is None  # of another text
    unsure = reply("Status: ", "unsure", rivals={"unsure": 0.5, "success": 0.5}, at=1)
    assert answer_of_status(unsure) == Answer("unsure", reasoning="Status: unsure")
    neither = reply("Reward: ", "four", rivals={"four": 1.0}, at=1)
    assert (answer_of_rating(neither).success, answer_of_rating(neither).score) == (True, None)


@given(
    st.text(max_size=200),
    st.lists(st.tuples(st.text(max_size=12), st.floats(allow_nan=True, allow_infinity=True)), max_size=12),
    st.sampled_from(["ok", "error"]),
)
def test_whatever_an_endpoint_sends_there_is_an_answer_with_a_sound_score(text, given_tokens, state):
    logprobs = tuple(TokenProbability(token, logprob, (("Un", logprob),)) for token, logprob in given_tokens)
    for form in ("tags", "status", "rating"):
        for said in (text, "".join(token for token, _ in given_tokens) + "\nStatus: success"):
            found = parse_answer(Reply(said, state=state, logprobs=logprobs), form)
            assert found.state in STATES
            assert found.score is None or 0 <= found.score <= 1


def test_a_form_of_replies_that_does_not_exist_is_refused_with_the_known_ones():
    with pytest.raises(
        ValueError, match="there is no form 'stauts' of replies; use one of tags, status, rating"
    ):
        parse_answer(Reply("Status: success"), "stauts")
