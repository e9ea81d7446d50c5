"""An overloaded server refuses most calls at random: the run keeps the pace that it asks for, and ends."""

import asyncio
import random

import pytest

from arb.judges.engine.concurrency import RateLimitTimeout
from arb.judges.engine.errors import classify_status
from arb.judges.types import Reply
from tests.support.call_executor import ask_all, in_virtual_time
from tests.support.judge_runs import HELD_OUT, run, states
from tests.support.llm_server.errors import error_answer
from tests.support.llm_server.server import LLMServer

REFUSED_SHARE = 0.85
OVERLOADED = "The model is currently overloaded. Please try again later."


class OverloadedEndpoint:
    """Refuses a share of all calls at once, and answers the others after two seconds of virtual time."""

    def __init__(self, status: int, retry_after: str | None, share: float):
        self.status, self.share, self.drawn = status, share, random.Random(1)
        self.headers = {} if retry_after is None else {"retry-after": retry_after}
        self.asked_at = []

    async def attempt(self, request):
        self.asked_at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.05)
        if self.drawn.random() < self.share:
            raise classify_status(self.status, OVERLOADED, self.headers)
        await asyncio.sleep(2.0)
        return Reply("fine", input_tokens=1, output_tokens=1)


def ask_held_out(folder, endpoint):
    calls = ask_all(map(str, range(HELD_OUT)))
    return in_virtual_time(folder, endpoint, calls, draw=random.Random(2).random)


@pytest.mark.parametrize("status", [503, 529])
@pytest.mark.parametrize("retry_after", [None, "0", "1", "3"])
def test_every_call_is_answered_at_85_percent_refusals_in_minutes(tmp_path, status, retry_after):
    endpoint = OverloadedEndpoint(status, retry_after, REFUSED_SHARE)
    ended, took_s = ask_held_out(tmp_path, endpoint)
    assert [reply.state for reply in ended] == ["ok"] * HELD_OUT
    # The slowest of 52 calls takes about ln(52) / -ln(0.85) = 24 tries: 72 s at a pause of 3 s, plus replies.
    assert took_s < 200
    assert len(endpoint.asked_at) < 3 * HELD_OUT / (1 - REFUSED_SHARE)


def test_a_server_that_only_refuses_is_asked_ever_more_seldom_and_then_given_up(tmp_path):
    endpoint = OverloadedEndpoint(503, None, 1.0)
    ended, took_s = ask_held_out(tmp_path, endpoint)
    assert {type(each) for each in ended} == {RateLimitTimeout}
    assert 900 <= took_s < 900 + 60 + 1
    assert len(endpoint.asked_at) < 500  # in 900 s


@pytest.mark.slow
def test_a_run_over_held_out_trajectories_ends_with_every_verdict(tmp_path):
    drawn = random.Random(3)
    with LLMServer() as server:
        answer = server.chat.at_once

        def at_once(request):
            if drawn.random() > REFUSED_SHARE:
                return answer(request)
            refused = error_answer(529, OVERLOADED, code="overloaded_error", headers={"retry-after": "0.02"})
            return server.chat._note(refused), 0.0

        server.chat.at_once = at_once
        result = run(server.base_url, tmp_path)
    assert result.exit_code == 0, result.output
    assert states(tmp_path) == {"ok": HELD_OUT}
