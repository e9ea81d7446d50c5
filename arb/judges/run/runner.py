"""From options to a whole run folder: `run_judge`, over this process or a Batch API.

`run_local` is the engine of this process. `batch` has its form, `Engine`: it takes a job, the run's folder
and its progress, writes results with `RunFolder.append`, and says how the run ended. So has a Ray cluster
(`arb.judges.ray`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arb.core.cli import stopped_like_ctrl_c
from arb.judges.endpoints.openai_compatible import TIMEOUT_S
from arb.judges.endpoints.providers import resolve_access
from arb.judges.engine.budget import BudgetReached, build_budget
from arb.judges.engine.concurrency import AdaptiveLimit
from arb.judges.engine.engine import CallExecutor, open_endpoints
from arb.judges.engine.errors import NoMoreCallsError
from arb.judges.engine.prices import PriceTable, price_facts, read_prices
from arb.judges.engine.retry import OnEvent
from arb.judges.registry import full_name
from arb.judges.run.config import (
    Selection,
    build_configuration,
    build_judge,
    build_models,
    build_views,
    cache_folder,
    check_score_settings,
    endpoint_addresses,
    judge_facts,
    open_cache,
    refuse_omitted_params,
    select,
    versions,
)
from arb.judges.run.folder import Judgment, ResultWriter, RunFolder, error_of, totals
from arb.judges.run.progress import (
    Progress,
    RunEnd,
    Spend,
    StopControl,
    leading_errors_message,
    utc_now,
)
from arb.judges.run.records import name_as_served
from arb.judges.run.scheduler import (
    JudgeOne,
    LeaveOutError,
    RunSource,
    StopRunError,
    judge_trajectories,
    judge_trajectory,
)
from arb.judges.types import AnyJudge, Call, ModelSettings, OptionsError, Reply, View, Wants, is_reward_judge

if TYPE_CHECKING:
    from arb.judges.cli.options import RunOptions
    from arb.judges.views import Views


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """The limits of a run, the folder of its reply cache (None if no model is asked), and its prices.

    ``answers``: where a cluster keeps its answers, if that is not in the cache's folder. ``fresh_since``:
    replies that were stored before are asked again (`CallCache`).
    """

    cache: Path | None
    prices: PriceTable
    answers: str | None = None
    max_in_flight: int = 64
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    rate_limit_timeout_s: float | None = None
    timeout_s: float | None = None
    max_usd: float | None = None
    fresh_since: float | None = None


@dataclass(frozen=True)
class Job:
    """The work of an engine. ``ids``: the trajectories still to be judged, in their order. ``name``: the
    judge's, which says models and wording (`registry.full_name`).
    """

    judge: AnyJudge
    models: Mapping[str, ModelSettings]
    views: RunSource
    ids: tuple[str, ...]
    settings: EngineSettings
    name: str

    def name_of(self, judged: Judgment) -> str:
        """Return the judge's name for the line of a trajectory."""
        return name_as_served(self.name, self.judge, self.models, judged)


Engine = Callable[[Job, RunFolder, Progress], RunEnd]
"""What judges a job's trajectories into a folder."""


def run_local(job: Job, folder: RunFolder, progress: Progress) -> RunEnd:
    """The engine of this process: every call over one event loop. Raises OptionsError."""

    async def run() -> RunEnd:
        async with open_executor(job, progress.spend, progress.event) as executor:
            return await run_async(job, folder, progress, executor)

    return asyncio.run(run())


async def run_async(
    job: Job,
    folder: RunFolder,
    progress: Progress,
    executor: CallExecutor,
    judge_one: JudgeOne = judge_trajectory,
) -> RunEnd:
    """Judge the job's trajectories into the folder, each result written as it comes.

    The run ends early when Ctrl-C is pressed, the budget is reached, the account is refused, only errors
    come, or only rate limits come for long. What is under way then is waited for and written.
    """
    stopping = StopControl(progress.say, lambda: executor.stop_waiting(StopRunError()))

    left_out: BudgetReached | None = None

    async def ask(call: Call) -> Reply:
        nonlocal left_out
        if stopping.ended is not None:
            raise StopRunError
        try:
            reply = await executor.ask(call)
        except NoMoreCallsError as reached:
            if isinstance(reached, BudgetReached) and not reached.is_final:
                left_out = reached
                raise LeaveOutError from reached
            stopping.stop(reached.how, str(reached))
            raise StopRunError from reached
        progress.spend.count(reply)
        progress.warnings.note(call.role, reply)
        return reply

    def keep(judged: Judgment) -> None:
        writer.write(judged)
        if job.models and writer.all_failed and stopping.ended is None:
            stopping.stop("failing", "")

    async with ResultWriter(folder, job.name_of, executor.sync, progress, executor.stop_waiting) as writer:
        if not job.models:
            writer.write_errors()
        with stopping.on_signals(), suppress(StopRunError):
            try:
                limit = job.settings.max_in_flight
                await judge_trajectories(job.judge, job.ids, job.views, ask, keep, limit, judge_one)
            except asyncio.CancelledError:
                if stopping.ended is None:
                    raise
        if stopping.ended is not None and stopping.ended.how == "failing" and not stopping.ended.message:
            return RunEnd("failing", leading_errors_message(writer.discard_errors()))
        writer.write_errors()
    if writer.written == len(job.ids):
        return RunEnd("finished")
    return stopping.ended or (RunEnd("budget", str(left_out)) if left_out else RunEnd("interrupted"))


