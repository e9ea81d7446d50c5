"""``--provider transformers``: a Hugging Face model on this machine as an endpoint.

One thread asks the model, one call after another, so that the same call gets the same reply; with
``--extra batch_size=8`` up to eight calls without pictures go through it together, which is faster on a GPU
and may change a word here and there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Set
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from judges.base import Message, ModelSettings, OptionsError, Reply
from judges.engine.errors import CallFailed
from judges.engine.local_model import LocalModel, Prompt


class LocalEndpoint:
    """Makes single attempts, as `client.OpenAIEndpoint` does. For one event loop.

    The model is loaded at once. Raises OptionsError when it cannot be.
    """

    def __init__(self, model: ModelSettings):
        self._most = _batch_size(model)
        self._model = LocalModel(model)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._waiting: deque[tuple[Prompt, asyncio.Future[Reply]]] = deque()
        self._working: asyncio.Task[None] | None = None

    async def attempt(
        self,
        model: ModelSettings,
        messages: tuple[Message, ...],
        max_output_tokens: int,
        *,
        unsupported_params: Set[str] = frozenset(),
    ) -> Reply:
        """The model's reply; ``unsupported_params`` does not apply here. Raises CallFailed."""
        loop = asyncio.get_running_loop()
        prompt = await loop.run_in_executor(
            self._thread,
            lambda: self._model.prepare(messages, max_output_tokens, logprobs=model.logprobs),
        )
        done: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append((prompt, done))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        return await done

    async def close(self) -> None:
        """Let go of the model; a call that is under way ends without a reply."""
        self._model.stop()
        if self._working is not None:
            await self._working
        await asyncio.to_thread(self._thread.shutdown)

    async def _work(self) -> None:
        """Ask the model until no call waits; calls that were given up meanwhile are left out."""
        while self._waiting:
            taken = self._next()
            if not taken:
                continue
            prompts = [prompt for prompt, _ in taken]
            try:
                replies = await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._model.generate, prompts
                )
            except Exception as problem:
                for _, done in taken:
                    if not done.done():
                        done.set_exception(_failure(problem))
                continue
            for (_, done), reply in zip(taken, replies, strict=True):
                if not done.done():
                    done.set_result(reply)

    def _next(self) -> list[tuple[Prompt, asyncio.Future[Reply]]]:
        """The calls that go through the model together: the first that waits, and others like it."""
        taken: list[tuple[Prompt, asyncio.Future[Reply]]] = []
        left: deque[tuple[Prompt, asyncio.Future[Reply]]] = deque()
        for prompt, done in self._waiting:
            if done.done():
                continue
            if not taken or (len(taken) < self._most and _can_be_batched(taken[0][0], prompt)):
                taken.append((prompt, done))
            else:
                left.append((prompt, done))
        self._waiting = left
        return taken


def _can_be_batched(first: Prompt, other: Prompt) -> bool:
    return (
        not (first.has_images or other.has_images)
        and first.max_output_tokens == other.max_output_tokens
        and first.logprobs == other.logprobs
    )


def _failure(problem: Exception) -> CallFailed:
    if isinstance(problem, CallFailed):
        return problem
    return CallFailed("final", f"the model failed: {type(problem).__name__}: {problem}")


def _batch_size(model: ModelSettings) -> int:
    given: Any = model.extra.get("batch_size", 1)
    if type(given) is not int or given < 1:
        raise OptionsError(f"--extra batch_size={given}: a number of calls from 1")
    return given
