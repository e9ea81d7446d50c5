"""The Spaces of the storm: `arb space serve`, each started anew in an instant (`test_hub_storm.py`).

All is imported once; each Space is a child of this process, so that a killed one is replaced at once. Lines
on standard input: a port and a state folder (answered by the process id of a new Space) and, at the end,
``end``.
"""

import os
import signal
import sys
import time
import traceback
from functools import partial
from types import SimpleNamespace

from arb.core import hub
from arb.core.hub import CommitRateLimiter
from submissions import startup
from submissions.hub import mirror, repository
from tests.support import libraries  # noqa: F401


def serve(port: str, state: str) -> None:
    """Serve until killed."""
    from space.__main__ import app

    _without_long_pauses()
    os.environ |= {"ARB_PORT": port, "ARB_STATE_DIR": state}
    app(["serve"], prog_name="arb space")


def _without_long_pauses() -> None:
    """A storm of minutes, not of hours: pauses between tries are short; what they are is tested elsewhere."""
    from huggingface_hub import file_download
    from huggingface_hub.utils import _http

    mirror.SECONDS_BETWEEN_CHECKS = 0.2
    repository.MINUTE = 0.1
    hub.PAUSES = (0.05,) * 8
    startup.CommitRateLimiter = partial(CommitRateLimiter, most_an_hour=10_000, burst=5_000)
    quick = SimpleNamespace(**vars(time) | {"sleep": lambda _seconds: time.sleep(0.02)})
    _http.time = file_download.time = quick


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the killed leave no zombies
    print("ready", flush=True)
    for line in sys.stdin:
        if line == "end\n":
            break
        port, state = line.rstrip("\n").split(maxsplit=1)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            sys.stdin.close()
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            try:
                serve(port, state)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    main()
