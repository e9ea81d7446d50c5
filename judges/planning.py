"""From options to a plan: what `plan` does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

from judges.base import Judge, OptionsError, View
from judges.engine.cache import CallCache
from judges.engine.pace import Throughput
from judges.engine.plan import CountingRules, Plan, Range, make_plan
from judges.engine.prices import read_prices
from judges.engine.tokens import TokenCounters
from judges.run_options import build_judge, build_models, build_views
from judges.selection import cache_folder, select

if TYPE_CHECKING:
    from judges.command_options import RunOptions
    from judges.views import Views

READERS = 4
"""Threads that read runs, and scale their pictures, while others are counted."""


def plan_run(
    options: RunOptions,
    tokenizer: str | None = None,
    seconds_per_call: float | None = None,
    *,
    is_batch: bool = False,
) -> Plan:
    """The plan of what `run` would do with these options. Raises OptionsError, SourceError, SuiteError."""
    selection = select(options)
    judge = build_judge(options)
    models = build_models(options, judge)
    if not models:
        return Plan(len(selection.ids), (), Range(0.0, 0.0, 0.0))
    pace = Throughput(
        options.max_in_flight, options.requests_per_minute, options.tokens_per_minute, seconds_per_call
    )
    prices = read_prices(options.prices, options.price or ())
    rules = CountingRules(prices, TokenCounters(tokenizer), pace, is_batch)
    views = build_views(options, selection.suite)
    there = set(views.ids())
    ids = [each for each in selection.ids if each in there]
    if not ids:
        raise OptionsError(
            f"none of the {len(selection.ids):,} chosen trajectories has a recorded run in the source; see "
            "--source and --suite"
        )
    folder = cache_folder(options.cache)
    cache = CallCache(folder) if folder.is_dir() else None
    try:
        return make_plan(judge, models, _read_ahead(views, judge, ids), cache, rules)
    finally:
        if cache is not None:
            cache.close()


def _read_ahead(views: Views, judge: Judge, ids: Sequence[str]) -> Iterator[tuple[str, View | str]]:
    """Each trajectory with its view, or with why there is none; a few are read before they are needed."""

    def read(trajectory_id: str) -> View | str:
        try:
            return views.view(trajectory_id, judge.wants)
        except ValueError as problem:  # what cannot be shown; the run tells of it in the same words
            return str(problem)

    with ThreadPoolExecutor(READERS, thread_name_prefix="views") as readers:
        waiting = iter(ids)
        reading: list[tuple[str, Future[View | str]]] = [
            (each, readers.submit(read, each)) for each in islice(waiting, READERS)
        ]
        while reading:
            trajectory_id, future = reading.pop(0)
            yield trajectory_id, future.result()
            reading += [(each, readers.submit(read, each)) for each in islice(waiting, 1)]
