"""Make the lines of judgments.jsonl and their totals, and check whether a judge's prompts have changed."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from arb.core.predictions.columns import prediction_columns
from arb.core.suites.targets import SUCCESS
from arb.judges.engine.cache import key_of
from arb.judges.engine.prompt_store import Prompt, prompt_of
from arb.judges.parsing import shorten
from arb.judges.run.progress import was_generated
from arb.judges.run.scheduler import Exchange, Judgment, drive_offline
from arb.judges.types import (
    Answer,
    AnyJudge,
    Call,
    Evidence,
    Image,
    Message,
    ModelSettings,
    Reply,
    ToolCall,
    is_reward_judge,
)

if TYPE_CHECKING:
    from arb.core.suite import Suite
    from arb.judges.engine.prompt_store import PromptReader
    from arb.judges.run.scheduler import RunSource

JudgmentRecord = dict[str, Any]
"""A line of judgments.jsonl as a JSON object."""

_ANSWER_FIELDS: Final = tuple(each.name for each in fields(Answer) if each.name != "state")
_REPLY_FIELDS: Final = tuple(
    each.name for each in fields(Reply) if each.name not in ("logprobs", "key", "rate_limits", "others")
)


DETAILED_TOKENS: Final = ("cached_input_tokens", "reasoning_tokens")
"""Counts of tokens that the input and output tokens include. They are 0 if the endpoint does not report
them."""


def judgment_record(judged: Judgment, judge: str) -> JudgmentRecord:
    """Return the line of judgments.jsonl for a judged trajectory. It depends only on the replies.

    Tokens and dollars are sums over the calls, or None if any of them is unknown. A failed call adds only the
    known cost of its attempts. ``latency_s`` is the sum of the latencies of each stage's slowest call.
    """
    replies = [each.reply for each in judged.exchanges]
    made = [reply for reply in replies if was_generated(reply)]
    record: JudgmentRecord = {
        "trajectory_id": judged.trajectory_id,
        "judge": judge,
        "state": judged.answer.state,
        "answer": answer_facts(judged.answer),
        "input_tokens": sum_or_none(reply.input_tokens for reply in made),
        "output_tokens": sum_or_none(reply.output_tokens for reply in made),
        "cost_usd": sum_or_none(
            reply.cost_usd for reply in replies if was_generated(reply) or reply.cost_usd
        ),
        "latency_s": _latency(judged.exchanges),
        "calls": [_call_record(each) for each in judged.exchanges],
    }
    for name in DETAILED_TOKENS:
        if tokens := sum(getattr(reply, name) or 0 for reply in made):
            record[name] = tokens
    if judged.answer.evidence:
        record["n_steps"] = judged.n_steps
    if judged.problem is not None:
        record["problem"] = judged.problem
    if judged.reward is not None:
        record["reward"] = judged.reward
    return record


def answer_facts(answer: Answer) -> dict[str, Any]:
    """Return the ``answer`` of a record: all fields of an answer that are not None, except its state."""
    values = ((name, getattr(answer, name)) for name in _ANSWER_FIELDS)
    facts = {name: value for name, value in values if value is not None and value != ()}
    if answer.steps is not None:
        facts["steps"] = {str(number): dict(answers) for number, answers in answer.steps.items()}
    if answer.evidence:
        facts["evidence"] = [
            {name: value for name, value in each._asdict().items() if value is not None}
            for each in answer.evidence
        ]
    return facts


def answer_of(record: JudgmentRecord) -> Answer:
    """Return the answer in a record."""
    evidence = tuple(Evidence(**each) for each in record["answer"].get("evidence", ()))
    steps = {int(number): found for number, found in record["answer"].get("steps", {}).items()} or None
    return Answer(record["state"], **{**record["answer"], "evidence": evidence, "steps": steps})


def reply_of(call: JudgmentRecord) -> Reply:
    """Return the reply to a recorded call. Log-probabilities are missing, since they are not recorded."""
    known = {name: value for name, value in call["reply"].items() if name in _REPLY_FIELDS}
    tools = tuple(ToolCall(**each) for each in known.get("tool_calls", ()))
    return Reply(**known | {"dropped": tuple(known.get("dropped", ())), "tool_calls": tools})


def prediction_row(record: JudgmentRecord) -> JudgmentRecord:
    """Return the row of the prediction file for a record; ``success`` is None unless the state is ``ok``.

    The file has no columns for evidence and tool calls, so they are added to the reasoning as text.
    """
    known = {**record, **record["answer"]}
    looked = [
        f"{call['name']}({call['arguments']})"
        for each in record["calls"]
        for call in each["reply"].get("tool_calls", ())
    ]
    added = [evidence_text(each) for each in record["answer"].get("evidence", ())]
    added += [f"Looked up: {', '.join(looked)}"] if looked else []
    if added:
        known["reasoning"] = shorten("\n".join(filter(None, (known.get("reasoning"), *added))))
    row = {name: known[name] for name in prediction_columns() if known.get(name) is not None}
    return {**row, "success": known.get("success")}


def prediction_rows(
    records: Iterable[JudgmentRecord], suite: Suite | None, *, has_steps: bool
) -> Iterator[JudgmentRecord]:
    """Yield the rows of a prediction file: one per record and, with ``has_steps``, one per step.

    There is a row for every step that the suite asks about, even without an answer, so that the file is
    complete. Answers about other steps or targets are written only to judgments.jsonl. If the suite has no
    target ``success``, the verdict is in the column of its main target, if that is a binary target about
    whole runs. If no target asks about whole runs, the row of the first step has the run's cost and other
    facts. Without a suite, the targets are AgentRewardBench's.
    """
    if suite is None:
        yield from map(prediction_row, records)
        return
    columns, main = prediction_columns(suite.targets), suite.main_target
    asks_runs = not has_steps or any(target.level == "run" for target in suite.targets)
    asked = [target.name for target in suite.targets if target.level == "step"]
    for record in records:
        row = {name: value for name, value in prediction_row(record).items() if name in columns}
        if SUCCESS not in columns and main.level == "run":
            success = record["answer"].get(SUCCESS)
            row[main.name] = main.value_of(int(success)) if main.is_outcome and success is not None else None
        if asks_runs:
            yield row
            row = {"trajectory_id": record["trajectory_id"]}
        answers = record["answer"].get("steps", {})
        for step in suite.asked_in(record["trajectory_id"])[0] if has_steps else ():
            found = answers.get(step, {})
            yield row | {"step": step} | {name: found.get(name) for name in asked}
            row = {"trajectory_id": record["trajectory_id"]}


def evidence_text(evidence: Mapping[str, Any]) -> str:
    """Return a piece of evidence as one line, such as ``met, step 3: the basket is full``."""
    met = {True: "met", False: "not met", None: None}[evidence.get("met")]
    step = f"step {evidence['step']}" if "step" in evidence else None
    criterion = (evidence.get("criterion") or "").rstrip(".")  # a sentence has its own full stop
    text = ". ".join(filter(None, (criterion, evidence.get("text"))))
    return ": ".join(filter(None, (", ".join(filter(None, (met, step))), text)))


def error_of(record: JudgmentRecord) -> str:
    """Return why a trajectory has no verdict: its problem, or else the error of its first failed call."""
    failures = (call["reply"].get("error") for call in record["calls"])
    return record.get("problem") or next(filter(None, failures), "no reply")


def sent_prompts(judged: Judgment) -> list[Prompt]:
    """Return the prompts that were sent for a judged trajectory, in the order of its calls."""
    return [prompt_of(_sent(each)) for each in judged.exchanges]


def _sent(exchange: Exchange) -> tuple[Message, ...]:
    shorter = exchange.call.shorter if exchange.reply.used_shorter else None
    return exchange.call.messages if shorter is None else shorter


def _call_record(exchange: Exchange) -> JudgmentRecord:
    """Return the entry of a call in its record. ``images`` are the SHA-256 hashes of the pictures."""
    call, reply = exchange.call, exchange.reply
    values = {name: getattr(reply, name) for name in _REPLY_FIELDS}
    values["tool_calls"] = tuple(map(asdict, reply.tool_calls))
    parts = (part for message in _sent(exchange) for part in message.parts)
    return {
        "purpose": call.purpose,
        "role": call.role,
        "stage": exchange.stage,
        "sample": call.sample,
        "key": reply.key,
        "images": [part.sha256 for part in parts if isinstance(part, Image)],
        "reply": {k: v for k, v in values.items() if v is not None and v is not False and v != ()},
    }


def _latency(exchanges: Sequence[Exchange]) -> float | None:
    if any(each.reply.latency_s is None for each in exchanges):
        return None
    stages = groupby(exchanges, key=lambda each: each.stage)
    return sum(max(each.reply.latency_s or 0.0 for each in stage) for _, stage in stages)


def sum_or_none(values: Iterable[float | None]) -> float | None:
    """Return the sum, or None if any value is None."""
    found = list(values)
    return None if None in found else sum(value for value in found if value is not None)


def totals(records: Iterable[JudgmentRecord]) -> dict[str, Any]:
    """Return the ``totals`` of run.json: the records' counts, tokens, dollars, and a digest of all prompts.

    A sum is None if any of its values is unknown, and the digest is None if the prompts are not stored.
    ``dropped_params`` and ``served_models`` count the calls per role and name.
    """
    sums: dict[str, float | None] = dict.fromkeys(("input_tokens", "output_tokens", "cost_usd"), 0)
    details = dict.fromkeys(DETAILED_TOKENS, 0)
    states: Counter[str] = Counter()
    dropped: defaultdict[str, Counter[str]] = defaultdict(Counter)
    served: defaultdict[str, Counter[str]] = defaultdict(Counter)
    calls, digest = 0, None
    for record in records:
        states[record["state"]] += 1
        calls += len(record["calls"])
        for name, sum_so_far in sums.items():
            value = record.get(name)
            sums[name] = None if value is None or sum_so_far is None else sum_so_far + value
        for name in DETAILED_TOKENS:
            details[name] += record.get(name, 0)
        for call in record["calls"]:
            dropped[call["role"]].update(call["reply"].get("dropped", ()))
            if (model := call["reply"].get("model")) is not None:
                served[call["role"]][model] += 1
        if (number := _digest_of_prompts(record)) is not None:
            # A sum is the same in whatever order the trajectories ended.
            digest = ((digest or 0) + number) % 2**256
    return {
        "trajectories": states.total(),
        "states": dict(sorted(states.items())),
        "calls": calls,
        **sums,
        **details,
        "dropped_params": {role: dict(sorted(found.items())) for role, found in dropped.items() if found},
        "served_models": {role: dict(sorted(found.items())) for role, found in served.items() if found},
        "prompts_sha256": None if digest is None else f"{digest:064x}",
    }


def _digest_of_prompts(record: JudgmentRecord) -> int | None:
    """Return the SHA-256 of a trajectory's prompts as an integer, or None if they are not stored."""
    names = [call.get("prompt") for call in record["calls"]]
    if not names or None in names:
        return None
    return int.from_bytes(hashlib.sha256("\n".join([record["trajectory_id"], *names]).encode()).digest())


