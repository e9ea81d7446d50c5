"""What a run sent and what answered it: dropped parameters, served models, and the digest of the prompts.

All of it follows from the lines of judgments.jsonl, so every engine and every session of a run agree on it.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from arb.judges.engine.cache import key_of
from arb.judges.engine.prompt_store import prompt_of
from arb.judges.registry import is_same_model
from arb.judges.run.scheduler import drive_offline
from arb.judges.types import AnyJudge, Call, ModelSettings, Reply, is_reward_judge

if TYPE_CHECKING:
    from arb.judges.engine.prompt_store import PromptReader
    from arb.judges.run.scheduler import RunSource

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
        self.note_sums({role: reply.dropped}, {role: () if reply.model is None else (reply.model,)})

    def note_sums(self, dropped: Mapping[str, Iterable[str]], served: Mapping[str, Iterable[str]]) -> None:
        """Look at what `CallSums.facts` returns."""
        for role, model in self._models.items():
            for name in dropped.get(role, ()):
                if (role, name) not in self._dropped:
                    self._dropped.add((role, name))
                    about = f"{model.model} ({model.provider}) does not take it"
                    self._say(f"{role}: {name} was not sent, since {about}")
            names = self._served[role]
            for name in served.get(role, ()):
                if name not in names:
                    names.append(name)
                    if len(names) > 1 or not is_same_model(model.model, name):
                        answered = " and ".join(sorted(names))
                        self._say(f"{role}: asked for {model.model}, answered by {answered}")


OpenPrompts = Callable[[], AbstractContextManager["PromptReader | None"]]
"""Opens what was sent in the calls of a run; reading its index takes a while, so only if a key differs."""


class _PromptChangedError(Exception):
    """Raised for a call whose texts are not the recorded ones."""


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
    if is_reward_judge(judge):
        return False
    for record in records:
        try:
            view = views.view(record["trajectory_id"], judge.wants)
            drive_offline(judge, view, _compared_with(record["calls"], models, open_prompts))
        except _PromptChangedError:
            return True
        except Exception:  # whatever a judge or its data does now, the run itself will report it
            continue
    return False


def _compared_with(
    calls: Sequence[JudgmentRecord], models: Mapping[str, ModelSettings], open_prompts: OpenPrompts
) -> Callable[[Call], Reply | None]:
    """Return what replies to a judge as recorded, and raises _PromptChangedError for a call that differs."""
    recorded = iter(calls)

    def reply_to(call: Call) -> Reply | None:
        there = next(recorded, None)
        if there is None or any(getattr(call, name) != there[name] for name in ("role", "purpose", "sample")):
            return None  # other calls follow from replies that the record does not have whole
        if key_of(models[call.role], call) != there["key"] and _texts_differ(call, there, open_prompts):
            raise _PromptChangedError
        return Reply(**{name: tuple(v) if isinstance(v, list) else v for name, v in there["reply"].items()})

    return reply_to


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
