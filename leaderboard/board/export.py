"""The board as CSV and as a read-only site.

The CSV is safe to open in a spreadsheet: text that looks like a formula is made inert. The site is a folder
of plain files that need neither scripts nor a server. It is written completely or not at all.
"""

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment

from arb.core.console import coefficient, interval, percent, text_environment
from arb.core.files import csv_text, new_folder
from arb.core.suites.targets import Target, default_targets, scored
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.rows import rank_in, why_not_ranked
from leaderboard.judge_precision import intervals
from leaderboard.metrics import TargetMetric, known_metrics
from leaderboard.score import interval_of, metric_of

FORMULA_SIGNS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_AT_START: Final = re.compile(rf"\s*[{re.escape(''.join(FORMULA_SIGNS))}]|[\t\r\n]")
_IN_NEW_CELL: Final = re.compile(rf"(;[\s\"]*)(?=[{re.escape(''.join(FORMULA_SIGNS))}])")


def inert(value: Any) -> Any:
    """Return a value that is safe in a spreadsheet: text that looks like a formula gets an apostrophe.

    A formula begins with one of `FORMULA_SIGNS`, possibly after spaces. Text that begins with a tab or line
    break gets an apostrophe too. Spreadsheets with a decimal comma split lines at semicolons, even inside
    quotes, so a sign after a semicolon is treated like one at the beginning.
    """
    if not isinstance(value, str):
        return value
    value = _IN_NEW_CELL.sub(r"\1'", value)
    return f"'{value}" if _AT_START.match(value) else value


DESCRIPTION = (
    "id", "judge", "account", "kind", "inputs", "model", "authors", "link", "date", "provenance", "source",
    "attempts", "test_labels_used", "file_sha256", "protocol", "split", "evidence", "maker", "weights",
    "licence", "model_link",
)  # fmt: skip
RANK = ("place", "low", "high")
SEPARATED = ("n_separated", "separated_from")
FIGURES = (
    "n", "positives", "tp", "fp", "fn", "tn", "no_verdict", "coverage", "precision", "recall", "f1",
    "accuracy", "npv", "tnr", "kappa", "fpr", "balanced_accuracy",
)  # fmt: skip


def board_to_csv(board: Board) -> str:
    """Return the board as CSV, with one line per label and row, the best rows first.

    A line has the rank, the description, overall figures, intervals, and the target's main metric by
    benchmark. It also has the ids of the rows that the row is separated from, joined by semicolons. Shares
    are fractions. Unknown values are empty.
    """
    targets = scored(board.targets)
    metrics = dict.fromkeys(name for target in targets for name in target.metrics if name not in FIGURES)
    others = (name for target in targets if target.type != "binary" for name in target.metrics)
    by_benchmark = dict.fromkeys(target.main_metric for target in targets)
    with_ends = tuple(dict.fromkeys((*intervals.FIGURES, *others, *metrics, *by_benchmark)))
    scores = (score for row in board.rows for score in row.labels.values() if score)
    ordered = sorted({name for score in scores for name in score["by_benchmark"]})
    ends = [f"{metric}_ci_{end}" for metric in with_ends for end in ("low", "high")]
    parts = [(metric, name) for metric in by_benchmark for name in ordered]
    header = ["label", *(f"rank_{name}" for name in RANK), *DESCRIPTION, *FIGURES, *metrics, *ends,
              *(f"{metric}_{name}" for metric, name in parts), "usd_per_1000", "usd_is_at_least",
              "note", *SEPARATED]  # fmt: skip
    lines = []
    for target in targets:
        label = target.name
        for row in board.ranking(label):
            score = row.score(label)
            overall, rank = score["overall"], score["rank"] or {}
            cells: list[Any] = [label, *(rank.get(name) for name in RANK)]
            cells += [inert(getattr(row, name)) for name in DESCRIPTION]
            cells += [metric_of(overall, name) for name in (*FIGURES, *metrics)]
            for metric in with_ends:
                cells += interval_of(overall, metric) or (None, None)
            cells += [
                metric_of(score["by_benchmark"].get(name, {}), metric)
                if metric == target.main_metric
                else None
                for metric, name in parts
            ]
            cost = row.cost
            cells += [cost and cost["usd_per_1000"], cost and cost.get("is_at_least", False)]
            note = inert("; ".join(filter(None, (row.note, score["note"]))))
            apart = inert("; ".join(score.get("separated_from") or ()))
            lines.append([*cells, note, score.get("n_separated"), apart])
    return csv_text(header, lines, "\r\n")


