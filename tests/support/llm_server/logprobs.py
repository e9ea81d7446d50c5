"""Log-probabilities of a scripted text: each word a token; a verdict's word is sure to nine parts in ten."""

import math
import re
from typing import Any

VERDICT_PROBABILITY = 0.9
RIVALS = {
    "Successful": "Unsuccessful",
    "success": "failure",
    "Yes": "No",
}
RIVALS |= {rival: word for word, rival in RIVALS.items()}

Given = list[tuple[str, float, list[tuple[str, float]]]]


def logprobs_of(body: dict[str, Any], text: str | None, given: Given | None) -> dict[str, Any] | None:
    """The ``logprobs`` of a choice: None unless they were asked for; as a script gives them, or by rule.

    By rule a text falls into words, marks and spaces. A verdict's word has probability 0.9 and its opposite
    0.1; every other token has 1.
    """
    if not body.get("logprobs") or text is None:
        return None
    number = body.get("top_logprobs") or 0
    return {"content": [_token(*token, number) for token in given or map(_by_rule, _tokens(text))]}


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+|\s+|[^\w\s]", text)


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
