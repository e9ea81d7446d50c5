"""Inspect's own runner and Scout's own scan with our scorer and scanner: the verdicts are those of a run.

INSPECT_PATH names a folder with both packages (see ``.ci/inspect.txt``) for `support/inspect_packages.py`.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import arb
from tests.conftest import _absent
from tests.support.judge_runs import invoke, predictions
from tests.support.llm_server.server import LLMServer
from tests.support.pages import ENDPOINT, blocks

REPOSITORY = Path(__file__).parents[2]
PAGE = "where_you_work.md"
PACKAGES = os.environ.get("INSPECT_PATH", "")


COUNTED = """
from inspect_ai.model import ModelAPI
async def count(self, text):
    return len(text)
ModelAPI.count_text_tokens = count
"""
"""Inspect downloads a tokenizer to count the tokens of its mock model."""


@pytest.fixture
def has_packages() -> None:
    if not PACKAGES and importlib.util.find_spec("inspect_scout") is None:
        _absent("INSPECT_PATH names no folder with Inspect and Scout: see .ci/inspect.txt")


@pytest.fixture
def server():
    with LLMServer() as running:
        yield running


def python(folder: Path, *arguments: str) -> str:
    places = os.pathsep.join(filter(None, (str(REPOSITORY), PACKAGES)))
    settings = {"PYTHONPATH": places, "ARB_CACHE_DIR": str(folder / "own"), "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | settings,
        cwd=folder,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def packages(folder: Path, *arguments: object) -> list:
    script = str(REPOSITORY / "tests" / "support" / "inspect_packages.py")
    return json.loads(python(folder, script, *map(str, arguments)).splitlines()[-1])


def verdicts(rows: list, names: dict) -> dict[tuple[str, str], bool | None]:
    return {(task, sample): names[value] for task, sample, _, value, *_ in rows}


@pytest.mark.slow
@pytest.mark.usefixtures("has_packages")
def test_verdicts_of_the_scorer_the_scanner_and_a_run_over_the_logs_are_equal_and_paid_once(server, tmp_path):
    options = {"judge": "rubric", "model": "m", "base_url": server.base_url, "cache": str(tmp_path / "cache")}
    scored = packages(
        tmp_path, "eval", tmp_path / "logs", json.dumps(options | {"out": "out", "header": ["X=s3cret"]})
    )
    assert len(scored) == 11 and {name for _, _, name, *_ in scored} == {"rubric"}
    paid = server.counts.as_json()
    done = invoke(
        "run", "rubric", "--source", tmp_path / "logs", "--model", "m", "--base-url", server.base_url,
        "--cache", tmp_path / "cache", "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    expected = {
        re.fullmatch(r"(.+)/.+/(.+?)", row["trajectory_id"]).groups(): row["success"]
        for row in predictions(tmp_path)
    }
    found = verdicts(scored, {"C": True, "I": False})
    assert {
        (task, re.sub(r"[/ ]", "_", sample)): value for (task, sample), value in found.items()
    } == expected
    assert {*found.values()} == {True, False}
    scanned = packages(tmp_path, "scan", tmp_path / "logs", json.dumps(options))
    assert verdicts(scanned, {True: True, False: False, "true": True, "false": False}) == found
    in_processes = packages(tmp_path, "scan", tmp_path / "logs", json.dumps(options | {"processes": 2}))
    assert sorted(map(str, in_processes)) == sorted(map(str, scanned))
    assert server.counts.as_json() == paid  # every prompt was the same to the byte, so no call was made

    facts = json.loads((tmp_path / "out" / "run.json").read_text())
    assert facts["totals"]["trajectories"] == 11 and facts["sessions"][0]["ended"] == "finished"
    asked = b"".join(request.body for request in server.requests)
    assert b"SECRET" not in asked and b"Find town 3." in asked
    assert b"s3cret" not in python(
        tmp_path, "-c", "from inspect_ai.log import read_eval_log as r, list_eval_logs as l\n"
        "for each in l('logs'): print(r(each.name).model_dump_json())"
    ).encode()  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("has_packages")
def test_transcripts_without_a_log_are_judged_and_limits_refuse_several_processes(server, tmp_path):
    options = {"judge": "rubric", "model": "m", "base_url": server.base_url, "cache": str(tmp_path / "cache")}
    rows = {row[1]: row for row in packages(tmp_path, "imported", json.dumps(options))}
    assert rows["1"][3] in ("true", "false", True, False)
    assert rows["2"][3] is None and rows["2"][6].startswith("no_steps")
    packages(tmp_path, "eval", tmp_path / "logs", json.dumps(options))
    limited = options | {"processes": 2, "requests_per_minute": 1000}
    problems = packages(tmp_path, "scan", tmp_path / "logs", json.dumps(limited))
    assert all("requests_per_minute: cannot be shared by several processes" in str(row) for row in problems)


@pytest.mark.slow
@pytest.mark.usefixtures("has_packages")
def test_the_pages_python_and_command_work_as_they_stand(server, tmp_path):
    text = (REPOSITORY / "docs" / PAGE).read_text(encoding="utf-8").replace(ENDPOINT, server.base_url)
    programs = [block for _, language, block in blocks(text) if language == "python"]
    inspect, scout = (block for block in programs if "arb.reward(" not in block)
    python(tmp_path, "-c", COUNTED + inspect)
    (command,) = [block for _, language, block in blocks(text) if language == "bash"]
    python(tmp_path, "-m", *command.split())
    python(tmp_path, "-c", scout)
    (judged,) = (tmp_path / "runs" / "logs" / "judgments.jsonl").read_text().splitlines()
    (scored,) = (tmp_path / "judged" / "judgments.jsonl").read_text().splitlines()
    assert json.loads(judged)["answer"] == json.loads(scored)["answer"]
    assert list((tmp_path / "scans").rglob("rubric.parquet"))


@pytest.mark.parametrize("name", ["inspect", "scout"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(name, monkeypatch):
    for package in ("inspect_ai", "inspect_scout"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, f"arb.{name}", raising=False)
    with pytest.raises(ImportError, match=rf"is not installed; run pip install '.*\[{name}\]'"):
        getattr(arb, name)
