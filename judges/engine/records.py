"""What is kept of a judged trajectory: its line of judgments.jsonl, and its row of predictions.jsonl."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, Final

from dataset_script.vocabulary import PREDICTION_COLUMNS
from judges.base import Answer, Image, Message, Reply
from judges.engine.drive import Exchange
from judges.engine.spent import was_generated

Record = dict[str, Any]
"""A line of judgments.jsonl, as JSON holds it."""

_ANSWER_FIELDS: Final = tuple(each.name for each in fields(Answer) if each.name != "state")
_REPLY_FIELDS: Final = tuple(each.name for each in fields(Reply) if each.name not in ("logprobs", "key"))


@dataclass(frozen=True, slots=True)
class Judgment:
    """A trajectory with its answer, what was asked for it, and why it could not be judged, if so."""

    trajectory_id: str
    answer: Answer
    exchanges: Sequence[Exchange] = ()
    problem: str | None = None
    reward: float | None = None
    """The reward that a reward judge was given; None for every other judge."""


def judgment_record(judged: Judgment, judge: str) -> Record:
    """The line of a judged trajectory.

    Tokens and dollars are sums over its calls, None where one is not known; calls that failed have none, but
    for what their tries are known to have cost.
    Latency is that of the stages one after another, each as long as its slowest call. The same replies give
    the same line, whenever they were paid for.
    """
    replies = [each.reply for each in judged.exchanges]
    made = [reply for reply in replies if was_generated(reply)]
    record = {
        "trajectory_id": judged.trajectory_id,
        "judge": judge,
        "state": judged.answer.state,
        "answer": {k: v for k in _ANSWER_FIELDS if (v := getattr(judged.answer, k)) is not None},
        "input_tokens": _sum(reply.input_tokens for reply in made),
        "output_tokens": _sum(reply.output_tokens for reply in made),
        "cost_usd": _sum(reply.cost_usd for reply in replies if was_generated(reply) or reply.cost_usd),
        "latency_s": _latency(judged.exchanges),
        "calls": [_call_record(each) for each in judged.exchanges],
    }
    if judged.problem is not None:
        record["problem"] = judged.problem
    if judged.reward is not None:
        record["reward"] = judged.reward
    return record


def prediction_row(record: Record) -> Record:
    """The row of a line: the columns of a prediction file, ``success`` null unless the state is ``ok``."""
    known = {**record, **record["answer"]}
    row = {name: known[name] for name in PREDICTION_COLUMNS if known.get(name) is not None}
    return {**row, "success": known.get("success")}


def error_of(record: Record) -> str:
    """Why a trajectory has no verdict: what kept it from being judged, or what its first failed call met."""
    failures = (call["reply"].get("error") for call in record["calls"])
    return record.get("problem") or next(filter(None, failures), "no reply")


def _call_record(exchange: Exchange) -> Record:
    """What was asked is named by its key, a hash over messages and parameters; pictures by theirs."""
    call, reply = exchange.call, exchange.reply
    sent = call.shorter if reply.used_shorter and call.shorter is not None else call.messages
    values = {name: getattr(reply, name) for name in _REPLY_FIELDS}
    return {
        "purpose": call.purpose,
        "role": call.role,
        "stage": exchange.stage,
        "sample": call.sample,
        "key": reply.key,
        "images": _pictures(sent),
        "reply": {name: value for name, value in values.items() if value is not None and value is not False},
    }


def _pictures(sent: tuple[Message, ...]) -> list[str]:
    parts = (part for message in sent if not isinstance(message.content, str) for part in message.content)
    return [part.sha256 for part in parts if isinstance(part, Image)]


def _latency(exchanges: Sequence[Exchange]) -> float | None:
    slowest: list[float] = []
    for _, stage in groupby(exchanges, key=lambda each: each.stage):
        known = [each.reply.latency_s for each in stage]
        if any(seconds is None for seconds in known):
            return None
        slowest.append(max(known))
    return sum(slowest)


def _sum(values: Iterable[float | None]) -> float | None:
    found = list(values)
    return None if any(value is None for value in found) else sum(found)
