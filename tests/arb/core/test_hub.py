"""Calls to the Hub that are made again."""

import pytest

from arb.core.hub import PAUSES, patiently

CLOSED = "Cannot send a request, as the client has been closed."


def test_a_client_that_another_thread_closed_is_no_failure():
    calls = []

    def call() -> str:
        calls.append(1)
        if len(calls) < 3:
            raise RuntimeError(CLOSED)
        return "done"

    assert patiently(call, "owner/name", sleep=pytest.fail, say=pytest.fail) == "done"


@pytest.mark.parametrize(("message", "calls"), [(CLOSED, len(PAUSES) + 1), ("another fault", 1)])
def test_a_fault_that_stays_is_raised(message, calls):
    made = []

    def call() -> None:
        made.append(1)
        raise RuntimeError(message)

    with pytest.raises(RuntimeError, match=message):
        patiently(call, "owner/name", sleep=pytest.fail, say=pytest.fail)
    assert len(made) == calls
