import json
from dataclasses import replace

import pytest

from dataset_script.blind import Blinding
from dataset_script.building import parts as module
from dataset_script.building.parts import PartTask, make_part
from dataset_script.sources.released import ReleasedSource
from dataset_script.suite import DevLabels

DEV_1 = "shop/GenericAgent-a/shop.1"


@pytest.fixture
def task(source, suite, tmp_path):
    """A part's task for the files that the source has of a trajectory now."""

    def task_of(trajectory_id=DEV_1, is_judgments=False):
        released = ReleasedSource(source.path)
        listed = released.list_judgments() if is_judgments else released.list()
        files = tuple(f for f in listed.files if f.trajectory_id == trajectory_id)
        folder = tmp_path / "parts"
        folder.mkdir(exist_ok=True)
        return PartTask(folder, released, suite.find(trajectory_id), files, is_judgments=is_judgments)

    return task_of


@pytest.fixture
def reads(monkeypatch):
    """Counts the files that are read."""
    read, real = [], ReleasedSource.read

    def counted(self, file):
        read.append(file.name)
        return real(self, file)

    monkeypatch.setattr(ReleasedSource, "read", counted)
    return read


def test_a_part_that_is_there_is_not_made_again(source, task, reads):
    source.put(DEV_1, goal="")
    first, second = make_part(task()), make_part(task())
    assert len(reads) == 1
    assert (first.folder, first.sizes) == (second.folder, second.sizes)
    assert [f.code for f in second.notes] == ["no_goal", "no_dev_labels"]  # what was told is told again
    assert first.table("steps").equals(second.table("steps"))


def test_a_part_that_was_not_finished_is_made_again(source, task, reads):
    source.put(DEV_1)
    part = make_part(task())
    part.folder.rename(f"{part.folder}.unfinished")
    assert make_part(task()).table("trajectories").num_rows == 1
    assert len(reads) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda task: replace(task, labels=DevLabels(DEV_1, 1, True, None, None, None)),
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
    monkeypatch.setattr(module, "_code_version", lambda: "another")
    seen.add(make_part(task()).folder)
    assert len(seen) == 4


def test_files_that_give_nothing_make_a_part_without_tables_that_tells_why(source, task):
    source.put(DEV_1, b"{")
    part = make_part(task())
    assert part.sizes == {}
    assert [f.code for f in part.left_out] == ["not_json"]


def test_a_value_that_no_column_can_hold_is_the_files_fault(source, task, make_step):
    source.put(DEV_1, steps=[make_step(0)])
    broken = replace(task(), source=_Giving(task().source, model=7))
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


class _Giving:
    """A source whose recordings have other values, as a source of somebody else's may."""

    kind = "other"

    def __init__(self, source, **changes):
        self._source, self._changes = source, changes

    def read(self, file):
        recording, notes = self._source.read(file)
        return replace(recording, **self._changes), notes


def test_judgments_are_rows_by_judge_and_a_reply_takes_the_place_of_an_error(source, task, table):
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
