"""Driving a judge with the replies that there are, while the calls that it misses are gathered."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from judges.base import Call, Message, ModelSettings, Reply
from judges.engine.batch_collect import Collector
from judges.engine.batch_input import BatchFiles, batch_line
from judges.engine.budget import most_output
from judges.engine.call_keys import call_key
from judges.engine.completions import request_body
from judges.engine.errors import CallFailed
from judges.engine.judging import StopRunError, judge_trajectories
from judges.engine.keeping import Keeper
from judges.engine.providers import Access
from judges.engine.records import Judged
from judges.engine.run import Job
from judges.engine.tokens import tokens_at_most

_MISSING: Final = "its replies are not there yet"


class ReplyMissingError(ValueError):
    """A call is to be handed in first; its trajectory is judged in a later round."""


@dataclass
class Driving:
    """Judges what can be judged. ``judged``: the ids that are done with.

    ``left_out_usd``: what a call may cost that was left out, since with it the limit might be passed.
    """

    job: Job
    access: Mapping[str, Access]
    collector: Collector
    stop: asyncio.Event
    judged: set[str] = field(default_factory=set)
    left_out_usd: float | None = None

    async def drive(self, keeper: Keeper, files: BatchFiles) -> None:
        """Judge what can be judged, and put the calls that are missing for the rest into the files."""
        self.left_out_usd = None

        async def ask(call: Call) -> Reply:
            if self.stop.is_set():
                raise StopRunError
            return self._reply_to(call, files)

        def keep(judged: Judged) -> None:
            if judged.problem != _MISSING:
                keeper.keep(judged)
                self.judged.add(judged.trajectory_id)

        left = [each for each in self.job.ids if each not in self.judged]
        most = self.job.settings.max_in_flight
        with contextlib.suppress(StopRunError):
            await judge_trajectories(self.job.judge, left, self.job.views, ask, keep, most)

    def _reply_to(self, call: Call, files: BatchFiles) -> Reply:
        """The reply that there is. Raises ReplyMissingError when there is none."""
        collector = self.collector
        model = self.job.models[call.role]
        most = call.max_output_tokens or model.max_output_tokens
        key = call_key(model, call.messages, most, call.sample)
        if (reply := collector.cache.get(key)) is not None:
            return replace(reply, key=key)
        messages, is_shorter = call.messages, False
        if key in collector.log.too_long and call.shorter is not None:
            messages, is_shorter = call.shorter, True
        elif key in collector.log.too_long:
            collector.give_up(key, CallFailed("too_long", "the prompt is too long for the model"))
        if (failed := collector.failed.get(key)) is not None:
            return replace(failed, used_shorter=is_shorter)
        if key not in files.keys:
            self._put(call.role, key, messages, most, is_shorter, files)
        raise ReplyMissingError(_MISSING)

    def _put(
        self,
        role: str,
        key: str,
        messages: tuple[Message, ...],
        most: int,
        is_shorter: bool,
        files: BatchFiles,
    ) -> None:
        """Put a call into the files, unless with it the run might cost more than it may."""
        model = self.job.models[role]
        most_usd = self._most_usd(model, messages, most)
        max_usd = self.job.settings.max_usd
        if max_usd is not None and most_usd is not None:
            spent_usd = self.collector.progress.spent.total_usd or 0.0
            if spent_usd + files.most_usd + most_usd > max_usd:
                self.left_out_usd = most_usd
                return
        body = request_body(
            model,
            messages,
            most,
            dropped=frozenset(self.collector.log.dropped.get(role, ())),
            output_limit=self.access[role].output_limit,
        )
        files.add(role, key, batch_line(key, body), most_usd, is_shorter=is_shorter)

    def _most_usd(self, model: ModelSettings, messages: tuple[Message, ...], most: int) -> float | None:
        price = self.collector.prices.of(model)
        if price is None:
            return None
        return price.cost(tokens_at_most(model, messages), most_output(model, most), is_batch=True)
