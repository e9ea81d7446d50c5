"""The base classes of judges made of other judges, such as samples, a cascade, a threshold or a probe.

The engine recognises wrappers by their class, `JudgeWrapper`. The names of the attributes of your own judge
therefore do not matter.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from arb.judges.types import Answer, Call, DescribedJudge, Judge, JudgeSession, JudgeTraits, Reply, traits_of


class JudgeWrapper(DescribedJudge, ABC):
    """A judge made of other judges. A subclass names them and starts their sessions with `open_session`."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Judge]:
        """The judges that this one asks, by the prefix of the names of their roles."""

    @abstractmethod
    def name_with(self, names: Mapping[str, str]) -> str:
        """Return this judge's name, built from the given names of its parts."""

    def describe(self) -> JudgeTraits:
        """Return the traits of all parts; the last part decides on those that cannot be joined."""
        joined = JudgeTraits()
        for prefix, part in self.parts.items():
            traits = traits_of(part)
            tokens = {prefix + role: limit for role, limit in traits.output_tokens.items()}
            formats = {prefix + role: form for role, form in traits.response_formats.items()}
            joined = replace(
                traits,
                images=traits.images or joined.images,
                output_tokens={**joined.output_tokens, **tokens},
                response_formats={**joined.response_formats, **formats},
            )
        return joined


def _of_inner(name: str) -> property:
    return property(lambda self: getattr(self.judge, name))


@dataclass(frozen=True)
class WrappedJudge(JudgeWrapper):
    """A wrapper around one judge with that judge's properties; a subclass overrides those that differ."""

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

    Each round yields the calls of all sessions; equal calls are yielded once.
    """
    running = dict(enumerate(sessions))
    answers: dict[int, Answer] = {}
    asked: dict[int, Sequence[Call]] = {}

    def advance(number: int, replies: Sequence[Reply] | None) -> None:
        session = running[number]
        try:
            asked[number] = next(session) if replies is None else session.send(replies)
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
    """Return the same session with ``call_of`` applied to every call."""
    try:
        calls = next(session)
        while True:
            replies = yield [call_of(call) for call in calls]
            calls = session.send(replies)
    except StopIteration as end:
        return end.value
    finally:
        session.close()
