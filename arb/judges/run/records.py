"""What a run sent and what answered it: dropped parameters, served models, and the digest of the prompts.

All of it follows from the lines of judgments.jsonl, so every engine and every session of a run agree on it.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from arb.judges.contract import open_session
from arb.judges.engine.cache import call_key
from arb.judges.engine.prompt_store import prompt_of
from arb.judges.registry import full_name, is_same_model
from arb.judges.types import Call, Judge, ModelSettings, Reply, is_reward_judge

if TYPE_CHECKING:
    from arb.judges.engine.prompt_store import PromptReader
    from arb.judges.run.scheduler import Judgment, RunSource
    from arb.judges.types import AnyJudge

JudgmentRecord = Mapping[str, Any]


class CallSums:
    """Counts over the calls of judged trajectories, in constant memory."""

    def __init__(self) -> None:
        self._dropped: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._served: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._prompts: int | None = None

    def add(self, record: JudgmentRecord) -> None:
        names = []
        for call in record["calls"]:
            role, reply = call["role"], call["reply"]
            self._dropped[role].update(reply.get("dropped", ()))
            if (model := reply.get("model")) is not None:
                self._served[role][model] += 1
            names.append(call.get("prompt"))
        if names and None not in names:
            digest = hashlib.sha256("\n".join([record["trajectory_id"], *names]).encode()).digest()
            # A sum does not depend on the order in which the trajectories ended.
            self._prompts = ((self._prompts or 0) + int.from_bytes(digest)) % 2**256

    def facts(self) -> dict[str, Any]:
        """Return calls per role and dropped parameter, calls per role and served model, and the digest."""
        return {
            "dropped_params": {role: dict(sorted(n.items())) for role, n in self._dropped.items() if n},
            "served_models": {role: dict(sorted(n.items())) for role, n in self._served.items() if n},
            "prompts_sha256": None if self._prompts is None else f"{self._prompts:064x}",
        }


class CallWarnings:
    """Warnings about what was not sent and what answered; each is given to ``say`` once."""

    def __init__(self, models: Mapping[str, ModelSettings], say: Callable[[str], None]):
        self._models, self._say = models, say
        self._dropped: set[tuple[str, str]] = set()
        self._served: defaultdict[str, list[str]] = defaultdict(list)

    def note(self, role: str, reply: Reply) -> None:
        """Look at the reply to one call."""
        if not reply.dropped and (reply.model is None or reply.model in self._served[role]):
            return
        self.note_sums({role: reply.dropped}, {role: () if reply.model is None else (reply.model,)})

    def note_sums(self, dropped: Mapping[str, Iterable[str]], served: Mapping[str, Iterable[str]]) -> None:
        """Look at what `CallSums.facts` returns."""
        for role, names in dropped.items():
            for name in names:
                self._warn_of_omitted(role, name)
        for role, names in served.items():
            for name in names:
                if name not in self._served[role]:
                    self._served[role].append(name)
                    self._warn_of_served(role, name)

    def _warn_of_omitted(self, role: str, name: str) -> None:
        if (role, name) in self._dropped or role not in self._models:
            return
        self._dropped.add((role, name))
        model = self._models[role]
        self._say(f"{role}: {name} was not sent, since {model.model} ({model.provider}) does not take it")

    def _warn_of_served(self, role: str, name: str) -> None:
        if (model := self._models.get(role)) is None:
            return
        if len(self._served[role]) > 1 or not is_same_model(model.model, name):
            names = " and ".join(sorted(self._served[role]))
            self._say(f"{role}: asked for {model.model}, answered by {names}")


def name_as_served(name: str, judge: AnyJudge, models: Mapping[str, ModelSettings], judged: Judgment) -> str:
    """Return the judge's name for one line: ``name``, unless another model answered than was asked."""
    served = {(each.call.role, each.reply.model) for each in judged.exchanges if each.reply.model}
    if all(role not in models or models[role].model == model for role, model in served):
        return name
    by_role: defaultdict[str, list[str]] = defaultdict(list)
    for role, model in sorted(served):
        by_role[role].append(model)
    return full_name(judge, models, by_role)


OpenPrompts = Callable[[], AbstractContextManager["PromptReader | None"]]
"""Opens what was sent in the calls of a run; reading its index takes a while, so only if a key differs."""


def prompts_changed(
    records: Sequence[JudgmentRecord],
    judge: AnyJudge,
    models: Mapping[str, ModelSettings],
    views: RunSource,
    open_prompts: OpenPrompts,
) -> bool:
    """Return whether the judge would send other prompts for trajectories that were already judged.

    The judge is driven with the replies of each record, and the keys of its calls are compared with those in
    the record. So the wording is covered in whatever file it is, and no run is read but those of the records.
    """
    return not is_reward_judge(judge) and any(
        _differs(record, judge, models, views, open_prompts) for record in records if record["calls"]
    )


def _differs(
    record: JudgmentRecord,
    judge: Judge,
    models: Mapping[str, ModelSettings],
    views: RunSource,
    open_prompts: OpenPrompts,
) -> bool:
    recorded = {
        (call["stage"], call["role"], call["purpose"], call["sample"], number): call
        for number, call in _numbered(record["calls"])
    }
    try:
        session = open_session(judge, views.view(record["trajectory_id"], judge.wants))
        calls: Sequence[Call] = next(session)
    except Exception:  # whatever a judge or its data does now, the run itself will report it
        return False
    stage = 0
    try:
        while True:
            replies = []
            for number, call in enumerate(calls):
                there = recorded.get((stage, call.role, call.purpose, call.sample, number))
                if there is None or call.role not in models:
                    return False  # other calls follow from replies that the record does not have whole
                model = models[call.role]
                limit = call.max_output_tokens or model.max_output_tokens
                is_same = call_key(model, call.messages, limit, call.sample) == there["key"]
                if not is_same and _texts_differ(call, there, open_prompts):
                    return True
                replies.append(_reply_of(there["reply"]))
            calls = session.send(replies)
            stage += 1
    except Exception:  # StopIteration, or what the judge raises
        return False
    finally:
        session.close()


def _numbered(calls: Iterable[JudgmentRecord]) -> Iterable[tuple[int, JudgmentRecord]]:
    """The calls of a record, each with its place in its stage."""
    places: Counter[int] = Counter()
    for call in calls:
        yield places[call["stage"]], call
        places[call["stage"]] += 1


def _texts_differ(call: Call, recorded: JudgmentRecord, open_prompts: OpenPrompts) -> bool:
    """Whether the texts differ; another version of Pillow may write the same picture in other bytes."""
    sent = call.shorter if recorded["reply"].get("used_shorter") and call.shorter else call.messages
    with open_prompts() as prompts:
        if prompts is None or "prompt" not in recorded:
            return False
        return _texts(prompt_of(sent)) != _texts(prompts.get(recorded["prompt"]))


def _texts(prompt: Any) -> list[Any]:
    return [
        (role, [part if isinstance(part, str) else None for part in content])
        if isinstance(content, list)
        else (role, content)
        for role, content in prompt
    ]


def _reply_of(stored: JudgmentRecord) -> Reply:
    return Reply(**{name: tuple(v) if isinstance(v, list) else v for name, v in stored.items()})
