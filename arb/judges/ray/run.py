"""Run judges on a Ray cluster: workers run the judges, and the driver makes their calls.

Workers read runs, write prompts and parse replies. The driver makes all calls, so ``--max-in-flight`` and
``--max-usd`` apply to the whole cluster. If a worker dies, its judges are run again elsewhere with the same
replies. If the driver dies, run the command again: all replies are in the cache.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from arb.core.files import install_command
from arb.judges.contract import ask_reward_judge, open_session
from arb.judges.engine.answers import AnswerStore
from arb.judges.engine.cache import is_segment, key_in
from arb.judges.engine.storage import complete_lines, storing
from arb.judges.run.config import RunConfig
from arb.judges.run.folder import RunFolder
from arb.judges.run.judge_options import build_judge
from arb.judges.run.progress import Progress, RunEnd
from arb.judges.run.runner import Job, Outcome, run_async, run_judge
from arb.judges.run.scheduler import PREFETCH, Ask, Exchange, Judgment, RunSource, all_of, describe_fault
from arb.judges.types import Answer, AnyJudge, Call, OptionsError, Reply, is_reward_judge

REPOSITORY: Final = Path(__file__).parents[3]

MAX_WORKERS: Final = PREFETCH
"""The default maximum number of workers: one for each trajectory that is started in advance."""

CORES_OF_A_WORKER: Final = 0.01
"""The share of a core that a worker reserves, so that ``--ray-workers`` may exceed the free cores."""

MAX_ATTEMPTS: Final = 100
RETRY_S: Final = 1.0
"""How often a step is attempted if its worker dies, and the pause in seconds between attempts."""

SHARE_S: Final = 600.0
"""The interval in seconds at which new replies are copied to the store ``--answers``."""

Session = Generator[Sequence[Call], Sequence[Reply], Judgment]

Step = list[Call] | Judgment
"""The next step of a session: calls to make, or the judgment at its end."""


def run_on_ray(
    config: RunConfig,
    out: Path,
    retry: Collection[str] = (),
    *,
    address: str | None = None,
    workers: int | None = None,
) -> Outcome:
    """Run a judge as `run_judge` does, but on the Ray cluster at ``address``.

    By default this is the cluster at ``RAY_ADDRESS``, or a new one on this machine. Raises the errors of
    `run_judge`, and OptionsError if the cluster cannot be reached.
    """
    with _cluster(address or os.environ.get("RAY_ADDRESS"), workers):
        if config.options.answers is not None:
            _check_answer_store(config.options.answers)
        return run_judge(config, out, partial(_run, workers), retry)


def _check_answer_store(url: str) -> None:
    try:
        AnswerStore(url).open()
    except (ImportError, ValueError) as error:  # the message names the package to install
        raise OptionsError(f"--answers {url}: {error}") from error


@contextmanager
def _cluster(address: str | None, workers: int | None) -> Iterator[None]:
    """Connect to a cluster for the duration of the block, unless this process is already connected to one.

    Without an address a new local cluster is started, even if a cluster already runs on this machine. Raises
    OptionsError if the cluster cannot be reached.
    """
    try:
        import ray  # noqa: PLC0415  the extra `ray`
    except ImportError as error:
        raise OptionsError(f"--engine ray needs Ray: {install_command('ray')}") from error
    if ray.is_initialized():
        yield
        return
    more: dict[str, Any] = {"runtime_env": {"env_vars": {"PYTHONPATH": str(REPOSITORY)}}}
    if address is None:  # the processes of a local cluster inherit our environment
        path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH"))))
        os.environ["PYTHONPATH"] = path
        more = {"include_dashboard": False, "num_cpus": max(os.cpu_count() or 1, workers or 1, 2)}
    try:
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **more)
    except Exception as error:  # Ray raises a plain Exception if its start takes too long
        problem = "--engine ray: no local cluster could be started; try again when the machine is less busy"
        if address:
            problem = f"--ray-address {address}: the cluster cannot be reached; check the address"
        raise OptionsError(f"{problem} ({error})") from error
    try:
        yield
    finally:
        ray.shutdown()


def _run(workers: int | None, job: Job, folder: RunFolder, progress: Progress) -> RunEnd:
    """Judge a job's trajectories with workers on the cluster. With ``workers`` fixed, it is an `Engine`."""
    import ray  # noqa: PLC0415  the extra `ray`

    cores = max(1, int(ray.cluster_resources().get("CPU", 1)))
    number = min(workers or min(cores, MAX_WORKERS), len(job.ids))
    setup = ray.put((job.config.options, str(Path.cwd()), job.views))
    worker = ray.remote(JudgeWorker).options(
        num_cpus=CORES_OF_A_WORKER, max_restarts=-1, scheduling_strategy="SPREAD"
    )
    pool = WorkerPool([worker.remote() for _ in range(number)], setup)

    async def run() -> RunEnd:
        sharing = asyncio.create_task(_share_now_and_then(job))
        try:
            return await run_async(job, folder, progress, pool.judge)
        finally:
            sharing.cancel()

    try:
        return asyncio.run(run())
    finally:
        _share(job)


