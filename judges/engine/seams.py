"""What the asker needs of its neighbours, so that each can be another: an endpoint, a cache, a listener."""

from collections.abc import Set
from typing import Protocol

from judges.base import Message, ModelSettings, Reply


class Endpoint(Protocol):
    """What makes single attempts: `client.OpenAIEndpoint`, or a local model."""

    async def attempt(
        self,
        model: ModelSettings,
        messages: tuple[Message, ...],
        max_output_tokens: int,
        *,
        dropped: Set[str] = frozenset(),
    ) -> Reply:
        """One request, without the parameters in ``dropped``. Raises CallFailed."""

    async def close(self) -> None:
        """Let go of connections or of the model."""


class Cache(Protocol):
    """Where replies are kept: `cache.CallCache`."""

    def get(self, key: str) -> Reply | None:
        """The reply to a call."""

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply for good."""

    def note_attempt(self, key: str, kind: str, message: str) -> None:
        """Keep that an attempt failed."""

    def claim(self, key: str) -> bool:
        """Take a call for this process; False while another has it."""

    def release(self, key: str) -> None:
        """Give it up."""

    def refresh(self) -> None:
        """Read what other processes have kept."""


class OnEvent(Protocol):
    """Is told how calls go: ``answered``, ``cached``, ``retried``, ``dropped`` (a parameter), ``failed``."""

    def __call__(self, kind: str, **facts: object) -> None:
        """Take note."""
