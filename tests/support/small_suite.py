"""A suite of five trajectories with dev labels, one with a second annotator: the folder and the suite, as
fixtures."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from arb.core.suite import Suite, load_suite

SUITE_ROWS = """trajectory_id,split
shop/GenericAgent-a/shop.1,dev
shop/GenericAgent-b/shop.resized.1,dev
shop/GenericAgent-a/shop.2,test
shop/GenericAgent-b/shop.resized.2,test
workarena/GenericAgent-a/workarena.servicenow.sort-l2,test
"""
DEV_LABELS = """trajectory_id,annotation,success,side_effect,repetition,optimality,annotator
shop/GenericAgent-a/shop.1,1,true,false,,4,annotator-2
shop/GenericAgent-a/shop.1,2,false,false,false,1,annotator-1
shop/GenericAgent-b/shop.resized.1,1,false,true,true,,
"""
SUITE_IDS = tuple(line.split(",")[0] for line in SUITE_ROWS.splitlines()[1:])


def suite_with(folder: Path, toml: str, ids: Sequence[str] = ("shop/agent/task.1",)) -> Suite:
    """Return a suite of test trajectories in a folder, with this ``suite.toml``."""
    rows = "".join(f"{trajectory_id},test\n" for trajectory_id in ids)
    (folder / "trajectories.csv").write_text(f"trajectory_id,split\n{rows}")
    (folder / "suite.toml").write_text(toml)
    return load_suite(folder)


@pytest.fixture
def suite_folder(tmp_path) -> Path:
    folder = tmp_path / "own-suite"
    folder.mkdir()
    (folder / "trajectories.csv").write_text(SUITE_ROWS)
    (folder / "dev_labels.csv").write_text(DEV_LABELS)
    return folder


@pytest.fixture
def suite(suite_folder) -> Suite:
    return load_suite(suite_folder)
