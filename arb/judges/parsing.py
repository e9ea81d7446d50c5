"""Parse a model's reply into an answer. The reply states the verdict in tags, a status line or a rating."""

import math
import re
from collections.abc import Sequence
from typing import Final, get_args

from arb.core.replies import (
    LEAST_REWARD,
    Form,
    Verdict,
    read_criteria,
    read_rating,
    read_verdict,
    without_thoughts,
)
from arb.judges.types import Answer, Evidence, Reply, StepQuestion, TokenProbability

_YES_WORDS = ("successful", "success", "succeeded", "yes", "true")
_NO_WORDS = ("unsuccessful", "failure", "failed", "fail", "no", "false")


def score_of(reply: Reply, form: Form, verdict: Verdict) -> float | None:
    """Return the probability of success (0 to 1) from the reply's log-probabilities, or None if unknown.

    The score is p(yes) / (p(yes) + p(no)), where each p is a sum over the token of the verdict and its
    alternatives. A token counts as yes or no if a word for yes or no begins with it. Ratings of 4 and 5 count
    as yes. The score is unknown if the reply has no log-probabilities or its tokens do not contain the
    verdict.
    """
    if not reply.logprobs or verdict.success is None:
        return None
    tokens = reply.logprobs
    joined = "".join(token.token for token in tokens)
    read = read_verdict(form, joined, reply.finish_reason)  # the reply's text may be trimmed
    if read.success != verdict.success or read.place is None:
        return None
    found = _token_at(tokens, read.place)
    return None if found is None else _success_probability(*found, form)


def _token_at(tokens: Sequence[TokenProbability], place: int) -> tuple[TokenProbability, str] | None:
    """Return the token at an offset in the text, and the part of the token before it. None after the end."""
    begin = 0
    for token in tokens:
        if place < begin + len(token.token):
            return token, token.token[: place - begin]
        begin += len(token.token)
    return None


def _success_probability(token: TokenProbability, before: str, form: Form) -> float | None:
    chances = [(token.token, token.logprob)]
    chances += [(rival, logprob) for rival, logprob in token.rivals if rival != token.token]
    yes = no = 0.0
    for text, logprob in chances:
        answer = _answer_begun_by(text.removeprefix(before), form)
        probability = math.exp(min(logprob, 0.0)) if not math.isnan(logprob) else 0.0
        yes += probability if answer is True else 0.0
        no += probability if answer is False else 0.0
    return yes / (yes + no) if yes + no > 0 else None


def _answer_begun_by(text: str, form: Form) -> bool | None:
    """Return True if a text begins with (part of) a word for yes, False for no, and None if it is unclear."""
    found = re.search(r"[^\W_]+", text.casefold())
    if found is None:
        return None
    word = found[0]
    if form == "rating":
        return int(word) >= LEAST_REWARD if re.fullmatch("[1-5]", word) else None
    is_yes = any(each.startswith(word) or word.startswith(each) for each in _YES_WORDS)
    is_no = any(each.startswith(word) or word.startswith(each) for each in _NO_WORDS)
    return is_yes if is_yes != is_no else None


MAX_REASONING_CHARS = 1_200
"""The maximum length of the reasoning in a row, so that prediction files are small enough to upload."""


_STEP: Final = re.compile(
    r"^[^\w\n]{0,9}step[^\w\n]{1,4}(\d{1,6})[^\w\n]{0,4}[:=][^\w\n]{0,5}?(-?\w[\w-]{0,39})", re.I | re.M
)
"""Matches a line with an answer about a step, such as ``Step 3: wrong`` or ``**Step 3:** -1``."""


def parse_steps(text: str | None, question: StepQuestion) -> dict[int, dict[str, str]]:
    """Return the answers in lines such as ``Step 3: wrong``, by step. The last answer about a step counts."""
    found: dict[int, dict[str, str]] = {}
    for number, value in _STEP.findall(text or ""):
        if value.casefold() in question.values:
            found[int(number)] = {question.target: value.casefold()}
    return found


def parse_answer(reply: Reply, form: Form, question: StepQuestion | None = None) -> Answer:
    """Return the answer in a reply. If the call failed, the answer has only the state of the reply.

    With a ``question``, answers about steps are read too (see `parse_steps`). A complete reply with such
    answers is ``ok`` even without a verdict.

    Simplified judges answer in ``tags`` (``<success>``), AER and WebJudge in a ``status`` line, and NNetNav
    with a ``rating`` (4 and 5 are a success). The ``reasoning`` is the shortened text of the reply. A reply
    that rates ``criteria`` becomes the answer's evidence instead. Raises ValueError for any other form.
    """
    if form not in get_args(Form):
        raise ValueError(f"there is no form {form!r} of replies; use one of {', '.join(get_args(Form))}")
    if reply.state != "ok":
        return Answer(reply.state)
    verdict = read_verdict(form, reply.text, reply.finish_reason, reply.refusal)
    evidence: list[Evidence] = []
    if form == "criteria" and verdict.state == "ok":
        rated = read_criteria(without_thoughts(reply.text or ""))
        evidence = [Evidence(each.step, None, each.met, shorten(each.text)) for each in rated]
    has_ended = verdict.state == "error" and reply.finish_reason is not None  # the model replied without text
    is_complete = verdict.state in ("ok", "unsure", "unparsed")
    steps = parse_steps(reply.text, question) if question is not None and is_complete else {}
    return Answer(
        "ok" if steps else "unparsed" if has_ended else verdict.state,
        verdict.success,
        verdict.side_effect,
        verdict.repetition,
        verdict.optimality,
        score_of(reply, form, verdict),
        None if evidence else shorten(reply.text),
        steps or None,
        tuple(evidence),
    )


def parse_rating(text: str) -> int | None:
    """Return the last rating from 1 to 5 in lines such as ``Score: 4``, rounded down, or None."""
    rating = read_rating(text)
    return None if rating is None else int(rating)


def shorten(text: str | None) -> str | None:
    """Return a reply cut to `MAX_REASONING_CHARS`, or None if it is empty."""
    text = (text or "").strip()
    if not text:
        return None
    return text if len(text) <= MAX_REASONING_CHARS else text[: MAX_REASONING_CHARS - 2] + " \u2026"
