"""A call executor with all around it, an endpoint and a budget in the test's hands."""

import asyncio
import random
from collections import Counter

from arb.judges.engine.budget import Budget, BudgetReached
from arb.judges.engine.cache import CallCache
from arb.judges.engine.concurrency import AdaptiveLimit
from arb.judges.engine.engine import CallExecutor
from arb.judges.run.runner import open_endpoints
from arb.judges.types import Call, Message, ModelSettings, Reply
from tests.support.clocks import PatientLoop, run_in_virtual_time


async def soon(seconds):
    """Sleep for a small part of the time, so that a test does not wait between attempts."""
    await asyncio.sleep(seconds / 500)


def call(text="Status: ?", **rest):
    return Call("verdict", (Message("user", text),), **rest)


class RecordingBudget(Budget):
    """A budget that notes every settlement; a token costs a dollar."""

    def __init__(self, most=None):
        super().__init__()
        self.open, self.settled, self.most = 0, [], most

    async def reserve(self, request):
        if self.most is not None and len(self.settled) >= self.most:
            raise BudgetReached("no more money")
        self.open += 1
        return await super().reserve(request)

    def settle(self, reservation, usage, *, maybe_paid=False):
        self.open -= 1
        self.settled.append((usage is not None, maybe_paid))

    def cost_of(self, model, usage):
        return None if usage.input_tokens is None else float(usage.input_tokens + usage.output_tokens)


class Kit:
    """A call executor with all around it: ``kit.run(lambda executor: …)`` opens, asks and closes."""

    def __init__(self, folder, server=None, endpoint=None, budget=None, limit=None, **settings):
        self.folder, self.endpoint, self.budget = folder, endpoint, budget or Budget()
        self.limit = limit or AdaptiveLimit(64)
        base_url = server.base_url if server else "http://127.0.0.1:1/v1"
        self.models = {"judge": ModelSettings("m", provider="any", base_url=base_url, **settings)}
        self.environment: dict[str, str] = {}
        self.events, self.how = [], {"sleep": soon, "draw": lambda: 1.0}

    def on_event(self, kind, **facts):
        self.events.append((kind, facts))

    def kinds(self):
        return Counter(kind for kind, _ in self.events)

    def run(self, ask, timeout_s=30.0):
        async def run():
            async with open_endpoints(self.models, self.environment, timeout_s) as endpoints:
                if self.endpoint is not None:
                    endpoints = dict.fromkeys(self.models, self.endpoint)
                cache = CallCache(self.folder)
                try:
                    executor = CallExecutor(
                        endpoints, self.models, cache, self.limit, self.budget, self.on_event, **self.how
                    )
                    self.executor = executor
                    return await ask(executor)
                finally:
                    cache.close()

        with asyncio.Runner(loop_factory=PatientLoop) as runner:
            return runner.run(run())

    def ask(self, *calls, timeout_s=30.0):
        return self.run(lambda executor: asyncio.gather(*map(executor.ask, calls)), timeout_s)


def in_virtual_time(
    folder, endpoint, work, on_event=lambda kind, **facts: None, draw=random.random, **limits
):
    """What ``work(executor)`` gives, and the seconds of virtual time that it takes."""

    async def everything():
        clock, cache = asyncio.get_running_loop().time, CallCache(folder)
        models, limit = (
            {"judge": ModelSettings("m", provider="any")},
            AdaptiveLimit(64, **limits, clock=clock),
        )
        parts = ({"judge": endpoint}, models, cache, limit, Budget(), on_event)
        try:
            return await work(CallExecutor(*parts, draw=draw)), clock()
        finally:
            cache.close()

    return run_in_virtual_time(everything())


def ask_all(texts):
    """The work of asking one call per text at once; a call that raises gives its exception."""
    return lambda executor: asyncio.gather(
        *(executor.ask(call(each)) for each in texts), return_exceptions=True
    )


class Endpoint:
    """An endpoint in the test: ``answers`` are replies or exceptions, the last one for ever."""

    def __init__(self, *answers):
        self.answers, self.asked, self.begun = list(answers), [], asyncio.Event()

    async def attempt(self, request):
        self.asked.append(request)
        self.begun.set()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            answer = Reply("waited", input_tokens=1, output_tokens=1)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    async def close(self):
        pass


def lines(folder):
    return "".join(path.read_text() for path in folder.iterdir() if path.suffix == ".jsonl")
