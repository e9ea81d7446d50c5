"""Calls to the Hub that are made again."""

import threading

import pytest
from huggingface_hub import errors

from arb.core.hub import PAUSES, HubError, patiently

CLOSED = "Cannot send a request, as the client has been closed."


def test_a_client_that_another_thread_closed_is_no_failure():
    calls = []

    def call() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError(CLOSED)
        return "done"

    assert patiently(call, "owner/name", sleep=pytest.fail, say=pytest.fail) == "done"


class ConnectError(errors.HTTPError):
    """What the Hub's client raises if the address refuses or is unknown."""


def test_a_hub_that_never_answered_is_not_asked_again(monkeypatch):
    monkeypatch.setattr("arb.core.hub._ANSWERED", threading.Event())
    with pytest.raises(
        HubError, match="owner/name: the Hub cannot be reached; check the network, and HF_END"
    ):
        patiently(refuse, "owner/name", sleep=pytest.fail, say=pytest.fail)


def test_a_hub_that_answered_before_is_waited_for(monkeypatch):
    monkeypatch.setattr("arb.core.hub._ANSWERED", threading.Event())
    waited: list[float] = []
    assert patiently(lambda: "done", "owner/name", sleep=pytest.fail, say=pytest.fail) == "done"
    with pytest.raises(HubError, match="cannot be reached"):
        patiently(refuse, "owner/name", sleep=waited.append, say=lambda _: None)
    assert waited == list(PAUSES)


def refuse() -> None:
    raise ConnectError("refused")


@pytest.mark.parametrize(("message", "calls"), [(CLOSED, len(PAUSES) + 1), ("another fault", 1)])
def test_a_fault_that_stays_is_raised(message, calls):
    made = []

    def call() -> None:
        made.append(1)
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match=message):
        patiently(call, "owner/name", sleep=pytest.fail, say=pytest.fail)
    assert len(made) == calls
