"""The server in a process of its own, so that a measured client has its interpreter to itself."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

from tests.support.llm_server.counts import Counts

REPOSITORY = Path(__file__).parents[3]


class LLMProcess:
    """``with LLMProcess(latency_s=0.2) as server``: has ``base_url`` and ``counts`` as a LLMServer has.

    The script is one of `scripts.NAMED`.
    """

    def __init__(self, script: str = "judges", *, latency_s: float = 0.0):
        self._options = {"script": script, "latency_s": latency_s}

    def __enter__(self) -> "LLMProcess":
        command = [sys.executable, "-m", "tests.support.llm_server", json.dumps(self._options)]
        self._process = subprocess.Popen(
            command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.base_url = self._process.stdout.readline().strip()
        if not self.base_url:
            raise RuntimeError("the server did not start")
        return self

    def __exit__(self, *_) -> None:
        self._process.stdin.close()  # it ends with its input
        self._process.wait(120)
        self._process.stdout.close()

    @property
    def counts(self) -> Counts:
        """What was counted so far."""
        url = self.base_url.removesuffix("/v1") + "/counts"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, timeout=120) as answer:
            return Counts.from_json(json.load(answer))
