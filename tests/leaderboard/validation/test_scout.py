"""Inspect Scout's validation sets and scans are tables, and Scout reads what is written for it.

`tests/support/make_scout_scan.py` made the files in `scout/` with Scout's own package.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from arb.__main__ import app
from tests.conftest import _absent

SCOUT = Path(__file__).parent / "scout"
CASES = [(f"run-{n:02}", n % 3 == 0) for n in range(12)]


def validate(*options: str | Path):
    return CliRunner().invoke(app, ["validate", *map(str, options), "--json"])


def judges(*options: str | Path) -> list[dict]:
    done = validate(*options)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)["judges"]


def counts(judge: dict) -> list[int]:
    return [judge[name] for name in ("tp", "fp", "fn", "tn", "no_verdict")]


def test_a_validation_set_and_a_scan_are_measured_without_any_option():
    (judge,) = judges("--labels", SCOUT / "validation.csv", "--verdicts", SCOUT / "succeeded.parquet")
    # Labels are yes on 0, 3, 6 and 9; verdicts on 0, 2, 4, 6, 8 and 10. The scan failed on 9: no verdict.
    assert judge["judge"] == "succeeded" and counts(judge) == [2, 4, 2, 4, 1]


def test_numbers_are_scores_and_the_fields_of_an_object_are_columns():
    labels = ("--labels", SCOUT / "validation.csv")
    (judge,) = judges(*labels, "--verdicts", SCOUT / "confidence.parquet")
    assert counts(judge) == [2, 4, 2, 4, 0]  # from 6 / 12 on: runs 6 to 11, of which 6 and 9 succeeded
    (judge,) = judges(*labels, "--verdicts", SCOUT / "fields.parquet", "--verdict", "target_done")
    assert counts(judge) == [2, 4, 2, 4, 0]
    done = validate(*labels, "--verdicts", SCOUT / "fields.parquet")
    assert "several columns are possible (target_done, target_sure); name one with --verdict" in done.stderr


def test_labels_of_results_are_columns_in_which_no_result_is_a_no(tmp_path):
    nested = [{"split": "dev", "cases": [{"id": run, "labels": {"loop": ok}} for run, ok in CASES]}]
    (tmp_path / "cases.json").write_text(json.dumps(nested))
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump(nested))
    for name in ("cases.json", "cases.yaml"):
        call = (
            "--labels",
            tmp_path / name,
            "--verdicts",
            SCOUT / "findings.parquet",
            "--verdict",
            "label_loop",
        )
        (judge,) = judges(*call)
        assert counts(judge) == [4, 0, 0, 8, 0]  # the scanner finds a loop in 0, 3, 6 and 9


def test_columns_of_whole_transcripts_are_not_read():
    from leaderboard.validation.parsing import read_table

    names = set(read_table(SCOUT / "succeeded.parquet").frame.columns)
    assert {"id", "value", "transcript_model"} <= names and not names & {"input", "scan_events"}


@pytest.fixture
def written(tmp_path):
    """Three judges for Scout: one without a verdict on one run, one with scores, one with an odd name."""
    rows = [f"run-{n},{n % 2},{'' if n == 3 else n % 4 // 2},{n / 10},1\n" for n in range(10)]
    (tmp_path / "runs.csv").write_text(
        'run,human,judge,score,"odd, name/1"\n' + "".join(rows) + '"a,b",1,1,1,1\n'
    )
    options = ("--label", "human", "--verdict", "judge", "--verdict", "score", "--verdict", "odd, name/1")
    call = (tmp_path / "runs.csv", "--id", "run", *options)
    done = validate(*call, "--to", "scout", "--out", tmp_path / "scout")
    assert done.exit_code == 0, done.output
    return tmp_path, call, json.loads(done.stdout)


def test_what_is_written_for_scout_is_read_back_with_the_same_figures(written):
    folder, call, found = written
    (scan,) = (folder / "scout").glob("scan_id=*")
    assert sorted(path.name for path in scan.glob("*.parquet")) == [
        "judge.parquet",
        "odd_name_1.parquet",
        "score.parquet",
    ]
    for judge, name in zip(found["judges"], ("judge", "score", "odd_name_1"), strict=True):
        (again,) = judges(
            "--labels", folder / "scout" / "validation.jsonl", "--verdicts", scan / f"{name}.parquet"
        )
        assert counts(again) == counts(judge)
    done = validate(*call, "--to", "scout", "--out", folder / "scout")
    assert done.exit_code == 2 and "is not empty; name a new folder with --out" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--to", "scout"), "give --to scout and --out FOLDER together"),
        (("--to", "scout", "--out", "new"), "add --id COLUMN"),
    ],
)
def test_options_for_scout_belong_together(options, message):
    done = validate(SCOUT / "validation.csv", *options)
    assert done.exit_code == 2 and message in done.stderr


READ_BY_SCOUT = """
import json, sys
from inspect_scout import scan_results_df, validation_set
folder, scan = sys.argv[1:]
cases = validation_set(f"{folder}/validation.jsonl").cases
target = {case.id if isinstance(case.id, str) else case.id[0]: case.target for case in cases}
scan, found = scan_results_df(scan), {}
for name, frame in scan.scanners.items():
    rows = zip(frame["transcript_id"].tolist(), frame["value"].tolist())
    found[name] = [(i, None if str(v) == "<NA>" else json.loads(str(v).lower()), target[i]) for i, v in rows]
print(json.dumps([found, scan.complete]))
"""


@pytest.mark.slow
def test_scouts_own_package_reads_what_is_written(written):
    packages = os.environ.get("INSPECT_PATH", "")
    if not packages and importlib.util.find_spec("inspect_scout") is None:
        _absent("INSPECT_PATH names no folder with Inspect Scout: see .ci/inspect.txt")
    folder, _, _ = written
    (scan,) = (folder / "scout").glob("scan_id=*")
    call = [sys.executable, "-c", READ_BY_SCOUT, str(folder / "scout"), str(scan)]
    environment = os.environ | {"PYTHONPATH": packages}
    done = subprocess.run(call, capture_output=True, text=True, env=environment, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    found, complete = json.loads(done.stdout.splitlines()[-1])
    assert complete and set(found) == {"judge", "score", "odd_name_1"}
    runs = [f"run-{n}" for n in range(10)]
    by_run = {run: (value, target) for run, value, target in found["judge"]}
    assert [by_run[run] for run in runs] == [
        (None if n == 3 else n % 4 // 2 == 1, n % 2 == 1) for n in range(10)
    ]
    assert [value for _, value, _ in found["score"]] == [*(n / 10 for n in range(10)), 1]
