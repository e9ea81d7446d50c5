"""The current state of annotation, folded from the events since the last call."""

import threading

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from dataset_script.suite import Suite
from submissions.chain import ANNOTATION_KINDS, events_after, number_of_events
from submissions.database import snapshot
from submissions.labelling.state import AnnotationState, fold_annotations


class AnnotationStateCache:
    """Caches the state of a suite. Safe for threads; other processes' events are seen at the next call."""

    def __init__(self, engine: Engine, suite: Suite) -> None:
        self._engine, self._suite = engine, suite
        self._lock = threading.Lock()
        self._known: tuple[int, AnnotationState] = (0, AnnotationState())

    def now(self) -> AnnotationState:
        """The state as the records are at the call."""
        with snapshot(self._engine) as session:
            return self.within(session)

    def within(self, session: Session) -> AnnotationState:
        """The state at the session's moment, or a later one; in a transaction: before it adds a record."""
        last = number_of_events(session)
        with self._lock:
            sequence, state = self._known
            if last > sequence:
                state = fold_annotations(
                    state, events_after(session, sequence, kinds=ANNOTATION_KINDS), self._is_known
                )
                self._known = (last, state)
            return state

    def _is_known(self, trajectory_id: str) -> bool:
        return self._suite.find(trajectory_id) is not None
