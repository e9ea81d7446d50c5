"""Sending a prediction file to a Space over HTTP, from the command line."""

import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential

TIMEOUT: Final = httpx.Timeout(60.0, connect=10.0)
ATTEMPTS: Final = 4
"""Sending again is safe: the same file of the same judge is one submission."""
MOST_WAITED_SECONDS: Final = 900.0
"""How long a Space is waited for that says when to come back, as one does that restores its records."""


class SubmissionNotSent(Exception):
    """Nothing came of it, or not known to; the message says why and what to do."""


@dataclass(frozen=True)
class SpaceAnswer:
    """What the Space answered: a receipt (``is_accepted``), or every problem that it found.

    ``retry_after`` is in how many seconds the Space wants to be asked again; None where it does not say.
    """

    is_accepted: bool
    answer: Mapping[str, Any]
    retry_after: float | None = None


class _Unreachable(Exception):
    """Worth another attempt, after ``retry_after`` seconds where the Space names them."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(message)


def _seconds_until_next(state: RetryCallState) -> float:
    named = state.outcome.exception().retry_after
    return wait_exponential(multiplier=0.5, max=8)(state) if named is None else named


def _gives_up(state: RetryCallState) -> bool:
    named = state.outcome.exception().retry_after
    if named is None:
        return state.attempt_number >= ATTEMPTS
    return state.idle_for + named > MOST_WAITED_SECONDS


def _retry_after(answer: httpx.Response) -> float | None:
    """The seconds of a Retry-After header; None where it has none, or a date."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def local_address(host: str, port: int) -> str:
    """Where a Space that listens on ``host`` and ``port`` is reached from this machine.

    One that listens on every address (0.0.0.0, ::) is reached on the loopback one.
    """
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host.strip("[]"), host.strip("[]"))
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def may_carry_token(space: str) -> bool:
    """Return whether a token may be sent to this address: by HTTPS, or without leaving this machine."""
    try:
        parts = urlsplit(space)
        if parts.scheme == "https" or parts.hostname == "localhost":
            return True
        return ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def send_submission(
    space: str,
    path: Path,
    declared: Mapping[str, str],
    client: httpx.Client | None = None,
    token: str | None = None,
    say: Callable[[str], object] = lambda line: None,
    sleep: Callable[[float], object] = time.sleep,
) -> SpaceAnswer:
    """Send a file with its declaration to ``space`` (its address), again when the connection failed.

    A Space that says when to come back is waited for, and ``say`` gets a line on it; so is a record that is
    not stored for good yet (``waiting``). ``token`` says who sends it, on a Space. Raises SubmissionNotSent
    when there is no answer, or one that is not a Space's, and before anything is sent where the address may
    carry no token.
    """
    if token is not None and not may_carry_token(space):
        raise SubmissionNotSent(f"no token is sent to {space}: it would go there unencrypted; use https://")
    address = f"{space.rstrip('/')}/api/submissions"
    retry = Retrying(
        stop=_gives_up,
        wait=_seconds_until_next,
        before_sleep=lambda state: say(
            f"{state.outcome.exception()}; trying again in {state.upcoming_sleep:.0f} s"
        ),
        retry=retry_if_exception_type(_Unreachable),
        reraise=True,
    )
    with client or httpx.Client(timeout=TIMEOUT, follow_redirects=False) as opened:
        if token is not None:
            opened.headers["Authorization"] = f"Bearer {token}"
        try:
            sent = retry(_send, opened, address, path, declared)
            return _follow(opened, address, sent, say, sleep)
        except _Unreachable as problem:
            raise SubmissionNotSent(
                f"{space} cannot be reached: {problem}; send the file again later"
            ) from None


def _follow(
    client: httpx.Client,
    address: str,
    sent: SpaceAnswer,
    say: Callable[[str], object],
    sleep: Callable[[float], object],
) -> SpaceAnswer:
    """The answer once it no longer says ``waiting``; the last one where the Space gives no other in time.

    Only its owner may ask for it: without a token, on one's own machine, the first answer stays.
    """
    waited = 0.0
    while sent.answer.get("status") == "waiting" and sent.retry_after is not None:
        waited += max(sent.retry_after, 1.0)
        if waited > MOST_WAITED_SECONDS:
            break
        message = sent.answer.get("message", "It waits to be stored for good.")
        say(f"{message} Asking again in {sent.retry_after:.0f} s")
        sleep(max(sent.retry_after, 1.0))
        try:
            answer = client.get(f"{address}/{sent.answer['submission_id']}")
            found = answer.json()
        except (httpx.TransportError, ValueError):
            continue  # it is recorded there, and answers again some time
        if answer.status_code in (429, 503):
            continue
        if answer.status_code != 200 or not isinstance(found, dict):
            break
        found = {**found, "is_new": sent.answer.get("is_new")}
        sent = SpaceAnswer(True, found, _retry_after(answer))
    return sent


def _send(client: httpx.Client, address: str, path: Path, declared: Mapping[str, str]) -> SpaceAnswer:
    try:
        with path.open("rb") as file:
            answer = client.post(address, data=dict(declared), files={"file": (path.name, file)})
    except httpx.TransportError as error:
        raise _Unreachable(str(error) or type(error).__name__) from None
    except httpx.InvalidURL as error:
        raise SubmissionNotSent(f"{address} is no address: {error}") from None
    try:
        found = answer.json()
    except ValueError:
        found = None
    retry_after, why = _retry_after(answer), ""
    if isinstance(found, dict):
        why = found.get("error") or found.get("detail") or ""
    is_busy = answer.status_code == 429 and retry_after is not None and "next_at" not in (found or ())
    if answer.status_code >= 500 or is_busy:
        raise _Unreachable(f"it answers {answer.status_code}" + (f": {why}" if why else ""), retry_after)
    if not isinstance(found, dict):
        raise SubmissionNotSent(
            f"{address} answers {answer.status_code}, and not an answer of this project's Space; "
            "check the address"
        )
    return SpaceAnswer(answer.status_code in (200, 201, 202), found, retry_after)


def problems_in(answer: Mapping[str, Any]) -> list[str]:
    """Every problem in a refusal, a line each."""
    found = [str(field.get("message")) for field in answer.get("fields") or ()]
    check = answer.get("check") or {}
    found += [str(finding.get("message")) for finding in check.get("findings") or ()]
    error = answer.get("error") or answer.get("detail")
    return found or [str(error or "the Space refused the file and did not say why")]
