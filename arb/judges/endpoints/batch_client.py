"""Upload files to an endpoint, run batches, and download the results. Every step can safely be repeated."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import aiohttp
import tenacity

from arb.judges.endpoints.connection import (
    CONNECT_TIMEOUT_S,
    MAX_REPLY_BYTES,
    classify,
    may_redirect,
    open_session,
    read_text,
    too_long_message,
    without_key,
)
from arb.judges.endpoints.providers import EndpointAccess, endpoint_url
from arb.judges.engine.errors import CallFailed, classify_status, read_json

MARK: Final = "judges_mark"
"""The key in a batch's metadata whose value (the mark) identifies the batch."""

TIMEOUT_S: Final = 600.0
READ_BYTES: Final = 1 << 16
MAX_ATTEMPTS: Final = 5
FIRST_WAIT_S: Final = 8.0
MAX_WAIT_S: Final = 60.0
MAX_RETRY_AFTER_S: Final = 900.0
"""If the endpoint asks for a longer wait than this, the step fails."""

MAX_BATCHES_SEARCHED: Final = 1_000
"""How many batches, starting with the latest, are searched for a mark."""

ENDED: Final = ("completed", "failed", "expired", "cancelled")

Got = TypeVar("Got")


@dataclass(frozen=True, slots=True)
class BatchState:
    """The state of a batch. ``files`` has the ids of the result and error files that exist so far."""

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
    """A client for one endpoint and one event loop. It retries transient failures and raises CallFailed."""

    def __init__(self, access: EndpointAccess, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep):
        self._access = access
        self._session = open_session(access)
        self._sleep = sleep
        self._has_answered = False

    async def upload(self, path: Path) -> str:
        """Upload a file and return its id at the endpoint. Uploads are free."""

        async def once() -> str:
            with path.open("rb") as file:
                form = aiohttp.FormData({"purpose": "batch"})
                form.add_field("file", file, filename=path.name, content_type="application/jsonl")
                body = form()
                return (await self._json("POST", "files", data=body, headers=dict(body.headers)))["id"]

        return await self._with_retry(once)

    async def create_batch(self, file_id: str, mark: str) -> BatchState:
        """Create a batch from an uploaded file, and return its state.

        Another attempt first looks for a batch with the same mark, so that no batch is created twice.
        """
        request = {
            "input_file_id": file_id,
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {MARK: mark},
        }
        is_first = True

        async def once() -> BatchState:
            nonlocal is_first
            if not is_first and (there := await self._find(mark)) is not None:
                return there
            is_first = False
            return _state_of(await self._json("POST", "batches", json=request))

        return await self._with_retry(once)

    async def find(self, mark: str) -> BatchState | None:
        """Return the batch with this mark, or None if it is not one of the latest `MAX_BATCHES_SEARCHED`."""
        return await self._with_retry(lambda: self._find(mark))

    async def retrieve(self, batch_id: str) -> BatchState:
        return _state_of(await self._with_retry(lambda: self._json("GET", f"batches/{batch_id}")))

    async def lines(self, file_id: str) -> AsyncIterator[str]:
        """Yield the lines of a file as they arrive. Raises CallFailed, possibly after some lines."""
        try:
            async with self._request("GET", f"files/{file_id}/content") as answer:
                rest = b""
                async for block in answer.content.iter_chunked(READ_BYTES):
                    *complete, rest = (rest + block).split(b"\n")
                    if len(rest) > MAX_REPLY_BYTES:
                        raise CallFailed("final", too_long_message(answer))
                    for line in complete:
                        if line.strip():
                            yield line.decode(errors="replace")
            if rest.strip():
                yield rest.decode(errors="replace")
        except Exception as problem:
            raise without_key(classify(problem), self._access) from problem

    async def close(self) -> None:
        await self._session.close()

    @contextlib.asynccontextmanager
    async def _request(self, method: str, path: str, **request: Any) -> AsyncIterator[aiohttp.ClientResponse]:
        """Make a request and yield the open response. Raises CallFailed for an error status."""
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S, sock_read=TIMEOUT_S)
        address = endpoint_url(self._access.base_url, path)
        request |= {"timeout": timeout, "allow_redirects": may_redirect(self._access)}
        async with self._session.request(method, address, **request) as answer:
            if not 200 <= answer.status < 300:
                text = await read_text(answer)
                raise classify_status(answer.status, text, answer.headers)
            yield answer

    async def _json(self, method: str, path: str, **request: Any) -> Any:
        async with self._request(method, path, **request) as answer:
            return read_json(await read_text(answer))

    async def _find(self, mark: str) -> BatchState | None:
        seen, after = 0, ""
        while seen < MAX_BATCHES_SEARCHED:
            page = await self._json("GET", f"batches?limit=100{after}")
            for batch in page["data"]:
                if (batch.get("metadata") or {}).get(MARK) == mark:
                    return _state_of(batch)
            if not page["data"] or page.get("has_more") is False:
                break
            seen += len(page["data"])
            after = f"&after={page['data'][-1]['id']}"
        return None

    async def _with_retry(self, step: Callable[[], Awaitable[Got]]) -> Got:
        async def once() -> Got:
            try:
                found = await step()
                self._has_answered = True
                return found
            except Exception as problem:
                raise without_key(classify(problem), self._access) from problem

        retrying = tenacity.AsyncRetrying(
            sleep=self._sleep,
            stop=self._gives_up,
            retry=tenacity.retry_if_exception(_may_pass),
            wait=_wait_s,
            reraise=True,
        )
        return await retrying(once)

    def _gives_up(self, state: tenacity.RetryCallState) -> bool:
        """Return whether to give up. An unreachable endpoint that has never answered is tried only twice."""
        failure = state.outcome.exception() if state.outcome is not None else None
        is_unreachable = isinstance(failure, CallFailed) and failure.is_unreachable
        return state.attempt_number >= (2 if is_unreachable and not self._has_answered else MAX_ATTEMPTS)


def _may_pass(failure: BaseException) -> bool:
    if not isinstance(failure, CallFailed) or failure.kind not in ("rate_limit", "transient"):
        return False
    return (failure.retry_after_s or 0.0) <= MAX_RETRY_AFTER_S


def _wait_s(state: tenacity.RetryCallState) -> float:
    """Return how many seconds to wait: the time that the endpoint asks for, or a growing random time."""
    failure = state.outcome.exception() if state.outcome is not None else None
    if isinstance(failure, CallFailed) and failure.retry_after_s:
        return failure.retry_after_s
    longest = min(MAX_WAIT_S, FIRST_WAIT_S * 2 ** (state.attempt_number - 1))
    return longest * random.uniform(0.5, 1.0)


def _state_of(batch: Mapping[str, Any]) -> BatchState:
    counts = batch.get("request_counts") or {}
    problems = (batch.get("errors") or {}).get("data") or []
    return BatchState(
        id=batch["id"],
        status=batch["status"],
        done=counts.get("completed") or 0,
        failed=counts.get("failed") or 0,
        total=counts.get("total") or 0,
        files=tuple(batch[name] for name in ("output_file_id", "error_file_id") if batch.get(name)),
        problems=tuple(f"{each.get('code')}: {each.get('message')}" for each in problems),
    )
