"""What the processes of a cluster do for a run: list its trajectories, go over a shard of them, answer calls
by HTTP or, on its GPUs, by `ray.data.llm`.

Sessions of a judge go round by stage. A pass over a shard drives its sessions with the replies there are:
those that come to an end give lines of results, the others the calls that they wait for. What a pass leaves
is a file of its own, so that any process can do the next one.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import pickle
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arb.judges.endpoints.openai_compatible import request_body
from arb.judges.engine.answers import JOURNAL, Journal, Place, journal_lines
from arb.judges.engine.budget import BudgetReached
from arb.judges.engine.cache import answer_line, call_key, key_in, reply_in
from arb.judges.engine.engine import CallExecutor
from arb.judges.engine.errors import NoMoreCallsError, classify_status
from arb.judges.engine.prompt_store import PromptWriter
from arb.judges.engine.storage import StorageError, storing
from arb.judges.ray.leases import Grant, Lease, LeasedBudget, LeasedLimit, Report
from arb.judges.ray.shuffle import Row, Work, calls_table
from arb.judges.run.config import RunConfig
from arb.judges.run.folder import JUDGMENTS, judgment_record, open_prompts, read_judgments, sent_prompts
from arb.judges.run.records import name_as_served, prompts_changed
from arb.judges.run.runner import Job, open_job
from arb.judges.run.scheduler import Judgment, LeaveOutError, StopRunError, judge_trajectory
from arb.judges.types import Call, ModelSettings, Reply

if TYPE_CHECKING:
    import pyarrow as pa

    from arb.judges.engine.retry import Endpoint

FAILURES: Final = "failures"
"""The journal of calls without an answer, in the folder of their session: they count in it alone."""


class Planner:
    """Holds the list of the trajectories to judge; the one process whose memory grows with them."""

    def __init__(self, config: RunConfig, folder: str):
        os.chdir(folder)
        self._config = config

    def facts(self) -> tuple[Job, dict[str, Any]]:
        """Return the job without its views, and its configuration. Raises what `open_job` does."""
        job = open_job(self._config)
        self._views, self._ids = job.views, job.ids
        self._there, self._states = frozenset(self._ids), dict[str, str]()
        self._facts = self._config.configuration(job.views.data_hash())
        return replace(job, views=None), self._facts

    def todo(self, out: Path, retry: Sequence[str]) -> tuple[int, str]:
        """How many trajectories are to be judged, and the name of the plan for them."""
        states: dict[str, str] = {}
        if (out / JUDGMENTS).exists():
            states = {each["trajectory_id"]: each["state"] for each in read_judgments(out)}
        self._states = states
        self._ids = tuple(each for each in self._ids if states.get(each) in (None, *retry))
        digest = hashlib.sha256(json.dumps(self._facts, sort_keys=True).encode())
        for each in self._ids:
            digest.update(f"\n{each}".encode())
        return len(self._ids), digest.hexdigest()[:32]

    def has_other_prompts(self, out: Path) -> bool:
        """Whether the judge would send other prompts for trajectories that the folder has."""
        done = [each for each in self._states if each in self._there]
        if not done:
            return False
        chosen = {done[place] for place in (0, len(done) // 2, -1)}
        records = [each for each in read_judgments(out) if each["trajectory_id"] in chosen]
        judge, models = self._config.judge, self._config.models
        return prompts_changed(records, judge, models, self._views, partial(open_prompts, out))

    def shard(self, number: int, size: int) -> tuple[tuple[str, ...], Any]:
        """The ids of a shard, in the order of the suite, with what shows these runs alone."""
        ids = self._ids[number * size : (number + 1) * size]
        return ids, self._views.part(ids) if hasattr(self._views, "part") else self._views


class ShardPasses:
    """Drives the sessions of shards, on CPU; the `Planner` knows what is in a shard of ``size``."""

    def __init__(self, config: RunConfig, folder: str, planner: Any, size: int, work: Work):
        if Path(folder).is_dir():
            os.chdir(folder)  # paths are as they were typed
        self._judge, self._facts = config.judge, config
        self._planner, self._size = planner, size
        self._work, self._place = work, work.place

    def judge(self, number: int, shard: int) -> Row:
        """A pass over a shard: how many calls are waited for then, and how many trajectories were judged."""
        ids, views = self._shard(shard)
        waiting, asked = range(len(ids)), set()
        replies = self._replies(number, shard)
        for earlier in range(number):
            calls = self._place.read_table(self._work.calls(earlier, shard))
            waiting = sorted(set(calls["session"].to_pylist()))
            asked |= set(calls["key"].to_pylist())
        judged, missing = self._drive(ids, views, waiting, replies)
        self._write_results(number, shard, judged)
        pairs = [(i, key) for i, calls in missing.items() for key in calls if key not in asked]
        self._place.write_table(self._work.calls(number, shard), calls_table(pairs))
        return {"shard": shard, "calls": len(pairs), "judged": len(judged)}

    def render(self, number: int, shard: int, cuts: Sequence[int]) -> list[Row]:
        """The calls of chunks, which begin at these rows: of sessions whose first missing call is in them.
        Of samples that are asked for together only the missing ones are.
        """
        ids, views = self._shard(shard)
        table = self._place.read_table(self._work.missing(number, shard))
        chosen: dict[int, set[bytes]] = {}
        first: dict[int, int] = {}
        rows = zip(table["session"].to_pylist(), table["key"].to_pylist(), strict=True)
        for place, (session, key) in enumerate(rows):
            if cuts[0] <= first.setdefault(session, place) < cuts[-1]:
                chosen.setdefault(session, set()).add(key)
        _, missing = self._drive(ids, views, sorted(chosen), self._replies(number, shard))
        found: list[list[tuple[str, Call]]] = [[] for _ in cuts[:-1]]
        for session, calls in missing.items():
            chunk = found[bisect_right(cuts, first[session]) - 1]
            wanted = {key: call for key, call in calls.items() if key in chosen[session]}
            samples = {call.sample for call in wanted.values()}
            for key, call in wanted.items():
                together = tuple(each for each in call.together if each in samples)
                chunk.append((key.hex(), replace(call, together=together)))
        return [
            {"chunk": f"{number}-{shard:06d}-{start}", "calls": pickle.dumps(calls)}
            for start, calls in zip(cuts, found, strict=False)
            if calls
        ]

    def _drive(
        self, ids: Sequence[str], views: Any, sessions: Sequence[int], replies: Mapping[bytes, Reply]
    ) -> tuple[list[Judgment], dict[int, dict[bytes, Call]]]:
        """The judgments of sessions that end with the replies there are; of the others what is missing."""
        judged: list[Judgment] = []
        missing: dict[int, dict[bytes, Call]] = {}

        async def drive_all() -> None:
            for session in sessions:
                calls: dict[bytes, Call] = {}
                try:
                    judged.append(await judge_trajectory(self._judge, ids[session], views, ask(calls)))
                except LeaveOutError:
                    missing[session] = calls

        def ask(calls: dict[bytes, Call]) -> Callable:
            async def reply_to(call: Call) -> Reply:
                model = self._facts.models[call.role]
                max_tokens = call.max_output_tokens or model.max_output_tokens
                key = bytes.fromhex(call_key(model, call.messages, max_tokens, call.sample))
                if (reply := replies.get(key)) is None:
                    calls[key] = call
                    raise LeaveOutError("its replies are not there yet")
                return reply

            return reply_to

        asyncio.run(drive_all())
        return judged, missing

    def _shard(self, shard: int) -> tuple[tuple[str, ...], Any]:
        import ray

        return ray.get(self._planner.shard.remote(shard, self._size))

    def _replies(self, number: int, shard: int) -> dict[bytes, Reply]:
        """The replies that there are before a pass; those that this shard asked are not from the cache."""
        found: dict[bytes, Reply] = {}
        for earlier in range(number):
            table = self._table(self._work.replies(earlier, shard))
            missing = self._table(self._work.missing(earlier, shard))
            if table is None:
                continue
            asked = set() if missing is None else set(missing["key"].to_pylist())
            for key, line in zip(table["key"].to_pylist(), table["line"].to_pylist(), strict=True):
                if (reply := reply_in(line, key.hex())) is not None:
                    found[key] = replace(reply, key=key.hex(), is_from_cache=key not in asked)
        return found

    def _table(self, name: str) -> pa.Table | None:
        """None where nothing was written for the shard."""
        try:
            return self._place.read_table(name)
        except FileNotFoundError:
            return None

    def _write_results(self, number: int, shard: int, judged: Sequence[Judgment]) -> None:
        if not judged:
            return
        facts, judge = self._facts, self._judge
        records = [
            judgment_record(each, name_as_served(facts.name, judge, facts.models, each)) for each in judged
        ]
        sent = [prompt for each in judged for prompt in sent_prompts(each)]
        with tempfile.TemporaryDirectory() as folder:
            writer = PromptWriter(path := Path(folder) / "prompts.jsonl")
            names = iter(writer.add(sent))
            writer.close()
            for record in records:
                for call, name in zip(record["calls"], names, strict=False):
                    call["prompt"] = name
            if path.exists():
                self._place.write(self._work.prompts(number, shard), path.read_bytes())
        lines = [json.dumps(each, separators=(",", ":")).encode("ascii") + b"\n" for each in records]
        self._place.write(self._work.results(number, shard), b"".join(lines))


def pass_over(passes: tuple[Any, ...], row: Row) -> Any:
    """`ShardPasses.judge` or `render` as a task, which needs no process of its own."""
    over = ShardPasses(*passes)
    return over.render(**row) if "cuts" in row else over.judge(**row)


class AnswerWorker:
    """An actor that answers chunks of calls over one event loop, as `run_local` does, with what it is lent.

    ``open_endpoints`` is that of `arb.judges.engine.engine`, or what stands for it in a bench.
    """

    def __init__(
        self,
        models: Mapping[str, ModelSettings],
        settings: RunConfig,
        leases: Any,
        work: Work,
        folder: str,
        open_endpoints: Callable,
    ):
        if Path(folder).is_dir():
            os.chdir(folder)
        self._models, self._settings, self._leases = models, settings, leases
        self._work, self._place = work, work.place
        self._open_endpoints = open_endpoints
        self._journals = _ChunkJournals(self._place, work)
        self._opened: asyncio.Task[CallExecutor] | None = None
        self._open = AsyncExitStack()

    async def __call__(self, row: Row) -> Row:
        """Answer the calls of a chunk, each answer in its journal as it comes; returns how many have one.

        A chunk that another worker died over is gone on with: what is in its journals is not asked again.
        """
        self._opened = self._opened or asyncio.create_task(self._start())
        executor, chunk = await self._opened, row["chunk"]
        calls: list[tuple[str, Call]] = pickle.loads(row["calls"])
        await asyncio.to_thread(self._journals.open, chunk, [key for key, _ in calls])
        self._lease.wants(len(calls))
        try:
            ended = await asyncio.gather(*(self._ask(executor, *each) for each in calls))
        finally:
            await asyncio.to_thread(self._journals.close, chunk)
        return {"chunk": chunk, "calls": len(calls), "answered": sum(ended)}

    async def _start(self) -> CallExecutor:
        name, settings = os.urandom(8).hex(), self._settings

        async def renew(report: Report) -> Grant:
            return await self._leases.renew.remote(name, report)

        self._lease = lease = Lease(
            renew,
            limits_requests=settings.requests_per_minute is not None,
            limits_tokens=settings.tokens_per_minute is not None,
        )
        await lease.renew()
        limit = LeasedLimit(lease, settings.rate_limit_timeout_s)
        budget = LeasedBudget(lease, settings.prices, settings.max_usd is not None)
        lease.on_change.append(lambda: lease.stop and limit.close(StopRunError()))
        timeout = {} if settings.timeout_s is None else {"timeout_s": settings.timeout_s}
        endpoints: dict[str, Endpoint] = await self._open.enter_async_context(
            self._open_endpoints(self._models, **timeout)
        )
        self._running = asyncio.create_task(lease.run())
        return CallExecutor(endpoints, self._models, self._journals, limit, budget, self._event)

    def _event(self, kind: str, **facts: object) -> None:
        self._lease.did.retried += kind == "retried"

    async def _ask(self, executor: CallExecutor, key: str, call: Call) -> bool:
        """Whether the call has an answer now, be it that it cannot have one."""
        lease = self._lease
        try:
            if lease.stop is not None:
                return False
            reply = await executor.ask(call)
            if reply.state != "ok":
                self._journals.fail(key, reply)
        except NoMoreCallsError as reached:
            if isinstance(reached, BudgetReached) and not reached.is_final:
                lease.did.left_out = str(reached)
            else:
                lease.did.stop = lease.did.stop or (reached.how, str(reached))
            return False
        except StorageError as problem:
            lease.did.stop = lease.did.stop or ("storage", str(problem))
            return False
        except StopRunError:
            return False
        finally:
            lease.wants(-1)
        if not reply.is_from_cache:
            lease.did.count(reply)
        return True


class _ChunkJournals:
    """Stands for the reply cache in a worker: answers go into the journal of their chunk.

    Nothing else is there, since what was answered before is not asked; and no other process asks the same.
    That a try of a call failed is not noted.
    """

    def __init__(self, place: Place, work: Work):
        self._place, self._work = place, work
        self._answers: dict[str, Journal] = {}
        self._failures: dict[str, Journal] = {}
        self._chunks: dict[str, str] = {}
        self._known: dict[str, Reply] = {}

    def open(self, chunk: str, keys: Sequence[str]) -> None:
        folder = f"{JOURNAL}/{self._work.session}/{chunk}"
        for name in self._place.files(folder):
            for line in journal_lines(self._place, name):
                if (key := key_in(line)) is not None and (reply := reply_in(line, key.hex())) is not None:
                    self._known[key.hex()] = reply
        self._answers[chunk] = Journal(self._place, folder)
        self._failures[chunk] = Journal(self._place, f"{self._work.session_folder}/{FAILURES}/{chunk}")
        self._chunks |= dict.fromkeys(keys, chunk)

    def close(self, chunk: str) -> None:
        for journals in (self._answers, self._failures):
            journals.pop(chunk).close()
        for key in [key for key, of in self._chunks.items() if of == chunk]:
            del self._chunks[key]
            self._known.pop(key, None)

    def get(self, key: str) -> Reply | None:
        return self._known.get(key)

    def put(self, key: str, reply: Reply) -> None:
        with storing(self._place.url):
            self._answers[self._chunks[key]].append(answer_line(key, reply))
        self._known[key] = reply

    def fail(self, key: str, reply: Reply) -> None:
        with storing(self._place.url):
            self._failures[self._chunks[key]].append(answer_line(key, reply))

    def note_attempt(self, key: str, kind: str, message: str) -> None: ...

    def claim(self, key: str) -> bool:
        return True

    def release(self, key: str) -> None: ...

    def refresh(self) -> None: ...

    def sync(self) -> None: ...


ENGINE_OPTIONS: Final = (
    *("tensor_parallel_size", "pipeline_parallel_size", "max_model_len", "dtype", "quantization"),
    *("gpu_memory_utilization", "max_num_seqs", "trust_remote_code"),
)
"""What ``--extra`` may say to vLLM's engine; all else is an option of the generation (``top_p``, …)."""


