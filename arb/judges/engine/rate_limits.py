"""Read from a response how long to wait, and how many requests and tokens the endpoint still allows."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Final

from arb.judges.types import Quota, RateLimits


def retry_after(headers: Mapping[str, str], delay: str | None, body: str) -> float | None:
    """Return how many seconds a response asks to wait, or None if it does not say.

    Headers are read first, then ``delay`` (Google's ``retryDelay``), then the words of the body.
    """
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        if (number := _number(headers.get(name, ""))) is not None:
            return number * unit
    if "retry-after" in headers:
        return _seconds_until(headers["retry-after"], headers.get("date"))
    if delay is not None:
        return _duration(delay)
    asked = _ASKED_WAIT.search(body)
    return None if asked is None else _duration(asked[1])


_ASKED_WAIT: Final = re.compile(
    r"(?:try again|retry)(?: your request)? (?:in|after) ((?:[\d.]+ *(?:ms|s|m|h|d)[a-z]* *)+)", re.IGNORECASE
)
_DURATION_PART: Final = re.compile(r"(\d+(?:\.\d+)?) *(ms|s|m|h|d)[a-z]* *", re.IGNORECASE)
_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _duration(text: str) -> float | None:
    """Return the number of seconds that a text such as ``1m30.5s`` or ``26 seconds`` stands for, or None."""
    parts = _DURATION_PART.findall(text)
    if not parts or _DURATION_PART.sub("", text).strip(" ."):
        return None
    seconds = sum(float(number) * _UNIT_S[unit.lower()] for number, unit in parts)
    return seconds if seconds < float("inf") else None


def _seconds_until(text: str, sent_at: str | None = None) -> float | None:
    """Return the number of seconds until a date, or None. ``sent_at`` is the server's time, if known."""
    date, now = _date(text), _date(sent_at or "")
    if date is None:
        return None
    return max(0.0, date - (time.time() if now is None else now))


def _date(text: str) -> float | None:
    """Return a date in HTTP or ISO 8601 format as seconds since 1970, or None if it is neither."""
    for read in (email.utils.parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, OverflowError):
            return read(text).timestamp()
    return None


_REQUEST_QUOTAS: Final = (
    "x-ratelimit-{}-requests",
    "anthropic-ratelimit-requests-{}",
    "x-ratelimit-{}",
    "ratelimit-{}",
)
_TOKEN_QUOTAS: Final = ("x-ratelimit-{}-tokens", "anthropic-ratelimit-tokens-{}")
"""The names of headers, in which ``{}`` stands for ``remaining``, ``limit`` or ``reset``."""

_EPOCH_FROM: Final = 1e9
"""A reset value of at least this is a point in time (seconds or milliseconds since 1970), not a duration."""


def read_rate_limits(headers: Mapping[str, str]) -> RateLimits | None:
    """Return the quotas for requests and tokens in a response's headers, or None if there is neither."""
    requests, tokens = _quota(headers, _REQUEST_QUOTAS), _quota(headers, _TOKEN_QUOTAS)
    return None if requests is None and tokens is None else RateLimits(requests, tokens)


def _quota(headers: Mapping[str, str], forms: tuple[str, ...]) -> Quota | None:
    """Return the quota in the first of these headers that is present. None if it is not a number."""
    for form in forms:
        if (text := headers.get(form.format("remaining"))) is not None:
            limit = _number(headers.get(form.format("limit"), "")) or None
            reset_s = _reset(headers.get(form.format("reset"), ""), headers.get("date"))
            remaining = _number(text)
            return None if remaining is None else Quota(remaining, limit, reset_s)
    return None


def _reset(text: str, sent_at: str | None) -> float | None:
    """Return the number of seconds until a quota is reset, or None if the text gives no duration or time."""
    seconds = _number(text)
    if seconds is None:
        return _duration(text) if "-" not in text and ":" not in text else _seconds_until(text, sent_at)
    if seconds < _EPOCH_FROM:
        return seconds
    point = seconds if seconds < 1000 * _EPOCH_FROM else seconds / 1000
    return max(0.0, point - time.time())


def _number(text: str) -> float | None:
    """Return a text as a number, or None if it is not a finite number of 0 or more."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
