"""The Hard subset as a filter of the leaderboard: recall on successes and on failures, without precision."""

from typing import Any

import numpy as np

from arb.core.console import interval, percent
from arb.core.predictions.table import Codes
from leaderboard.board.board import Board, BoardRow
from leaderboard.board.ranks import DESIGN_EFFECTS
from leaderboard.hard import FAMILIES, family_of, family_votes, hard_for, score_on
from leaderboard.judge_precision.intervals import approximate_interval
from leaderboard.labels.labels import LabelSet
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.score import Cell, metric_of
from space.pages.leaderboard.query import PAGE_ROWS, LeaderboardQuery, chosen_rows
from space.verdicts import JudgeVerdicts
from space.web.cells import FEW, TableCell


def view_hard(
    board: Board, choice: LeaderboardQuery, verdicts: JudgeVerdicts, labels: LabelSet
) -> dict[str, Any]:
    """Return the template's values for the rows that fit the choice, on their Hard subsets, best mean first.

    ``families`` maps each family that votes to its rows, and ``absent`` has the other families. ``n_hard``
    counts the trajectories on which at least two families are wrong. Of these, ``n_second`` have an
    answer of a second annotator, which differs from the label on ``n_differing``. At most `PAGE_ROWS` judges
    are shown, because each one's file has to be read; ``is_cut`` says whether others were left out.
    """
    families = verdicts.families()
    members: dict[str, list[Codes]] = {}
    for family, rows in families.items():
        columns = filter(None, map(verdicts.for_row, rows))  # a file may be unreadable
        members[family] = [column.answers for column in columns]
    votes = family_votes({family: found for family, found in members.items() if found})
    truth = labels.primary[verdicts.target.name]
    chosen = np.array([choice.agent in ("", t.agent) for t in labels.trajectories], dtype=bool)
    known = [row for row in chosen_rows(board, choice) if row.provenance != "reference"]
    known = [row for row in known if verdicts.are_known(row)]
    lines = []
    for row in known[:PAGE_ROWS]:
        column = verdicts.for_row(row)
        if column is not None:
            family = family_of(row.judge)
            score = score_on(column.answers, truth, hard_for(family, votes, truth) & chosen)
            lines.append({**_line(row, score), "family": family})

    def order(line: dict[str, Any]) -> tuple[Any, ...]:
        return line["mean"] is None, -(line["mean"] or 0), line["row"].judge, line["row"].id

    lines.sort(key=order)
    hard = hard_for("", votes, truth) & chosen
    second = labels.second[verdicts.target.name]
    answered = hard & (second >= 0)
    human = board.row(SECOND_ANNOTATOR)
    return {
        "families": {family: families[family] for family in votes},
        "absent": [family for family in FAMILIES if family not in votes],
        "n_hard": int(hard.sum()),
        "n_second": int(answered.sum()),
        "n_differing": int((answered & (second != truth)).sum()),
        "lines": lines,
        "references": [_line(human, score_on(second, truth, answered))] if human else [],
        "is_cut": len(known) > PAGE_ROWS,
    }


def _line(row: BoardRow, score: Cell) -> dict[str, Any]:
    """Return a row with the mean and the two recalls, whose hover texts are counts and 95 % intervals."""
    recalls = [_recall(score, "recall", "tp", "fn"), _recall(score, "tnr", "tn", "fp")]
    return {"row": row, "family": "", "mean": score["balanced_accuracy"], "recalls": recalls}


def _recall(score: Cell, metric: str, *names: str) -> TableCell:
    """Return a recall as a cell; ``names`` are the names of the counts of hits and misses."""
    hits, misses = (int(metric_of(score, name) or 0) for name in names)
    share, ends = metric_of(score, metric), approximate_interval(hits, hits + misses, DESIGN_EFFECTS[metric])
    counts = f"{hits} of {hits + misses}"
    hover = f"{counts} ({interval(ends)})" if ends else counts
    return TableCell(percent(share), share, hover, hits + misses < FEW)
