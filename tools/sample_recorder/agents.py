"""Four scripted agents, and the sample's tasks with the moves of each agent, from ``scripts/<site>.toml``.

An agent makes the moves written for it on the page that it actually sees.
A move is a list of words: a verb, its arguments, and the agent's reasoning.

    ["click", ROLE, NAME, why]     ["fill", NAME, TEXT, why]     ["select", NAME, OPTION, why]
    ["scroll", PIXELS, why]        ["goto", PATH, why]           ["back", why]
    ["say", TEXT, why]             ["infeasible", TEXT, why]

Roles and names are looked up in the accessibility tree, so an action names an existing element. A TEXT may
contain ``{name}``, which is replaced by what the task's pattern ``name`` matched on a page that was seen.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

Move = tuple[str, ...]
"""A verb, its arguments, the reasoning."""

ARGUMENTS: Final = MappingProxyType(
    {"click": 2, "fill": 2, "select": 2, "scroll": 1, "goto": 1, "back": 0, "say": 1, "infeasible": 1}
)
"""The number of arguments of each verb, without the reasoning."""

_ELEMENT = re.compile(r"^\s*\[(?P<bid>\w+)\] (?P<role>\w+) (['\"])(?P<name>.*?)\3(?=[, ]|$)", re.MULTILINE)
_LIVELY_PARTS = re.compile(r", (focused|visible|clickable)\b")


class ScriptError(LookupError):
    """Raised for a move that cannot be made on this page; the message names the agent and what is missing."""


@dataclass(frozen=True, slots=True)
class Character:
    """An agent's name, a sentence on its habits, and how it reacts if a click has no effect.

    It repeats the click up to ``repeats`` times, each time with the next reasoning in ``again``.
    """

    name: str
    sentence: str
    repeats: int = 0
    again: tuple[str, ...] = ()

    @property
    def agent(self) -> str:
        """The agent's name in trajectory ids."""
        return f"ScriptedAgent-{self.name}"

    @property
    def model(self) -> str:
        """The name that recordings give in place of a language model."""
        return f"scripted-{self.name}"


CHARACTERS: Final = (
    Character("careful", "reads, checks and does one thing at a time; asks too much, sees colours badly"),
    Character("hasty", "takes the first thing that fits, and reports before it is done"),
    Character(
        "stubborn",
        "does the same again until the page gives in",
        repeats=3,
        again=(
            "Nothing happened. The button is right, so I press it again.",
            "Still nothing. I press it again.",
            "It has to work. Again.",
        ),
    ),
    Character("talkative", "does more than it was asked, and says it at length"),
)


@dataclass(frozen=True, slots=True)
class Decision:
    """An action in BrowserGym's syntax, and the agent's reasoning."""

    action: str
    reasoning: str


def find_element(tree: str, role: str, name: str) -> str | None:
    """Return the bid of the first element with this role and exactly this name, or None."""
    for found in _ELEMENT.finditer(tree):
        if found["role"] == role and found["name"] == name:
            return found["bid"]
    return None


