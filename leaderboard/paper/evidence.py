"""The data behind the paper's tables: labels, prediction files, and counts behind printed figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np

from arb.core.predictions.table import Predictions
from leaderboard.judge_precision.confusion import confusion_counts
from leaderboard.labels.labels import LabelSet
from leaderboard.paper.audit import OVERALL, Counts
from leaderboard.paper.published import load_published_rows
from leaderboard.paper.published_files import PublishedRow
from leaderboard.paper.table import FROM_COUNTS, FROM_VERDICTS
from leaderboard.report import verdicts_of

POLICY: Final = "published"
"""The policy of the released scorer: a trajectory without a verdict is left out."""
NO_FILE: Final = "there is no file of this judge's verdicts"


@dataclass(frozen=True, slots=True)
class CellEvidence:
    """A judge's counts on one label in one cell of a table (None if unknown), with their basis and a note."""

    counts: Counts | None = None
    basis: str = ""
    note: str = ""
    no_verdict: int = 0


@dataclass(frozen=True)
class Records:
    """The data that the tables are made from.

    ``labels`` are the test labels, or None if not available. ``published`` and ``verdicts``, the judges'
    verdicts on test, are keyed by the id of the published row.
    """

    published: Mapping[str, PublishedRow]
    labels: LabelSet | None = None
    verdicts: Mapping[str, Predictions] = field(default_factory=lambda: MappingProxyType({}))

    def evidence(self, row_id: str, label: str, cell: str, agent: str | None = None) -> CellEvidence:
        """Return a judge's counts on a label, overall or on a benchmark (``cell``), for all agents or one."""
        if self.labels is not None and row_id in self.verdicts:
            rows = [
                cell in (OVERALL, t.benchmark) and agent in (None, t.agent) for t in self.labels.trajectories
            ]
            return _from_verdicts(self.verdicts[row_id], self.labels, label, np.array(rows, dtype=bool))
        if agent is not None:
            return CellEvidence(note=NO_FILE)
        found = self.published[row_id].labels.get(label)
        printed = None if found is None else found.cell(cell)
        if printed is None:
            return CellEvidence()
        return CellEvidence(printed.counts, FROM_COUNTS, printed.note, printed.no_verdict or 0)


def _from_verdicts(verdicts: Predictions, labels: LabelSet, label: str, rows: np.ndarray) -> CellEvidence:
    column = verdicts_of(verdicts, label)
    if column is None:
        return CellEvidence()
    truth = labels.primary[label][rows]
    one_group = np.zeros(len(truth), dtype=np.int64)
    counted = confusion_counts(column[rows], truth, one_group, 1, POLICY)[0]
    return CellEvidence(Counts(*counted[:4].tolist()), FROM_VERDICTS, "", int(counted[4]))


def gather(labels: LabelSet | None, verdicts: Mapping[str, Predictions] | None = None) -> Records:
    """Make the records from the labels and the judges' verdicts.

    The keys of ``verdicts`` are names that `row_named` accepts. Raises ValueError with every name that is not
    a judge of the paper.
    """
    published = {row.row_id: row for row in load_published_rows()}
    of_paper = [row for row in published.values() if row.provenance == "published"]
    found, problems = {}, []
    for name, columns in (verdicts or {}).items():
        row = row_named(name, of_paper)
        if row is None:
            problems.append(f"{name!r} is not a judge of the paper")
        else:
            found[row.row_id] = columns
    if problems:
        known = ", ".join(sorted({alias for row in published.values() for alias in row.aliases}))
        raise ValueError(f"{'; '.join(problems)}; use one of {known}")
    return Records(MappingProxyType(published), labels, MappingProxyType(found))


def row_named(name: str, rows: Sequence[PublishedRow]) -> PublishedRow | None:
    """Return the row with this id or alias, or else the only row of this judge, or None.

    Case, spaces and punctuation are ignored.
    """
    wanted = _plain(name)
    for row in rows:
        if wanted in map(_plain, (row.row_id, *row.aliases)):
            return row
    named = [row for row in rows if _plain(row.judge) == wanted]
    return named[0] if len(named) == 1 else None


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
