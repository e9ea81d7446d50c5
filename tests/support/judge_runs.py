"""Commands of judges over the sample against an endpoint of a test, and what they left."""

import json
from collections import Counter
from pathlib import Path

from typer.testing import CliRunner

from arb.judges.__main__ import app

HELD_OUT = 52
"""Trajectories of the sample's test split."""


def invoke(*arguments, **environment):
    """Run a command of ``arb judges``."""
    return CliRunner().invoke(app, [str(each) for each in arguments], env=environment)


def options(server, folder: Path, *more, judge="simplified-axtree", split="dev", model="m") -> list[str]:
    """The judge and the options of a command over the sample; the folder holds the reply cache."""
    given = [judge, "--suite", "sample", "--split", split, "--model", model, "--base-url", server.base_url]
    return [str(each) for each in (*given, "--cache", folder / "cache", *more)]


def certify(server, folder: Path, *more, judge="simplified-axtree"):
    """Certify a judge; the folder holds the report (`certificate`) and the reply cache."""
    return invoke("certify", *options(server, folder, "--out", folder / "out", *more, judge=judge))


def certificate(folder: Path) -> dict:
    return json.loads((folder / "out" / "certificate.json").read_text())


def run(
    base_url: str,
    folder: Path,
    *more,
    judge: str | None = "simplified-axtree",
    model="m",
    provider="any",
    split="test",
):
    """Run a judge over a split of the sample; the folder holds the run and its reply cache."""
    given = ["run", *([judge] if judge else []), "--suite", "sample", "--split", split, "--model", model]
    given += ["--provider", provider, "--base-url", base_url, "--out", folder / "run"]
    return invoke(*given, "--cache", folder / "cache", *more)


def predictions(folder: Path, out: str = "run") -> list[dict]:
    """Return the rows of a run's prediction file."""
    return [json.loads(line) for line in (folder / out / "predictions.jsonl").read_text().splitlines()]


def states(folder: Path) -> Counter:
    """Return how many trajectories of the run ended in each state."""
    return Counter(row["state"] for row in predictions(folder))
