"""Combinations of judges that were chosen on dev: their files, and the judges that the files describe."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from arb.core.files import atomic_write
from arb.core.formats import FORMATS, format_problem
from arb.judges.ensembles.cascade import UNCERTAIN, Cascade, SequentialJudge
from arb.judges.ensembles.voting import VoteRule, combine_votes, outcome
from arb.judges.prompting import prompts_hash
from arb.judges.types import Answer, AnyJudge, Judge, JudgeSession, OptionsError, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leaderboard.validation.combination import Combination
    from leaderboard.validation.tables import JudgeAnswers

MOST_BYTES: Final = 1_000_000
FEWEST, MOST = 2, 12
"""The minimum and the maximum number of judges in a search."""


@dataclass(frozen=True, slots=True)
class CombinedPart:
    """One judge of a frozen combination. ``models`` maps roles to ``PROVIDER:MODEL``."""

    judge: str
    prompts: Literal["own", "official"]
    compat: bool
    structured_output: bool
    models: Mapping[str, str]
    prompts_hash: str


@dataclass(frozen=True, slots=True)
class FrozenCombination:
    """A combination as it is stored in a file.

    Attributes:
        rule: A vote over all judges, or ``then``: the second judge decides if the first is unreliable.
        uncertain: The range of scores in which the first judge is unreliable, for the rule ``then``.
        chosen_on: Always dev, since a combination that was chosen on test must not be ranked.
        candidates: The number of combinations that were compared.
        f1: F1 on the runs on which the combination was chosen. ``held_out_f1`` is F1 in cross-validation.
    """

    rule: Literal["all", "any", "majority", "then"]
    judges: tuple[CombinedPart, ...]
    uncertain: tuple[float, float]
    suite: str
    chosen_on: Literal["dev"]
    label_version: str
    runs: int
    candidates: int
    f1: float
    held_out_f1: float | None


@dataclass(frozen=True)
class JudgeVote(SequentialJudge):
    """A vote of judges, asked in order until the outcome is certain.

    With ``all``, the first no ends the vote. With ``any``, the first yes ends it.
    """

    judges: tuple[Judge, ...]
    rule: VoteRule

    @property
    def parts(self) -> Mapping[str, Judge]:
        return {f"{number}.": judge for number, judge in enumerate(self.judges, start=1)}

    def name_with(self, names: Mapping[str, str]) -> str:
        return f"{self.rule} of {', '.join(names.values())}"

    @property
    def calls(self) -> str:
        return ", and ".join(judge.calls for judge in self.judges) + " at most"

    @property
    def prompts_hash(self) -> str:
        """The SHA-256 of all judges' prompts and of the rule."""
        return prompts_hash(*(judge.prompts_hash for judge in self.judges), self.rule)

    def ask(self, view: View) -> JudgeSession:
        """Ask one judge after another until the missing votes cannot change the outcome."""
        answers: list[Answer] = []
        for prefix in self.parts:
            answers.append((yield from self.ask_part(prefix, view)))
            missing = [None] * (len(self.judges) - len(answers))
            votes = [*(answer.success for answer in answers), *missing]
            if outcome(votes, self.rule) is not None:
                break
        return combine_votes(answers, self.rule)


def candidates(judges: Sequence[JudgeAnswers], of: Callable[..., Combination]) -> list[Combination]:
    """Return all combinations to compare, each built by the function ``of``.

    These are the pairs with ``all`` and ``any``, the majorities of three, and the cascades whose first judge
    gives scores. A vote asks its judges in the given order.
    """
    places = range(len(judges))
    found = [of(rule, pair) for pair in combinations(places, 2) for rule in ("all", "any")]
    found += [of("majority", three) for three in combinations(places, 3)]
    pairs = permutations(places, 2)
    return found + [of("then", pair, UNCERTAIN) for pair in pairs if judges[pair[0]].scores is not None]


def is_combination(name: str | None) -> bool:
    """Return whether the name of a judge is the path of a combination's file."""
    return name is not None and name.endswith(".json")


def write_combination(path: Path, combination: FrozenCombination) -> None:
    content = {"format": FORMATS["combination"], **asdict(combination)}
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, json.dumps(content, indent=2, allow_nan=False).encode("ascii") + b"\n")


def read_combination(path: Path) -> FrozenCombination:
    """Read a combination's file. Raises OptionsError if it cannot be read or is invalid."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(MOST_BYTES))
    except OSError as error:
        raise OptionsError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except (ValueError, RecursionError):
        content = None
    if problem := format_problem("combination", content):
        raise OptionsError(f"{path}: {problem}")
    if not isinstance(content, dict) or content.pop("format", None) is None:
        raise OptionsError(f"{path}: is not a combination; create one with `arb judges combine`")
    from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415 - heavy, most runs need no combination

    try:
        found = TypeAdapter(FrozenCombination).validate_json(json.dumps(content), strict=True)
    except ValidationError as invalid:
        problems = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in invalid.errors())
        raise OptionsError(f"{path}: {problems}; create it again with `arb judges combine`") from None
    low, high = found.uncertain
    if not 0 <= low <= high <= 1:
        raise OptionsError(
            f"{path}: uncertain: is not a range from 0 to 1; create the file again with `arb judges combine`"
        )
    needed = range(3, MOST + 1) if found.rule == "majority" else (2,)
    if len(found.judges) not in needed:
        raise OptionsError(
            f"{path}: judges: {found.rule} does not work with {len(found.judges)}; create the "
            "file again with `arb judges combine`"
        )
    return found


def combined_judge(path: Path, judge_of: Callable[[CombinedPart], Judge]) -> Judge:
    """Return the judge that a file describes; ``judge_of`` builds its parts. Raises OptionsError."""
    found = read_combination(path)
    judges = []
    for part in found.judges:
        judge = judge_of(part)
        if judge.prompts_hash != part.prompts_hash:
            raise OptionsError(
                f"{path}: the prompts of {part.judge} changed since the combination was chosen; choose it "
                "again with `arb judges combine`"
            )
        judges.append(judge)
    if found.rule == "then":
        return Cascade(judges[0], judges[1], found.uncertain, confirms_success=False)
    return JudgeVote(tuple(judges), found.rule)


def models_of_combination(path: Path, judge: AnyJudge) -> dict[str, str]:
    """Return the frozen models of the judge that `combined_judge` returned for this file, keyed by role."""
    prefixes = judge.parts if isinstance(judge, SequentialJudge) else ()
    pairs = zip(prefixes, read_combination(path).judges, strict=True)
    return {prefix + role: model for prefix, part in pairs for role, model in part.models.items()}


def record_of(path: Path) -> dict[str, Any]:
    """Return the content of a combination's file for run.json."""
    return asdict(read_combination(path))
