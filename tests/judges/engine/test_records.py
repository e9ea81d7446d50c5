"""What is kept of a judged trajectory."""

import json

from dataset_script.vocabulary import PREDICTION_COLUMNS
from judges.base import Answer, Call, Image, Message, Reply
from judges.engine.drive import Exchange
from judges.engine.records import Judgment, judgment_record, prediction_row

PICTURE = Image(b"bytes of a picture", "image/png", 4, 4)
CALL = Call("verdict", (Message("user", ("look", PICTURE)),), shorter=(Message("user", "short"),))

YES = Answer("ok", success=True)


def reply(**given) -> Reply:
    known = {"input_tokens": 100, "output_tokens": 10, "cost_usd": 0.25, "latency_s": 2.0, "key": "k" * 64}
    return Reply(**{"text": "yes", **known, **given})


def kept(*replies, answer=YES, stages=None) -> dict:
    stages = stages or [0] * len(replies)
    exchanges = tuple(Exchange(CALL, each, stage) for each, stage in zip(replies, stages, strict=True))
    return judgment_record(Judgment("a/b/c", answer, exchanges), "a judge")


def test_the_row_has_the_columns_of_a_prediction_file_and_no_others():
    answer = Answer("ok", True, False, True, optimality=3, score=0.75, reasoning="the page shows it")
    row = prediction_row(kept(reply(), answer=answer))
    assert set(row) == set(PREDICTION_COLUMNS)
    assert (row["success"], row["side_effect"], row["repetition"], row["optimality"]) == (
        True,
        False,
        True,
        3,
    )


def test_without_a_verdict_success_is_null_and_the_state_says_why():
    for state in ("unsure", "unparsed", "refused", "truncated", "too_long", "error"):
        row = prediction_row(kept(reply(), answer=Answer(state)))
        assert (row["success"], row["state"]) == (None, state)


def test_tokens_and_dollars_are_sums_and_latency_goes_stage_after_stage():
    record = kept(reply(latency_s=2.0), reply(latency_s=5.0), reply(latency_s=1.0), stages=[0, 0, 1])
    assert (record["input_tokens"], record["output_tokens"], record["cost_usd"]) == (300, 30, 0.75)
    assert record["latency_s"] == 6.0  # max(2, 5) + 1


def test_a_price_that_is_not_known_makes_the_sum_unknown_not_smaller():
    record = kept(reply(), reply(cost_usd=None))
    assert record["cost_usd"] is None
    assert "cost_usd" not in prediction_row(record)


def test_a_call_that_failed_costs_nothing():
    failed = Reply(None, state="error", error="503", latency_s=1.0)
    record = kept(failed, answer=Answer("error"))
    assert (record["cost_usd"], record["input_tokens"]) == (0, 0)
    assert record["calls"][0]["reply"] == {"state": "error", "error": "503", "latency_s": 1.0}


def test_a_reply_that_came_from_the_cache_gives_the_same_row_as_when_it_was_paid_for():
    assert prediction_row(kept(reply())) == prediction_row(kept(reply(is_from_cache=True)))


def test_pictures_are_kept_by_hash_those_of_the_messages_that_were_really_sent():
    full, short = kept(reply()), kept(reply(used_shorter=True))
    assert full["calls"][0]["images"] == [PICTURE.sha256]
    assert short["calls"][0]["images"] == []
    assert "bytes of a picture" not in json.dumps(full)


def test_the_raw_reply_is_kept_whatever_was_read_in_it():
    record = kept(reply(text="who knows? \ud83d"), answer=Answer("unparsed"))
    assert json.loads(json.dumps(record))["calls"][0]["reply"]["text"] == "who knows? \ud83d"
