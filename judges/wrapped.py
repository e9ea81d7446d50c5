"""A judge around another one: whatever the outer one does not change is the inner one's."""

from dataclasses import dataclass

from judges.base import Judge


def _of_inner(name: str) -> property:
    return property(lambda self: getattr(self.judge, name))


@dataclass(frozen=True)
class WrappedJudge:
    """Passes on the properties of ``judge``; a class that derives from it changes what differs, and asks."""

    judge: Judge

    name = _of_inner("name")
    inputs = _of_inner("inputs")
    calls = _of_inner("calls")
    source = _of_inner("source")
    wants = _of_inner("wants")
    models = _of_inner("models")
    prompts_hash = _of_inner("prompts_hash")
