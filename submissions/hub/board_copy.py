"""A copy of the public board in a dataset repository on the Hub, updated whenever the board changes."""

import json
import logging
import threading
from functools import partial
from pathlib import Path
from typing import Final

from arb.core.files import atomic_write
from arb.core.hub import CommitRateLimiter, HubError, HubRepository, PublishError, hub_of
from leaderboard.board.board import Board
from leaderboard.board.export import board_to_csv
from submissions.app import SubmissionsApp
from submissions.hub.lease import open_lease
from submissions.hub.records_copy import Stopping

logger = logging.getLogger(__name__)
SECONDS_BETWEEN_CHECKS: Final = 5.0
SECONDS_AFTER_FAILURE: Final = 60.0

CARD: Final = Path(__file__).with_name("board_card.md")
"""The template of the repository's README.md, with the fields ``name`` (a YAML string) and ``title``."""


def board_files(board: Board, title: str) -> dict[str, bytes]:
    """Return the contents of the repository's files, keyed by name. They contain only public data."""
    name = json.dumps(f"Leaderboard of {title}", ensure_ascii=False)  # a JSON string is also a YAML string
    return {
        "README.md": CARD.read_text(encoding="utf-8").format(name=name, title=title).encode(),
        "board.csv": board_to_csv(board).encode(),
        "board.json": board.to_bytes(),
    }


class BoardCopy:
    """A thread that commits the board to its repository on the Hub, so that no request waits for a commit.

    If several processes share a database, only the process that holds the lease commits.
    """

    def __init__(self, app: SubmissionsApp, repo: str) -> None:
        settings = app.settings
        self._app = app
        self._stop = threading.Event()
        self._repository = HubRepository(
            hub_of(settings), repo, say=lambda line: logger.info("Hub: %s", line), sleep=self._pause
        )
        self._folder = settings.state_dir / "hub" / "board"
        self._lease = open_lease(app.engine, settings.state_dir, "board")
        self._limiter = CommitRateLimiter()
        self._digest: str | None = None
        self._thread = threading.Thread(target=self._run, name="board to the Hub", daemon=True)

    def _pause(self, seconds: float) -> None:
        """Pause between attempts. Raises Stopping if the server shuts down meanwhile."""
        if self._stop.wait(seconds):
            raise Stopping

    def start(self) -> None:
        self._thread.start()

    def close(self, timeout_s: float = 5.0) -> None:
        """End the thread; a change that is not committed yet is committed after the next start."""
        self._stop.set()
        self._thread.join(timeout_s)

    def push(self) -> bool:
        """Commit the board if it has changed and the limiter allows it; return whether a commit was made.

        Raises HubError or PublishError.
        """
        board = self._app.records.board()
        if board.digest == self._digest or self._limiter.seconds_to_wait():
            return False
        repository = self._repository
        # An existing repository is not changed, even if it is private.
        create = partial(repository.hub.create_repo, repo_type="dataset", private=False, exist_ok=True)
        repository.patiently(lambda: create(repository.repo))
        self._limiter.note()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        files = board_files(board, self._app.suite.profile.title)
        paths = {name: self._folder / name for name in files}
        for name, content in files.items():
            atomic_write(paths[name], content)
        done = repository.put(paths, owned=lambda _path: False, verb="Board")
        self._digest = board.digest
        return done.committed

    def _run(self) -> None:
        while not self._stop.is_set():
            pause = SECONDS_BETWEEN_CHECKS
            try:
                if self._app.durability.closed is None and self._lease.acquire():
                    self.push()
            except Exception as problem:
                pause = SECONDS_AFTER_FAILURE
                if not self._stop.is_set():
                    details = not isinstance(problem, HubError | PublishError)
                    logger.warning("the board was not committed to the Hub: %s", problem, exc_info=details)
            self._stop.wait(pause)
        self._lease.release()
