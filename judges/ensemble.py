"""Judges made of judges: one asked several times (samples), and a cheap one checked by a strong one."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from judges.base import JUDGE_ROLE, Answer, Asking, Call, Judge, Reply, View, Wants
from judges.prompt_files import prompts_hash
from judges.voting import Rule, voted

PREPARATIONS: Final = ("caption", "change", "key points", "rating")
"""Purposes of calls that are asked once for all samples, as are those of other roles than the judge's."""

UNCERTAIN: Final = (0.2, 0.8)
"""Scores of a cheap judge from the first to the second are no answer to rely on."""

CHEAP, STRONG = "cheap", "strong"
_AMOUNTS: Final = ("none", "last", "all")


@dataclass(frozen=True)
class Sampled:
    """A judge asked ``n`` times; its answers are put to a vote by ``rule`` (see `voting.voted`).

    Captions and the like are asked for once. Of what the judge asks for its verdict, each sample is a call of
    its own, all of them under way at once.
    """

    judge: Judge
    n: int
    rule: Rule = "majority"

    def __post_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n: {self.n} samples; give 1 or more")

    @property
    def name(self) -> str:
        """The judge's, with the number of samples and the rule."""
        return f"{self.judge.name}{samples_suffix(self.n, self.rule)}"

    @property
    def inputs(self) -> str:
        """The judge's."""
        return self.judge.inputs

    @property
    def calls(self) -> str:
        """How many calls a trajectory takes."""
        return str(self.n) if self.judge.calls == "1" else f"{self.judge.calls}, the verdict {self.n} times"

    @property
    def source(self) -> str:
        """The judge's."""
        return self.judge.source

    @property
    def wants(self) -> Wants:
        """The judge's."""
        return self.judge.wants

    @property
    def models(self) -> Mapping[str, str]:
        """The judge's."""
        return self.judge.models

    @property
    def prompts_hash(self) -> str:
        """The judge's."""
        return self.judge.prompts_hash

    def ask(self, view: View) -> Asking:
        """All samples side by side; calls that are the same are made once."""
        answers = yield from side_by_side(
            _numbered(self.judge.ask(view), number, self.n) for number in range(self.n)
        )
        return voted(answers, self.rule)


@dataclass(frozen=True)
class Cascade:
    """A cheap judge, and a strong one that decides where the cheap one is not to be relied on.

    The strong judge is asked when the cheap one has no verdict, when its score lies in ``uncertain`` (both
    ends included), and, with ``confirms_success``, whenever it says success: precision is what judges are
    ranked by, so a yes has to be confirmed, while a sure no stands. Whatever the strong judge answers then
    counts, no verdict as well; labels that it does not give are the cheap judge's.
    """

    cheap: Judge
    strong: Judge
    uncertain: tuple[float, float] = UNCERTAIN
    confirms_success: bool = True

    @property
    def name(self) -> str:
        """Both names, in the order of asking."""
        return f"{self.cheap.name} then {self.strong.name}"

    @property
    def inputs(self) -> str:
        """What each of them sees."""
        return f"{self.cheap.inputs}; then {self.strong.inputs}"

    @property
    def calls(self) -> str:
        """The cheap judge's, and the strong one's where it is asked."""
        return f"{self.cheap.calls}, where asked {self.strong.calls} more"

    @property
    def source(self) -> str:
        """Both sources."""
        return "; ".join(dict.fromkeys((self.cheap.source, self.strong.source)))

    @property
    def wants(self) -> Wants:
        """What either of them wants."""
        return _widest(self.cheap.wants, self.strong.wants)

    @property
    def models(self) -> Mapping[str, str]:
        """The models of both; roles begin with ``cheap.`` and ``strong.``."""
        both = {f"{CHEAP}.{role}": model for role, model in self.cheap.models.items()}
        both |= {f"{STRONG}.{role}": model for role, model in self.strong.models.items()}
        return MappingProxyType(both)

    @property
    def prompts_hash(self) -> str:
        """SHA-256 over both judges' prompts and over when the strong one is asked."""
        when = f"{self.uncertain} {self.confirms_success}"
        return prompts_hash(self.cheap.prompts_hash, self.strong.prompts_hash, when)

    def ask(self, view: View) -> Asking:
        """The cheap judge, then the strong one where it is needed; each sees no more than it wants."""
        first = yield from _in_roles(self.cheap.ask(narrowed(view, self.cheap.wants)), CHEAP)
        if not self.needs_strong(first):
            return first
        second = yield from _in_roles(self.strong.ask(narrowed(view, self.strong.wants)), STRONG)
        return replace(
            second,
            side_effect=first.side_effect if second.side_effect is None else second.side_effect,
            repetition=first.repetition if second.repetition is None else second.repetition,
            optimality=first.optimality if second.optimality is None else second.optimality,
        )

    def needs_strong(self, answer: Answer) -> bool:
        """Whether this answer of the cheap judge is to be checked."""
        low, high = self.uncertain
        is_uncertain = answer.score is not None and low <= answer.score <= high
        return answer.success is None or is_uncertain or (self.confirms_success and answer.success)


