"""The board as CSV, as a read-only site, and in the format of Every Eval Ever.

The CSV is safe to open in a spreadsheet: text that a spreadsheet would run as a formula is made inert. The
site is a folder of plain files that needs no script and no server, written whole or not at all.

Every Eval Ever has a JSON file for each judge, as its datastore keeps them: schema 0.3.0,
https://github.com/evaleval/every_eval_ever. What is evaluated there is called a model; here it is a judge,
and ``model_info`` names the judge and the model that it asks. References are no judges, so they are left out.
"""

import csv
import hashlib
import io
import json
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from arb.core.console import interval, percent
from arb.core.suite import OFFICIAL
from arb.core.vocabulary import (
    AGENT_TITLES,
    BENCHMARK_TITLES,
    LABEL_TITLES,
    LABELS,
    LOWER_IS_BETTER,
    METRIC_TITLES,
)
from leaderboard.board.board import Board, BoardRow
from leaderboard.judge_precision.intervals import N_RESAMPLES

FORMULA_SIGNS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_AT_START: Final = re.compile(rf"\s*[{re.escape(''.join(FORMULA_SIGNS))}]|[\t\r\n]")
_IN_NEW_CELL: Final = re.compile(rf"(;[\s\"]*)(?=[{re.escape(''.join(FORMULA_SIGNS))}])")


def inert(value: Any) -> Any:
    """The value; a text that a spreadsheet would take for a formula gets an apostrophe before the sign.

    The signs count also after blanks and in the wide form that East Asian keyboards write; a control
    character at the start hides one from the eye. Where the comma is the decimal mark, spreadsheets split a
    line at semicolons, whatever quotes stand around: a sign after one begins a cell there.
    """
    if not isinstance(value, str):
        return value
    value = _IN_NEW_CELL.sub(r"\1'", value)
    return f"'{value}" if _AT_START.match(value) else value


DESCRIPTION = (
    "id", "judge", "account", "kind", "inputs", "model", "authors", "link", "date", "provenance", "source",
    "attempts", "test_labels_used", "file_sha256", "protocol", "split", "evidence",
)  # fmt: skip
RANK = ("place", "low", "high")
FIGURES = (
    "n", "positives", "tp", "fp", "fn", "tn", "no_verdict", "coverage", "precision", "recall", "f1",
    "accuracy", "npv", "tnr", "kappa", "fpr", "balanced_accuracy",
)  # fmt: skip
INTERVALS = ("precision_ci", "recall_ci", "f1_ci")


def board_to_csv(board: Board) -> str:
    """Every row and label: description, rank, overall figures, intervals, precision by benchmark.

    Fractions; empty where unknown. A text that a spreadsheet would run as a formula gets an apostrophe
    in front.
    """
    benchmarks = sorted({name for row in board.rows for found in row.labels.values() if found
                         for name in found["by_benchmark"]})  # fmt: skip
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\r\n")  # RFC 4180; so a lone carriage return is quoted too
    ends = [f"{name}_{end}" for name in INTERVALS for end in ("low", "high")]
    writer.writerow(["label", *(f"rank_{name}" for name in RANK), *DESCRIPTION, *FIGURES, *ends,
                     *(f"precision_{name}" for name in benchmarks), "note"])  # fmt: skip
    for label in LABELS:
        for row in board.ranking(label):
            found = row.labels[label]
            overall, rank = found["overall"], found["rank"] or {}
            by_benchmark = [found["by_benchmark"].get(name, {}).get("precision") for name in benchmarks]
            intervals = [end for name in INTERVALS for end in overall[name] or (None, None)]
            described = [inert(getattr(row, name)) for name in DESCRIPTION]
            note = "; ".join(filter(None, (row.note, found["note"])))
            writer.writerow([label, *(rank.get(name) for name in RANK), *described,
                             *(overall[name] for name in FIGURES), *intervals, *by_benchmark,
                             inert(note)])  # fmt: skip
    return output.getvalue()


