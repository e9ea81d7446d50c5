"""Calls to the Hub: who calls, which failures pass by themselves, and what a failure means in words.

The Hub's client retries listings and uploads, but not commits, `repo_info`, `create_repo` and `whoami`: those
go through `patiently`. No message repeats a token or an address that the Hub signed for an upload.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from tenacity import RetryCallState

    from dataset_script.settings import Settings

PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before each new try when the Hub names none."""

LONGEST_PAUSE: Final = 300.0
"""The Hub counts requests in windows of five minutes."""

_PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})

Result = TypeVar("Result")


class HubError(Exception):
    """What was wanted of the Hub cannot be had; the message says why and what to do."""


def hub_of(settings: Settings) -> HfApi:
    """The Hub's client (its address is HF_ENDPOINT) with the token of the settings and no other."""
    from huggingface_hub import HfApi

    token = settings.hf_token.get_secret_value() if settings.hf_token else ""
    return HfApi(token=token or False, library_name="agent-reward-bench")


def patiently(
    call: Callable[[], Result], what: str, sleep: Callable[[float], None], say: Callable[[str], None]
) -> Result:
    """What the call gives; tried again after failures that pass. Raises HubError."""
    from huggingface_hub.errors import HTTPError
    from tenacity import Retrying, retry_if_exception, stop_after_attempt

    def wait(state: RetryCallState) -> float:  # asked after the last attempt too
        return pause_after(state.outcome.exception(), (*PAUSES, 0.0)[state.attempt_number - 1])

    def announce(state: RetryCallState) -> None:
        say(next_attempt(state.outcome.exception(), state.next_action.sleep))

    retrying = Retrying(
        retry=retry_if_exception(lambda error: isinstance(error, HTTPError) and passes(error)),
        stop=stop_after_attempt(len(PAUSES) + 1),
        wait=wait,
        before_sleep=announce,
        sleep=sleep,
        reraise=True,
    )
    try:
        return retrying(call)
    except HTTPError as error:
        raise HubError(f"{what}: {in_words(error)}") from error


def passes(error: BaseException) -> bool:
    """Whether trying again can help: too many requests, a fault of the server, a broken connection."""
    status = status_of(error)
    return status is None or status in _PASSING


def status_of(error: BaseException) -> int | None:
    """The status that the Hub answered; None when no answer came."""
    response = getattr(error, "response", None)
    return response.status_code if response is not None else None


def pause_after(error: BaseException, pause: float) -> float:
    """How many seconds to wait: as long as the Hub asks for (at most its window), else ``pause``."""
    return min(asked_pause(error) or pause, LONGEST_PAUSE)


def next_attempt(error: BaseException, seconds: float) -> str:
    """The line for a pause."""
    return f"{in_words(error)}; trying again in {seconds:.0f} s"


def asked_pause(error: BaseException) -> float | None:
    """How many seconds the Hub asks to wait; None where it names none."""
    from huggingface_hub.utils import parse_ratelimit_headers

    response = getattr(error, "response", None)
    if response is None:
        return None
    after = response.headers.get("Retry-After", "")
    if after.isdigit():
        return float(after)
    limit = parse_ratelimit_headers(response.headers)
    return float(limit.reset_in_seconds) if limit is not None and limit.remaining == 0 else None


def in_words(error: BaseException) -> str:
    """A failure of the Hub in one line, with what to do."""
    status = status_of(error)
    if status is None:
        return f"the connection to the Hub broke off ({type(error).__name__})"
    advice = {
        400: "it does not accept the request",
        401: "set HF_TOKEN to a token that it knows",
        402: "the plan of its owner does not have this",
        403: "HF_TOKEN has no right to do this",
        404: "check the name and the revision, and that HF_TOKEN may read it",
        412: "the repository changed meanwhile",
        429: "too many requests",
    }
    return f"the Hub answered {status} ({advice.get(status, 'a fault of the server')})"
