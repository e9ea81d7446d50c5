"""Name the agents of runs so that runs under different settings are different agents.

An agent's name consists of its model and solver, and of the settings in which its evaluations differ, sorted
by name. If all evaluations have the same settings, the name contains none.
"""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

from dataset_script.sources.pickle_values import PickledObject
from dataset_script.sources.problems import Note
from dataset_script.sources.values import id_part, valid_text

_LONGEST_VALUE: Final = 40
_LONGEST_NAME: Final = 120
_DEEPEST: Final = 5
_PRIVATE: Final = re.compile(r"api_?key|secret|password|credential|[._-]token$|url$|seed$", re.IGNORECASE)
"""Settings that never become part of an agent's name: secrets, addresses, and seeds (they vary by repeat)."""


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What is recorded about the agent of an evaluation.

    Attributes:
        name: The agent's name without settings.
        fields: Further facts that `--agent-from` may choose, such as ``model`` or ``folder``.
        settings: The settings of the evaluation, keyed by name; None if the format records none.
        of_task: The names of those settings that belong to the task. The settings of two tasks are not
            compared, because each task has its own.
    """

    name: str
    fields: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] | None = None
    of_task: frozenset[str] = frozenset()

    @property
    def known(self) -> Mapping[str, str]:
        """All facts that `--agent-from` may choose, by name."""
        return {**(self.settings or {}), **self.fields, "agent": self.name}


def settings_in(value: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (name, value) for each setting in a JSON object or pickled object. Nested names have dots.

    Values that are null are left out, and so are lists of objects, secrets, addresses and seeds. Long values
    are replaced by a hash.
    """
    items = value.fields | value.items if isinstance(value, PickledObject) else value
    for key, each in items.items() if isinstance(items, dict) and depth < _DEEPEST else ():
        name = f"{prefix}{valid_text(str(key))}"
        if isinstance(each, dict | PickledObject):
            yield from settings_in(each, f"{name}.", depth + 1)
        elif each is not None and not _PRIVATE.search(name):
            text = _value_text(each)
            if text is not None:
                yield name, text


def _value_text(value: Any) -> str | None:
    if isinstance(value, list) and all(isinstance(each, str | int | float) for each in value):
        text = json.dumps(value)
    elif isinstance(value, bool | int | float):
        text = json.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)
    elif isinstance(value, str):
        text = valid_text(value) or ""
        if text.startswith(("/", "~")) or re.match(r"[A-Za-z]:\\", text):  # not the path of a machine
            text = f"{PurePath(text.replace(chr(92), '/')).name}-{_short_hash(text)}"
    else:
        return None
    return text if len(text) <= _LONGEST_VALUE else _short_hash(text)


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def name_agents(
    evaluations: Sequence[tuple[str, AgentFacts]], agent_from: Sequence[str] = ()
) -> tuple[list[str], tuple[Note, ...]]:
    """Return each evaluation's agent name, and a note for each name whose runs differ in settings.

    Args:
        evaluations: The task and the facts of each evaluation.
        agent_from: The facts to form names from, instead of the usual name and the settings.
    """
    by_name: dict[str, list[tuple[str, AgentFacts]]] = defaultdict(list)
    for task, facts in evaluations:
        by_name[id_part(facts.name)].append((task, facts))
    differing = {name: _differing(group) for name, group in by_name.items()}
    names = []
    for _, facts in evaluations:
        if agent_from:
            parts = [_part(each, facts) for each in agent_from if each in facts.known]
        else:
            own = differing[id_part(facts.name)]
            parts = [facts.name, *(_part(key, facts) for key in sorted(own) if key in (facts.settings or ()))]
        names.append(_shortened("_".join(filter(None, parts)) or facts.name))
    same: dict[str, list[tuple[str, AgentFacts]]] = defaultdict(list)
    for name, evaluation in zip(names, evaluations, strict=True):
        same[name].append(evaluation)
    notes = []
    for name, group in sorted(same.items()):
        names_of_group = tuple(sorted({facts.name for _, facts in group}))
        differ = {"agent": names_of_group} if len(names_of_group) > 1 else {}
        texts = [
            f"{key} is {' or '.join(value or 'not set' for value in values)}"
            for key, values in (differ | _differing(group)).items()
        ]
        if texts:
            notes.append(Note("same_agent", f"{name}: {'; '.join(texts)}"))
    return names, tuple(notes)


def _differing(evaluations: Sequence[tuple[str, AgentFacts]]) -> dict[str, tuple[str, ...]]:
    """Return the values of each setting in which evaluations differ, keyed by the setting's name."""
    by_task: dict[str, dict[frozenset[tuple[str, str]], AgentFacts]] = defaultdict(dict)
    for task, facts in evaluations:
        if facts.settings is not None:
            by_task[task].setdefault(frozenset(facts.settings.items()), facts)
    every = [facts for of_task in by_task.values() for facts in of_task.values()]
    found = {}
    for key in sorted({key for facts in every for key in facts.settings or ()}):
        groups = [[*of_task.values()] for of_task in by_task.values()]
        groups.append([facts for facts in every if key not in facts.of_task])
        values = [{(facts.settings or {}).get(key, "") for facts in group} for group in groups]
        if any(len(each) > 1 for each in values):
            found[key] = tuple(sorted(set().union(*values)))
    return found


def _part(key: str, facts: AgentFacts) -> str:
    return facts.known[key] if key in {*facts.fields, "agent"} else f"{key}={facts.known[key]}"


def _shortened(name: str) -> str:
    name = id_part(name)
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 9]}_{_short_hash(name)}"
