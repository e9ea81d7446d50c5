"""A suite small enough to reason about, and files that are right for it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from arb.core.suite import Suite, load_suite

SHOP = (
    "shop/GenericAgent-a/shop.1,dev",
    "shop/GenericAgent-a/shop.2,test",
    "shop/GenericAgent-b/shop.resized.2,test",
    "workarena/GenericAgent-a/workarena.servicenow.sort,test",
    "workarena/GenericAgent-a/workarena.servicenow.sort-l2,test",
)


@pytest.fixture(scope="session")
def shop(tmp_path_factory) -> Suite:
    """One dev and four test trajectories: two of shop, one of workarena, one of workarena++."""
    folder: Path = tmp_path_factory.mktemp("suites") / "shop"
    folder.mkdir()
    (folder / "trajectories.csv").write_text("\n".join(["trajectory_id,split", *SHOP]) + "\n")
    return load_suite(folder)


@pytest.fixture(scope="session")
def test_ids(shop) -> tuple[str, ...]:
    """The four ids of the test split, in suite order."""
    return tuple(trajectory.trajectory_id for trajectory in shop.split("test"))


@pytest.fixture(scope="session")
def jsonl() -> Callable[..., bytes]:
    """Bytes of a JSONL file with the given rows (mappings)."""
    return lambda *rows: "".join(json.dumps(row) + "\n" for row in rows).encode()
