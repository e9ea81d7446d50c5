"""Log-probabilities of a scripted text: each word a token; a verdict's word is sure to nine parts in ten."""

import math
import re
from typing import Any

VERDICT_PROBABILITY = 0.9
RIVALS = {"Successful": "Unsuccessful", "success": "failure", "Yes": "No"}
RIVALS |= {rival: word for word, rival in RIVALS.items()}


def logprobs_of(body: dict[str, Any], text: str | None) -> dict[str, Any] | None:
    """Return the ``logprobs`` of a choice, or None unless they were asked for.

    A text falls into words, marks and spaces. A verdict's word has probability 0.9 and its opposite
    0.1; every other token has 1.
    """
    if not body.get("logprobs") or text is None:
        return None
    number = body.get("top_logprobs") or 0
    return {"content": [_token(*_by_rule(each), number) for each in re.findall(r"\w+|\s+|[^\w\s]", text)]}


def _by_rule(token: str) -> tuple[str, float, list[tuple[str, float]]]:
    rival = RIVALS.get(token)
    if rival is None:
        return token, 0.0, []
    return token, math.log(VERDICT_PROBABILITY), [(rival, math.log(1 - VERDICT_PROBABILITY))]


def _token(token: str, logprob: float, rivals: list[tuple[str, float]], number: int) -> dict[str, Any]:
    top = [_entry(token, logprob), *(_entry(*rival) for rival in rivals)][:number]
    return _entry(token, logprob) | {"top_logprobs": top}


def _entry(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