def _share(job: Job) -> None:
    answers = job.config.options.answers
    if answers is not None and job.config.cache is not None:
        share_answers(job.config.cache, AnswerStore(answers))


async def _share_now_and_then(job: Job) -> None:
    while True:
        await asyncio.sleep(SHARE_S)
        await asyncio.to_thread(_share, job)


class WorkerPool:
    """The `JudgeWorker` actors of a run, which Ray restarts if they die.

    ``setup`` is a Ray reference to the options, the driver's working directory and the recorded runs.
    """

    def __init__(self, workers: Sequence[Any], setup: Any):
        self._workers = workers
        self._setup = [setup]  # in a list, so that Ray does not fetch it for each step
        self._sessions = [0] * len(workers)

    async def judge(self, judge: object, trajectory_id: str, views: object, ask: Ask, *_: object) -> Judgment:
        """Judge one trajectory as `judge_trajectory` does, but run the judge in a worker."""
        number = self._sessions.index(min(self._sessions))
        worker = self._workers[number]
        self._sessions[number] += 1
        exchanges: list[Exchange] = []
        stages: list[list[Reply]] = []
        try:
            while True:
                step = await self._step(worker, trajectory_id, stages)
                if isinstance(step, Judgment):
                    return replace(step, exchanges=exchanges)
                replies = await all_of(step, ask)
                exchanges += [
                    Exchange(call, reply, len(stages)) for call, reply in zip(step, replies, strict=True)
                ]
                stages.append(replies)
        except BaseException:
            worker.close.remote(trajectory_id)
            raise
        finally:
            self._sessions[number] -= 1

    async def _step(self, worker: Any, trajectory_id: str, stages: list[list[Reply]]) -> Step:
        from ray.exceptions import RayError, RayTaskError  # noqa: PLC0415  the extra `ray`

        problem = ""
        for _ in range(MAX_ATTEMPTS):
            try:
                return await worker.step.remote(self._setup, trajectory_id, stages)
            except RayTaskError as error:
                problem = f"{type(error.cause).__name__}: {error.cause}"
                break
            except RayError as error:
                problem = f"all {MAX_ATTEMPTS} attempts failed: {' '.join(str(error).split())[:600]}"
                await asyncio.sleep(RETRY_S)
        return Judgment(trajectory_id, Answer("error"), problem=problem)


class JudgeWorker:
    """A Ray actor that runs a judge on trajectories, with the replies that the driver sends."""

    def __init__(self) -> None:
        self._opened: tuple[AnyJudge, RunSource] | None = None
        self._sessions: dict[str, tuple[int, Session]] = {}

    def step(self, setup: Sequence[Any], trajectory_id: str, stages: list[list[Reply]]) -> Step:
        """Return the judge's next calls for a trajectory, or the judgment once the judge has answered.

        ``stages`` has the replies to all earlier stages, so that a lost session can be rebuilt. ``setup`` is
        a list with the Ray reference of `WorkerPool`.
        """
        if self._opened is None:
            self._opened = _opened(setup)
        stage, session = self._sessions.pop(trajectory_id, (None, None))
        try:
            if session is not None and stage == len(stages):
                calls = session.send(stages[-1])
            else:
                session = _session(*self._opened, trajectory_id)
                calls = next(session)
                for replies in stages:
                    calls = session.send(replies)
        except StopIteration as end:
            return end.value
        self._sessions[trajectory_id] = (len(stages) + 1, session)
        return list(calls)

    def close(self, trajectory_id: str) -> None:
        """Discard the session of a trajectory that will not be continued."""
        self._sessions.pop(trajectory_id, None)


def _opened(setup: Sequence[Any]) -> tuple[AnyJudge, RunSource]:
    """Change to the driver's working directory, and return the judge and the recorded runs from ``setup``."""
    import ray  # noqa: PLC0415  the extra `ray`

    options, folder, views = ray.get(setup[0])
    with suppress(OSError):  # the folder may not exist on this node
        os.chdir(folder)  # relative paths in the options start from there
    return build_judge(options), views


def _session(judge: AnyJudge, views: RunSource, trajectory_id: str) -> Session:
    """Judge one trajectory as `judge_trajectory` does, but yield the calls instead of making them."""
    reward = None
    try:
        if is_reward_judge(judge):
            reward = views.reward(trajectory_id)
            return Judgment(trajectory_id, ask_reward_judge(judge, reward), reward=reward)
        view = views.view(trajectory_id, judge.wants)
        answer = yield from open_session(judge, view)
        return Judgment(trajectory_id, answer, n_steps=len(view.steps))
    except Exception as fault:
        return Judgment(trajectory_id, Answer("error"), problem=describe_fault(fault), reward=reward)


def share_answers(cache: Path, store: AnswerStore) -> None:
    """Copy the replies in a reply cache to a store that other machines read."""
    for path in sorted(cache.iterdir()):
        if is_segment(path.name):
            with storing(cache):
                store.add(_answers(line for _, line in complete_lines(path)))


def _answers(lines: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the key and the line of each reply, and skip all other lines."""
    for line in lines:
        key = key_in(line)
        if key is not None:
            yield key, line
