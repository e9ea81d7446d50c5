"""From options to a whole run folder: what `run` does, whichever engine does the work."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dataset_script.command_line import stopped_like_ctrl_c
from judges.base import Judge, ModelSettings, OptionsError, RewardJudge, View, Wants
from judges.engine.budget import build_budget
from judges.engine.judging import RunSource
from judges.engine.prices import PriceTable, read_prices
from judges.engine.progress import Progress
from judges.engine.providers import resolve_access
from judges.engine.records import error_of
from judges.engine.run import Engine, EngineSettings, Job
from judges.engine.run_folder import RunFolder, totals
from judges.engine.spent import Spend
from judges.engine.stopping import RunEnd
from judges.run_configuration import build_configuration, endpoint_addresses, judge_facts, versions
from judges.run_options import build_judge, build_models, build_views
from judges.selection import Selection, cache_folder, select
from judges.thresholds import check_score_settings

if TYPE_CHECKING:
    from judges.command_options import RunOptions

Wrap = Callable[[Judge | RewardJudge, RunSource, tuple[str, ...]], Judge | RewardJudge]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `run_judge` did: how it ended, how many of the chosen trajectories are judged, and the totals.

    ``absent`` have no recorded run; ``problem`` is why the first one in the state ``error`` is in it.
    """

    ended: RunEnd
    judged: int
    chosen: int
    absent: int
    totals: dict[str, Any]
    problem: str | None = None


class NoRecordings:
    """Views for a judge that looks at nothing, where there are no recorded runs."""

    def view(self, trajectory_id: str, wants: Wants) -> View:
        return View("", (), ())

    def reward(self, trajectory_id: str) -> float | None:
        return None

    def data_hash(self) -> None:
        return None


def run_judge(
    options: RunOptions, out: Path, engine: Engine, retry: Collection[str] = (), wrap: Wrap | None = None
) -> Outcome:
    """Judge what the options choose and is not judged yet, in the run folder ``out``.

    ``retry`` names states whose trajectories are judged again; replies in the cache are not bought again.
    ``wrap`` gives another judge in place of the options' one, from it, the views and the chosen ids.
    However it ends, the folder is whole: judgments and predictions in order, run.json with the totals. Raises
    OptionsError, SourceError, SuiteError, RunFolderError.
    """
    selection, judge, models = prepare(options)
    views, there = open_views(options, selection, judge)
    if wrap is not None:
        judge = wrap(judge, views, tuple(each for each in selection.ids if each in there))
    configuration = build_configuration(options, selection.suite.name, judge, models, views.data_hash())
    with RunFolder(out, configuration) as folder:
        ids = tuple(each for each in selection.ids if each in there)
        todo = tuple(each for each in ids if folder.states.get(each) in (None, *retry))
        spend = Spend(folder.run.get("spent_usd", 0.0))
        session = {"started_at": _now(), "ended": "killed"}
        earlier = folder.run.get("sessions", [])
        folder.update_run(
            {
                "judge": judge_facts(judge),
                "versions": versions(),
                "endpoints": endpoint_addresses(models),
                "selection": _selection_facts(options, selection, ids),
                "sessions": [*earlier, session],
            }
        )
        begun = time.monotonic()
        ended = RunEnd("interrupted", "stopped; finished trajectories are saved")
        try:
            with Progress(len(ids), len(ids) - len(todo), spend) as progress, stopped_like_ctrl_c():
                settings = engine_settings(options, models)
                job = Job(judge, models, views, todo, settings, partial(judge_and_views, options))
                ended = engine(job, folder, progress) if todo else RunEnd("finished")
        except KeyboardInterrupt:  # before the engine took the signals over, or after
            pass
        finally:
            order = [each.trajectory_id for each in selection.suite.split(options.split)]
            folder.finalize(order)
            session |= {
                "ended_at": _now(),
                "ended": ended.how,
                "seconds": round(time.monotonic() - begun, 3),
                "calls_paid": spend.calls,
                "paid_usd": spend.usd,
            }
            sums = totals(folder.records())
            folder.update_run({"sessions": [*earlier, session], "totals": sums, "spent_usd": spend.total_usd})
        judged = sum(each in folder.states for each in selection.ids)
        in_error = (each for each, state in folder.states.items() if state == "error")
        problem = next(map(error_of, folder.records(in_error)), None)
        return Outcome(ended, judged, len(selection.ids), len(selection.ids) - len(ids), sums, problem)


def prepare(options: RunOptions) -> tuple[Selection, Judge | RewardJudge, dict[str, ModelSettings]]:
    """The trajectories, the judge and its models. Raises OptionsError with every problem, and SuiteError.

    Keys, addresses and prices are looked for now, before anything is written.
    """
    problems: list[str] = []

    def tried(make, *arguments):
        try:
            return make(*arguments)
        except OptionsError as problem:
            problems.append(str(problem))

    selection, judge = tried(select, options), tried(build_judge, options)
    models = tried(build_models, options, judge) if judge is not None else None
    if models:
        tried(resolve_access, models)
        prices = tried(read_prices, options.prices, options.price or ())
        if prices is not None:
            tried(build_budget, options.max_usd, prices, models)
    if models and options.threshold is not None:
        tried(check_score_settings, options.threshold, build_configuration(options, "", judge, models, None))
    if problems:
        raise OptionsError("\n".join(problems))
    return selection, judge, models


def engine_settings(options: RunOptions, models: Mapping[str, ModelSettings]) -> EngineSettings:
    """What the options say to an engine, as plain values."""
    return EngineSettings(
        cache=cache_folder(options.cache) if models else None,
        prices=read_prices(options.prices, options.price or ()) if models else PriceTable({}),
        max_in_flight=options.max_in_flight,
        requests_per_minute=options.requests_per_minute,
        tokens_per_minute=options.tokens_per_minute,
        timeout_s=options.timeout,
        max_usd=options.max_usd,
    )


def judge_and_views(options: RunOptions) -> tuple[Judge | RewardJudge, RunSource]:
    """The judge and the recorded runs again, for a process that neither could be sent to."""
    judge = build_judge(options)
    views, _ = open_views(options, select(options), judge)
    return judge, views


def open_views(options: RunOptions, selection: Selection, judge: Judge | RewardJudge):
    """What shows the runs, and the chosen trajectories that it can show."""
    try:
        views = build_views(options, selection.suite)
    except OptionsError:
        if getattr(judge, "inputs", "") != "nothing":
            raise
        return NoRecordings(), set(selection.ids)
    there = set(views.ids())
    if there.isdisjoint(selection.ids):
        raise OptionsError(
            f"none of the {len(selection.ids):,} chosen trajectories is among the {len(there):,} runs of the "
            f"suite {selection.suite.name} that the source holds; see --source and --suite"
        )
    return views, there


def _selection_facts(options: RunOptions, selection: Selection, ids: Sequence[str]) -> dict[str, Any]:
    """What was chosen, and how much of it has no recorded run."""
    return {
        "benchmark": options.benchmark,
        "agent": options.agent,
        "shard": options.shard,
        "limit": options.limit,
        "from_a_file": options.ids is not None,
        "trajectories": len(selection.ids),
        "without_a_run": len(selection.ids) - len(ids),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