@asynccontextmanager
async def open_executor(job: Job, spend: Spend, on_event: OnEvent) -> AsyncIterator[CallExecutor]:
    """What answers the job's calls, open for the block: endpoints, cache, limit and budget of its settings.

    Raises OptionsError for a missing key, address or price.
    """
    settings = job.settings
    budget = build_budget(settings.max_usd, settings.prices, job.models, spend.before_usd or 0.0)
    spend.presumed = lambda: budget.presumed_usd
    limit = AdaptiveLimit(
        settings.max_in_flight,
        settings.requests_per_minute,
        settings.tokens_per_minute,
        settings.rate_limit_timeout_s,
    )
    timeout_s = settings.timeout_s or TIMEOUT_S
    async with open_endpoints(job.models, timeout_s=timeout_s) as endpoints:
        with ExitStack() as stack:
            cache = None
            if settings.cache is not None:
                folder, answers, since = settings.cache, settings.answers, settings.fresh_since
                cache = stack.enter_context(closing(open_cache(folder, answers, since)))
            yield CallExecutor(endpoints, job.models, cache, limit, budget, on_event)


Wrap = Callable[[AnyJudge, RunSource, tuple[str, ...]], AnyJudge]


@dataclass(frozen=True, slots=True)
class Bill:
    """What was paid in all sessions of a run, and in this one; dollars are None if a price is not known."""

    usd: float | None = 0.0
    calls: int = 0
    session_usd: float | None = 0.0
    session_calls: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `run_judge` did: how it ended, how many of the chosen trajectories are judged, and the totals.

    ``absent`` have no recorded run, ``skipped`` lack what the judge looks at; ``problem`` is why the first
    one in the state ``error`` is in it; ``judge`` is the judge's full name. ``totals`` sum up the judgments,
    whoever paid for their replies; ``paid`` is what this run paid.
    """

    ended: RunEnd
    judged: int
    chosen: int
    absent: int
    totals: dict[str, Any]
    problem: str | None = None
    judge: str = ""
    skipped: int = 0
    paid: Bill = Bill()


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
    views, there, skipped = open_views(options, selection, judge)
    if wrap is not None:
        judge = wrap(judge, views, tuple(each for each in selection.ids if each in there))
    ids = tuple(each for each in selection.ids if each in there)
    facts = describe_run(options, selection, judge, models, views, ids, skipped)
    with RunFolder(out, facts.configuration, facts.older) as folder:
        folder.check_prompts(judge, models, views, there)
        todo = tuple(each for each in ids if folder.states.get(each) in (None, *retry))
        settings = _with_refresh(options, folder, facts.settings, is_done=not todo)
        spend = Spend.of_run(folder.run)
        ended = RunEnd("interrupted", "stopped; finished trajectories are saved")
        with run_session(folder, facts, spend) as session:
            try:
                progress = Progress(len(ids), len(ids) - len(todo), spend, models=models)
                with progress, stopped_like_ctrl_c():
                    job = Job(judge, models, views, todo, settings, facts.name)
                    ended = engine(job, folder, progress) if todo else RunEnd("finished")
            except KeyboardInterrupt:  # before the engine took the signals over, or after
                pass
            finally:
                folder.finalize([each.trajectory_id for each in selection.suite.split(options.split)])
                session["ended"] = ended.how
                name = note_totals(folder, totals(folder.records()), judge, models)
        sums = folder.run["totals"]
        progress.warnings.note_sums(sums["dropped_params"], sums["served_models"])
        judged = sum(each in folder.states for each in selection.ids)
        in_error = (each for each, state in folder.states.items() if state == "error")
        problem = next(map(error_of, folder.records(in_error)), None)
        return facts.outcome(ended, judged, sums, problem, name, spend)


def note_totals(
    folder: RunFolder, sums: dict[str, Any], judge: AnyJudge, models: Mapping[str, ModelSettings]
) -> str:
    """Write totals into run.json, and the judge's name by the models that answered; return the name."""
    name = full_name(judge, models, sums["served_models"])
    folder.update_run({"totals": sums, "judge": judge_facts(judge, name)})
    return name


