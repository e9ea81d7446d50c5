"""Judges made of other judges, such as samples, a cascade, a threshold or a probe, and what they share.

The engine recognises them by their class, `JudgeWrapper`. What a judge of your own calls its attributes
therefore means nothing here.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arb.judges.traits import DescribedJudge, JudgeTraits, traits_of
from arb.judges.types import Answer, Call, Judge, JudgeSession, Reply


class JudgeWrapper(DescribedJudge, ABC):
    """A judge made of other judges. A subclass names them and starts their sessions with `open_session`."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Judge]:
        """The judges that this one asks, by what the names of their roles begin with."""

    @abstractmethod
    def name_with(self, names: Mapping[str, str]) -> str:
        """Return this judge's name with other names for its parts."""

    def describe(self) -> JudgeTraits:
        """Return the traits of the parts; the last part decides on those that cannot be joined."""
        traits = {prefix: traits_of(part) for prefix, part in self.parts.items()}
        last = list(traits.values())[-1]
        images = [each.images for each in reversed(traits.values()) if each.images is not None]
        return replace(
            last,
            images=images[0] if images else None,
            output_tokens=_with_prefixes({prefix: each.output_tokens for prefix, each in traits.items()}),
            response_formats=_with_prefixes(
                {prefix: each.response_formats for prefix, each in traits.items()}
            ),
        )


def _with_prefixes(by_prefix: Mapping[str, Mapping[str, object]]) -> dict:
    return {prefix + role: value for prefix, of_role in by_prefix.items() for role, value in of_role.items()}


def _of_inner(name: str) -> property:
    return property(lambda self: getattr(self.judge, name))


@dataclass(frozen=True)
class WrappedJudge(JudgeWrapper):
    """A wrapper around one judge, with that judge's properties; a subclass overrides those that differ."""

    judge: Judge

    inputs = _of_inner("inputs")
    calls = _of_inner("calls")
    source = _of_inner("source")
    wants = _of_inner("wants")
    models = _of_inner("models")
    prompts_hash = _of_inner("prompts_hash")

    @property
    def parts(self) -> Mapping[str, Judge]:
        return {"": self.judge}

    @property
    def name(self) -> str:
        return self.name_with({"": self.judge.name})

    def name_with(self, names: Mapping[str, str]) -> str:
        return names[""]


def in_parallel(sessions: Iterable[JudgeSession]) -> Generator[Sequence[Call], Sequence[Reply], list[Answer]]:
    """Drive several sessions at once and return all answers.

    Each round yields what all of them ask; equal calls are yielded once.
    """
    running = dict(enumerate(sessions))
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
        for session in running.values():
            session.close()
    return [answers[number] for number in sorted(answers)]


def map_calls(session: JudgeSession, call_of: Callable[[Call], Call]) -> JudgeSession:
    """Return the same session with every call changed."""
    replies = None
    try:
        while True:
            calls = session.send(replies)
            replies = yield [call_of(call) for call in calls]
    except StopIteration as end:
        return end.value
    finally:
        session.close()
