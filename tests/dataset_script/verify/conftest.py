"""A small published folder, written here with pyarrow as the contract says, that tests plant things in."""

import copy
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from arb.core.suite import Suite, load_suite
from dataset_script.by_id import write_index
from dataset_script.schema import CONFIGURATIONS, arrow_schema

RUNS = {"dev": ("shop/Agent-a/shop.1", "shop/Agent-b/shop.1"), "test": ("shop/Agent-a/shop.2",)}
STEPS = 3
Rows = dict[tuple[str, str], list[dict[str, Any]]]


def picture(shade: int) -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (8, 6), (shade, 0, 0)).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


def all_rows() -> Rows:
    """Rows of a whole dataset of three trajectories, one task a split."""
    rows: Rows = {}
    for split, ids in RUNS.items():
        for number, trajectory_id in enumerate(ids):
            for configuration, cells in _rows_of(trajectory_id, number, split):
                rows.setdefault((configuration, split), []).append(_whole_row(configuration, cells))
        task = {"task": ids[0].split("/")[2], "benchmark": "shop", "split": split, "sites": ["shop"]}
        rows["tasks", split] = [_whole_row("tasks", task | {"evaluation_types": []})]
    return rows


def _whole_row(configuration: str, cells: dict[str, Any]) -> dict[str, Any]:
    return {column.name: cells.get(column.name) for column in CONFIGURATIONS[configuration].columns}


def _rows_of(trajectory_id: str, number: int, split: str) -> Iterator[tuple[str, dict[str, Any]]]:
    benchmark, agent, task = trajectory_id.split("/")
    its = {"trajectory_id": trajectory_id}
    labels = {"success": 1, "side_effect": 0, "repetition": 0, "optimality": 4} if split == "dev" else {}
    steps = [_step(n) for n in range(STEPS)]
    pictures = [picture(10 * number + n) for n in range(STEPS)]
    whole = {**its, "benchmark": benchmark, "agent": agent, "model": "m", "task_id": task}
    whole |= {"goal": "Buy a teapot.", "n_steps": STEPS, "steps": steps, **labels}
    whole |= {"final_axtree": f"{trajectory_id} {STEPS - 1}", "final_axtree_pruned": "pruned"}
    yield "trajectories", copy.deepcopy(whole)
    images = {"final_screenshot": pictures[-1], "goal_images": [picture(99)]}
    yield "trajectories_with_screenshot", copy.deepcopy(whole | images)
    for n in range(STEPS):
        tree = {"axtree": f"{trajectory_id} {n}", "axtree_pruned": "pruned"}
        yield "steps", {**its, **steps[n], **tree, "screenshot": pictures[n], "box": [1.0, 2.0, 3.0, 4.0]}
    yield "rewards", {**its, "cum_reward": 1.0, "rule_based": 1}
    yield "usage", {**its, "state": "completed", "input_tokens": 70, "cost_usd": 0.5}
    yield "judgments", {**its, "judge": "aer", "state": "ok", "success": 1, "reply": "Status: success"}
    if split == "dev":
        yield "annotations", {**its, "annotation": 1, "annotator": "annotator-1", **labels}


def _step(num: int) -> dict[str, Any]:
    action = None if num == STEPS - 1 else f"click('{num}')"
    told = {"reasoning": "Because.", "last_action_error": "", "focused_element": "7"}
    return {"num": num, "url": f"http://shop/{num}", "action": action, **told}


@dataclass
class PublishedFolder:
    """Rows to change, then `write`: whatever was planted, the manifest is honest about the files."""

    path: Path
    rows: Rows = field(default_factory=all_rows)
    manifest: dict[str, Any] = field(default_factory=dict)
    card: str | None = None
    is_blind: bool = False

    def write(self, schema_of: Callable[[str], pa.Schema] = arrow_schema) -> Path:
        self.manifest = {
            "format": 1,
            "suite": "own",
            "source": {"kind": "released", "blind": self.is_blind},
            "files": {},
        }
        for (configuration, split), rows in self.rows.items():
            name = f"data/{configuration}/{split}-00000-of-00001.parquet"
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            with pq.ParquetWriter(self.path / name, schema_of(configuration), compression="zstd") as writer:
                for group in _groups(configuration, rows):
                    writer.write_table(pa.Table.from_pylist(group, schema=schema_of(configuration)))
            self.describe(name, configuration, split, len(rows))
        (self.path / "README.md").write_text(self.card or _card(self.rows))
        (self.path / "eval.yaml").write_text("name: x\n")
        self.write_manifest()
        self.write_index()
        return self.path

    def write_index(self) -> None:
        shards = (
            (each["configuration"], each["split"], name) for name, each in self.manifest["files"].items()
        )
        write_index(self.path, shards)

    def describe(self, name: str, configuration: str, split: str, rows: int) -> None:
        data = (self.path / name).read_bytes()
        self.manifest["files"][name] = {
            "configuration": configuration,
            "split": split,
            "sha256": hashlib.sha256(data).hexdigest(),
            "bytes": len(data),
            "rows": rows,
        }

    def write_manifest(self) -> None:
        (self.path / "manifest.json").write_text(json.dumps(self.manifest))


def _groups(configuration: str, rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    if configuration != "steps":
        return [rows]
    ids = dict.fromkeys(row["trajectory_id"] for row in rows)
    return [[row for row in rows if row["trajectory_id"] == name] for name in ids]


def _card(rows: Rows) -> str:
    by_configuration: dict[str, list[str]] = {}
    for configuration, split in rows:
        by_configuration.setdefault(configuration, []).append(split)
    configs = [
        {"config_name": c, "data_files": [{"split": s, "path": f"data/{c}/{s}-*.parquet"} for s in splits]}
        for c, splits in by_configuration.items()
    ]
    return f"---\nconfigs: {json.dumps(configs)}\n---\n\n# Own\n"


@pytest.fixture
def published(tmp_path) -> PublishedFolder:
    (tmp_path / "own-dataset").mkdir()
    return PublishedFolder(tmp_path / "own-dataset")


@pytest.fixture
def own_suite(tmp_path) -> Suite:
    folder = tmp_path / "own"
    folder.mkdir()
    lines = [f"{name},{split}" for split, ids in RUNS.items() for name in ids]
    (folder / "trajectories.csv").write_text("\n".join(["trajectory_id,split", *lines]) + "\n")
    return load_suite(folder)