def _with_refresh(
    options: RunOptions, folder: RunFolder, settings: EngineSettings, *, is_done: bool
) -> EngineSettings:
    """Return the settings with the time from which on replies count as fresh in this folder.

    ``--refresh`` holds from the first session of the folder that has it, so that a run which is continued
    does not pay again for what it asked itself. Raises OptionsError if nothing is left to ask.
    """
    if not options.refresh or settings.fresh_since is None:
        return settings
    since = folder.run.get("refresh_since")
    if since is None and is_done:
        raise OptionsError(
            f"--refresh: every trajectory in {folder.folder} is judged already; to ask again, name another "
            "--out"
        )
    if since is None:
        folder.update_run({"refresh_since": (since := settings.fresh_since)})
    return replace(settings, fresh_since=since)


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run before it begins. ``run`` is what run.json says of it beside its configuration,
    ``older`` the configuration of runs from before it said so; ``chosen`` trajectories are named by the
    options, of which ``there`` can be judged and ``skipped`` lack what the judge looks at.
    """

    configuration: dict[str, Any]
    older: dict[str, Any]
    run: dict[str, Any]
    name: str
    models: Mapping[str, ModelSettings]
    settings: EngineSettings
    chosen: int
    there: int
    skipped: int

    def outcome(
        self,
        ended: RunEnd,
        judged: int,
        sums: dict[str, Any],
        problem: str | None,
        name: str,
        spend: Spend,
    ) -> Outcome:
        absent = self.chosen - self.there - self.skipped
        paid = Bill(*spend.facts.values(), spend.session_usd, spend.calls)
        return Outcome(ended, judged, self.chosen, absent, sums, problem, name, self.skipped, paid)


def describe_run(
    options: RunOptions,
    selection: Selection,
    judge: AnyJudge,
    models: Mapping[str, ModelSettings],
    views: RunSource,
    ids: Sequence[str],
    skipped: int,
) -> RunFacts:
    """The facts of a run of this judge over ``ids``, which of the chosen trajectories can be judged."""
    configuration = build_configuration(options, selection.suite.name, judge, models, views.data_hash())
    settings, name = engine_settings(options, models), full_name(judge, models)
    run = {
        "judge": judge_facts(judge, name),
        "versions": versions(),
        "endpoints": endpoint_addresses(models),
        **_header_names(models),
        "prices": price_facts(settings.prices, models),
        "selection": _selection_facts(options, selection, ids, skipped),
        **_source_of(options),
    }
    older, chosen = _older_configuration(judge, configuration), len(selection.ids)
    return RunFacts(configuration, older, run, name, models, settings, chosen, len(ids), skipped)


@contextmanager
def run_session(folder: RunFolder, facts: RunFacts, spend: Spend) -> Iterator[dict[str, Any]]:
    """A session of the run, as run.json has it: begun now, ended as its ``ended`` says when the block is
    left, with what was paid meanwhile.
    """
    session = {"started_at": utc_now(), "ended": "killed", "versions": facts.run["versions"]}
    earlier = folder.run.get("sessions", [])
    folder.update_run({**facts.run, "sessions": [*earlier, session]})
    begun = time.monotonic()
    try:
        yield session
    finally:
        session |= {
            "ended_at": utc_now(),
            "seconds": round(time.monotonic() - begun, 3),
            "calls_paid": spend.calls,
            "paid_usd": spend.usd,
        }
        folder.update_run({"sessions": [*earlier, session], **spend.facts})


def prepare(options: RunOptions) -> tuple[Selection, AnyJudge, dict[str, ModelSettings]]:
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
        tried(refuse_omitted_params, options, models)
        prices = tried(read_prices, options.prices, options.price or ())
        if prices is not None:
            tried(build_budget, options.max_usd, prices, models)
    if models and options.threshold is not None:
        now = build_configuration(options, "", judge, models, None)
        tried(check_score_settings, options.threshold, now, judge.name)
    if problems:
        raise OptionsError("\n".join(problems))
    return selection, judge, models


def _older_configuration(judge: AnyJudge, configuration: Mapping[str, Any]) -> dict[str, Any]:
    """What holds for a run of this judge where its configuration does not say so: it was not recorded yet.

    It was shown what version 1 of the view shows; the file of a judge of your own is taken to be the same.
    ``judge`` is the display name by which older runs called the judge instead of its key.
    """
    from arb.judges.views import first_view_hash

    return {
        "judge": judge.name,
        "view_hash": None if is_reward_judge(judge) else first_view_hash(judge.wants or Wants()),
        "judge_file_sha256": configuration.get("judge_file_sha256"),
    }


def engine_settings(options: RunOptions, models: Mapping[str, ModelSettings]) -> EngineSettings:
    """What the options say to an engine, as plain values."""
    return EngineSettings(
        cache=cache_folder(options.cache) if models else None,
        prices=read_prices(options.prices, options.price or ()) if models else PriceTable({}),
        answers=options.answers,
        max_in_flight=options.max_in_flight,
        requests_per_minute=options.requests_per_minute,
        tokens_per_minute=options.tokens_per_minute,
        rate_limit_timeout_s=options.rate_limit_timeout,
        timeout_s=options.timeout,
        max_usd=options.max_usd,
        fresh_since=_oldest_reply(options),
    )


def _oldest_reply(options: RunOptions) -> float | None:
    """Return from when on replies in the cache count; None if all do."""
    now = time.time()
    if options.refresh:
        return now
    return None if options.cache_days is None else now - options.cache_days * 86_400


def open_views(
    options: RunOptions, selection: Selection, judge: AnyJudge
) -> tuple[Views | NoRecordings, set[str], int]:
    """What shows the runs, the trajectories that it can show, and how many chosen ones are skipped since they
    lack what the judge looks at. Raises OptionsError where none is left, and for runs that lack it where the
    options do not skip them.
    """
    try:
        views = build_views(options, selection.suite, judge)
    except OptionsError:
        if is_reward_judge(judge) or judge.inputs != "nothing":
            raise
        return NoRecordings(), set(selection.ids), 0
    there = set(views.ids())
    if there.isdisjoint(selection.ids):
        raise OptionsError(
            f"none of the {len(selection.ids):,} chosen trajectories is among the {len(there):,} runs of the "
            f"suite {selection.suite.name} that the source holds; see --source and --suite, or leave --split "
            "out to judge the runs of the source, whatever suite they are of"
        )
    if is_reward_judge(judge) and _source_of(options):
        raise OptionsError(
            f"{judge.name}: follows rewards, and the runs of --source are read without them; name another "
            "judge, or build a dataset and give it with --suite and --split"
        )
    shown = [each for each in selection.ids if each in there]
    incomplete = views.incomplete(judge, shown)
    if incomplete and not options.skip_incomplete:
        raise OptionsError(views.describe_incomplete(judge, incomplete, len(shown)))
    there -= set(incomplete)
    if there.isdisjoint(selection.ids):
        raise OptionsError(f"--skip-incomplete: none of the runs has what {judge.name} looks at")
    return views, there, len(incomplete)


def _source_of(options: RunOptions) -> dict[str, Any]:
    """The source that the runs were built from for this command, as run.json has it; empty for a suite's."""
    from dataset_script.sources.published import PublishedSource

    if options.source is None or not PublishedSource.recognises(options.source):
        return {}
    from dataset_script.new_suite import source_facts  # it builds datasets, with much that a run does without

    facts = source_facts(options.source)
    if facts is None:
        return {}
    return {"source": {**asdict(facts), "left_out": len(facts.left_out)}}


def _header_names(models: Mapping[str, ModelSettings]) -> dict[str, Any]:
    """Return the names of the headers that were sent; their values may be secrets and are not recorded."""
    names = sorted({name for model in models.values() for name, _ in model.header})
    return {"headers": names} if names else {}


def _selection_facts(
    options: RunOptions, selection: Selection, ids: Sequence[str], skipped: int
) -> dict[str, Any]:
    """What was chosen, and how much of it has no recorded run, or none that the judge can be shown."""
    return {
        "benchmark": options.benchmark,
        "agent": options.agent,
        "shard": options.shard,
        "limit": options.limit,
        "from_a_file": options.ids is not None,
        "trajectories": len(selection.ids),
        "without_a_run": len(selection.ids) - len(ids) - skipped,
        **({"skipped": skipped} if skipped else {}),
    }