FOLDER = Path(__file__).parent / "static_site"
PROVENANCE_TITLES: Final = {
    "scored": "scored here from a prediction file",
    "published": "published metrics",
    "self-reported": "metrics that its authors report",
    "reference": "a reference, not a judge",
}
FEW_POSITIVES: Final = 20
"""Figures on fewer positive labels than this are marked, as one trajectory shifts them by several points."""


def site_files(board: Board) -> dict[str, bytes]:
    """Return the content of each file of the site, keyed by its path."""
    pages = {row.id: f"judges/{page_name(row.id)}.html" for row in board.rows}
    values = {"board": board, "targets": scored(board.targets), "pages": pages}
    is_default = board.targets == default_targets()
    files = {"index.html": _render("index.html", root="", is_default=is_default, **values)}
    for row in board.rows:
        files[pages[row.id]] = _render("judge.html", root="../", row=row, **values)
    return {
        **{path: html.encode() for path, html in files.items()},
        "site.css": (FOLDER / "site.css").read_bytes(),
        "board.json": board.to_bytes(),
        "board.csv": board_to_csv(board).encode(),
    }


def page_name(row_id: str) -> str:
    """Return the name of a row's page without suffix: the row id, or a hash if it is not a plain name."""
    is_plain = row_id.replace("-", "").isalnum() and row_id.isascii()
    return row_id if is_plain else hashlib.sha256(row_id.encode()).hexdigest()[:16]


def site_metrics(target: Target) -> dict[str, TargetMetric]:
    """Return the metrics of a target that the site shows, by name, with the main one first."""
    others = ("precision", "recall", "f1") if target.type == "binary" else target.metrics
    return {name: known_metrics(target)[name] for name in (target.main_metric, *others)}


def figure(metric: TargetMetric, value: float | None) -> str:
    """Return a metric's value as text, in percent if the metric is a share."""
    return percent(value) if metric.is_share else coefficient(value)


def ends(metric: TargetMetric, bounds: Sequence[float] | None) -> str:
    """Return an interval as text, in percent if the metric is a share."""
    return interval(bounds) if metric.is_share else " to ".join(map(coefficient, bounds or ()))


def benchmarks_in(rows: Iterable[BoardRow], label: str) -> list[str]:
    """Return the benchmarks on which any row has a score: first the paper's, then others by name.

    The result is empty if there is only one, because the whole suite has the same figures.
    """
    found = {name for row in rows for name in row.score(label)["by_benchmark"]}
    if len(found) < 2:
        return []
    known = [name for name in BENCHMARK_TITLES if name in found]
    return known + sorted(found.difference(known))


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = text_environment(FOLDER / "templates", autoescape=True)
    environment.globals.update(
        figure=figure, ends=ends, site_metrics=site_metrics, benchmarks_in=benchmarks_in,
        benchmark_titles=BENCHMARK_TITLES, agent_titles=AGENT_TITLES, provenances=PROVENANCE_TITLES,
        few=FEW_POSITIVES, rank_in=rank_in, why_not_ranked=why_not_ranked,
    )  # fmt: skip
    return environment


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(**values)


class FolderTaken(Exception):
    """Raised if the folder contains files that do not belong to an older site."""


def write_static_site(board: Board, folder: Path) -> int:
    """Write the site of a board to ``folder`` and return the number of files.

    An older site in the folder is replaced. If the folder contains anything else, it is not changed, and
    FolderTaken is raised.
    """
    if folder.exists() and not _is_replaceable(folder):
        raise FolderTaken(f"{str(folder)!r} contains other files; choose a new or empty folder")
    files = site_files(board)
    old = None
    with new_folder(folder) as part:
        for name, content in files.items():
            path = part / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        part.chmod(0o755)
        if folder.exists():
            old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}-old-"))
            folder.replace(old / "site")
    if old is not None:
        shutil.rmtree(old)
    return len(files)


def _is_replaceable(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    names = {path.name for path in folder.iterdir()}
    return not names or {"index.html", "site.css", "board.json"} <= names
