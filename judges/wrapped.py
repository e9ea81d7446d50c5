"""A judge around another one: whatever the outer one does not change is the inner one's."""

from collections.abc import Mapping
from dataclasses import dataclass

from judges.base import Judge, Wants


@dataclass(frozen=True)
class Wrapped:
    """Passes on the properties of ``judge``; a class that derives from it changes what differs, and asks."""

    judge: Judge

    @property
    def name(self) -> str:
        """The inner judge's."""
        return self.judge.name

    @property
    def inputs(self) -> str:
        """The inner judge's."""
        return self.judge.inputs

    @property
    def calls(self) -> str:
        """The inner judge's."""
        return self.judge.calls

    @property
    def source(self) -> str:
        """The inner judge's."""
        return self.judge.source

    @property
    def wants(self) -> Wants:
        """The inner judge's."""
        return self.judge.wants

    @property
    def models(self) -> Mapping[str, str]:
        """The inner judge's."""
        return self.judge.models

    @property
    def prompts_hash(self) -> str:
        """The inner judge's."""
        return self.judge.prompts_hash