class ScriptedAgent:
    """One agent on one task. ``reads`` has named patterns; ``goto`` paths are relative to ``site_url``."""

    def __init__(
        self, character: Character, moves: Sequence[Move], reads: Mapping[str, str], site_url: str
    ) -> None:
        self._character = character
        self._moves = moves
        self._patterns = {name: re.compile(pattern) for name, pattern in reads.items()}
        self._site_url = site_url
        self._read: dict[str, str] = {}
        self._position = 0
        self._repeated = 0
        self._tree_before: str | None = None

    def act(self, tree: str) -> Decision:
        """Return the next action on a page, given as the text of its accessibility tree.

        Raises ScriptError if the page lacks the element that the move names, or no move is left.
        """
        for name, pattern in self._patterns.items():
            if found := pattern.search(tree):
                self._read[name] = found[1]
        if self._wants_to_repeat(tree):
            self._repeated += 1
            reasoning = self._character.again[(self._repeated - 1) % len(self._character.again)]
            move = self._moves[self._position - 1]
        else:
            if self._position == len(self._moves):
                raise ScriptError(f"{self._character.agent}: the script has no move left")
            move, self._repeated = self._moves[self._position], 0
            reasoning = move[-1]
            self._position += 1
        self._tree_before = tree
        return Decision(self._action(move, tree), reasoning)

    def _wants_to_repeat(self, tree: str) -> bool:
        """Return whether a stubborn agent clicks again, because its click did not change the page."""
        if self._tree_before is None or self._repeated >= self._character.repeats:
            return False
        is_click = self._moves[self._position - 1][0] == "click"
        return is_click and is_unchanged(self._tree_before, tree)

    def _action(self, move: Move, tree: str) -> str:
        verb, *arguments = move[:-1]
        match verb:
            case "click":
                return f"click({self._bid(tree, *arguments)!r})"
            case "fill":
                return f"fill({self._bid(tree, 'textbox', arguments[0])!r}, {arguments[1]!r})"
            case "select":
                return f"select_option({self._bid(tree, 'combobox', arguments[0])!r}, {arguments[1]!r})"
            case "scroll":
                return f"scroll(0, {int(arguments[0])})"
            case "goto":
                return f"goto({self._site_url + arguments[0]!r})"
            case "back":
                return "go_back()"
            case "say":
                return f"send_msg_to_user({self._fill_in(arguments[0])!r})"
            case "infeasible":
                return f"report_infeasible({self._fill_in(arguments[0])!r})"
        raise ScriptError(f"{self._character.agent}: there is no move {verb!r}")

    def _bid(self, tree: str, role: str, name: str) -> str:
        bid = find_element(tree, role, name)
        if bid is None:
            raise ScriptError(f"{self._character.agent}: no {role} {name!r} on this page")
        return bid

    def _fill_in(self, text: str) -> str:
        try:
            return text.format_map(self._read)
        except KeyError as missing:
            raise ScriptError(f"{self._character.agent}: {missing} was never seen on a page") from None


def is_unchanged(before: str, after: str) -> bool:
    """Return whether two trees show the same page, apart from focus and scrolling."""
    return _LIVELY_PARTS.sub("", before) == _LIVELY_PARTS.sub("", after)


SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the sample. ``state`` is the site's initial state; ``reads`` has patterns for page texts."""

    task_id: str
    split: str
    goal: str
    path: str
    state: Mapping[str, Any]
    reads: Mapping[str, str]
    moves: Mapping[str, tuple[Move, ...]]

    @property
    def benchmark(self) -> str:
        """The benchmark folder in trajectory ids: the task id without its number."""
        return self.task_id.rpartition(".")[0]

    def trajectory_id(self, character: Character) -> str:
        return f"{self.benchmark}/{character.agent}/{self.task_id}"


def load_tasks(folder: Path = SCRIPTS) -> tuple[Task, ...]:
    """Return all tasks, sorted by id. Raises ValueError, which names all moves that are missing or wrong."""
    tasks = []
    for path in sorted(folder.glob("*.toml")):
        for table in tomllib.loads(path.read_text(encoding="utf-8"))["task"]:
            moves = {name: tuple(map(tuple, listed)) for name, listed in table["moves"].items()}
            tasks.append(
                Task(
                    task_id=table["id"],
                    split=table["split"],
                    goal=table["goal"],
                    path=table["path"],
                    state=table.get("state", {}),
                    reads=table.get("reads", {}),
                    moves=moves,
                )
            )
    if problems := [problem for task in tasks for problem in _problems(task)]:
        raise ValueError("; ".join(problems))
    return tuple(sorted(tasks, key=lambda task: task.task_id))


def _problems(task: Task) -> list[str]:
    problems = []
    for name in sorted(task.moves.keys() ^ {character.name for character in CHARACTERS}):
        problems.append(f"{task.task_id}: moves for {name!r} are absent or belong to no agent")
    for name, moves in task.moves.items():
        for number, move in enumerate(moves):
            if move[0] not in ARGUMENTS or len(move) != ARGUMENTS[move[0]] + 2:
                problems.append(f"{task.task_id}, {name}, move {number}: cannot be read: {list(move)}")
    return problems
