"""A call to the Hub is tried again after failures that pass, and its last failure is told."""

import httpx
import pytest
from huggingface_hub.errors import HfHubHTTPError

from arb.core.hub import PAUSES, HubError, patiently


class Hub:
    """Answers with the given statuses, one after another; the last one is repeated."""

    def __init__(self, *statuses: int, **headers: str) -> None:
        self.statuses, self.headers = list(statuses), headers
        self.calls, self.pauses, self.lines = 0, [], []

    def call(self) -> str:
        self.calls += 1
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if status == 200:
            return "answer"
        request = httpx.Request("GET", "http://hub/")
        answer = httpx.Response(status, request=request, headers=self.headers)
        raise HfHubHTTPError("failed", response=answer)

    def ask(self) -> str:
        return patiently(self.call, "owner/name", self.pauses.append, self.lines.append)


def test_it_gives_up_after_a_pause_of_each_length_and_says_why():
    hub = Hub(503)
    with pytest.raises(HubError, match=r"owner/name: the Hub answered 503 \(a fault of the server\)"):
        hub.ask()
    assert tuple(hub.pauses) == PAUSES
    assert hub.calls == len(PAUSES) + 1
    assert hub.lines[0] == "the Hub answered 503 (a fault of the server); trying again in 1 s"
    assert len(hub.lines) == len(PAUSES)


def test_it_waits_as_long_as_the_hub_asks_for():
    hub = Hub(429, 200, **{"Retry-After": "42"})
    assert hub.ask() == "answer"
    assert hub.pauses == [42.0]


def test_what_cannot_pass_is_not_tried_again():
    hub = Hub(403)
    with pytest.raises(HubError, match="HF_TOKEN has no right"):
        hub.ask()
    assert (hub.calls, hub.pauses) == (1, [])
