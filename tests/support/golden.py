"""Files of `tests/golden/` that something is compared with; `UPDATE_GOLDEN=1` writes them anew."""

import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dataset_script.sources.base import SourceFile, TrajectorySource
from dataset_script.sources.problems import UnusableFileError

GOLDEN = Path(__file__).parents[1] / "golden"


def assert_golden(name: str, found: str) -> None:
    """The text is that of the golden file; with UPDATE_GOLDEN it becomes it."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(found, encoding="utf-8")
    assert found.splitlines() == path.read_text(encoding="utf-8").splitlines()


def assert_golden_source(name: str, source: TrajectorySource) -> None:
    """Everything that a source lists and reads is that of the golden file, whose name is without ending."""
    listing = source.list_runs()
    found: dict[str, Any] = {"kind": source.kind, "others": list(listing.others)}
    found["runs"] = [{"name": file.name, **_run(source, file)} for file in listing.files]
    assert_golden(f"{name}.json", json.dumps(found, indent=1, ensure_ascii=False, default=_plain) + "\n")


def _run(source: TrajectorySource, file: SourceFile) -> dict[str, Any]:
    """A run without what is null in it, so that the file stays short enough to be read."""
    try:
        recording, notes = source.read(file)
    except UnusableFileError as error:
        return {"trajectory_id": file.trajectory_id, "refused": [error.code, error.detail]}
    steps = [_without_nulls(asdict(step)) for step in recording.steps]
    run = _without_nulls(asdict(recording)) | {"steps": steps}
    if recording.usage is not None:
        run["usage"] = _without_nulls(asdict(recording.usage))
    return run | {"notes": [f"{note.code}: {note.detail}" for note in notes]}


def _without_nulls(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, (), [])}


def _plain(value: Any) -> str:
    if isinstance(value, Path):
        return "/".join(value.parts[-3:])
    return f"{len(value)} bytes, sha256 {hashlib.sha256(value).hexdigest()[:12]}"
