"""The explorer as a whole: stories, pictures, trees; folders that are rebuilt or damaged."""

import os

import pyarrow.parquet as pq
import pytest

from space.pages.trajectories.dataset import TrajectoriesUnavailable
from space.pages.trajectories.images import NoPicture
from tests.space.pages.trajectories.conftest import SMALL, explorer_over, some_trajectories
from tests.support.synthetic_dataset import make_dataset


def test_a_built_dataset_comes_first_and_the_sample_can_be_chosen_beside_it(explorer):
    assert [shown.suite for shown in explorer.datasets()] == ["agent-reward-bench", "sample"]
    assert explorer.of_suite().suite == explorer.of_suite("unknown").suite == "agent-reward-bench"
    assert explorer.of_suite("sample").is_sample


def test_the_element_acted_on_is_named_as_the_page_names_it(explorer, entries):
    clicked = [
        step
        for entry in entries[:8]
        for step in explorer.story(entry.trajectory_id).steps
        if step.words and step.words.title == "Click"
    ]
    assert clicked
    assert all("“" in step.words.element and step.outline for step in clicked)


def test_an_unknown_id_is_a_key_error_whatever_is_asked(explorer):
    for ask in (
        lambda name: explorer.story(name),
        lambda name: explorer.picture("step", name, 0, None),
        lambda name: explorer.tree(name, 0, "full"),
        lambda name: explorer.reasoning(name, "aer"),
    ):
        with pytest.raises(KeyError):
            ask("../../etc/passwd")


def test_a_picture_that_is_not_there_is_told_apart_from_an_unknown_trajectory(explorer, entries):
    with pytest.raises(NoPicture):
        explorer.picture("step", entries[0].trajectory_id, 999, 160)
    without = next(e for e in entries if not explorer.story(e.trajectory_id).goal_images)
    with pytest.raises(NoPicture):
        explorer.picture("goal", without.trajectory_id, 0, None)


def test_goal_images_are_counted_and_served(explorer, entries):
    counts = {e.trajectory_id: len(explorer.story(e.trajectory_id).goal_images) for e in entries}
    with_images = [name for name, count in counts.items() if count]
    assert with_images
    assert explorer.picture("goal", with_images[0], 0, 320).size == (320, 180)


def test_a_story_reads_its_own_row_group_of_the_steps_and_no_tree_in_full(explorer, entries, monkeypatch):
    read, real = [], pq.ParquetFile.read_row_group

    def noted(self, number, columns=None, **options):
        read.append((number, columns))
        return real(self, number, columns=columns, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    monkeypatch.setattr(pq, "read_table", None)
    explorer.story(entries[7].trajectory_id)
    of_steps = [columns for _, columns in read if "screenshot" in columns]
    assert len(of_steps) == 1
    assert "axtree" not in of_steps[0]


def test_a_folder_that_was_built_again_is_shown_as_it_is_now(tmp_path):
    few = some_trajectories()
    folder = make_dataset(tmp_path / "data", shape=SMALL, only=few[:3])
    explorer = explorer_over(folder, tmp_path)
    before = explorer.of_suite()
    assert len(before.index.entries) == 3
    make_dataset(folder, shape=SMALL, only=few[:5], seed=1)
    os.utime(folder / "manifest.json", ns=(1, 1))  # at another time, however coarse the clock is
    after = explorer.of_suite()
    assert (len(after.index.entries), after.version != before.version) == (5, True)
    assert explorer.story(few[4].trajectory_id).steps


def test_a_manifest_that_broke_meanwhile_leaves_the_dataset_as_it_was(tmp_path, caplog):
    folder = make_dataset(tmp_path / "data", shape=SMALL, only=some_trajectories()[:2])
    explorer = explorer_over(folder, tmp_path)
    assert len(explorer.of_suite().index.entries) == 2
    (folder / "manifest.json").write_text("{")
    assert len(explorer.of_suite().index.entries) == 2
    assert str(folder) in caplog.text


def test_files_that_went_away_are_said_to_be_unreadable(tmp_path):
    few = some_trajectories()[:2]
    folder = make_dataset(tmp_path / "data", shape=SMALL, only=few)
    explorer = explorer_over(folder, tmp_path)
    explorer.story(few[0].trajectory_id)
    for file in folder.rglob("*.parquet"):
        file.write_bytes(b"PAR1 no more")
    with pytest.raises(TrajectoriesUnavailable):
        explorer.story(few[1].trajectory_id)
