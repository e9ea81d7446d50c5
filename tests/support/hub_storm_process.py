"""The server of the storm: REST over the real service, started anew in an instant (`test_hub_storm.py`).

All is imported once; each server is a child of this process, so that a killed one is replaced at once. Lines
on standard input: ``start`` (answered by the process id of a new server) and, at the end, ``end``.
"""

import os
import signal
import sys
import time
from types import SimpleNamespace

import uvicorn
from fastapi import FastAPI

from core import hub
from core.settings import Settings
from space.api.board import build_board_router
from space.api.submissions import build_submission_router
from space.web.http_errors import add_error_handlers
from submissions.hub import mirror, repository
from submissions.hub.repository import CommitRateLimiter
from submissions.startup import open_service


def serve(port: int) -> None:
    """Serve until killed, or until SIGTERM: then what waits is brought to the Hub."""
    _without_long_pauses()
    service = open_service(Settings(), limiter=CommitRateLimiter(most_an_hour=10_000, burst=5_000))
    app = FastAPI()
    add_error_handlers(app, service)
    app.include_router(build_board_router(service))
    app.include_router(build_submission_router(service))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", access_log=False)
    service.close()


def _without_long_pauses() -> None:
    """A storm of minutes, not of hours: pauses between tries are short; what they are is tested elsewhere."""
    from huggingface_hub import file_download
    from huggingface_hub.utils import _http

    mirror.SECONDS_BETWEEN_LOOKS = 0.2
    repository.MINUTE = 0.1
    hub.PAUSES = hub.PAUSES = (0.05,) * 8
    quick = SimpleNamespace(**vars(time) | {"sleep": lambda _seconds: time.sleep(0.02)})
    _http.time = file_download.time = quick


def main(port: str) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the killed leave no zombies
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() != "start":
            break
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.stdin.close()
            try:
                serve(int(port))
            finally:
                os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
