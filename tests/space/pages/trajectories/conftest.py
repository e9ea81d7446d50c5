"""A small dataset of official ids, built by the builder's own code, and an explorer over it."""

from pathlib import Path

import pytest

from arb.core.settings import Settings
from arb.core.suite import Trajectory, load_suite
from space.pages.trajectories.dataset import Explorer
from submissions.app import SubmissionsApp
from tests.support.synthetic_dataset import Shape, make_dataset
from tests.support.text_runs import text_runs  # noqa: F401 - a fixture

SMALL = Shape(pages=6, tree_characters=1_500, mean_steps=6)
TASKS = 3
"""Tasks of each benchmark and split in the small dataset."""


def some_trajectories() -> list[Trajectory]:
    """The runs of the first tasks of VisualWebArena and WebArena in each split, by all of their agents."""
    chosen: dict[tuple[str, str], list[str]] = {}
    found = []
    for trajectory in load_suite().trajectories:
        if trajectory.benchmark not in ("visualwebarena", "webarena"):
            continue
        tasks = chosen.setdefault((trajectory.benchmark, trajectory.split), [])
        if trajectory.task not in tasks and len(tasks) < TASKS:
            tasks.append(trajectory.task)
        if trajectory.task in tasks:
            found.append(trajectory)
    return found


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Path:
    """The folder of the small dataset; read-only."""
    return make_dataset(tmp_path_factory.mktemp("built") / "data", shape=SMALL, only=some_trajectories())


def explorer_over(folder: Path, tmp_path: Path, **changes) -> Explorer:
    """An explorer over a dataset, with no submission and no labels."""
    settings = Settings(**{"data_dir": folder, "state_dir": tmp_path / "state", "labels": "none", **changes})
    return Explorer(settings, SubmissionsApp(settings))


@pytest.fixture(scope="session")
def explorer(built, tmp_path_factory) -> Explorer:
    """An explorer over the small dataset."""
    return explorer_over(built, tmp_path_factory.mktemp("explorer"))


@pytest.fixture(scope="session")
def entries(explorer):
    """Every entry of the small dataset, in order."""
    return explorer.of_suite().index.entries


@pytest.fixture(scope="session")
def dev(entries):
    """The dev entries."""
    return [entry for entry in entries if entry.split == "dev"]


@pytest.fixture(scope="session")
def test_entries(entries):
    """The test entries."""
    return [entry for entry in entries if entry.split == "test"]
