"""The ceiling on the board: second annotators scored as a judge, from the labels that are served.

Only where the labels are public: the row carries exact counts over single trajectories.
"""

import threading
from collections.abc import Sequence

from dataset_script.suite import OFFICIAL, Suite
from leaderboard.board import BoardRow
from leaderboard.ceiling import ceiling_row
from leaderboard.labels import LabelSet
from leaderboard.published_rows import SECOND_ANNOTATOR, PublishedRow
from submissions.label_versions import LabelVersion


class References:
    """Makes the reference rows of a suite, once for each label set. Safe for threads."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._lock = threading.Lock()
        self._made: tuple[tuple, tuple[BoardRow, ...]] = ((), ())

    def of(
        self,
        label_sets: Sequence[LabelSet | None],
        published: Sequence[PublishedRow] = (),
        versions: Sequence[LabelVersion] = (),
    ) -> tuple[BoardRow, ...]:
        """The rows that two annotations of the label sets give; none without doubles.

        Date, authors and link are those of the shipped row where there is one, else of the published label
        set.
        """
        known = [labels for labels in label_sets if labels is not None]
        if not known or not self._suite.labels_are_public:
            return ()
        shipped = next((row for row in published if row.row_id == SECOND_ANNOTATOR), None)
        key = (tuple(labels.version for labels in known), shipped and shipped.row_id, len(versions))
        with self._lock:
            if self._made[0] != key:
                self._made = (key, self._rows(known, shipped, versions))
            return self._made[1]

    def _rows(
        self,
        label_sets: Sequence[LabelSet],
        shipped: PublishedRow | None,
        versions: Sequence[LabelVersion],
    ) -> tuple[BoardRow, ...]:
        if shipped is not None and self._suite.name == OFFICIAL:
            told = (shipped.date.isoformat(), shipped.authors or "", shipped.source_url)
        else:
            served = {labels.version for labels in label_sets}
            told = (next((each.at.isoformat() for each in versions if each.version in served), ""), "", "")
        row = ceiling_row(label_sets, *told)
        return () if row is None else (row,)
