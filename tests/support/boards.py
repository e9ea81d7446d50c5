"""Boards made by hand: rows from counts, ranks and intervals as given."""

from leaderboard.board.board import Board, BoardRow
from leaderboard.judge_precision.confusion import figures
from leaderboard.paper.published import SECOND_ANNOTATOR


def cell(tp=0, fp=0, fn=0, tn=0, no_verdict=0, ci=None, **changes) -> dict:
    """CELL of these counts, with an interval of the precision."""
    found = figures(tp, fp, fn, tn, no_verdict, policy="strict")
    return {**found, "precision_ci": ci, "recall_ci": None, "f1_ci": None, **changes}


def label(overall: dict, rank=None, best=True, note="", apart=None, **by_benchmark) -> dict:
    """What a row holds of one label; ``rank`` is (place, low, high), ``apart`` the ids that it lists."""
    return {
        "overall": overall,
        "by_benchmark": {name.replace("_", "+"): found for name, found in by_benchmark.items()},
        "by_agent": {},
        "rank": rank and dict(zip(("place", "low", "high"), rank, strict=True)),
        "n_separated": None if rank is None else len(apart or ()),
        "separated_from": apart,
        "best": best,
        "intervals": "tasks",
        "note": note,
    }


def row(judge: str, success: dict, provenance="scored", **changes) -> BoardRow:
    """A row that has the label success; others by their names."""
    labels = {"success": success, "side_effect": None, "repetition": None, **changes.pop("labels", {})}
    described = {
        "id": judge, "judge": judge, "account": "ada", "kind": "LLM judge", "inputs": "tree",
        "model": "some-model",
        "authors": "Ada Lovelace", "link": "", "date": "2026-01-02T00:00:00+00:00", "provenance": provenance,
        "source": "scored here", "attempts": 1, "test_labels_used": False, "file_sha256": "0" * 64,
        "note": "", "protocol": "strict", "split": "test",
    }  # fmt: skip
    return BoardRow(**{**described, **changes}, labels=labels)


def board(*rows: BoardRow) -> Board:
    """A board of these rows, in this order."""
    return Board("small", "0123456789ab", tuple(rows))


def second_annotator(tp=11, fp=2, fn=2, tn=91) -> BoardRow:
    """The human reference: precision 11/13 = 84.6 %."""
    success = label(cell(tp, fp, fn, tn, ci=[0.6, 0.95]), best=False)
    return row("Second annotator", success, "reference", id=SECOND_ANNOTATOR, account="", attempts=None)
