"""A client that sends prediction files to a Space over HTTP."""

import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

TIMEOUT: Final = httpx2.Timeout(60.0, connect=10.0)
ATTEMPTS: Final = 4
"""The number of attempts per request. Sending again is safe, since a judge's file counts only once."""
FIRST_PAUSE_SECONDS: Final = 0.5
"""The pause after the first attempt; it doubles after each further attempt."""
MOST_WAITED_SECONDS: Final = 900.0
"""The longest total wait for a Space that sends Retry-After, for example while it restores its records."""


class SubmissionNotSent(Exception):
    """Raised when a file was not sent or may not have arrived; the message says what to do."""


@dataclass(frozen=True)
class SpaceAnswer:
    """The Space's response to a submission: a receipt if ``is_accepted``, otherwise the problems.

    ``retry_after`` is how many seconds to wait before asking again, or None if the Space does not say.
    """

    is_accepted: bool
    answer: Mapping[str, Any]
    retry_after: float | None = None


class _Unreachable(Exception):
    """Raised when an attempt failed but a later one may succeed, after ``retry_after`` seconds if known."""

    def __init__(self, message: str, retry_after: float | None, advice: str = "try again later") -> None:
        self.retry_after, self.advice = retry_after, advice
        super().__init__(message)


def _retry_after(answer: httpx2.Response) -> float | None:
    """Return the number of seconds given in a Retry-After header, or None if it is absent or a date."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


def local_address(host: str, port: int) -> str:
    """Return the address at which this machine reaches a Space that listens on ``host`` and ``port``.

    This is the loopback address if the Space listens on every address (0.0.0.0 or ::).
    """
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host.strip("[]"), host.strip("[]"))
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def may_carry_token(space: str) -> bool:
    """Return whether a token may be sent to this address, which has to use HTTPS or stay on this machine."""
    try:
        parts = urlsplit(space)
        if parts.scheme == "https" or parts.hostname == "localhost":
            return True
        return ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def send_submission(
    space: str, path: Path, declared: Mapping[str, str], client: httpx2.Client | None = None,
    token: str | None = None, say: Callable[[str], object] = lambda line: None,
    sleep: Callable[[float], object] = time.sleep,
) -> SpaceAnswer:  # fmt: skip
    """Send a file with its declaration to a Space, with retries, and return the response.

    If the Space accepts the file but has not stored its record permanently yet, wait until it has. ``say`` is
    called with a line of text before each pause. Raises SubmissionNotSent if the Space does not respond, or
    if the token would be sent unencrypted.
    """
    if token is not None and not may_carry_token(space):
        raise SubmissionNotSent(f"the token would be sent to {space} unencrypted; use an https:// address")
    address = f"{space.rstrip('/')}/api/submissions"
    with client or httpx2.Client(timeout=TIMEOUT, follow_redirects=False) as opened:
        if token is not None:
            opened.headers["Authorization"] = f"Bearer {token}"

        def pause(why: str, seconds: float) -> None:
            say(f"{why} in {seconds:.0f} s")
            sleep(seconds)

        try:
            sent = _send_until_answered(lambda: _send(opened, address, path, declared), pause)
            return _follow(opened, address, sent, pause)
        except _Unreachable as problem:
            raise SubmissionNotSent(f"{space} cannot be reached: {problem}; {problem.advice}") from None


Pause = Callable[[str, float], object]
"""A function that tells the user why there is a pause, and waits for the given number of seconds."""


def _send_until_answered(send: Callable[[], SpaceAnswer], pause: Pause) -> SpaceAnswer:
    """Call ``send`` until it returns a response. Raise _Unreachable after ATTEMPTS or MOST_WAITED_SECONDS."""
    attempts, waited = 0, 0.0
    while True:
        try:
            return send()
        except _Unreachable as problem:
            attempts += 1
            seconds = problem.retry_after
            if seconds is None and attempts < ATTEMPTS:
                seconds = FIRST_PAUSE_SECONDS * 2 ** (attempts - 1)
            elif seconds is None or waited + seconds > MOST_WAITED_SECONDS:
                raise
            pause(f"{problem}; trying again", seconds)
            waited += seconds


def _follow(client: httpx2.Client, address: str, sent: SpaceAnswer, pause: Pause) -> SpaceAnswer:
    """Ask for the status of a submission until it is no longer ``waiting``, and return the last response.

    Give up after MOST_WAITED_SECONDS, or if the Space refuses to answer because ``client`` sends no token.
    """
    waited = 0.0
    while sent.answer.get("status") == "waiting" and sent.retry_after is not None:
        waited += max(sent.retry_after, 1.0)
        if waited > MOST_WAITED_SECONDS:
            break
        message = sent.answer.get("message", "The file is not stored permanently yet.")
        pause(f"{message} Asking again", max(sent.retry_after, 1.0))
        try:
            answer = client.get(f"{address}/{sent.answer['submission_id']}")
            found = answer.json()
        except (httpx2.TransportError, ValueError):
            continue  # the Space has recorded the file and will answer again
        if answer.status_code in (429, 503):
            continue
        if answer.status_code != 200 or not isinstance(found, dict):
            break
        found = {**found, "is_new": sent.answer.get("is_new")}
        sent = SpaceAnswer(True, found, _retry_after(answer))
    return sent


def _send(client: httpx2.Client, address: str, path: Path, declared: Mapping[str, str]) -> SpaceAnswer:
    try:
        with path.open("rb") as file:
            answer = client.post(address, data=dict(declared), files={"file": (path.name, file)})
    except httpx2.TransportError as error:
        advice = "check the address, and whether the Space is running"
        raise _Unreachable(str(error) or type(error).__name__, None, advice) from None
    except httpx2.InvalidURL as error:
        raise SubmissionNotSent(f"{address} is not a valid address: {error}") from None
    try:
        found = answer.json()
    except ValueError:
        found = None
    retry_after, why = _retry_after(answer), ""
    if isinstance(found, dict):
        why = found.get("detail") or ""
    is_busy = answer.status_code == 429 and retry_after is not None and "next_at" not in (found or ())
    if answer.status_code >= 500 or is_busy:
        raise _Unreachable(f"the Space answered {answer.status_code}{why and ': '}{why}", retry_after)
    if not isinstance(found, dict):
        raise SubmissionNotSent(
            f"{address} answered {answer.status_code} and is not a Space of this project; check the address"
        )
    return SpaceAnswer(answer.status_code in (200, 201, 202), found, retry_after)


def problems_in(answer: Mapping[str, Any]) -> list[str]:
    """Return the problems listed in a Space's refusal, one line each."""
    found = [str(field.get("message")) for field in answer.get("fields") or ()]
    check = answer.get("check") or {}
    found += [str(finding.get("message")) for finding in check.get("findings") or ()]
    return found or [str(answer.get("detail") or "the Space refused the file without giving a reason")]
