"""What is kept of a judged trajectory.

The folder of a run: whole after any death, one configuration, one process at a time.
"""

import json
import math
import re
from pathlib import Path

import pytest

from arb.core.predictions.columns import prediction_columns
from arb.judges.run.folder import RunFolder, RunFolderError, diff_configurations, read_judgments, read_run
from arb.judges.run.records import judgment_record, prediction_row, totals
from arb.judges.run.scheduler import Exchange, Judgment
from arb.judges.types import Answer, Call, Image, Message, Reply

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
    assert set(row) == set(prediction_columns())
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


CONFIGURATION = {
    "suite": "sample",
    "split": "dev",
    "judge": "a",
    "models": {"judge": {"model": "m", "temperature": 0.0}},
}


def record(trajectory_id: str, state: str = "ok", **more) -> dict:
    answer = {"success": True} if state == "ok" else {}
    sums = {"input_tokens": 10, "output_tokens": 2, "cost_usd": 0.5, "latency_s": 1.0}
    return {
        "trajectory_id": trajectory_id,
        "judge": "a",
        "state": state,
        "answer": answer,
        "calls": [{"role": "judge", "purpose": "verdict", "stage": 0, "sample": 0, "reply": {"state": "ok"}}],
        **sums,
        **more,
    }


def test_a_judgment_cut_at_any_byte_is_not_there_and_the_others_are(tmp_path):
    with RunFolder(tmp_path, CONFIGURATION) as folder:
        folder.append([record("a"), record("b")])
    path = tmp_path / "judgments.jsonl"
    content = path.read_bytes()
    first = content.index(b"\n") + 1
    for cut in range(0, len(content), 7):
        path.write_bytes(content[:cut])
        with RunFolder(tmp_path, CONFIGURATION) as folder:
            assert list(folder.states) == (["a"] if cut >= first else [])
            folder.append([record("c")])
        assert [each["trajectory_id"] for each in read_judgments(tmp_path)][-1] == "c"


def test_the_last_line_of_a_trajectory_counts_and_the_others_go_when_it_is_put_in_order(tmp_path):
    with RunFolder(tmp_path, CONFIGURATION) as folder:
        folder.append([record("a", "error"), record("b")])
        folder.append([record("a", "ok")])
        assert folder.states == {"a": "ok", "b": "ok"}
        assert [each["state"] for each in read_judgments(tmp_path)] == ["ok", "ok"]
        folder.finalize(["a", "b"])
    assert len((tmp_path / "judgments.jsonl").read_text().splitlines()) == 2


def test_half_an_emoji_and_a_reward_that_is_no_number_are_read_as_they_were_written(tmp_path):
    answer = Answer("ok", True, reasoning="done \ud83d")
    exchange = Exchange(CALL, reply(text="yes \ud83d"), 0)
    judged = judgment_record(Judgment("a/b/c", answer, (exchange,), reward=math.nan), "a judge")
    with RunFolder(tmp_path, CONFIGURATION) as folder:
        folder.append([judged])
    (read,) = read_judgments(tmp_path)
    assert (read["answer"]["reasoning"], read["calls"][0]["reply"]["text"]) == ("done \ud83d", "yes \ud83d")
    assert math.isnan(read["reward"])
    with RunFolder(tmp_path, CONFIGURATION) as folder:  # the run can be resumed
        assert folder.states == {"a/b/c": "ok"}


def test_another_configuration_is_refused_with_the_paths_of_what_differs(tmp_path):
    with RunFolder(tmp_path, CONFIGURATION) as folder:
        folder.append([kept(reply())])
    other = {**CONFIGURATION, "models": {"judge": {"model": "m", "temperature": 0.7}}, "threshold": 0.5}
    with pytest.raises(RunFolderError) as refused:
        RunFolder(tmp_path, other)
    assert "models.judge.temperature: 0.0 there, 0.7 now" in str(refused.value)
    assert "threshold: nothing there, 0.5 now" in str(refused.value)
    RunFolder(tmp_path, CONFIGURATION).close()  # and the refusal left no lock behind


def test_a_folder_in_which_nothing_is_judged_yet_takes_another_configuration(tmp_path):
    RunFolder(tmp_path, CONFIGURATION).close()
    RunFolder(tmp_path, other := {**CONFIGURATION, "judge": "b"}).close()
    assert read_run(tmp_path)["configuration"] == other


def test_what_is_not_set_does_not_differ_from_what_is_not_there():
    assert diff_configurations({"a": None, "b": {"c": 1}}, {"b": {"c": 1, "d": None}}) == []
    assert diff_configurations({"a": [1, 2]}, {"a": [1, 3]}) == ["a: [1, 2] there, [1, 3] now"]


def test_a_folder_with_something_else_in_it_is_not_touched(tmp_path):
    (tmp_path / "run.json").write_text('{"something": "else"}')
    with pytest.raises(RunFolderError, match="does not describe a run"):
        RunFolder(tmp_path, CONFIGURATION)
    assert (tmp_path / "run.json").read_text() == '{"something": "else"}'
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "judgments.jsonl").write_text("mine\n")
    with pytest.raises(RunFolderError, match=r"no run\.json"):
        RunFolder(tmp_path / "b", CONFIGURATION)
    assert (tmp_path / "b" / "judgments.jsonl").read_text() == "mine\n"


