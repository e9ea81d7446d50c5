"""The folder of a run: whole after any death, one configuration, one process at a time."""

import json

import pytest

from judges.engine.run_folder import (
    RunFolder,
    RunFolderError,
    diff_configurations,
    read_judgments,
    read_run,
    totals,
)

CONFIGURATION = {"judge": "a", "models": {"judge": {"model": "m", "temperature": 0.0}}}


def record(trajectory_id: str, state: str = "ok", **more) -> dict:
    answer = {"success": True} if state == "ok" else {}
    sums = {"input_tokens": 10, "output_tokens": 2, "cost_usd": 0.5, "latency_s": 1.0}
    return {
        "trajectory_id": trajectory_id,
        "judge": "a",
        "state": state,
        "answer": answer,
        "calls": [{}],
        **sums,
        **more,
    }


def test_judgments_and_predictions_come_in_the_order_of_the_suite_whatever_ended_first(tmp_path):
    with RunFolder(tmp_path, CONFIGURATION) as folder:
        folder.append([record("c"), record("a", "refused")])
        folder.append([record("b")])
        folder.finalize(["a", "b", "c", "d"])
    lines = [json.loads(line) for line in (tmp_path / "predictions.jsonl").read_text().splitlines()]
    assert [(line["trajectory_id"], line["success"], line["state"]) for line in lines] == [
        ("a", None, "refused"),
        ("b", True, "ok"),
        ("c", True, "ok"),
    ]
    assert [each["trajectory_id"] for each in read_judgments(tmp_path)] == ["a", "b", "c"]


def test_what_was_appended_is_there_again_for_the_next_process(tmp_path):
    with RunFolder(tmp_path, CONFIGURATION) as folder:
        folder.append([record("a"), record("b", "error")])
    with RunFolder(tmp_path, CONFIGURATION) as folder:
        assert folder.states == {"a": "ok", "b": "error"}


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


def test_another_configuration_is_refused_with_the_paths_of_what_differs(tmp_path):
    RunFolder(tmp_path, CONFIGURATION).close()
    other = {"judge": "a", "models": {"judge": {"model": "m", "temperature": 0.7}}, "threshold": 0.5}
    with pytest.raises(RunFolderError) as refused:
        RunFolder(tmp_path, other)
    assert "models.judge.temperature: 0.0 there, 0.7 now" in str(refused.value)
    assert "threshold: nothing there, 0.5 now" in str(refused.value)
    RunFolder(tmp_path, CONFIGURATION).close()  # and the refusal left no lock behind


def test_what_is_not_set_does_not_differ_from_what_is_not_there():
    assert diff_configurations({"a": None, "b": {"c": 1}}, {"b": {"c": 1, "d": None}}) == []
    assert diff_configurations({"a": [1, 2]}, {"a": [1, 3]}) == ["a: [1, 2] there, [1, 3] now"]


def test_two_processes_do_not_share_a_folder(tmp_path):
    with RunFolder(tmp_path, CONFIGURATION), pytest.raises(RunFolderError, match="another process"):
        RunFolder(tmp_path, CONFIGURATION)


def test_a_folder_with_something_else_in_it_is_not_touched(tmp_path):
    (tmp_path / "run.json").write_text('{"something": "else"}')
    with pytest.raises(RunFolderError, match="not of format"):
        RunFolder(tmp_path, CONFIGURATION)
    assert (tmp_path / "run.json").read_text() == '{"something": "else"}'
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "judgments.jsonl").write_text("mine\n")
    with pytest.raises(RunFolderError, match=r"no run\.json"):
        RunFolder(tmp_path / "b", CONFIGURATION)
    assert (tmp_path / "b" / "judgments.jsonl").read_text() == "mine\n"


def test_a_file_in_place_of_the_folder_is_said_so(tmp_path):
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
    assert totals([record("a"), record("b", "error")]) == {
        "trajectories": 2,
        "states": {"error": 1, "ok": 1},
        "calls": 2,
        "input_tokens": 20,
        "output_tokens": 4,
        "cost_usd": 1.0,
    }
    assert totals([record("a"), record("b", cost_usd=None)])["cost_usd"] is None
    assert totals([])["cost_usd"] == 0


def test_a_folder_without_judgments_is_no_run(tmp_path):
    with pytest.raises(RunFolderError, match="no judgments"):
        list(read_judgments(tmp_path))
    with pytest.raises(RunFolderError, match=r"no run\.json"):
        read_run(tmp_path)
