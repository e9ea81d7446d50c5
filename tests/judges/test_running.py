"""What a run does around its engine: what it hands over, and how the folder is left."""

import json
from dataclasses import replace

import pytest

from judges.base import OptionsError
from judges.command_options import RunOptions
from judges.engine.run_folder import read_run
from judges.engine.stopping import RunEnd
from judges.running import run_judge

OPTIONS = RunOptions(judge="always-successful", split="dev", suite="sample", limit=4)


def record(trajectory_id: str, state: str = "ok") -> dict:
    answer = {"success": True} if state == "ok" else {}
    return {"trajectory_id": trajectory_id, "state": state, "answer": answer, "calls": []}


def test_an_engine_gets_what_is_not_judged_yet_and_what_it_keeps_is_the_run(tmp_path):
    given = []

    def half(job, folder, progress):
        given.append(job.ids)
        folder.append(map(record, job.ids[:2]))
        return RunEnd("waiting", "two are left")

    first = run_judge(OPTIONS, tmp_path, half)
    assert (first.ended.how, first.judged, first.chosen) == ("waiting", 2, 4)
    second = run_judge(OPTIONS, tmp_path, half)
    assert (second.judged, given[1]) == (4, given[0][2:])
    assert [session["ended"] for session in read_run(tmp_path)["sessions"]] == ["waiting", "waiting"]


def test_a_finished_run_starts_no_engine(tmp_path):
    def whole(job, folder, progress):
        folder.append(map(record, job.ids))
        return RunEnd("finished")

    def never(job, folder, progress):
        raise AssertionError("there is nothing to do")

    run_judge(OPTIONS, tmp_path, whole)
    assert run_judge(OPTIONS, tmp_path, never).ended.how == "finished"


@pytest.mark.parametrize(("fault", "how"), [(KeyboardInterrupt, None), (OSError("disk full"), "raised")])
def test_whatever_ends_an_engine_the_folder_is_whole(tmp_path, fault, how):
    def broken(job, folder, progress):
        folder.append([record(job.ids[1])])
        raise fault

    if how is None:
        assert run_judge(OPTIONS, tmp_path, broken).ended.how == "interrupted"
    else:
        with pytest.raises(OSError, match="disk full"):
            run_judge(OPTIONS, tmp_path, broken)
    rows = [json.loads(line) for line in (tmp_path / "predictions.jsonl").read_text().splitlines()]
    assert len(rows) == 1
    noted = read_run(tmp_path)
    assert (noted["totals"]["trajectories"], noted["sessions"][-1]["ended"]) == (1, "interrupted")


def test_of_a_killed_run_the_session_says_so(tmp_path):
    seen = []

    def look(job, folder, progress):
        seen.append(read_run(tmp_path)["sessions"][-1]["ended"])
        return RunEnd("interrupted")

    run_judge(OPTIONS, tmp_path, look)
    assert seen == ["killed"]  # what stands there should the process die now


def test_dollars_of_earlier_sessions_count_and_unknown_ones_stay_unknown(tmp_path):
    def paid(usd):
        def engine(job, folder, progress):
            progress.spend.add(usd, 1)
            return RunEnd("interrupted")

        return engine

    for usd, total in ((0.25, 0.25), (0.5, 0.75), (None, None), (1.0, None)):
        run_judge(OPTIONS, tmp_path, paid(usd))
        assert read_run(tmp_path)["spent_usd"] == total


def test_every_problem_of_the_options_is_told_at_once(tmp_path):
    wrong = replace(OPTIONS, judge="gpt-4o (A)", shard="9", provider="acme")
    with pytest.raises(OptionsError) as told:
        run_judge(wrong, tmp_path / "run", None)
    assert "--shard 9" in str(told.value) and "--provider acme" in str(told.value)
    assert not (tmp_path / "run").exists()


def test_runs_that_the_source_does_not_have_are_counted_and_in_no_file(tmp_path):
    from dataset_script.suite import load_suite

    suite = tmp_path / "suite"
    suite.mkdir()
    there = load_suite("sample").split("dev")[0].trajectory_id
    benchmark, agent, task = there.split("/")
    (suite / "trajectories.csv").write_text(
        f"trajectory_id,split\n{there},dev\n{benchmark}/{agent}/{task}-that-is-missing,dev\n"
    )
    options = replace(OPTIONS, judge="rule-based", suite=str(suite), source=sample_data())

    def whole(job, folder, progress):
        folder.append(map(record, job.ids))
        return RunEnd("finished")

    outcome = run_judge(options, tmp_path / "run", whole)
    assert (outcome.judged, outcome.chosen, outcome.absent) == (1, 2, 1)
    assert read_run(tmp_path / "run")["selection"]["without_a_run"] == 1


def sample_data():
    from pathlib import Path

    from dataset_script import sample

    return Path(sample.__file__).parent / "data"
