"""Models that reason: room to think, and replies without text that are paid for once."""

import json

import pytest
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.engine.reasoning import is_reasoning, output_room
from arb.judges.types import ModelSettings
from tests.support.judge_runs import run, states
from tests.support.llm_server.chat import Scripted
from tests.support.llm_server.server import LLMServer

VERDICT = "<success>Successful</success>"


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("o4-mini-2025-04-16", True),
        ("openai/o3", True),
        ("gpt-5.4-mini", True),
        ("gpt-5-chat-latest", False),
        ("qwen/qwen3-vl-235b-a22b-thinking", True),
        ("deepseek-reasoner", True),
        ("google/gemini-2.5-pro", True),
        ("gemini-2.5-flash-lite", False),
        ("gpt-4o", False),
        ("o1things", False),
        ("anthropic/claude-3.7-sonnet", False),
    ],
)
def test_reasoning_models_are_known_by_their_names(model, reasons):
    assert is_reasoning(model) is reasons


@pytest.mark.parametrize(
    ("model", "effort", "tokens"),
    [
        ("o3", None, 8_192),
        ("o3", "low", 8_192),
        ("o3", "medium", 16_384),
        ("claude-opus-4", "high", 32_000),
        ("claude-opus-4", None, 0),
        ("gpt-5.1", "none", 0),
    ],
)
def test_the_room_to_think_follows_from_model_and_effort(model, effort, tokens):
    assert output_room(ModelSettings(model, reasoning_effort=effort)) == tokens


def thinking(tokens: int):
    """A server whose model thinks for so many tokens, and is cut off where the limit is lower."""

    def script(request):
        limit = request.body.get("max_completion_tokens") or request.body["max_tokens"]
        return Scripted(VERDICT) if limit > tokens else Scripted(None, finish_reason="length")

    return LLMServer(script, reasoning_tokens=lambda request: tokens)


@pytest.mark.parametrize(
    ("model", "more"), [("o3-mini", ()), ("claude-x", ("--reasoning-effort", "high")), ("deepseek-r1", ())]
)
def test_a_reasoning_model_has_room_to_think_unless_an_option_says_otherwise(tmp_path, model, more):
    with thinking(5_000) as server:
        result = run(server.base_url, tmp_path, "--limit", 8, *more, model=model)
        assert (result.exit_code, states(tmp_path)) == (0, {"ok": 8}), result.output
        run(
            server.base_url,
            tmp_path / "short",
            "--limit",
            2,
            "--max-output-tokens",
            1_024,
            *more,
            model=model,
        )
        assert states(tmp_path / "short") == {"truncated": 2}


def planned(*more) -> str:
    given = ["plan", "simplified-axtree", "--suite", "sample", "--split", "test", "--base-url", "http://h/v1"]
    result = CliRunner().invoke(app, [*given, *map(str, more)])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def test_plan_warns_of_a_limit_that_ends_within_the_thoughts_and_counts_them(tmp_path):
    cache = ("--cache", tmp_path)
    short = planned(*cache, "--model", "o3-mini", "--max-output-tokens", 1_024)
    assert (
        "warning: judge: o3-mini reasons before it answers, so a limit of 1,024 tokens may cut off" in short
    )
    assert "set it to 8192 or more" in short
    assert "warning" not in planned(*cache, "--model", "o3-mini")
    assert "warning" not in planned(*cache, "--model", "gpt-4o", "--max-output-tokens", 1_024)
    price = ("--model", "claude-x", "--price", "claude-x=3,15", "--json")
    plain, high = (
        json.loads(planned(*cache, *price, *effort)) for effort in ((), ("--reasoning-effort", "high"))
    )
    # 52 replies with 600 hidden tokens each, at $15 for a million
    assert high["usd"] - plain["usd"] == pytest.approx(52 * 600 * 15 / 1e6, rel=0.01)


WITHOUT_TEXT = {
    "reasoning_content": ({"reasoning_content": "Let me see."}, "stop", "unparsed"),
    "reasoning": ({"reasoning": "Let me see."}, "stop", "unparsed"),
    "reasoning without an end": ({"reasoning_content": "Let me see."}, None, "unparsed"),
    "cut thoughts": ({"reasoning_content": "Let me"}, "length", "truncated"),
    "tool calls": ({"tool_calls": [{"type": "function", "id": "1"}]}, "tool_calls", "unparsed"),
}


@pytest.mark.parametrize("case", WITHOUT_TEXT)
@pytest.mark.parametrize("judge", ["simplified-axtree", "aer-c"])
def test_a_reply_without_text_is_paid_for_once(tmp_path, case, judge):
    fields, finish_reason, state = WITHOUT_TEXT[case]
    with LLMServer(lambda request: Scripted(None, finish_reason=finish_reason)) as server:
        choice = server.chat._choice
        server.chat._choice = lambda *given: (made := choice(*given)) | {"message": made["message"] | fields}
        run(server.base_url, tmp_path, "--limit", 4, judge=judge)
        assert states(tmp_path) == {state: 4}
        assert server.counts.calls == 4
        run(server.base_url, tmp_path, "--limit", 4, "--retry", state, judge=judge)
        assert server.counts.calls == 4  # the cache has them
