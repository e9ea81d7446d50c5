"""What went wrong with a call, in the few kinds that retries distinguish, and JSON as endpoints send it.

Endpoints word the same trouble in many ways; the patterns below are those of OpenAI, Azure, OpenRouter,
Together, Mistral, Anthropic, Google, Groq and vLLM. Pure.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final, Literal

from judges.types import Reply


def read_json(text: str) -> Any:
    """What a JSON text says, halves of characters (lone surrogates, where a reply was cut) made U+FFFD.

    So whatever comes out of it can be written as UTF-8. Raises ValueError for what is no JSON.
    """
    try:
        read = json.loads(text)
        if "\\ud" in text.lower():
            whole = json.dumps(read, ensure_ascii=False).encode("utf-16", "surrogatepass")
            read = json.loads(whole.decode("utf-16", "replace"))
    except RecursionError as problem:
        raise ValueError("nested too deeply") from problem
    return read


Kind = Literal["rate_limit", "transient", "too_long", "unsupported_parameter", "refused", "final"]

OPTIONAL_PARAMS: Final = (
    "temperature",
    "seed",
    "max_tokens",
    "max_completion_tokens",
    "logprobs",
    "top_logprobs",
)
"""Parameters that a call can do without. Those that the user adds are not among them: they were meant."""

MAX_MESSAGE_CHARS: Final = 600

_TOO_LONG_CODES: Final = ("context_length_exceeded", "string_above_max_length", "request_too_large")
_REFUSED_CODES: Final = ("content_filter", "content_policy_violation", "moderation_blocked")
_NO_MONEY_CODES: Final = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_UNSUPPORTED_CODES: Final = ("unsupported_parameter", "unsupported_value", "unknown_parameter")
_TRANSIENT_STATUSES: Final = (408, 409, 425)
_OVERLOAD_STATUSES: Final = (503, 529)
_MAYBE_PAID_STATUSES: Final = (502, 504, 524)

_TOO_LONG: Final = re.compile(
    r"context[ _-]?(length|window|size)|prompt is too long|reduce the length of|request(ed)? too large"
    r"|(input|prompt|messages?)\b.{0,60}\b(too (long|large|many)|longer than|exceed)"
    r"|input token count|too many (input|prompt) tokens|max_model_len|inputs. tokens \+ .max_new_tokens",
    re.IGNORECASE | re.DOTALL,
)
_UNSUPPORTED: Final = re.compile(
    r"unsupported|not supported|n.t support|unrecognized|unknown (name|field|param|argument)|not permitted"
    r"|not allowed|extra_forbidden|unexpected keyword|deprecated|no longer (supported|accepted)"
    r"|cannot be (set|used|specified)",
    re.IGNORECASE,
)
_REFUSED: Final = re.compile(
    r"content (management|policy|filter)|responsible ai|flagged|moderation|safety (system|filter)",
    re.IGNORECASE,
)
_NO_MONEY: Final = re.compile(
    r"exceeded your current quota|insufficient (credits|balance|funds)", re.IGNORECASE
)


class CallFailed(Exception):
    """A call without a usable reply.

    ``rate_limit``: fewer calls are wanted (429, 503, 529), after ``retry_after_s`` where that is known;
    ``transient``: it may go well another time; ``too_long``; ``unsupported_parameter``: without ``parameter``
    it may go well; ``refused``: the endpoint will not have the prompt; ``final``: it will fail again.
    ``maybe_paid``: the endpoint may have made a reply and charged for it; what it counted is in the tokens,
    and what it answered, if it did, in ``raw``. ``is_slow``: no reply came in time.
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        retry_after_s: float | None = None,
        parameter: str | None = None,
        maybe_paid: bool = False,
        is_slow: bool = False,
        raw: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
    ):
        self.kind = kind
        self.message = " ".join(message.split())[:MAX_MESSAGE_CHARS]
        self.retry_after_s = retry_after_s
        self.parameter = parameter
        self.maybe_paid = maybe_paid
        self.is_slow = is_slow
        self.raw = raw
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        super().__init__(self.message)

    def as_reply(self, key: str, cost_usd: float | None, *, used_shorter: bool = False) -> Reply:
        """Stands for the reply once the call is given up; ``text`` is what came, if anything did."""
        return Reply(
            text=self.raw,
            state=self.kind if self.kind in ("too_long", "refused") else "error",
            error=self.message,
            cost_usd=cost_usd,
            used_shorter=used_shorter,
            key=key,
        )


