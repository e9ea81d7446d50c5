"""The ceiling on the board: second annotators scored as a judge, from the labels that are served.

Only where the labels are public: the row carries exact counts over single trajectories.
"""

import threading
from collections.abc import Sequence

from sqlalchemy.orm import Session

from dataset_script.suite import OFFICIAL, Suite
from leaderboard.board import BoardRow
from leaderboard.ceiling import ceiling_row
from leaderboard.published_rows import SECOND_ANNOTATOR, PublishedRow
from submissions.chain import events_after
from submissions.label_shelf import LabelStore
from submissions.label_versions import versions_in


class References:
    """Makes the reference rows of a suite, once for each label set. Safe for threads."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._lock = threading.Lock()
        self._made: tuple[tuple | None, tuple[BoardRow, ...]] = (None, ())

    def of(
        self,
        session: Session,
        labels: LabelStore,
        label_version: str | None,
        published: Sequence[PublishedRow] = (),
    ) -> tuple[BoardRow, ...]:
        """The rows that stand on a board of this label version; none unless these labels are served.

        On the official suite the row has the date, the authors and the link of the shipped one, which it
        replaces; elsewhere the day on which the label set was published, where it was.
        """
        if not self._suite.labels_are_public or labels.test is None or labels.test.version != label_version:
            return ()
        known = [found for found in (labels.dev, labels.test) if found is not None]
        told = self._shipped(published) or (self._published_at(session, label_version), "", "")
        key = (*(found.version for found in known), *told)
        with self._lock:
            if self._made[0] != key:
                row = ceiling_row(known, *told)
                self._made = (key, () if row is None else (row,))
            return self._made[1]

    def _shipped(self, published: Sequence[PublishedRow]) -> tuple[str, str, str] | None:
        if self._suite.name != OFFICIAL:
            return None
        found = next((row for row in published if row.row_id == SECOND_ANNOTATOR), None)
        return found and (found.date.isoformat(), found.authors or "", found.source_url)

    def _published_at(self, session: Session, label_version: str) -> str:
        versions = versions_in(events_after(session, kinds=["labels_published"]), self._suite.name)
        return next((each.at.isoformat() for each in versions if each.version == label_version), "")