def samples_suffix(n: int, rule: str) -> str:
    """What `Sampled` adds to a judge's name."""
    return f", {n} samples, {rule}"


def side_by_side(askings: Iterable[Asking]) -> Generator[Sequence[Call], Sequence[Reply], list[Answer]]:
    """Drive several at once, each round yielding what all of them ask, equal calls once; returns all answers."""
    running = dict(enumerate(askings))
    answers: dict[int, Answer] = {}
    asked: dict[int, Sequence[Call]] = {}

    def advance(number: int, replies: Sequence[Reply] | None) -> None:
        try:
            asked[number] = running[number].send(replies)
        except StopIteration as end:
            answers[number] = end.value
            del running[number]

    try:
        for number in tuple(running):
            advance(number, None)
        while running:
            calls = tuple(dict.fromkeys(call for number in running for call in asked[number]))
            replies = dict(zip(calls, (yield calls), strict=True))
            for number in tuple(running):
                advance(number, [replies[call] for call in asked[number]])
    finally:
        for asking in running.values():
            asking.close()
    return [answers[number] for number in sorted(answers)]


def narrowed(view: View, wants: Wants) -> View:
    """The view without what a judge with these wants is not shown."""
    last = len(view.steps) - 1

    def shows(amount: str, place: int) -> bool:
        return amount == "all" or (amount == "last" and place == last)

    return replace(
        view,
        goal_images=view.goal_images if wants.goal_images else (),
        steps=tuple(
            replace(
                step,
                axtree=step.axtree if shows(wants.axtrees, place) else None,
                axtree_pruned=step.axtree_pruned if shows(wants.axtrees, place) else None,
                screenshot=step.screenshot if shows(wants.screenshots, place) else None,
            )
            for place, step in enumerate(view.steps)
        ),
    )


def _numbered(asking: Asking, number: int, n: int) -> Asking:
    """The same asking, the calls for the verdict as those of one sample."""

    def call_of(call: Call) -> Call:
        is_shared = call.purpose in PREPARATIONS or call.role.rpartition(".")[2] != JUDGE_ROLE
        return call if is_shared else replace(call, sample=call.sample * n + number)

    return (yield from _changed(asking, call_of))


def _in_roles(asking: Asking, prefix: str) -> Asking:
    return (yield from _changed(asking, lambda call: replace(call, role=f"{prefix}.{call.role}")))


def _changed(asking: Asking, call_of) -> Iterator:
    """The same asking with every call changed."""
    replies = None
    try:
        while True:
            calls = asking.send(replies)
            replies = yield [call_of(call) for call in calls]
    except StopIteration as end:
        return end.value
    finally:
        asking.close()


def _widest(one: Wants, other: Wants) -> Wants:
    def more(first: str, second: str):
        return max(first, second, key=_AMOUNTS.index)

    return Wants(
        axtrees=more(one.axtrees, other.axtrees),
        screenshots=more(one.screenshots, other.screenshots),
        goal_images=one.goal_images or other.goal_images,
    )
