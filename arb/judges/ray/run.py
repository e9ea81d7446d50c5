"""A run over Ray Data: its calls as a plan that any process of a cluster can go on with.

    pass      shards are rendered: sessions that end give results, the others calls with their keys    (CPU)
    missing   calls without an answer, by partition of the keys; each is asked once
    answer    chunks of them by a pool of workers, each answer in a journal as it comes
    add       journals into the partitions of the answers, one writer each
    replies   answers to the calls, by shard; then the next pass, until no call is waited for

In the driver are counts, one number for each shard. Everything else lies in the place of the answers, which,
like the recorded runs and this code, has to be reached from every node. Answers are shared with runs of one
machine: what these have in their reply cache is added at the start, and they read ours (`engine.cache`).
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from arb.core.cli import stopped_like_ctrl_c
from arb.core.files import install_command
from arb.judges.endpoints.providers import IN_CLUSTER, needs_server
from arb.judges.engine.answers import ANSWERS, JOURNAL, Place, remove_stale_journals
from arb.judges.engine.engine import open_endpoints
from arb.judges.engine.storage import StorageError, storing
from arb.judges.ray.leases import Leases, Report, Totals
from arb.judges.ray.shuffle import (
    CHUNKS_AT_ONCE,
    IMPORTED,
    JOURNALS_OF_A_TASK,
    SHARDS_OF_A_TASK,
    Row,
    Work,
    add_lines,
    as_dataset,
    cached_parts,
    chunks,
    find_missing,
    find_replies,
    judged_lines,
    merge_results,
    prompt_lines,
    read_calls,
    read_lines,
    shuffled,
    sum_up,
    write_missing,
    write_replies,
)
from arb.judges.ray.workers import (
    FAILURES,
    AnswerWorker,
    Planner,
    engine_reply,
    engine_request,
    engine_rows,
    pass_over,
    vllm_processor,
    write_engine_replies,
)
from arb.judges.run.config import RunConfig, cache_folder
from arb.judges.run.folder import OtherConfigurationError, RunFolder
from arb.judges.run.progress import Progress, RunEnd, Spend
from arb.judges.run.runner import Outcome, run_facts, run_session
from arb.judges.types import ModelSettings, OptionsError

MAX_WORKERS: Final = 8
"""Workers where the cluster has more cores: one keeps an endpoint busy for long."""

SHARD_SIZE: Final = 1_000
SMALLEST_SHARD: Final = 16
SHARDS: Final = 64
"""Trajectories of a shard, in a run that has more than so many shards of them; fewer in a smaller one."""

CORES_OF_A_TASK: Final = 0.9
CORES_OF_A_WORKER: Final = 0.01
"""Workers wait for replies; one that computes has a GPU, or torch's own threads. Tasks leave them room, so
that there is one on every core.
"""

POLL_S: Final = 1.0

IDLE_MS: Final = 60_000
"""A process without a task for so long ends, in a cluster of this machine. Ray's own second is less than lies
between two passes, and the start of a process, with what it imports, takes three CPU seconds.
"""

REPOSITORY: Final = Path(__file__).parents[3]


def run_on_ray(
    config: RunConfig,
    out: Path,
    retry: Collection[str] = (),
    *,
    address: str | None = None,
    workers: int | None = None,
    endpoints: Callable = open_endpoints,
    processor: Callable = vllm_processor,
) -> Outcome:
    """As `run_judge`, over the cluster at ``address``, else over one started on this machine.

    ``endpoints`` opens what answers, in each worker; ``processor`` makes what does on GPUs. Raises what
    `run_judge` does.
    """
    judge, models = config.judge, config.models
    with _cluster(address or os.environ.get("RAY_ADDRESS"), workers):
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        at_home = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        home = {"num_cpus": 0, "scheduling_strategy": at_home}
        _check_gpus(models)
        planner = ray.remote(Planner).options(**home).remote(config, str(Path.cwd()))
        try:
            job, configuration = ray.get(planner.facts.remote())
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        with RunFolder(out, configuration, is_indexed=False) as folder:
            number, plan = ray.get(planner.todo.remote(out.resolve(), tuple(retry)))
            if ray.get(planner.has_other_prompts.remote(out.resolve())):
                raise OtherConfigurationError(out, configuration, configuration)
            size = max(SMALLEST_SHARD, min(SHARD_SIZE, -(-number // SHARDS)))
            spend = Spend.of_run(folder.run)
            ended = RunEnd("interrupted", "stopped; replies received are kept, and the same command goes on")
            work = Work(_place_of(config), plan, os.urandom(8).hex())
            with run_session(folder, run_facts(job), spend) as session:
                try:
                    with (
                        Progress(len(job.ids), len(job.ids) - number, spend, models=models) as progress,
                        stopped_like_ctrl_c(),
                    ):
                        run = _Run(
                            config, work, planner, size, -(-number // size), progress, folder, home,
                            endpoints, processor, workers,
                        )  # fmt: skip
                        with storing(work.url):
                            ended = run.run() if number else RunEnd("finished")
                except KeyboardInterrupt:
                    pass
                finally:
                    session["ended"] = ended.how
            judged, name, problem = sum_up(folder, judge, models)
            sums = folder.run["totals"]
            progress.warnings.note_sums(sums["dropped_params"], sums["served_models"])
            return Outcome.of(job, ended, judged, sums, problem, name, spend)


@contextmanager
def _cluster(address: str | None, workers: int | None) -> Iterator[None]:
    """A connection to a cluster, ended with the block, but where this process has one already. One on this
    machine that is not named, which Ray would take, is left alone. Raises OptionsError where none is reached.
    """
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise OptionsError(f"--engine ray needs Ray: {install_command('ray')}") from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # our own progress says how it goes
    if not (is_connected := ray.is_initialized()):
        more: dict[str, Any] = {"runtime_env": {"env_vars": {"PYTHONPATH": str(REPOSITORY)}}}
        if address is None:  # its processes have our environment: those that Ray starts at once are used then
            path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
            os.environ["PYTHONPATH"] = path
            more = {
                "include_dashboard": False,
                "num_cpus": max(os.cpu_count() or 1, workers or 1, 2),
                "_system_config": {"idle_worker_killing_time_threshold_ms": IDLE_MS},
            }
        try:
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **more)
        except Exception as error:  # Ray raises it plain where its own start takes too long
            what = f"--ray-address {address}: no cluster can be reached there" if address else (
                "--engine ray: no cluster can be started on this machine; try again when it is less busy"
            )  # fmt: skip
            raise OptionsError(f"{what} ({error})") from error
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    try:
        yield
    finally:
        if not is_connected:
            ray.shutdown()


def _uses_engine(models: Mapping[str, ModelSettings]) -> bool:
    """Whether `ray.data.llm` answers."""
    return any(each.provider == IN_CLUSTER and needs_server(each) for each in models.values())


def _check_gpus(models: Mapping[str, ModelSettings]) -> None:
    """Raise OptionsError where `ray.data.llm` is to answer and cannot."""
    import ray

    if not _uses_engine(models):
        return
    if len({needs_server(each) and each.provider for each in models.values()}) > 1:
        raise OptionsError(f"--provider {IN_CLUSTER}: answers for all roles of a judge; name it for all")
    if not ray.cluster_resources().get("GPU"):
        raise OptionsError(
            f"--provider {IN_CLUSTER}: there is no GPU in the cluster; serve the model with `vllm serve` and "
            "name it with --provider vllm --base-url http://HOST:8000/v1"
        )


def _words_of(error: Exception) -> str:
    """What the last exception says in a text of tracebacks, on one line."""
    said = re.split(r"^(?=[\w.]+(?:Error|Exception): )", str(error), flags=re.MULTILINE)[-1]
    return " ".join(said.split())[:600]


def _place_of(settings: RunConfig) -> str:
    """Where the answers are: as the options say, else in the reply cache, else beside its default."""
    if settings.answers is not None and "://" in settings.answers:
        try:
            Place(settings.answers).path("")
        except ImportError as error:  # it says what to install
            raise OptionsError(f"--answers {settings.answers}: {error}") from error
        return settings.answers
    if settings.answers is not None:
        return str(Path(settings.answers).resolve())
    return str((settings.cache or cache_folder(None)).resolve() / ANSWERS)


@dataclass
class _Run:
    """The passes and rounds of a run, as the driver sees them."""

    config: RunConfig
    work: Work
    planner: Any
    size: int
    """Trajectories of a shard."""
    shards: int
    progress: Progress
    folder: RunFolder
    home: Mapping[str, Any]
    endpoints: Callable
    processor: Callable
    workers: int | None
    passes: int = 0
    totals: Totals = field(default_factory=Totals)

    def run(self) -> RunEnd:
        import ray

        settings, spend = self.config, self.progress.spend
        self.leases = (
            ray.remote(Leases)
            .options(**self.home)
            .remote(
                settings.max_in_flight,
                settings.requests_per_minute,
                settings.tokens_per_minute,
                settings.max_usd,
                spend.before_usd or 0.0,
            )
        )
        place = self.work.place
        waiting = self._pass(range(self.shards))
        if waiting:
            self._add(JOURNAL, self.work.url, cached_parts(place, self.config.cache))
        while waiting:
            if missing := self._missing(waiting):
                with self._watched():
                    self._answer(missing)
                self._add(JOURNAL, self.work.url)
                failures = f"{self.work.session_folder}/{FAILURES}"
                self._add(failures, f"{self.work.url}/{self.work.session_folder}")
                place.remove(failures)
                remove_stale_journals(place, self.work.session)
                how, message = self.totals.stop or (None, "")
                if how == "storage":
                    raise StorageError(message)
                if how == "failing":
                    return RunEnd("failing", message)
            self._replies(waiting)
            self.passes += 1
            waiting = self._pass(waiting)
            if self.totals.stop is not None:
                break
        results = (lines(self.work, self.passes, self.shards) for lines in (judged_lines, prompt_lines))
        with storing(self.folder.folder):
            judged = merge_results(self.folder.folder, *results, self.progress)
        ended = self._ended(judged)
        place.remove(self.work.folder if ended.how == "finished" else self.work.session_folder)
        return ended

    def _ended(self, judged: int) -> RunEnd:
        if judged == self.progress.total - (self.progress.done - judged):
            return RunEnd("finished")
        if self.totals.stop is not None:
            return RunEnd(*self.totals.stop)
        if self.totals.left_out:
            return RunEnd("budget", self.totals.left_out)
        return RunEnd("interrupted", "stopped; finished trajectories are saved")

    def _pass(self, shards: Iterable[int]) -> list[int]:
        """Go over shards; returns those with sessions that wait for calls now."""
        number, wanted = self.passes, list(shards)
        done = set(self.work.place.files(str(Path(self.work.calls(0, 0)).parent))) if number == 0 else ()
        waiting = [shard for shard in wanted if self.work.calls(number, shard) in done]
        rows = [{"number": number, "shard": shard} for shard in wanted if shard not in set(waiting)]
        if rows:
            made = as_dataset(rows, len(rows)).map(partial(pass_over, self._passes), num_cpus=CORES_OF_A_TASK)
            waiting += [row["shard"] for row in made.iter_rows() if row["calls"]]
        return sorted(waiting)

    @property
    def _passes(self) -> tuple[Any, ...]:
        return self.config, str(Path.cwd()), self.planner, self.size, self.work

    def _missing(self, shards: Sequence[int]) -> dict[int, int]:
        """How many calls each shard is to ask: those that have no answer, each in one shard."""
        written = shuffled(
            [{"shard": shard} for shard in shards],
            partial(read_calls, self.work, self.passes),
            ("partition", partial(find_missing, self.work)),
            ("shard", partial(write_missing, self.work, self.passes)),
            of_a_task=SHARDS_OF_A_TASK,
        )
        return {row["shard"]: row["calls"] for row in written}

    def _answer(self, missing: Mapping[int, int]) -> None:
        """Ask the calls: chunks of them are rendered on CPU, and go to what answers as they are ready."""
        import ray

        asked, models = sum(missing.values()), self.config.models
        gpus = int(ray.cluster_resources().get("GPU", 0)) if any(map(needs_server, models.values())) else 0
        cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
        most = min(self.config.max_in_flight, asked)
        number = max(1, min(self.workers or gpus or min(cores, MAX_WORKERS), gpus or most, most))
        rows = [
            {"number": self.passes, "shard": shard, "cuts": cuts}
            for shard, cuts in chunks(missing, number, self.config.max_in_flight)
        ]
        self.progress.say(f"stage {self.passes + 1}: {asked:,} calls to make")
        rendered = as_dataset(rows, len(rows)).flat_map(
            partial(pass_over, self._passes), num_cpus=CORES_OF_A_TASK
        )
        rendered.context.target_max_block_size = 1  # each chunk is a block, which a worker that is free takes
        if _uses_engine(models):
            try:
                self._answer_by_engine(rendered, gpus)
            except ray.exceptions.ActorDiedError as error:
                raise OptionsError(
                    f"--provider {IN_CLUSTER}: no engine starts: {_words_of(error)}"
                ) from error
            return
        answered = rendered.map(
            AnswerWorker,
            fn_constructor_args=(
                models, self.config, self.leases, self.work, str(Path.cwd()), self.endpoints,
            ),
            compute=ray.data.ActorPoolStrategy(
                min_size=number if self.workers or gpus else 1,
                max_size=number,
                max_tasks_in_flight_per_actor=CHUNKS_AT_ONCE,
                max_concurrent_calls_per_actor=CHUNKS_AT_ONCE,
            ),
            num_cpus=CORES_OF_A_WORKER,
            num_gpus=1 if gpus else 0,
        )  # fmt: skip
        for _ in answered.iter_rows():
            self.progress.draw()
        ray.get(self.leases.forget_workers.remote())

    def _answer_by_engine(self, rendered: Any, gpus: int) -> None:
        """Ask the calls on the GPUs of the cluster: each role's, and then again those that were too long."""
        import ray

        wants = self.config.judge.wants
        has_pictures = wants.screenshots != "none" or wants.goal_images
        for role, model in self.config.models.items():
            shorter: set[str] | None = None
            for _ in range(2):
                calls = rendered.flat_map(partial(engine_rows, role, shorter))
                request = partial(engine_request, model)
                answered = self.processor(model, gpus, has_pictures, request, engine_reply)(calls)
                too_long: set[str] = set()
                for row in answered.map_batches(partial(write_engine_replies, self.work, model)).iter_rows():
                    report = Report(answered=row["answered"], calls=row["answered"], failed=row["failed"])
                    ray.get(self.leases.renew.remote(IN_CLUSTER, report))
                    too_long.update(row["too_long"].split())
                    self.progress.draw()
                if not (shorter := too_long):
                    break

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """While calls are made, note every second what they cost, in run.json too."""
        import ray

        ended = threading.Event()
        before = Totals(**vars(self.totals))

        def note() -> None:
            self.totals = ray.get(self.leases.totals.remote())
            spend, now = self.progress.spend, self.totals
            spend.presumed = lambda: now.presumed_usd
            spend.calls, spend.usd = now.calls, now.paid_usd
            self.progress.retried = now.retried
            self.folder.update_run(spend.facts)

        def watch() -> None:
            while not ended.wait(POLL_S):
                try:
                    note()
                except StorageError as problem:  # raised again at the end of the block
                    ray.get(self.leases.stop.remote("storage", str(problem)))
                    return

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            note()
            made = self.totals.answered + self.totals.failed - before.answered - before.failed
            self.progress.say(f"stage {self.passes + 1}: {made:,} calls ended, {self.totals.failed:,} failed")

    def _add(self, journal: str, url: str, more: Sequence[Row] = ()) -> None:
        """Put the lines of journals into the partitions of the answers at ``url``, one task a partition."""
        names = self.work.place.files(journal)
        rows = [{"name": name, "start": -1, "stop": -1} for name in names] + list(more)
        if not rows:
            return
        shuffled(
            rows,
            partial(read_lines, self.work.url),
            ("partition", partial(add_lines, url)),
            of_a_task=1 if more else JOURNALS_OF_A_TASK,
        )
        for row in more:
            self.work.place.write(f"{IMPORTED}/{Path(row['name']).name}", str(row["stop"]).encode())

    def _replies(self, shards: Sequence[int]) -> None:
        """Write the answers to the calls that shards wait for, a file for each shard."""
        shuffled(
            [{"shard": shard} for shard in shards],
            partial(read_calls, self.work, self.passes),
            ("partition", partial(find_replies, self.work)),
            ("shard", partial(write_replies, self.work, self.passes)),
            of_a_task=SHARDS_OF_A_TASK,
        )