FOLDER = Path(__file__).parent / "static_site"
PROVENANCE_TITLES: Final = {
    "scored": "scored here from a prediction file",
    "published": "published metrics",
    "self-reported": "metrics that its authors report",
    "reference": "a reference, not a judge",
}
FEW_POSITIVES: Final = 20
"""A cell with fewer positive labels is marked: its metrics move by points with every trajectory."""


def site_files(board: Board) -> dict[str, bytes]:
    """Every file of the site by its path: ``index.html``, a page for each judge, style, data."""
    pages = {row.id: f"judges/{page_name(row.id)}.html" for row in board.rows}
    files = {"index.html": _render("index.html", board=board, root="", pages=pages)}
    for row in board.rows:
        files[pages[row.id]] = _render("judge.html", board=board, root="../", row=row)
    return {
        **{path: html.encode() for path, html in files.items()},
        "site.css": (FOLDER / "site.css").read_bytes(),
        "board.json": board.to_bytes(),
        "board.csv": board_to_csv(board).encode(),
    }


def page_name(row_id: str) -> str:
    """A file name for a row: of its id where that is one, else of its hash."""
    is_plain = row_id.replace("-", "").isalnum() and row_id.isascii()
    return row_id if is_plain else hashlib.sha256(row_id.encode()).hexdigest()[:16]


def benchmarks_in(rows: Iterable[BoardRow], label: str) -> list[str]:
    """Return the benchmarks of which a row has a cell: those of the paper first, then others by name."""
    found = {name for row in rows for name in row.labels[label]["by_benchmark"]}
    known = [name for name in BENCHMARK_TITLES if name in found]
    return known + sorted(found.difference(known))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        percent=percent, interval=interval, benchmarks_in=benchmarks_in, label_titles=LABEL_TITLES,
        benchmark_titles=BENCHMARK_TITLES, agent_titles=AGENT_TITLES, provenances=PROVENANCE_TITLES,
        few=FEW_POSITIVES,
    )  # fmt: skip
    return environment


def _render(template: str, **values) -> str:
    return _environment().get_template(template).render(**values)


class FolderTaken(Exception):
    """The folder holds something that is no site of ours; the message says what to do."""


def write_static_site(board: Board, folder: Path) -> int:
    """Write the site of a board to ``folder`` and return how many files it has.

    An older site there is replaced at once; anything else in the way is left alone: raises FolderTaken.
    """
    if folder.exists() and not _is_replaceable(folder):
        raise FolderTaken(f"{str(folder)!r} contains other files; use a new or an empty folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    files = site_files(board)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-"))
    try:
        for name, content in files.items():
            path = part / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        part.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-old-"))
            folder.replace(old / "site")
            part.replace(folder)
            shutil.rmtree(old)
        else:
            part.replace(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    return len(files)


def _is_replaceable(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir()}
    return not names or {"index.html", "site.css", "board.json"} <= names


# Every Eval Ever

SCHEMA_VERSION: Final = "0.3.0"
HF_REPO: Final = "McGill-NLP/agent-reward-bench"
RELATIONSHIPS: Final = MappingProxyType(
    {"scored": "third_party", "published": "third_party", "self-reported": "first_party"}
)
"""Who evaluated the judge: the leaderboard, the benchmark's authors, or the judge's own."""
INTERVAL_METHODS: Final = MappingProxyType(
    {
        "tasks": "bootstrap over tasks",
        "approximate": "Wilson interval of the counts, widened by the design effect of tasks",
    }
)
LOWEST: Final = MappingProxyType({"kappa": -1.0})
BY_BENCHMARK: Final = ("precision", "recall", "f1")


def every_eval_ever(board: Board, retrieved: int) -> dict[str, bytes]:
    """The files by their paths, ``data/SUITE/DEVELOPER/MODEL/UUID.json``; ``retrieved`` in Unix seconds.

    The same board and time give the same bytes: a UUID follows from the board's digest and the row's id.
    """
    files = {}
    for row in board.rows:
        if row.provenance == "reference":
            continue
        path = f"data/{_plain(board.suite)}/{model_id(row)}/{_uuid(board, row)}.json"
        text = json.dumps(evaluation(board, row, retrieved), indent=2, ensure_ascii=False, allow_nan=False)
        files[path] = f"{text}\n".encode()
    return files


def evaluation(board: Board, row: BoardRow, retrieved: int) -> dict[str, Any]:
    """One judge's evaluation as the schema has it."""
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
        "evaluation_results": [result for label in LABELS for result in _results(board, row, label)],
    }  # fmt: skip


