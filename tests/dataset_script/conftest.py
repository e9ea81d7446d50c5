"""An empty or full source in the released layout for a small suite, and what a build of it gives."""

from pathlib import Path
from typing import Any

import pytest

from dataset_script.sources.released import ReleasedSource
from tests.support.released_layout import SourceFolder
from tests.support.small_suite import SUITE_IDS, suite, suite_folder  # noqa: F401 - the fixtures of both
from tests.support.text_runs import text_runs  # noqa: F401 - a fixture


@pytest.fixture
def source(tmp_path) -> SourceFolder:
    """An empty source."""
    return SourceFolder(tmp_path / "source")


@pytest.fixture
def full_source(source) -> SourceFolder:
    """A source that holds every trajectory of the suite."""
    for trajectory_id in SUITE_IDS:
        source.put(trajectory_id)
    return source


@pytest.fixture
def read_files(monkeypatch) -> list[str]:
    """The names of the files in the released layout that are read, in this process."""
    read, real = [], ReleasedSource.read

    def noted(self, file):
        read.append(file.name)
        return real(self, file)

    monkeypatch.setattr(ReleasedSource, "read", noted)
    return read


@pytest.fixture
def suite_ids() -> tuple[str, ...]:
    return SUITE_IDS


@pytest.fixture
def out(tmp_path) -> Path:
    """Where a build goes: a place with nothing beside it."""
    (tmp_path / "published").mkdir()
    return tmp_path / "published" / "agent-reward-bench"


@pytest.fixture
def table():
    """The rows of a configuration and split of a built folder, as Parquet has them."""
    import pyarrow.parquet as pq

    def rows(out: Path, split: str, configuration: str = "trajectories") -> list[dict[str, Any]]:
        shards = sorted((out / "data" / configuration).glob(f"{split}-*"))
        return [row for path in shards for row in pq.read_table(path).to_pylist()]

    return rows


@pytest.fixture
def contents():
    """Every file of a folder with its bytes."""

    def files(folder: Path) -> dict[str, bytes]:
        found = sorted(path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}

    return files


@pytest.fixture
def load(tmp_path, monkeypatch):
    """`load_dataset` by the folder's bare name from its parent, as users do it; no network, own cache."""
    import socket

    import datasets

    def refuse(*_arguments):
        raise AssertionError("the dataset has to load without a network")

    def load_from_parent(out: Path, *configuration: str, **options: Any):
        monkeypatch.chdir(out.parent)
        return datasets.load_dataset(out.name, *configuration, cache_dir=str(tmp_path / "cache"), **options)

    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    return load_from_parent