OpenPrompts = Callable[[], AbstractContextManager["PromptReader | None"]]
"""A function that opens the stored prompts of a run. It is slow, so it is called only if a key differs."""


class _PromptChangedError(Exception):
    """Raised if a judge makes a call whose prompt differs from the recorded one."""


def prompts_changed(
    records: Sequence[JudgmentRecord],
    judge: AnyJudge,
    models: Mapping[str, ModelSettings],
    views: RunSource,
    open_prompts: OpenPrompts,
) -> bool:
    """Return whether the judge would now send prompts other than those in the records.

    Each trajectory is judged again with the recorded replies, and the new calls are compared with the
    recorded ones. So a change of the prompts is noticed, no matter in which file it was made.
    """
    if is_reward_judge(judge):
        return False
    for record in records:
        try:
            view = views.view(record["trajectory_id"], judge.wants)
            drive_offline(judge, view, _compared_with(record["calls"], models, open_prompts))
        except _PromptChangedError:
            return True
        except Exception:  # the run will report faults of the judge or its data
            continue
    return False


def _compared_with(
    calls: Sequence[JudgmentRecord], models: Mapping[str, ModelSettings], open_prompts: OpenPrompts
) -> Callable[[Call], Reply | None]:
    """Return a function that replies to calls with the recorded replies, in order.

    It raises _PromptChangedError if a prompt differs, and returns None if the call was not recorded.
    """
    recorded = iter(calls)

    def reply_to(call: Call) -> Reply | None:
        there = next(recorded, None)
        if there is None or any(getattr(call, name) != there[name] for name in ("role", "purpose", "sample")):
            return None  # the judge used a part of a reply that is not recorded
        if key_of(models[call.role], call) != there["key"] and _texts_differ(call, there, open_prompts):
            raise _PromptChangedError
        return reply_of(there)

    return reply_to


def _texts_differ(call: Call, recorded: JudgmentRecord, open_prompts: OpenPrompts) -> bool:
    """Return whether a call's texts differ from the recorded ones.

    Pictures are not compared, since their bytes depend on Pillow's version.
    """
    sent = call.shorter if recorded["reply"].get("used_shorter") and call.shorter else call.messages
    with open_prompts() as prompts:
        if prompts is None or "prompt" not in recorded:
            return False
        return _texts(prompt_of(sent)) != _texts(prompts.get(recorded["prompt"]))


def _texts(prompt: Prompt) -> list[Any]:
    """Return the roles and texts of a prompt, with None in place of pictures."""
    found: list[Any] = []
    for role, content in prompt:
        parts = [content] if isinstance(content, str) else content
        found.append((role, [part if isinstance(part, str) else None for part in parts]))
    return found
