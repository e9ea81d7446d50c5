"""Re-scoring in a thread of its own: one at a time, with what came of the last one."""

import logging
import threading
from dataclasses import dataclass
from typing import Any, Literal

from submissions.accounts import Actor
from submissions.refusals import SubmissionError
from submissions.rescoring import Rescoring, rescore
from submissions.service import SubmissionService

logger = logging.getLogger(__name__)
FAILED = "something failed on our side; the log says what. It goes on where it was when it is begun again"


@dataclass(frozen=True)
class JobState:
    """Where re-scoring is: ``found`` what it changed, ``told`` why it failed."""

    state: Literal["idle", "running", "done", "failed"]
    found: Rescoring | None = None
    told: str = ""

    def to_json(self) -> dict[str, Any]:
        """The same as JSON."""
        return {"state": self.state, "found": self.found and self.found.to_json(), "told": self.told}


class RescoringJob:
    """Re-scores everything when asked. Safe for threads."""

    def __init__(self, service: SubmissionService) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._state = JobState("idle")
        self._thread: threading.Thread | None = None

    @property
    def state(self) -> JobState:
        """Where it is now."""
        return self._state

    def begin(self, actor: Actor) -> bool:
        """Begin, unless one is under way; whether it began."""
        with self._lock:
            if self._state.state == "running":
                return False
            self._state = JobState("running")
            self._thread = threading.Thread(target=self._run, args=(actor,), name="rescoring", daemon=True)
            self._thread.start()
            return True

    def wait(self, timeout_s: float) -> JobState:
        """Where it is after its end, or after ``timeout_s`` seconds."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._state

    def _run(self, actor: Actor) -> None:
        try:
            self._state = JobState("done", rescore(self._service, actor))
        except SubmissionError as reason:
            self._state = JobState("failed", told=str(reason))
        except Exception:
            logger.exception("re-scoring failed")
            self._state = JobState("failed", told=FAILED)
