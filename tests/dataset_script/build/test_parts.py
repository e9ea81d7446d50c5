import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from arb.core.annotation import Annotation
from dataset_script.build import parts as module
from dataset_script.build.blind import Blinding
from dataset_script.build.parts import PartTask, make_part
from dataset_script.build.workers import WorkerError, Workers
from dataset_script.sources.released import ReleasedSource
from tests.support.released_layout import png
from tests.support.released_layout import step as make_step

REPOSITORY = Path(__file__).parents[3]


def where(_number):
    return os.getpid()


def fail(number):
    raise OSError(28, f"No space left for {number}")


def die(_number):
    os.kill(os.getpid(), signal.SIGKILL)


def blocks_interrupts(_number):
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def run_all(workers, function, tasks):
    return [result for _, result in workers.run_each(function, [(task, 0) for task in tasks])]


def test_one_worker_is_this_process_and_several_are_others():
    with Workers(1) as workers:
        assert set(run_all(workers, where, [1, 2])) == {os.getpid()}
    with Workers(2) as workers:
        assert os.getpid() not in run_all(workers, where, [1, 2])


def test_workers_leave_ctrl_c_to_their_parent_from_the_start_also_while_they_import():
    with Workers(2) as workers:
        assert run_all(workers, blocks_interrupts, [1, 2]) == [True, True]  # as inherited from the parent
    assert not blocks_interrupts(0)


def test_no_more_is_read_at_once_than_the_memory_allows_but_always_one(monkeypatch):
    monkeypatch.setattr("dataset_script.build.workers.BYTES_AT_ONCE", 100)
    workers = Workers(4)
    assert workers._has_room(500, [])
    assert workers._has_room(40, [("a", 60)])
    assert not workers._has_room(41, [("a", 60)])
    assert not workers._has_room(0, [("a", 0)] * 8)  # two for each process are enough


def test_an_error_of_a_task_ends_the_work_with_it():
    with pytest.raises(OSError, match="No space left"), Workers(2) as workers:
        run_all(workers, fail, [1, 2, 3])


def test_a_killed_process_is_reported_with_what_may_be_done():
    with pytest.raises(WorkerError, match="run the same command again to resume"), Workers(2) as workers:
        run_all(workers, die, [1, 2])


def test_an_interruption_does_not_wait_for_what_is_under_way():
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Workers(2) as workers:
        for _ in workers.run_each(time.sleep, [(900, 0), (0, 0)]):
            raise KeyboardInterrupt
    assert time.monotonic() - begun < 600


