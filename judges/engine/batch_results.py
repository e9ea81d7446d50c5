"""Lines of a batch's result files. Pure."""

import json
from typing import Any

from judges.base import Reply
from judges.engine.completions import parse_reply
from judges.engine.errors import CallFailed, classify_status
from judges.engine.wire_json import read_json


class UnreadableLineError(ValueError):
    """A line that names no call."""


def result_of(line: str) -> tuple[str, Reply | CallFailed]:
    """The key of a line's call, with its reply or with what went wrong. Raises UnreadableLineError."""
    try:
        parsed: Any = read_json(line)
        key = parsed["custom_id"]
        response, error = parsed.get("response"), parsed.get("error")
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UnreadableLineError(f"a line of the results names no call: {line[:200]}") from problem
    if not isinstance(key, str):
        raise UnreadableLineError(f"a line of the results names no call: {line[:200]}")
    if not isinstance(response, dict):
        return key, _not_run(error)
    body = response.get("body")
    raw = body if isinstance(body, str) else json.dumps(body)
    status = response.get("status_code")
    if type(status) is int and status != 200:
        return key, classify_status(status, raw)
    try:
        return key, parse_reply(raw)
    except CallFailed as failure:
        return key, failure


def _not_run(error: Any) -> CallFailed:
    """A call that was not carried out: the day was over, or the endpoint stumbled."""
    parsed = error if isinstance(error, dict) else {"message": str(error)}
    return CallFailed("transient", f"{parsed.get('code') or 'no response'}: {parsed.get('message') or ''}")
