"""Rows in the format of Every Eval Ever, against its published JSON schema."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from leaderboard.board.board import make_board
from leaderboard.board.every_eval_ever import SCHEMA_VERSION, evaluation, every_eval_ever, model_id
from leaderboard.board.export import board_to_csv, site_files
from leaderboard.paper.published import load_published_rows
from tests.support.boards import board, cell, label, row

SCHEMA = json.loads((Path(__file__).parent / "every_eval_ever" / "eval.schema.json").read_text())
PATH = re.compile(
    r"data/[^/]+/[^/]+/[^/]+/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.json"
)
RETRIEVED = 1_790_000_000


def files_of(found):
    return {path: json.loads(text) for path, text in every_eval_ever(found, RETRIEVED).items()}


@pytest.fixture(scope="module")
def published():
    return make_board("agent-reward-bench", [], load_published_rows(), None)


def test_the_schema_is_of_the_version_that_is_written():
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["version"] == SCHEMA_VERSION


def test_every_published_judge_is_valid_under_the_schema(published):
    files = files_of(published)
    assert len(files) == sum(found.provenance != "reference" for found in published.rows)
    validator = jsonschema.Draft7Validator(SCHEMA)
    for path, found in files.items():
        assert [error.message for error in validator.iter_errors(found)] == []
        assert PATH.fullmatch(path), path
        assert found["evaluation_results"]
    ids = [found["evaluation_id"] for found in files.values()]
    assert len(set(ids)) == len(ids)


def test_scored_rows_are_valid_and_say_by_which_method_their_intervals_were_made(judged):
    record = judged.record("mine", judged.verdicts(3))
    found = make_board("small", [record], [], "0123456789ab")
    (content,) = files_of(found).values()
    jsonschema.validate(content, SCHEMA, jsonschema.Draft7Validator)
    precision = content["evaluation_results"][0]
    overall = found.rows[0].labels["success"]["overall"]
    assert precision["score_details"]["score"] == overall["precision"]
    uncertainty = precision["score_details"]["uncertainty"]
    assert uncertainty["confidence_interval"] == {
        "lower": overall["precision_ci"][0], "upper": overall["precision_ci"][1], "confidence_level": 0.95,
        "method": "bootstrap over tasks",
    }  # fmt: skip
    assert (uncertainty["num_samples"], uncertainty["num_bootstrap_samples"]) == (overall["n"], 10_000)
    assert content["source_metadata"]["evaluator_relationship"] == "third_party"
    # a suite of one's own is on no Hub that we know of
    assert precision["source_data"] == {"dataset_name": "small", "source_type": "other"}


def test_a_row_of_unknown_split_claims_no_split_no_samples_and_no_interval(published):
    row = next(row for row in published.rows if row.id == "reported/72b-gui-judge")
    found = evaluation(published, row, RETRIEVED)
    assert [result["metric_config"]["metric_kind"] for result in found["evaluation_results"]] == [
        "precision", "recall",
    ]  # fmt: skip
    for result in found["evaluation_results"]:
        assert set(result["source_data"]) == {"dataset_name", "source_type", "hf_repo"}
        assert "uncertainty" not in result["score_details"]
    details = found["source_metadata"]["additional_details"]
    assert details["evidence"] == "reported"
    assert "protocol" not in details and "split" not in details


def test_a_row_without_precision_is_written_with_what_it_has():
    """Also as CSV and on the static site: a result that reports its recall alone breaks none of them."""
    (jev,) = (found for found in load_published_rows() if found.row_id == "reported/jev-27b-vl")
    success = jev.labels["success"]
    unknown = replace(success, overall=replace(success.overall, precision=None))
    jev = replace(jev, labels={**jev.labels, "success": unknown})
    found = make_board("agent-reward-bench", [], [jev], None)
    (content,) = files_of(found).values()
    jsonschema.validate(content, SCHEMA, jsonschema.Draft7Validator)
    assert [r["metric_config"]["metric_kind"] for r in content["evaluation_results"]] == ["recall"]
    (line,) = csv.DictReader(io.StringIO(board_to_csv(found)))
    assert (line["precision"], line["recall"], line["recall_ci_low"]) == ("", "0.702", "")
    assert b"None" not in site_files(found)["index.html"]


def test_of_rates_that_are_better_low_the_format_says_so(published):
    row = next(row for row in published.rows if row.id == "paper/aer-c")
    results = evaluation(published, row, RETRIEVED)["evaluation_results"]
    lower = {r["metric_config"]["metric_kind"] for r in results if r["metric_config"]["lower_is_better"]}
    assert lower == {"fpr"}


@pytest.mark.parametrize(
    ("judge", "model", "expected"),
    [
        ("A", "autotrust/JEV-27B-VL", "autotrust/JEV-27B-VL"),
        ("A", "gpt-4o-2024-11-20", "unknown/gpt-4o-2024-11-20"),
        ("Always yes", "", "unknown/Always-yes"),
        ("../../etc/passwd", "", "unknown/etc-passwd"),
        ("A", "../../x/../y", "x/y"),
        ("☃", "☃", "unknown/judge"),
    ],
)
def test_the_model_is_named_as_developer_and_model_and_never_leads_out_of_the_folder(judge, model, expected):
    found = row(judge, label(cell(9, 1, 1, 9)), model=model)
    (path,) = files_of(board(found))
    assert model_id(found).split("/")[-1] in path
    assert ".." not in path
    assert PATH.fullmatch(path)
    if judge != "A" or ".." not in model:
        assert model_id(found) == expected
