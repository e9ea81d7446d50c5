"""Results kept while a run goes on: many with one wait for the disk, none before its replies are on it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from judges.engine.first_errors import LeadingErrors
from judges.engine.progress import Progress
from judges.engine.records import Judgment, Record, judgment_record
from judges.engine.run_folder import RunFolder

UPDATE_INTERVAL_S = 1.0
"""How often the dollars spent are noted in run.json."""


class ResultWriter:
    """Writes results into the run's folder, in a thread, as they come; ``async with`` it.

    ``sync`` flushes the cache to disk. While every trajectory has ended in an error, nothing is written: with
    a wrong key or model name all do, and they are judged again once that is fixed (see `discard_errors`). The
    dollars spent are written into run.json every second, so that the budget survives a kill.
    """

    def __init__(self, folder: RunFolder, judge: str, sync: Callable[[], None], progress: Progress):
        self._folder, self._judge, self._sync, self._progress = folder, judge, sync, progress
        self._waiting: asyncio.Queue[Record | None] = asyncio.Queue()
        self._first_errors = LeadingErrors()
        self._noted_usd: float | None = 0.0
        self._noted_at = 0.0
        self.written = 0

    def write(self, judged: Judgment) -> None:
        """Take a result; it is on the disk when the block is left, at the latest. Raises what writing did."""
        if self._task.done():
            self._task.result()
        for record in self._first_errors.take(judgment_record(judged, self._judge)):
            self._waiting.put_nowait(record)

    @property
    def all_failed(self) -> bool:
        return self._first_errors.all_failed

    def write_errors(self) -> None:
        for record in self._first_errors.release():
            self._waiting.put_nowait(record)

    def discard_errors(self) -> str:
        return self._first_errors.discard()

    async def __aenter__(self) -> ResultWriter:
        self._task = asyncio.create_task(self._write())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._waiting.put_nowait(None)
        await self._task

    async def _write(self) -> None:
        is_open = True
        while is_open:
            waiting = await self._next()
            is_open = None not in waiting
            records = [record for record in waiting if record is not None]
            await asyncio.to_thread(self._put, records)
            for record in records:
                self._progress.judged(record["state"])
            self.written += len(records)

    async def _next(self) -> list[Record | None]:
        """What there is to write; empty when nothing came for a while."""
        try:
            waiting = [await asyncio.wait_for(self._waiting.get(), UPDATE_INTERVAL_S)]
        except TimeoutError:
            return []
        while not self._waiting.empty():
            waiting.append(self._waiting.get_nowait())
        return waiting

    def _put(self, records: list[Record]) -> None:
        if records:
            self._sync()
            self._folder.append(records)
        spent_usd = self._progress.spend.total_usd
        if spent_usd != self._noted_usd and time.monotonic() - self._noted_at >= UPDATE_INTERVAL_S:
            self._folder.update_run({"spent_usd": spent_usd})
            self._noted_usd, self._noted_at = spent_usd, time.monotonic()
