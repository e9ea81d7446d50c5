"""`plan` against what a server then counts: every call, and the tokens within a tenth (Shown to hold, 4)."""

import json
import random
from functools import partial
from pathlib import Path

import pytest

from arb.core.suite import load_suite
from arb.judges.engine.tokens import image_rule
from arb.judges.run import typical_replies
from arb.judges.run.typical_replies import TYPICAL_TOKENS, YES_SHARE
from arb.judges.types import Wants
from arb.judges.views import Views
from bench.pilot import form_of
from tests.support import judge_runs
from tests.support.llm_server.chat import Request
from tests.support.llm_server.scripts import share
from tests.support.llm_server.server import LLMServer
from tests.support.llm_server.tokens import TokenRule
from tests.support.tokenizers import train_tokenizer

MODEL = "gpt-4o-2024-11-20"
REPOSITORY = Path(__file__).parents[4]
PROSE = """
After the search field was filled in, a table with nine rows came up. Its second column shows what an order
costs, and none of them is below forty dollars, although the customer had asked for one under thirty. Next
the sort order was changed twice without any effect on what is visible. A banner at the bottom mentions
cookies. In the end somebody pressed the back key, so that nothing had been saved when the session was closed.
"""


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """A tokenizer learned from the sample's trees and the prompts, and its file."""
    views = Views(REPOSITORY / "dataset_script/sample/data", load_suite("sample"))
    shown = [views.view(trajectory_id, Wants(axtrees="all")) for trajectory_id in views.ids()[:8]]
    texts = [step.axtree or "" for view in shown for step in view.steps]
    texts += [path.read_text() for path in (REPOSITORY / "arb/judges/catalog/prompts").glob("*.txt")]
    trained = train_tokenizer([*texts, PROSE, PROSE], 6_000)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    trained.save(str(path))
    return trained, path


def reply_of_typical_length(request: Request, count, yes_share: float) -> str:
    """As a model might answer: other words than a plan's, of the length that is typical for the purpose."""
    purpose, form = form_of(request, share(request.key) < yes_share)
    words = PROSE.split()
    random.Random(request.key).shuffle(words)
    room = (TYPICAL_TOKENS[purpose] - count(form.format(said=""))) / form.count("{said}")
    number = round(room * len(words) / count(PROSE))
    return form.format(said=" ".join(words[place % len(words)] for place in range(number)))


def arguments(server, tmp_path, judge: str, *more) -> list[str]:
    price = ("--price", f"{MODEL}=2.5,10")
    return judge_runs.options(server, tmp_path, *price, *more, judge=judge, model=MODEL)


def planned(server, tmp_path, judge: str, *more) -> dict:
    result = judge_runs.invoke("plan", *arguments(server, tmp_path, judge, *more), "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def run(server, tmp_path, judge: str, *more):
    return judge_runs.invoke("run", *arguments(server, tmp_path, judge, "--out", tmp_path / "run", *more))


def counting_server(tokenizer, yes_share: float = YES_SHARE) -> LLMServer:
    """A server that counts with the tokenizer, pictures as GPT-4o's, and a little around each message."""

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    rule = TokenRule(text=count, image=image_rule(MODEL).expected, per_message=4, per_call=3)
    return LLMServer(partial(reply_of_typical_length, count=count, yes_share=yes_share), tokens=rule)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("judge", "yes_share"),
    [
        ("simplified-axtree", YES_SHARE),
        ("simplified-both", YES_SHARE),
        ("simplified-neither-inverted", YES_SHARE),
        ("AER-C", YES_SHARE),
        ("AER-V", YES_SHARE),
        ("NNetNav", YES_SHARE),
        # The pictures of the verdict are those rated high; a share of so few would be a matter of luck.
        ("WebJudge (o4-mini)", 0.0),
        ("WebJudge (o4-mini)", 1.0),
    ],
)
def test_a_plan_has_the_calls_of_the_run_and_its_tokens_within_a_tenth(
    judge, yes_share, tokenizer, tmp_path, monkeypatch
):
    monkeypatch.setattr(typical_replies, "YES_SHARE", yes_share)
    trained, path = tokenizer
    with counting_server(trained, yes_share) as server:
        made = planned(server, tmp_path, judge, "--tokenizer", path)
        assert server.counts.calls == 0
        result = run(server, tmp_path, judge)
        assert result.exit_code == 0, result.output
        counts = server.counts
        assert made["calls"] == counts.calls
        for name in ("input_tokens", "output_tokens"):
            planned_tokens = sum(role[name] for role in made["roles"])
            assert planned_tokens == pytest.approx(getattr(counts, name), rel=0.1), name
        paid = (counts.input_tokens * 2.5 + counts.output_tokens * 10) / 1_000_000
        assert made["usd"] == pytest.approx(paid, rel=0.1)


