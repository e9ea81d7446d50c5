"""Driving a judge with the replies that there are, while the calls that it misses are gathered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from judges.base import Call, Message, ModelSettings, Reply
from judges.engine.batch_collect import BatchCollector
from judges.engine.batch_input import BatchFiles, batch_line
from judges.engine.budget import max_output
from judges.engine.call_keys import call_key
from judges.engine.completions import request_body
from judges.engine.errors import CallFailed
from judges.engine.judging import StopRunError, judge_trajectories
from judges.engine.keeping import ResultWriter
from judges.engine.providers import Access
from judges.engine.records import Judgment
from judges.engine.run import Job
from judges.engine.tokens import token_ceiling

_MISSING: Final = "its replies are not there yet"


class ReplyMissingError(ValueError):
    """A call must be submitted first; its trajectory is judged in a later round."""


@dataclass
class BatchDriver:
    """Judges what can be judged. ``judged``: the ids that are done with.

    ``left_out_usd``: what a call may cost that was left out, since with it the limit might be passed.
    """

    job: Job
    access: Mapping[str, Access]
    collector: BatchCollector
    stop: asyncio.Event
    judged: set[str] = field(default_factory=set)
    left_out_usd: float | None = None

    async def drive(self, writer: ResultWriter, files: BatchFiles) -> None:
        """Judge what can be judged, and put the calls that are missing for the rest into the files."""
        self.left_out_usd = None

        async def ask(call: Call) -> Reply:
            if self.stop.is_set():
                raise StopRunError
            return self._reply_to(call, files)

        def keep(judged: Judgment) -> None:
            if judged.problem != _MISSING:
                writer.write(judged)
                self.judged.add(judged.trajectory_id)

        left = [each for each in self.job.ids if each not in self.judged]
        max_tokens = self.job.settings.max_in_flight
        with contextlib.suppress(StopRunError):
            await judge_trajectories(self.job.judge, left, self.job.views, ask, keep, max_tokens)

    def _reply_to(self, call: Call, files: BatchFiles) -> Reply:
        """The reply that there is. Raises ReplyMissingError when there is none."""
        collector = self.collector
        model = self.job.models[call.role]
        max_tokens = call.max_output_tokens or model.max_output_tokens
        key = call_key(model, call.messages, max_tokens, call.sample)
        if (reply := collector.cache.get(key)) is not None:
            return replace(reply, key=key)
        messages, is_shorter = call.messages, False
        if key in collector.log.too_long and call.shorter is not None:
            messages, is_shorter = call.shorter, True
        elif key in collector.log.too_long:
            collector.fail(key, CallFailed("too_long", "the prompt is too long for the model"))
        if (failed := collector.failed.get(key)) is not None:
            return replace(failed, used_shorter=is_shorter)
        if key not in files.keys:
            self._put(call.role, key, messages, max_tokens, is_shorter, files)
        raise ReplyMissingError(_MISSING)

    def _put(
        self,
        role: str,
        key: str,
        messages: tuple[Message, ...],
        max_tokens: int,
        is_shorter: bool,
        files: BatchFiles,
    ) -> None:
        """Put a call into the files, unless with it the run might cost more than it may."""
        model = self.job.models[role]
        most_usd = self._most_usd(model, messages, max_tokens)
        max_usd = self.job.settings.max_usd
        if max_usd is not None and most_usd is not None:
            spent_usd = self.collector.progress.spend.total_usd or 0.0
            if spent_usd + files.most_usd + most_usd > max_usd:
                self.left_out_usd = most_usd
                return
        body = request_body(
            model,
            messages,
            max_tokens,
            unsupported_params=frozenset(self.collector.log.unsupported_params.get(role, ())),
            output_limit=self.access[role].output_limit,
        )
        files.add(role, key, batch_line(key, body), most_usd, is_shorter=is_shorter)

    def _most_usd(self, model: ModelSettings, messages: tuple[Message, ...], max_tokens: int) -> float | None:
        price = self.collector.prices.of(model)
        if price is None:
            return None
        return price.cost(token_ceiling(model, messages), max_output(model, max_tokens), is_batch=True)