def vllm_processor(
    model: ModelSettings, gpus: int, has_pictures: bool, preprocess: Callable, postprocess: Callable
) -> Callable:
    """What answers a dataset of calls on the GPUs of the cluster, as many engines as there is room for."""
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    options = {name: model.extra[name] for name in ENGINE_OPTIONS if name in model.extra}
    of_an_engine = options.get("tensor_parallel_size", 1) * options.get("pipeline_parallel_size", 1)
    config = vLLMEngineProcessorConfig(
        model_source=model.model,
        engine_kwargs=options,
        concurrency=max(1, gpus // of_an_engine),
        should_continue_on_error=True,
        prepare_multimodal_stage=has_pictures,
    )
    return build_processor(config, preprocess=preprocess, postprocess=postprocess)


def engine_rows(role: str, shorter: Collection[str] | None, chunk: Row) -> list[Row]:
    """The calls of a chunk for a role's model, a row each; where ``shorter`` names keys, those alone, with
    their shorter messages.
    """
    return [
        {"key": key, "call": pickle.dumps(call), "is_shorter": shorter is not None}
        for key, call in pickle.loads(chunk["calls"])
        if call.role == role and (shorter is None or key in shorter)
    ]


def engine_request(model: ModelSettings, row: Row) -> Row:
    """A row with what `ray.data.llm` takes: messages as OpenAI has them, and vLLM's sampling parameters."""
    call: Call = pickle.loads(row["call"])
    messages = call.shorter if row["is_shorter"] else call.messages
    body = request_body(model, messages, call.max_output_tokens or model.max_output_tokens)
    form = body.pop("response_format", None)
    others = ("model", "messages", *ENGINE_OPTIONS)
    parameters = {name: value for name, value in body.items() if name not in others}
    if form is not None:
        parameters["structured_outputs"] = {"json": json.dumps(form["json_schema"]["schema"])}
    return {**row, "messages": body["messages"], "sampling_params": parameters}


def engine_reply(row: Row) -> Row:
    """The columns of an answered row that count here; rows with an error come as they are."""
    names = ("key", "call", "is_shorter", "generated_text", "num_input_tokens", "num_generated_tokens")
    return {name: row[name] for name in names}


def write_engine_replies(work: Work, model: ModelSettings, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Put answered rows into a journal, and calls that failed into that of their session.

    Returns how many, and the keys of calls that were too long and can be asked with shorter messages.
    """
    answers, failures, too_long = [], [], []
    for values in zip(*batch.values(), strict=True):
        row = dict(zip(batch, values, strict=True))
        key, call = str(row["key"]), pickle.loads(row["call"])
        reply = replace(_engine_reply(model, call, row), key=key, used_shorter=bool(row["is_shorter"]))
        if reply.state == "too_long" and call.shorter is not None and not reply.used_shorter:
            too_long.append(key)
        elif reply.state == "ok":
            answers.append(answer_line(key, reply))
        else:
            failures.append(answer_line(key, reply))
    name = f"{os.urandom(8).hex()}.jsonl"
    if answers:
        work.place.write(f"{JOURNAL}/{work.session}/engine/{name}", b"".join(answers))
    if failures:
        work.place.write(f"{work.session_folder}/{FAILURES}/engine/{name}", b"".join(failures))
    return {"answered": [len(answers)], "failed": [len(failures)], "too_long": [" ".join(too_long)]}


def _engine_reply(model: ModelSettings, call: Call, row: Row) -> Reply:
    if error := row.get("__inference_error__"):
        return classify_status(400, str(error)).as_reply(str(row["key"]), None)
    text, made = str(row["generated_text"]), int(row["num_generated_tokens"])
    is_cut = made >= (call.max_output_tokens or model.max_output_tokens)
    if not text.strip() and not is_cut:
        return Reply(state="error", error="the reply has no text")
    finish_reason, tokens = "length" if is_cut else "stop", int(row["num_input_tokens"])
    return Reply(text, "ok", finish_reason, input_tokens=tokens, output_tokens=made, model=model.model)
