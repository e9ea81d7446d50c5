"""Write the files of a source of runs, and read what it lists."""

import json
from pathlib import Path
from typing import Any

from arb.core.trajectory import Recording
from dataset_script.sources import open_source
from dataset_script.sources.base import TrajectorySource
from dataset_script.sources.problems import Note


def write_json(folder: Path, content: Any, name: str = "run.json") -> Path:
    """Write a JSON file into a folder, which is made if it is absent."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return path


def read_one(path: Path) -> tuple[Recording, list[Note]]:
    """Read the only run of a source, of the kind that it is recognised as."""
    source = open_source(path)
    (file,) = source.list_runs().files
    recording, notes = source.read(file)
    return recording, list(notes)


def ids(source: TrajectorySource) -> list[str]:
    return [file.trajectory_id for file in source.list_runs().files]
