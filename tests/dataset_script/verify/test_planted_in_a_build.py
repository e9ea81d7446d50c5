"""The five things that verify must catch, planted in what the real builder makes of the six recordings."""

import hashlib
import json
import shutil
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataset_script.build.build import build
from dataset_script.schema import CONFIGURATIONS, arrow_schema
from dataset_script.verify.check import verify

pytestmark = pytest.mark.shared
Row = dict[str, Any]


@pytest.fixture(scope="module")
def genuine(shared, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("build") / "localshop"
    assert build(shared / "data" / "released_layout", out).published
    return out


@pytest.fixture
def folder(genuine, tmp_path) -> Path:
    return shutil.copytree(genuine, tmp_path / "localshop")


def plant(
    folder: Path, configuration: str, split: str, change: Callable[[list[Row]], None], honest=True
) -> str:
    """Change the rows of a file; with ``honest`` the manifest tells of the new file, as a builder's would."""
    name = f"data/{configuration}/{split}-00000-of-00001.parquet"
    rows = pq.read_table(folder / name).to_pylist()
    change(rows)
    schema = arrow_schema(configuration)
    is_grouped = CONFIGURATIONS[configuration].groups_by_trajectory
    with pq.ParquetWriter(folder / name, schema, compression="zstd") as writer:
        for _, group in groupby(rows, key=lambda row: row["trajectory_id"] if is_grouped else None):
            writer.write_table(pa.Table.from_pylist(list(group), schema=schema))
    if honest:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        data = (folder / name).read_bytes()
        manifest["files"][name] |= {
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
            "rows": len(rows),
        }
        (folder / "manifest.json").write_text(json.dumps(manifest))
    return name


def errors(folder: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for finding in verify(folder).findings:
        found.setdefault(finding.code, set()).add(finding.file)
    return found


def test_the_build_itself_passes(folder):
    assert verify(folder).findings == ()


def test_a_rewritten_file_with_the_same_rows_passes_only_with_an_honest_manifest(folder):
    name = plant(folder, "steps", "dev", lambda rows: None)
    assert errors(folder) == {}

    plant(folder, "steps", "dev", lambda rows: rows[0].update(url="http://other/"), honest=False)
    assert errors(folder) == {"other_bytes": {name}}


@pytest.mark.parametrize("configuration", ["trajectories", "steps"])
def test_a_planted_reward(folder, configuration):
    def change(rows: list[Row]) -> None:
        step = rows[0]["steps"][0] if configuration == "trajectories" else rows[0]
        step["reasoning"] = 'The summary says {"cum_reward": 1.0}.'

    name = plant(folder, configuration, "test", change)

    assert errors(folder) == {"reward": {name}}


def test_a_planted_test_label(folder):
    name = plant(folder, "trajectories", "test", lambda rows: rows[2].update(success=0))

    assert errors(folder) == {"test_label": {name}}


def test_a_swapped_image(folder):
    def change(rows: list[Row]) -> None:
        rows[0]["final_screenshot"], rows[1]["final_screenshot"] = (
            rows[1]["final_screenshot"],
            rows[0]["final_screenshot"],
        )

    plant(folder, "trajectories_with_screenshot", "test", change)

    assert errors(folder) == {"configurations_disagree": {"data"}}


def test_a_duplicated_id(folder):
    name = plant(folder, "rewards", "test", lambda rows: rows.append(dict(rows[0])))

    assert errors(folder) == {"duplicate_id": {name}}


def test_a_task_in_both_splits(folder):
    def change(rows: list[Row]) -> None:
        rows[0].update(task=dev_task, split="test")

    dev_task = pq.read_table(folder / "data/tasks/dev-00000-of-00001.parquet").to_pylist()[0]["task"]
    name = plant(folder, "tasks", "test", change)

    assert errors(folder) == {"task_in_both_splits": {"data"}, "duplicate_id": {name}}
