"""Base classes of judges that are made of other judges, such as a cascade or a vote over several samples."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from arb.judges.types import Answer, Call, DescribedJudge, Judge, JudgeSession, JudgeTraits, Reply, traits_of

T = TypeVar("T")


class JudgeWrapper(DescribedJudge, ABC):
    """A judge made of other judges. A subclass must open their sessions with `contract.open_session`."""

    @property
    @abstractmethod
    def parts(self) -> Mapping[str, Judge]:
        """The judges that this judge uses, keyed by the prefix that it adds to the names of their roles."""

    @abstractmethod
    def name_with(self, names: Mapping[str, str]) -> str:
        """Return this judge's name, built from the names of its parts (by prefix)."""

    def describe(self) -> JudgeTraits:
        """Return the traits of the last part, merged with the images, limits and formats of the others."""
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
    """A wrapper around one judge, with the same attributes. A subclass overrides those that differ."""

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
    """Run several sessions concurrently and return their answers in order.

    Each round yields the calls of all unfinished sessions together. Equal calls are yielded only once.
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
    """Run a session in which each call is replaced by ``call_of(call)``, and return the answer."""
    return map_stages(session, lambda calls: [call_of(call) for call in calls])


def map_stages(
    session: Generator[Sequence[Call], Sequence[Reply], T], change: Callable[[Sequence[Call]], Sequence[Call]]
) -> Generator[Sequence[Call], Sequence[Reply], T]:
    """Run a session in which the calls of each stage are replaced by ``change(calls)``. Return its result."""
    try:
        calls = next(session)
        while True:
            replies = yield change(calls)
            calls = session.send(replies)
    except StopIteration as end:
        return end.value
    finally:
        session.close()
