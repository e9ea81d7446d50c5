"""Interfaces that the call executor relies on: an endpoint, a reply cache, a listener for events."""

from collections.abc import Set
from typing import Protocol

from judges.types import Message, ModelSettings, Reply


class Endpoint(Protocol):
    """What makes single attempts: `client.OpenAIEndpoint`, or a local model."""

    async def attempt(
        self,
        model: ModelSettings,
        messages: tuple[Message, ...],
        max_output_tokens: int,
        *,
        unsupported_params: Set[str] = frozenset(),
    ) -> Reply:
        """One request, without ``unsupported_params``. Raises CallFailed."""

    async def close(self) -> None: ...


class Cache(Protocol):
    """Where replies are kept: `cache.CallCache`."""

    def get(self, key: str) -> Reply | None: ...

    def put(self, key: str, reply: Reply) -> None:
        """Keep a reply for good."""

    def note_attempt(self, key: str, kind: str, message: str) -> None:
        """Keep that an attempt failed."""

    def claim(self, key: str) -> bool:
        """Take a call for this process; False while another has it."""

    def release(self, key: str) -> None: ...

    def refresh(self) -> None:
        """Read what other processes have kept."""


class OnEvent(Protocol):
    """Receives events: ``answered``, ``cached``, ``retried``, ``dropped`` (a parameter), ``failed``."""

    def __call__(self, kind: str, **facts: object) -> None: ...