def test_the_estimate_is_near_too_where_there_is_no_tokenizer(tokenizer, tmp_path):
    with counting_server(tokenizer[0]) as server:
        made = planned(server, tmp_path, "simplified-axtree")
        run(server, tmp_path, "simplified-axtree")
        tokens = made["roles"][0]["input_tokens"]
        assert tokens == pytest.approx(server.counts.input_tokens, rel=0.25)
        assert "an estimate" in made["roles"][0]["text_rule"]


@pytest.mark.slow
def test_replies_in_the_cache_cost_nothing_and_are_used_for_what_follows(tokenizer, tmp_path):
    trained, path = tokenizer
    with counting_server(trained) as server:
        all_of_them = planned(server, tmp_path, "NNetNav", "--tokenizer", path)["calls"]
        run(server, tmp_path, "NNetNav", "--limit", 5)
        made = planned(server, tmp_path, "NNetNav", "--tokenizer", path)
        done = server.counts.calls  # a plan makes none; the server counts a call a moment after its answer
        assert made["calls"] == all_of_them - done
        assert sum(role["cached"] for role in made["roles"]) == done
        run(server, tmp_path, "NNetNav")
        assert server.counts.calls == all_of_them
        after = planned(server, tmp_path, "NNetNav", "--tokenizer", path)
        assert after["calls"] == 0
        assert after["usd"] == 0


def test_planning_asks_nobody_and_makes_no_cache(tmp_path):
    with LLMServer() as server:
        planned(server, tmp_path, "simplified-neither")
        assert server.counts.calls == 0
        assert not (tmp_path / "cache").exists()


def test_a_batch_is_planned_at_half_the_price_where_it_is_sold(tmp_path):
    given = ["plan", "GPT-4o (A)", "--suite", "sample", "--split", "dev", "--cache", str(tmp_path), "--json"]
    whole = json.loads(judge_runs.invoke(*given).stdout)["usd"]
    half = json.loads(judge_runs.invoke(*given, "--batch").stdout)["usd"]
    assert half == pytest.approx(whole / 2)


def test_an_unknown_price_is_unknown_and_never_nothing(tmp_path):
    given = ["plan", "NNetNav", "--suite", "sample", "--split", "dev", "--cache", str(tmp_path)]
    made = json.loads(judge_runs.invoke(*given, "--json").stdout)
    assert made["usd"] is None
    assert [role["usd"] for role in made["roles"]] == [None, None]
    shown = judge_runs.invoke(*given, "--max-usd", "1").stdout
    assert "dollars: unknown; the run will not start with --max-usd 1" in shown
    assert "$0" not in shown


def test_limits_a_minute_and_the_length_of_a_call_make_the_time(tmp_path):
    def seconds(*more):
        given = ["plan", "simplified-neither", "--suite", "sample", "--split", "dev", "--json", *more]
        result = judge_runs.invoke(*given, "--cache", tmp_path)
        return json.loads(result.stdout)["seconds"]

    assert seconds("--seconds-per-call", "10", "--max-in-flight", "2") == 100  # 20 calls x 10 s / 2
    assert seconds("--seconds-per-call", "10") == 10  # all at once
    assert seconds("--seconds-per-call", "1", "--requests-per-minute", "10") == 120  # 20 / 10 min


@pytest.mark.slow
def test_a_plan_says_how_it_counted_and_how_it_stands_to_the_limit(tmp_path):
    def shown(max_usd):
        given = ["plan", "WebJudge (o4-mini)", "--suite", "sample", "--split", "dev", "--max-usd", max_usd]
        return judge_runs.invoke(*given, "--cache", tmp_path).stdout

    assert "within --max-usd 1000" in shown("1000")
    assert "the run will probably reach --max-usd 0.01 and stop early" in shown("0.01")
    found = shown("1")
    for said in ("an estimate", "OpenAI patches of 32 px", "genai-prices", "hidden reasoning", "verdict 220"):
        assert said in found


def test_a_judge_that_asks_nobody_costs_nothing(tmp_path):
    given = ["plan", "always-successful", "--suite", "sample", "--split", "dev"]
    assert "calls no model, so it costs $0" in judge_runs.invoke(*given).stdout