def model_id(row: BoardRow) -> str:
    """``developer/model`` of the model that the judge asks, of the judge where that is not known."""
    developer, _, name = row.model.rpartition("/")
    return f"{_plain(developer) or 'unknown'}/{_plain(name) or _plain(row.judge) or 'judge'}"


def _results(board: Board, row: BoardRow, label: str) -> Iterator[dict[str, Any]]:
    found = row.labels.get(label)
    if not found:
        return
    parts = [("overall", found["overall"], tuple(METRIC_TITLES))]
    parts += [(name, cell, BY_BENCHMARK) for name, cell in found["by_benchmark"].items()]
    for part, cell, metrics in parts:
        for metric in metrics:
            if cell.get(metric) is not None:
                yield _result(board, row, (label, part, metric), cell, found["intervals"])


def _result(
    board: Board, row: BoardRow, name: tuple[str, str, str], cell: Mapping[str, Any], intervals: str | None
) -> dict[str, Any]:
    label, part, metric = name
    where = "" if part == "overall" else f" on {BENCHMARK_TITLES.get(part, part)}"
    counts = {each: cell.get(each) for each in ("tp", "fp", "fn", "tn", "no_verdict", "audit", "note")}
    details: dict[str, Any] = {"score": cell[metric], "details": _texts(**counts)}
    if bounds := cell.get(f"{metric}_ci"):
        details["uncertainty"] = {
            "confidence_interval": {
                "lower": bounds[0],
                "upper": bounds[1],
                "confidence_level": 0.95,
                "method": INTERVAL_METHODS.get(intervals, "unknown"),
            },
            **({"num_samples": cell["n"]} if cell["n"] is not None else {}),
            **({"num_bootstrap_samples": N_RESAMPLES} if intervals == "tasks" else {}),
        }
    return {
        "evaluation_result_id": f"{row.id}/{label}/{part}/{metric}",
        "evaluation_name": f"{board.suite}: {label}{where}",
        "source_data": _source_data(board, row, cell["n"]),
        "metric_config": {
            "evaluation_description": f"{METRIC_TITLES[metric]} of a judge's verdicts on {label}{where}, "
            "against expert labels",
            "metric_id": f"{board.suite}.{label}.{metric}",
            "metric_name": METRIC_TITLES[metric],
            "metric_kind": metric,
            "metric_unit": "proportion",
            "lower_is_better": metric in LOWER_IS_BETTER,
            "score_type": "continuous",
            "min_score": LOWEST.get(metric, 0.0),
            "max_score": 1.0,
        },
        "score_details": details,
    }


def _source_data(board: Board, row: BoardRow, n: int | None) -> dict[str, Any]:
    """The trajectories; a split only where it is test, as the source says."""
    if board.suite != OFFICIAL:
        return {"dataset_name": board.suite, "source_type": "other"}
    split = {"hf_split": "test"} if row.split == "test" else {}
    samples = {"samples_number": n} if n is not None else {}
    return {
        "dataset_name": OFFICIAL, "source_type": "hf_dataset", "hf_repo": HF_REPO, **split, **samples,
    }  # fmt: skip


def _texts(**values: object) -> dict[str, str]:
    """What is known of the values, as the texts that the schema wants in its details."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in values.items()
        if value is not None and value != ""
    }


def _plain(text: str) -> str:
    """A name as a part of a path: strangers choose names."""
    return re.sub(r"[^A-Za-z0-9._@+-]+", "-", text).strip("-.")


def _uuid(board: Board, row: BoardRow) -> uuid.UUID:
    digest = hashlib.sha256(f"{board.digest} {row.id}".encode()).digest()
    return uuid.UUID(bytes=digest[:16], version=4)
