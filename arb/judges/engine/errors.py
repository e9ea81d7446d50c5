"""Classify the error responses of endpoints by their status and codes, or else by the words of the message.

``error_signs.toml`` lists the codes and the words.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import msgspec

from arb.judges.engine.rate_limits import read_rate_limits, retry_after
from arb.judges.types import RateLimits, Reply, Usage


def read_json(text: str) -> Any:
    """Return the value of a JSON text. Raises ValueError for invalid or too deeply nested JSON.

    Lone surrogates, which occur in replies that were cut off, become U+FFFD, so the value can be encoded as
    UTF-8.
    """
    try:
        read = json.loads(text)
        if "\\ud" in text.lower():
            whole = json.dumps(read, ensure_ascii=False).encode("utf-16", "surrogatepass")
            read = json.loads(whole.decode("utf-16", "replace"))
    except RecursionError as problem:
        raise ValueError("nested too deeply") from problem
    return read


def with_whole_characters(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with U+FFFD in place of lone surrogates, so that it can be encoded as UTF-8."""
    try:
        msgspec.json.encode(body)
    except UnicodeEncodeError:
        return read_json(json.dumps(body))
    return body


Kind = Literal["rate_limit", "transient", "too_long", "unsupported_parameter", "refused", "account", "final"]

OUTPUT_LIMITS: Final = ("max_tokens", "max_completion_tokens")
"""The two names of the output limit in a request. Endpoints accept one or both."""

OPTIONAL_PARAMS: Final = (
    "temperature",
    "seed",
    *OUTPUT_LIMITS,
    "logprobs",
    "top_logprobs",
    "prompt_cache_key",
)
"""The parameters that are left out of a call if the endpoint rejects them. The reasoning effort and the
fields that the user added are never left out, since the user asked for them."""

_NO_USAGE: Final = Usage()
MAX_MESSAGE_CHARS: Final = 600

_ACCOUNT_STATUSES: Final = (401, 402)
_TRANSIENT_STATUSES: Final = (408, 409, 425)
_OVERLOAD_STATUSES: Final = (503, 529)
_MAYBE_PAID_STATUSES: Final = (502, 504, 524)

_ACCOUNT_CHARS: Final = 300
"""Only this many characters of a message are searched for account problems. The rest may quote the prompt."""

_SIGNS: Final = tomllib.loads(Path(__file__).with_name("error_signs.toml").read_text(encoding="utf-8"))
_WORDS: Final = {
    name: re.compile("|".join(signs["words"]), re.IGNORECASE | re.DOTALL) for name, signs in _SIGNS.items()
}


class NoMoreCallsError(Exception):
    """Raised when a run has to stop making calls. The message gives the reason.

    ``how`` is the way in which the run ends (see `arb.judges.run.progress.RunEnd`).
    """

    how: ClassVar[Literal["budget", "limited", "account", "failing"]]


class AccountError(NoMoreCallsError):
    """Raised when the endpoint refuses the account because of a wrong key, no credit, or a used-up quota."""

    how = "account"

    def __init__(self, answer: str):
        super().__init__(
            f"stopped: the endpoint refuses the account ({answer}). Check the key and the credit, then run "
            "the same command again to judge the remaining trajectories"
        )


class NoEndpointError(NoMoreCallsError):
    """Raised when every connection to the endpoint has failed since the start of the run."""

    how = "failing"


@dataclass(eq=False)
class CallFailed(Exception):
    """Raised for a call without a usable reply.

    Attributes:
        kind: ``rate_limit``: the endpoint wants fewer calls, and may ask for a wait of ``retry_after_s``.
            ``transient``: another attempt may succeed. ``too_long``: the prompt is too long for the model.
            ``unsupported_parameter``: the call may succeed without ``parameter``. ``refused``: the endpoint
            rejects the prompt. ``account``: the endpoint answers no call of this account. ``final``: any
            further attempt would fail.
        message: What went wrong, in one line of limited length.
        maybe_paid: Whether the endpoint may have charged for a reply. If so, ``usage`` has the token counts
            and ``raw`` the text of the response, if they are known.
        is_slow: Whether no reply came in time.
        is_overload: Whether the server has too many calls (503, 529).
        is_unreachable: Whether no connection was made.
    """

    kind: Kind
    message: str
    _: KW_ONLY
    retry_after_s: float | None = None
    rate_limits: RateLimits | None = None
    parameter: str | None = None
    maybe_paid: bool = False
    is_slow: bool = False
    is_overload: bool = False
    is_unreachable: bool = False
    raw: str | None = None
    usage: Usage = _NO_USAGE

    def __post_init__(self) -> None:
        self.message = " ".join(self.message.split())[:MAX_MESSAGE_CHARS]
        super().__init__(self.message)

    def as_reply(self, key: str, cost_usd: float | None, *, used_shorter: bool = False) -> Reply:
        """Return a reply that records this failure. Its text is the unusable response, if there is one."""
        return Reply(
            text=self.raw,
            state=self.kind if self.kind in ("too_long", "refused") else "error",
            error=self.message,
            cost_usd=cost_usd,
            used_shorter=used_shorter,
            key=key,
        )


