"""Files and batches at an endpoint, through the openai package. Every step may be repeated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from judges.engine.errors import classify_openai
from judges.engine.providers import Access

if TYPE_CHECKING:
    from openai import AsyncOpenAI

MARK: Final = "judges_mark"
"""The entry of a batch's metadata by which it is found again."""

TIMEOUT_S: Final = 600.0
MAX_ATTEMPTS: Final = 5
RETRY_DELAYS_S: Final = (1.0, 4.0, 15.0, 60.0)
MAX_BATCHES_SEARCHED: Final = 1_000
"""How many of the latest batches are searched for a mark."""

ENDED: Final = ("completed", "failed", "expired", "cancelled")

Got = TypeVar("Got")


@dataclass(frozen=True, slots=True)
class BatchState:
    """How a batch stands at the endpoint. ``files``: of its results and its errors, as far as made."""

    id: str
    status: str
    done: int
    failed: int
    total: int
    files: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED


class BatchClient:
    """For one endpoint and one event loop. Passing trouble is waited out; other trouble raises CallFailed."""

    def __init__(self, access: Access, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep):
        from openai import AsyncOpenAI

        self._client: AsyncOpenAI = AsyncOpenAI(
            base_url=access.base_url, api_key=access.key or "none", max_retries=0, timeout=TIMEOUT_S
        )
        self._sleep = sleep

    async def upload(self, path: Path) -> str:
        """The id of the file at the endpoint. A file that was uploaded twice costs nothing."""
        return (await self._with_retry(lambda: self._client.files.create(file=path, purpose="batch"))).id

    async def create_batch(self, file_id: str, mark: str) -> BatchState:
        """The batch of an uploaded file. One with this mark is taken when it is there: none is made twice."""

        is_first = True

        async def once() -> BatchState:
            nonlocal is_first
            if not is_first and (there := await self._find(mark)) is not None:
                return there
            is_first = False
            made = await self._client.batches.create(
                input_file_id=file_id,
                endpoint="/v1/chat/completions",
                completion_window="24h",
                metadata={MARK: mark},
            )
            return _state_of(made)

        return await self._with_retry(once)

    async def find(self, mark: str) -> BatchState | None:
        """The batch with a mark, among the latest ones; None when there is none."""
        return await self._with_retry(lambda: self._find(mark))

    async def retrieve(self, batch_id: str) -> BatchState:
        return _state_of(await self._with_retry(lambda: self._client.batches.retrieve(batch_id)))

    async def lines(self, file_id: str) -> AsyncIterator[str]:
        """The lines of a file, as they come. Raises CallFailed, maybe when some have been given."""
        try:
            async with self._client.files.with_streaming_response.content(file_id) as answer:
                async for line in answer.iter_lines():
                    if line.strip():
                        yield line
        except Exception as problem:
            raise classify_openai(problem) from problem

    async def close(self) -> None:
        await self._client.close()

    async def _find(self, mark: str) -> BatchState | None:
        seen = 0
        async for batch in self._client.batches.list(limit=100):
            if (batch.metadata or {}).get(MARK) == mark:
                return _state_of(batch)
            seen += 1
            if seen >= MAX_BATCHES_SEARCHED:
                break
        return None

    async def _with_retry(self, step: Callable[[], Awaitable[Got]]) -> Got:
        for tried in range(1, MAX_ATTEMPTS + 1):
            try:
                return await step()
            except Exception as problem:
                failure = classify_openai(problem)
                if failure.kind not in ("rate_limit", "transient") or tried == MAX_ATTEMPTS:
                    raise failure from problem
                await self._sleep(failure.retry_after_s or RETRY_DELAYS_S[tried - 1])
        raise AssertionError("unreachable")


def _state_of(batch: Any) -> BatchState:
    counts = batch.request_counts
    problems = (batch.errors.data or []) if batch.errors else []
    return BatchState(
        id=batch.id,
        status=batch.status,
        done=counts.completed if counts else 0,
        failed=counts.failed if counts else 0,
        total=counts.total if counts else 0,
        files=tuple(file_id for file_id in (batch.output_file_id, batch.error_file_id) if file_id),
        problems=tuple(f"{each.code}: {each.message}" for each in problems),
    )