@pytest.mark.parametrize("content", [{"settings": {}}, {"configuration": {"judges": ["a"]}}])
def test_a_run_of_a_newer_format_is_refused(tmp_path, content):
    (tmp_path / "run.json").write_text(json.dumps({"format": 2, **content}))
    with pytest.raises(RunFolderError, match=r"run\.json: has format 2, .* upgrade it"):
        RunFolder(tmp_path, CONFIGURATION)


@pytest.mark.parametrize(
    "content",
    [
        b'{"format": "1", "conf',
        b"",
        b"\xff",
        b"[" * 100_000,
        b'{"format": 1, "configuration": []}',
        b'{"format": 1, "configuration": {}}',
        json.dumps({"format": 1, "configuration": CONFIGURATION, "spent_usd": "1"}).encode(),
    ],
)
def test_a_damaged_run_json_is_called_damaged_with_the_way_to_go_on(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(RunFolderError, match=r"run\.json: is damaged .* run the judge again in a new folder"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"not json", "Expecting value"),
        (b"", "Expecting value"),
        (b"[" * 100_000, "maximum recursion depth"),
        (b"[1, 2]", "Expected `object`, got `array`"),
        (b'{"trajectory_id": "b", "answer": {}, "calls": []}', "required field `state`"),
        (b'{"trajectory_id": "b", "state": "ok", "answer": {}, "calls": [], "cost_usd": "x"}', "cost_usd"),
        (b'{"trajectory_id": "\xff", "state": "ok", "answer": {}, "calls": []}', "utf-8"),
        (b'{"trajectory_id": "b", "state": "unsure", "answer": {"extra": 1}, "calls": []}', "'extra'"),
        (
            b'{"trajectory_id": "b", "state": "unsure", "answer": {"evidence": [{"page": 1}]}, "calls": []}',
            "'page'",
        ),
        (b'{"trajectory_id": "b", "state": "unsure", "answer": {"steps": []}, "calls": []}', "'items'"),
    ],
)
def test_a_damaged_judgment_is_called_damaged_with_its_line_and_the_way_to_go_on(tmp_path, line, problem):
    with RunFolder(tmp_path, CONFIGURATION) as folder:
        folder.append([record("a"), record("b")])
    path = tmp_path / "judgments.jsonl"
    path.write_bytes(path.read_bytes() + line + b"\n")  # as after an edit by hand
    said = rf"judgments\.jsonl, line 3: is damaged .*{re.escape(problem)}.* delete this line"
    opened = sorted(Path("/dev/fd").iterdir())
    with pytest.raises(RunFolderError, match=said):
        RunFolder(tmp_path, CONFIGURATION)
    assert sorted(Path("/dev/fd").iterdir()) == opened  # nothing stays open
    with pytest.raises(RunFolderError, match=said):
        list(read_judgments(tmp_path))


def test_a_folder_without_run_json_is_not_that_of_a_run(tmp_path):
    with pytest.raises(RunFolderError, match=r"no readable run\.json; name the folder of a run"):
        read_run(tmp_path)


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "out.jsonl").write_text("")
    with pytest.raises(RunFolderError, match=r"out\.jsonl: cannot be written"):
        RunFolder(tmp_path / "out.jsonl", CONFIGURATION)


def test_run_json_is_there_from_the_start_and_keeps_its_facts(tmp_path):
    with RunFolder(tmp_path, CONFIGURATION) as folder:
        assert read_run(tmp_path)["configuration"] == CONFIGURATION
        folder.update_run({"totals": 1, "spent_usd": 0.25})
        folder.update_run({"totals": 2})
    assert {**read_run(tmp_path)} == {
        "format": 1,
        "configuration": CONFIGURATION,
        "totals": 2,
        "spent_usd": 0.25,
    }
    assert not list(tmp_path.glob(".*.part"))


def test_totals_are_sums_and_unknown_where_one_part_is():
    # 2 x 10 tokens in, 2 x 2 out, 2 x 0.50 dollars
    assert totals([record("a", cached_input_tokens=8), record("b", "error")]) == {
        "trajectories": 2,
        "states": {"error": 1, "ok": 1},
        "calls": 2,
        "input_tokens": 20,
        "output_tokens": 4,
        "cost_usd": 1.0,
        "cached_input_tokens": 8,
        "reasoning_tokens": 0,
        "dropped_params": {},
        "served_models": {},
        "prompts_sha256": None,
    }
    assert totals([record("a"), record("b", cost_usd=None)])["cost_usd"] is None
    assert totals([])["cost_usd"] == 0


def test_a_folder_without_judgments_is_no_run(tmp_path):
    with pytest.raises(RunFolderError, match="no readable judgments"):
        list(read_judgments(tmp_path))
    with pytest.raises(RunFolderError, match=r"no readable run\.json"):
        read_run(tmp_path)
