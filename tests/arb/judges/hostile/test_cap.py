"""``--max-usd`` holds whatever an endpoint or a library does with the output limit, and is nearly used up."""

import json

import pytest

from tests.support.judge_runs import HELD_OUT, run, states
from tests.support.llm_server.http import Answer
from tests.support.llm_server.server import LLMServer
from tests.support.provider_server import ProviderServer, as_json, require_clients

VERDICT = "<success>Successful</success>"
PRICE = ("--price", "m=2.5,10")


def usd(server: LLMServer, per_input: float = 2.5, per_output: float = 10.0) -> float:
    return server.counts.usd(per_input, per_output)


@pytest.fixture
def _anthropic(monkeypatch):
    require_clients("anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")


class Claude:
    """Thinks until its output limit is reached or for so many tokens, and keeps books at $3 and $15."""

    def __init__(self, thought_tokens: int):
        self.thought_tokens, self.usd, self.limits = thought_tokens, 0.0, []

    def __call__(self, request) -> Answer:
        body = json.loads(request.body)
        self.limits.append(body.get("max_tokens"))
        tokens, made = len(request.body) // 4, min(self.thought_tokens, body["max_tokens"])
        self.usd += (3 * tokens + 15 * made) / 1e6
        is_cut = made == body["max_tokens"]
        return as_json(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": [{"type": "thinking", "thinking": "?", "signature": "s"}]
                + ([] if is_cut else [{"type": "text", "text": VERDICT}]),
                "stop_reason": "max_tokens" if is_cut else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": tokens, "output_tokens": made},
            }
        )


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-4-6"])
@pytest.mark.parametrize("more", [(), ("--max-output-tokens", 4_000)])
def test_a_reasoning_claude_keeps_the_cap_with_its_output_limit(tmp_path, _anthropic, model, more):
    claude, price = Claude(3_000), ("--price", f"{model}=3,15")
    with ProviderServer(claude) as server:
        options = ("--reasoning-effort", "high", "--max-usd", 1, *price, *more)
        result = run(server.base_url, tmp_path, *options, model=model, provider="anthropic")
    assert result.exit_code == 3, result.output
    assert 0.9 <= claude.usd <= 1  # a call costs $0.05 to $0.06
    assert states(tmp_path)["ok"] >= 10
    assert None not in claude.limits


def test_what_the_library_will_not_send_drops_no_output_limit(tmp_path, _anthropic):
    """With less than 2,048 tokens it sets no thinking budget for this model, and sends nothing."""
    claude, options = Claude(3_000), ("--reasoning-effort", "high", "--max-output-tokens", 1_024)
    price = ("--price", "claude-sonnet-4-5=3,15", "--max-usd", 1)
    with ProviderServer(claude) as server:
        given = {"model": "claude-sonnet-4-5", "provider": "anthropic"}
        result = run(server.base_url, tmp_path, *options, *price, **given)
    assert result.exit_code == 1, result.output
    assert "max_tokens to at least 2048" in result.output.replace("\n", " ")
    assert claude.limits == [] and states(tmp_path) == {}


def test_without_an_output_limit_the_run_stops_before_a_paid_call_and_says_why(tmp_path):
    with LLMServer(unsupported={"max_tokens", "max_completion_tokens"}) as server:
        result = run(server.base_url, tmp_path, "--max-usd", 1, *PRICE)
        assert result.exit_code == 3, result.output
        assert "accepts neither max_tokens nor max_completion_tokens" in result.output
        assert (usd(server), states(tmp_path)) == (0, {})
        assert run(server.base_url, tmp_path, *PRICE).exit_code == 0  # without a cap they are left out
        assert states(tmp_path) == {"ok": HELD_OUT}


def test_without_an_output_limit_the_whole_window_is_set_aside_where_it_is_known(tmp_path):
    with LLMServer(
        unsupported={"max_tokens", "max_completion_tokens"}, reasoning_tokens=lambda _: 9_000
    ) as server:
        # gpt-4o has a window of 128,000 tokens, which would cost $1.28
        stopped = run(server.base_url, tmp_path, "--max-usd", 1, model="gpt-4o-2024-11-20")
        assert (stopped.exit_code, usd(server)) == (3, 0), stopped.output
        run(server.base_url, tmp_path, "--max-usd", 3, model="gpt-4o-2024-11-20")
        assert 1 < usd(server) <= 3


def test_an_endpoint_that_ignores_the_output_limit_keeps_the_cap(tmp_path):
    """It hides ten times the limit in every reply; only the first call is made without knowing that."""
    with LLMServer(reasoning_tokens=lambda _: 10_240) as server:
        result = run(server.base_url, tmp_path, "--max-usd", 1, *PRICE)
    assert result.exit_code == 3, result.output
    assert 0.5 < usd(server) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["simplified-axtree", "simplified-neither", "aer-c", "nnetnav", "webjudge"])
@pytest.mark.parametrize("share", [0.4, 0.75])
def test_a_capped_run_leaves_at_most_a_tenth_while_calls_remain(tmp_path, judge, share):
    """The cap is a share of what the whole run costs: about 20 or 39 of 52 trajectories.

    The model is one whose pictures are counted by rule; of an unknown one a picture has 6,404 tokens at most.
    """
    asked = {"judge": judge, "model": "gpt-4o"}
    with LLMServer() as server:
        assert run(server.base_url, tmp_path / "whole", "--price", "gpt-4o=2.5,10", **asked).exit_code == 0
        whole = usd(server)
        server.reset_counts()
        capped = ("--max-usd", share * whole, "--price", "gpt-4o=2.5,10")
        result = run(server.base_url, tmp_path, *capped, **asked)
        assert result.exit_code == 3, result.output
        # At 0.4 a call is a twentieth of the cap, and which calls come last depends on the clock.
        least = 0.85 if share == 0.4 else 0.9
        assert least * share * whole <= usd(server) <= share * whole
