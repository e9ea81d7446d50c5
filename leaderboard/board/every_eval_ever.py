"""The board in the format of Every Eval Ever, a collection of evaluation results.

As in the collection's datastore (https://github.com/evaleval/every_eval_ever, schema 0.3.0), there is one
JSON file per row. The format describes evaluations of models; here it describes evaluations of judges, and
``model_info`` names the judge and its model. References are left out, because they are not judges.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any, Final

from arb.core.suite import OFFICIAL
from arb.core.suites.targets import Target, scored
from arb.core.vocabulary import BENCHMARK_TITLES, METRIC_TITLES
from leaderboard.board.board import Board, BoardRow
from leaderboard.judge_precision.intervals import FIGURES, N_RESAMPLES
from leaderboard.metrics import known_metrics
from leaderboard.score import Cell, interval_of, metric_of

SCHEMA_VERSION: Final = "0.3.0"
HF_REPO: Final = "McGill-NLP/agent-reward-bench"
RELATIONSHIPS: Final = MappingProxyType(
    {"scored": "third_party", "published": "third_party", "self-reported": "first_party"}
)
"""Who evaluated the judge: the leaderboard, the benchmark's authors, or the judge's authors."""
INTERVAL_METHODS: Final = MappingProxyType(
    {
        "tasks": "bootstrap over tasks",
        "approximate": "Wilson interval of the counts, widened by the design effect of tasks",
    }
)


def every_eval_ever(board: Board, retrieved: int) -> dict[str, bytes]:
    """Return the content of each file, keyed by its path ``data/SUITE/DEVELOPER/MODEL/UUID.json``.

    ``retrieved`` is the time in Unix seconds. The same board and time give the same bytes, because UUIDs are
    derived from the board's digest and the row's id.
    """
    files = {}
    for row in board.rows:
        if row.provenance == "reference":
            continue
        digest = hashlib.sha256(f"{board.digest} {row.id}".encode()).digest()
        name = uuid.UUID(bytes=digest[:16], version=4)
        path = f"data/{_plain(board.suite)}/{model_id(row)}/{name}.json"
        text = json.dumps(evaluation(board, row, retrieved), indent=2, ensure_ascii=False, allow_nan=False)
        files[path] = f"{text}\n".encode()
    return files


def evaluation(board: Board, row: BoardRow, retrieved: int) -> dict[str, Any]:
    """Return the evaluation of one row's judge as the schema requires it."""
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{board.suite}/{row.id}/{retrieved}",
        "evaluation_timestamp": row.date,
        "retrieved_timestamp": str(retrieved),
        "source_metadata": {
            "source_name": row.source,
            "source_type": "documentation",  # aggregated figures, not answers one by one
            "source_organization_name": row.authors or row.account or "unknown",
            **({"source_organization_url": row.link} if row.link else {}),
            "evaluator_relationship": RELATIONSHIPS.get(row.provenance, "other"),
            "additional_details": _texts(
                provenance=row.provenance, protocol=row.protocol, split=row.split, n=row.n,
                evidence=row.evidence, note=row.note, test_labels_used=row.test_labels_used,
                label_version=board.label_version, board_digest=board.digest,
            ),
        },
        "model_info": {
            "name": f"{row.judge} ({row.inputs})" if row.inputs else row.judge,
            "id": model_id(row),
            "additional_details": {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                **_texts(judge=row.judge, kind=row.kind, inputs=row.inputs, model=row.model, row_id=row.id),
            },
        },
        "eval_library": {
            "name": "judge_precision" if row.provenance == "scored" else "unknown",
            "version": "unknown",
        },
        "evaluation_results": [
            result
            for target in scored(board.targets)
            for result in _results(board, row, target)
        ],
    }  # fmt: skip


def model_id(row: BoardRow) -> str:
    """Return the judge's model as ``DEVELOPER/MODEL``, or ``unknown/JUDGE`` if the model is not known."""
    developer, _, name = row.model.rpartition("/")
    return f"{_plain(developer) or 'unknown'}/{_plain(name) or _plain(row.judge) or 'judge'}"


def _results(board: Board, row: BoardRow, target: Target) -> Iterator[dict[str, Any]]:
    score = row.labels.get(target.name)
    if not score:
        return
    overall = of_parts = target.metrics
    if target.type == "binary":
        own = [name for name in target.metrics if name not in METRIC_TITLES]
        overall, of_parts = (*METRIC_TITLES, *own), (*FIGURES, *own)
    parts = [("overall", score["overall"], overall)]
    parts += [(name, cell, of_parts) for name, cell in score["by_benchmark"].items()]
    for part, cell, metrics in parts:
        for metric in metrics:
            if metric_of(cell, metric) is not None:
                yield _result(board, row, (target, part, metric), cell, score["intervals"])


def _result(
    board: Board, row: BoardRow, name: tuple[Target, str, str], cell: Cell, intervals: str | None
) -> dict[str, Any]:
    target, part, metric = name
    label, formula = target.name, known_metrics(target)[metric]
    where = "" if part == "overall" else f" on {BENCHMARK_TITLES.get(part, part)}"
    counts = {each: cell.get(each) for each in ("tp", "fp", "fn", "tn", "no_verdict", "audit", "note")}
    details: dict[str, Any] = {"score": metric_of(cell, metric), "details": _texts(**counts)}
    if bounds := interval_of(cell, metric):
        details["uncertainty"] = {
            "confidence_interval": {
                "lower": bounds[0],
                "upper": bounds[1],
                "confidence_level": 0.95,
                "method": INTERVAL_METHODS.get(intervals or "", "unknown"),
            },
            **({"num_samples": cell["n"]} if cell["n"] is not None else {}),
            **({"num_bootstrap_samples": N_RESAMPLES} if intervals == "tasks" else {}),
        }
    return {
        "evaluation_result_id": f"{row.id}/{label}/{part}/{metric}",
        "evaluation_name": f"{board.suite}: {label}{where}",
        "source_data": _source_data(board, row, cell["n"]),
        "metric_config": {
            "evaluation_description": f"{formula.title} of a judge's verdicts on {label}{where}, "
            "against expert labels",
            "metric_id": f"{board.suite}.{label}.{metric}",
            "metric_name": formula.title,
            "metric_kind": metric,
            "metric_unit": "points" if formula.highest is None else "proportion",
            "lower_is_better": formula.is_lower_better,
            "score_type": "continuous",
            "min_score": formula.lowest,
            "max_score": "Infinity" if formula.highest is None else formula.highest,
        },
        "score_details": details,
    }


def _source_data(board: Board, row: BoardRow, n: int | None) -> dict[str, Any]:
    """Return a description of the data. It names the split only if the figures are known to be on test."""
    if board.suite != OFFICIAL:
        return {"dataset_name": board.suite, "source_type": "other"}
    split = {"hf_split": "test"} if row.split == "test" else {}
    samples = {"samples_number": n} if n is not None else {}
    return {
        "dataset_name": OFFICIAL, "source_type": "hf_dataset", "hf_repo": HF_REPO, **split, **samples,
    }  # fmt: skip


def _texts(**values: object) -> dict[str, str]:
    """Return the known values as strings, as the schema requires in ``additional_details``."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
        if value is not None and value != ""
    }


def _plain(text: str) -> str:
    """Return an untrusted name in a form that is safe in a path."""
    return re.sub(r"[^A-Za-z0-9._@+-]+", "-", text).strip("-.")