def test_workers_end_when_their_parent_is_killed(tmp_path):
    code = f"""
import sys, time
sys.path.insert(0, {str(REPOSITORY)!r})
from dataset_script.build.workers import Workers
if __name__ == "__main__":
    with Workers(2) as workers:
        list(workers.run_each(time.sleep, [(0, 0), (0, 0)]))
        print(*[p.pid for p in workers._processes()._processes.values()], flush=True)
        time.sleep(60)
"""
    script = tmp_path / "parent.py"
    script.write_text(code)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    children = [int(number) for number in parent.stdout.readline().split()]
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 120
    while any(map(_alive, children)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children and not any(map(_alive, children))


def _alive(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0]
    except OSError:
        return False


DEV_1 = "shop/GenericAgent-a/shop.1"


@pytest.fixture
def task(source, suite, tmp_path):
    """A part's task for the files that the source has of a trajectory now."""

    def task_of(trajectory_id=DEV_1, is_judgments=False):
        released = ReleasedSource(source.path)
        listed = released.list_judgments() if is_judgments else released.list_runs()
        files = tuple(f for f in listed.files if f.trajectory_id == trajectory_id)
        folder = tmp_path / "parts"
        folder.mkdir(exist_ok=True)
        return PartTask(folder, released, suite.find(trajectory_id), files, is_judgments=is_judgments)

    return task_of


def test_a_part_that_is_there_is_not_made_again(source, task, read_files):
    source.put(DEV_1, goal="")
    first, second = make_part(task()), make_part(task())
    assert len(read_files) == 1
    assert first == second
    assert [f.code for f in second.notes] == ["no_goal", "no_dev_labels"]  # what was told is told again
    assert first.table("steps").equals(second.table("steps"))


@pytest.mark.parametrize("name", ["part.json", "steps.arrow"])
@pytest.mark.parametrize("left", [None, 0, 7, 0.5, 0.99])
def test_a_part_that_was_cut_off_is_made_again(source, task, read_files, name, left):
    source.put(DEV_1)
    part = make_part(task())
    file = Path(part.folder) / name
    if left is None:
        file.unlink()
    else:
        os.truncate(file, int(left if left > 1 else left * file.stat().st_size))
    assert make_part(task()) == part
    assert len(read_files) == 2
    assert part.table("steps").num_rows == 3


def test_pictures_of_the_source_and_of_files_stand_in_one_column(source, task, tmp_path):
    source.put(DEV_1, steps=[make_step(0), make_step(1), make_step(2)])
    odd = tmp_path / os.fsdecode(b"not \xff UTF-8.png")
    odd.write_bytes(png(2))
    steps = task().source.read(*task().files)[0].steps
    with_both = [replace(one, screenshot=each) for one, each in zip(steps, (png(1), None, odd), strict=True)]
    part = make_part(replace(task(), source=_ChangedSource(task().source, steps=tuple(with_both))))
    expected = [{"bytes": png(1), "path": None}, None, {"bytes": png(2), "path": None}]
    assert part.table("steps")["screenshot"].to_pylist() == expected


@pytest.mark.parametrize(
    "change",
    [
        lambda task: replace(task, labels=Annotation(DEV_1, answers={"success": "yes"})),
        lambda task: replace(task, blinding=Blinding(b"k" * 32)),
        lambda task: replace(task, trajectory=replace(task.trajectory, split="test")),
    ],
)
def test_whatever_goes_into_a_part_makes_another_one(source, task, change):
    source.put(DEV_1)
    assert make_part(task()).folder != make_part(change(task())).folder


def test_a_changed_file_a_new_picture_and_changed_code_make_another_part(source, task, monkeypatch):
    source.put(DEV_1)
    seen = {make_part(task()).folder}
    source.put(DEV_1, goal="another goal, of another length")
    seen.add(make_part(task()).folder)
    source.picture(DEV_1, 0)
    seen.add(make_part(task()).folder)
    monkeypatch.setattr(module, "code_version", lambda: "another")
    seen.add(make_part(task()).folder)
    assert len(seen) == 4


def test_a_value_that_no_column_can_hold_is_the_files_fault(source, task):
    source.put(DEV_1, steps=[make_step(0)])
    broken = replace(task(), source=_ChangedSource(task().source, model=7))
    part = make_part(broken)
    assert (part.sizes, part.left_out[0].code) == ({}, "not_a_trajectory")
    assert "trajectories" in part.left_out[0].message


def test_a_reader_that_fails_on_a_file_ends_nothing(source, task, monkeypatch):
    def fail(_self, _file):
        raise ZeroDivisionError("unheard of")

    source.put(DEV_1)
    monkeypatch.setattr(ReleasedSource, "read", fail)
    (finding,) = make_part(task()).left_out
    assert (finding.code, finding.message) == ("reader_failed", "ZeroDivisionError: unheard of")


class _ChangedSource:
    """A source whose recordings have other values, as a source of somebody else's may."""

    kind = "other"

    def __init__(self, source, **changes):
        self._source, self._changes = source, changes

    def read(self, file):
        recording, notes = self._source.read(file)
        return replace(recording, **self._changes), notes

    def identity(self, file):
        return self._source.identity(file)


def test_judgments_are_rows_by_judge_and_a_reply_takes_the_place_of_an_error(source, task):
    source.put(DEV_1)
    source.judge(DEV_1, "nnetnav", "Reward: 4")
    source.judge(DEV_1, "aer", {"error": "x"}, ending="_error")
    source.judge(DEV_1, "aer", "Status: failure")
    source.judge(DEV_1, "gpt-4o-noscreen", {"error": "x"}, ending="_error")
    source.judge(DEV_1, "claude", b"{")
    part = make_part(task(is_judgments=True))
    rows = part.table("judgments").to_pylist()
    assert [(row["judge"], row["state"], row["success"]) for row in rows] == [
        ("aer", "ok", 0),
        ("gpt-4o-noscreen", "error", None),
        ("nnetnav", "ok", 1),
    ]
    assert [(f.code, f.file.split("/")[3:]) for f in part.left_out] == [
        ("failed_judgment", ["aer", "shop.1_error.json"]),
        ("not_json", ["claude", "shop.1.json"]),
    ]
    assert "CANARY" not in json.dumps(rows)