def classify(problem: BaseException) -> CallFailed:
    """The failure behind an exception of the connection, or any other."""
    import aiohttp

    if isinstance(problem, CallFailed):
        return problem
    never_sent = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientHttpProxyError)
    was_sent = not isinstance(problem, never_sent)
    if isinstance(problem, TimeoutError):
        return CallFailed("transient", "no reply in time", maybe_paid=was_sent, is_slow=True)
    if isinstance(problem, aiohttp.ClientError) and not isinstance(problem, aiohttp.InvalidURL):
        reason = str(problem) or type(problem).__name__
        return CallFailed("transient", f"no connection: {reason}", maybe_paid=was_sent)
    return CallFailed("final", f"{type(problem).__name__}: {problem}")


def classify_status(status: int, body: str, headers: Mapping[str, str] | None = None) -> CallFailed:
    """The failure behind an error answer; ``headers`` with names in small letters."""
    message, code, parameter = _parse_error_body(body)
    full = f"{status}: {message}"
    if status == 429 and not (code in _NO_MONEY_CODES or _NO_MONEY.search(message)):
        if re.search(r"request too large", message, re.IGNORECASE):  # for the account's tokens a minute
            return CallFailed("too_long", full)
        return CallFailed("rate_limit", full, retry_after_s=_retry_after(headers or {}))
    if status in _OVERLOAD_STATUSES:
        return CallFailed("rate_limit", full, retry_after_s=_retry_after(headers or {}))
    if status in _TRANSIENT_STATUSES or (status >= 500 and status != 501):
        return CallFailed("transient", full, maybe_paid=status in _MAYBE_PAID_STATUSES)
    if status in (400, 403, 404, 413, 422):
        return _classify_rejected_request(status, full, message, code, parameter)
    return CallFailed("final", full)


def _classify_rejected_request(
    status: int, full: str, message: str, code: str, parameter: str | None
) -> CallFailed:
    """What is wrong with a request that the endpoint would not carry out."""
    if code in _REFUSED_CODES or (status in (400, 403) and _REFUSED.search(message)):
        return CallFailed("refused", full)
    if code in _UNSUPPORTED_CODES or (code not in _TOO_LONG_CODES and _UNSUPPORTED.search(message)):
        named = _optional_param_in(parameter) or _optional_param_in(message)
        if named is not None:
            return CallFailed("unsupported_parameter", full, parameter=named)
    if status == 413 or code in _TOO_LONG_CODES or _TOO_LONG.search(message):
        return CallFailed("too_long", full)
    return CallFailed("final", full)


def _optional_param_in(text: str | None) -> str | None:
    """The optional parameter that a text names first, if any."""
    found = re.search(rf"\b({'|'.join(OPTIONAL_PARAMS)})\b", text or "")
    return found[1] if found else None


def _parse_error_body(body: str) -> tuple[str, str, str | None]:
    """Message, code and parameter of an error body, whatever its shape; the body itself when it has none."""
    try:
        read: Any = read_json(body)
    except ValueError:
        return body or "no explanation", "", None
    if isinstance(read, list) and read:  # Google wraps it
        read = read[0]
    error = read.get("error", read) if isinstance(read, dict) else read
    if not isinstance(error, dict):
        return str(error), "", None
    message = error.get("message") or error.get("detail") or body
    metadata = error.get("metadata")
    if isinstance(metadata, dict) and metadata.get("raw"):  # OpenRouter: the message of its provider
        message = f"{message}: {metadata['raw']}"
    parameter = error.get("param")
    return (
        message if isinstance(message, str) else json.dumps(message),
        str(error.get("code") or error.get("type") or ""),
        parameter if isinstance(parameter, str) else None,
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that an answer asks to wait: a number or a date; None when it does not say."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < float("inf") else None
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, date.timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
