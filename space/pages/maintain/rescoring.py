"""Re-scoring of every submission in the background, one run at a time."""

import logging
import threading
from dataclasses import dataclass
from typing import Any, Literal

from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor
from submissions.scoring.rescore import Rescoring, rescore

logger = logging.getLogger(__name__)
FAILED = "something failed on our side; the log has the reason. Start re-scoring again to continue"


@dataclass(frozen=True)
class JobState:
    """The state of re-scoring. ``found`` says what it has changed, and ``message`` why it has failed."""

    state: Literal["idle", "running", "done", "failed"]
    found: Rescoring | None = None
    message: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "found": self.found and self.found.to_json(),
            "message": self.message,
        }


class RescoringJob:
    """The job that re-scores every submission. Thread-safe."""

    def __init__(self, service: SubmissionsApp) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._state = JobState("idle")
        self._asked_again: Actor | None = None
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> JobState:
        return self._state

    def begin(self, actor: Actor) -> bool:
        """Start the job and return True, or return False if it is already running.

        A running job starts again when it ends, since labels may have changed in the meantime.
        """
        with self._lock:
            if self._state.state == "running":
                self._asked_again = actor
                return False
            self._state = JobState("running")
            self._thread = threading.Thread(target=self._run, args=(actor,), name="rescoring", daemon=True)
            self._thread.start()
            return True

    def wait(self, timeout_s: float) -> JobState:
        """Wait for the end of the job, at most ``timeout_s`` seconds, and return its state."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._state

    def _run(self, actor: Actor | None) -> None:
        while actor is not None:
            try:
                state = JobState("done", rescore(self._service, actor))
            except SubmissionError as reason:
                state = JobState("failed", message=str(reason))
            except Exception:
                logger.exception("re-scoring failed")
                state = JobState("failed", message=FAILED)
            with self._lock:
                actor, self._asked_again = self._asked_again, None
                if actor is None:
                    self._state = state