def classify_status(status: int, body: str, headers: Mapping[str, str] | None = None) -> CallFailed:
    """Convert an error response to a CallFailed. The names of ``headers`` must be in lower case.

    A 503 or 529 counts as a rate limit if it asks for a wait, in a header or in words. Otherwise the server
    may be failing because of this prompt, so the failure is transient, with a limited number of attempts.
    """
    headers = headers or {}
    error = _read_error(body)
    message, full = error.message, f"{status}: {error.message}"
    if status == 429 and re.search(r"request too large", message, re.IGNORECASE):
        return CallFailed("too_long", full)  # one call exceeds the account's limit per minute
    asked_s = retry_after(headers, error.delay, body)
    is_overload = status in _OVERLOAD_STATUSES
    if _concerns_account(status, error, asked_s):
        return CallFailed("account", full)
    is_limited = error.has_code("rate_limit") or error.has_words("rate_limit")
    if (
        status == 429
        or (is_overload and (is_limited or asked_s is not None))
        or (status in (400, 403) and error.has_code("rate_limit"))
    ):
        limits = read_rate_limits(headers)
        return CallFailed(
            "rate_limit", full, retry_after_s=asked_s, rate_limits=limits, is_overload=is_overload
        )
    if status in _TRANSIENT_STATUSES or (status >= 500 and status != 501):
        return CallFailed(
            "transient", full, maybe_paid=status in _MAYBE_PAID_STATUSES, is_overload=is_overload
        )
    if status in (400, 403, 404, 413, 422):
        return _classify_rejected_request(status, full, error)
    return CallFailed("final", full)


def _concerns_account(status: int, error: _ErrorBody, asked_s: float | None) -> bool:
    """Return whether an error means that the endpoint answers no call of this account.

    If there is a rate-limit code or a time to wait, the words of the message are ignored, since Google calls
    even a limit per minute "your current quota".
    """
    if status >= 500:
        return False
    if status in _ACCOUNT_STATUSES or error.has_code("account") or error.is_daily_quota:
        return True
    if asked_s is not None or error.has_code("rate_limit"):
        return False
    return status in (400, 403, 429) and error.has_words("account", _ACCOUNT_CHARS)


def _classify_rejected_request(status: int, full: str, error: _ErrorBody) -> CallFailed:
    if error.has_code("refused") or (status in (400, 403) and error.has_words("refused")):
        return CallFailed("refused", full)
    if error.has_code("unsupported_parameter") or (
        not error.has_code("too_long") and error.has_words("unsupported_parameter")
    ):
        named = _optional_param_in(error.parameter) or _optional_param_in(error.message)
        if named is not None:
            return CallFailed("unsupported_parameter", full, parameter=named)
    if error.parameter == "n" or (not error.has_words("too_long") and error.has_words("one_choice")):
        return CallFailed("unsupported_parameter", full, parameter="n")
    if status == 413 or error.has_code("too_long") or error.has_words("too_long"):
        return CallFailed("too_long", full)
    return CallFailed("final", full)


def _optional_param_in(text: str | None) -> str | None:
    """Return the first optional parameter that a text names, or None."""
    found = re.search(rf"\b({'|'.join(OPTIONAL_PARAMS)})\b", text or "")
    return found[1] if found else None


@dataclass(frozen=True, slots=True)
class _ErrorBody:
    """The parts of an error response. If it has no message, ``message`` is the whole response body.

    ``codes`` has the code, type, status and reasons in lower case. ``delay`` is Google's ``retryDelay``.
    """

    message: str
    codes: frozenset[str] = frozenset()
    parameter: str | None = None
    delay: str | None = None
    is_daily_quota: bool = False

    def has_code(self, sign: str) -> bool:
        """Return whether the error has one of the codes in the table ``sign`` of ``error_signs.toml``."""
        return not self.codes.isdisjoint(_SIGNS[sign]["codes"])

    def has_words(self, sign: str, within: int | None = None) -> bool:
        """Return whether the message, or its first ``within`` characters, has words in the table ``sign``."""
        return _WORDS[sign].search(self.message[:within]) is not None


def _read_error(body: str) -> _ErrorBody:
    try:
        read: Any = read_json(body)
    except ValueError:
        return _ErrorBody(body or "no explanation")
    if isinstance(read, list) and read:  # Google puts the error into a list
        read = read[0]
    error = read.get("error", read) if isinstance(read, dict) else read
    if not isinstance(error, dict):
        return _ErrorBody(str(error))
    message = error.get("message") or error.get("detail") or body
    metadata, inner = error.get("metadata"), _ErrorBody("")
    if isinstance(metadata, dict) and metadata.get("raw"):  # OpenRouter quotes its provider's answer
        message = f"{message}: {metadata['raw']}"
        inner = _read_error(str(metadata["raw"]))
    details = error.get("details")
    details = [each for each in details if isinstance(each, dict)] if isinstance(details, list) else []
    named = [error.get(name) for name in ("code", "type", "status")]
    reasons = [each.get("reason") for each in details]
    codes = [str(each).lower() for each in (*named, *reasons) if each]
    delays = (each["retryDelay"] for each in details if isinstance(each.get("retryDelay"), str))
    parameter = error.get("param")
    return _ErrorBody(
        message if isinstance(message, str) else json.dumps(message),
        frozenset(codes) | inner.codes,
        parameter if isinstance(parameter, str) else None,
        next(delays, inner.delay),
        inner.is_daily_quota or "PerDay" in json.dumps([each.get("violations") for each in details]),
    )
