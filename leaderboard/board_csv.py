"""The board as CSV: a line for each row and label, safe to open in a spreadsheet."""

import csv
import io

from dataset_script.vocabulary import LABELS
from leaderboard.board import Board
from leaderboard.inert_cells import inert

DESCRIPTION = (
    "id", "judge", "account", "kind", "inputs", "model", "authors", "link", "date", "provenance", "source",
    "attempts", "test_labels_used", "file_sha256",
)  # fmt: skip
RANK = ("place", "low", "high")
FIGURES = (
    "n", "positives", "tp", "fp", "fn", "tn", "no_verdict", "coverage", "precision", "recall", "f1",
    "accuracy", "npv", "tnr", "kappa",
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
