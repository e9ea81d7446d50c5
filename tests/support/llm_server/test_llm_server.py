"""The server itself: what others' tests rest on."""

import hashlib
import http.client
import json
from collections import Counter

import openai
import pytest

from arb.judges.endpoints.openai_compatible import request_body
from arb.judges.registry import entries
from arb.judges.types import ModelSettings, Reply
from tests.support.judges import judged, view
from tests.support.llm_server.chat import Request, Scripted
from tests.support.llm_server.faults import FAULTS, FaultPlan
from tests.support.llm_server.process import LLMProcess
from tests.support.llm_server.scripts import judges
from tests.support.llm_server.server import LLMServer
from tests.support.llm_server.tokens import TokenRule, size_of, tiles
from tests.support.waiting import eventually


def client_of(server, **how):
    return openai.OpenAI(base_url=server.base_url, api_key="k", max_retries=0, **how)


def ask(server, text="Hello", **more):
    messages = [{"role": "user", "content": text}]
    return client_of(server).chat.completions.create(model="m", messages=messages, **more)


def test_counts_calls_answers_and_tokens_by_prompt():
    with LLMServer(lambda request: "12345") as server:
        ask(server, "Hello")
        ask(server, "Hello", temperature=0.5)
        ask(server, "other")
        counts = server.counts
        assert (counts.calls, len(counts.tries), sorted(counts.answers.values())) == (3, 2, [1, 2])
        assert list(counts.paid_twice().values()) == [2]
        assert counts.paid_twice(samples=2) == {}
        # 3 + 3 + 5 bytes / 4, rounded up = 8 in; 2 out
        assert (counts.input_tokens, counts.output_tokens) == (24, 6)


def test_a_script_sees_texts_pictures_and_the_number_of_the_try():
    seen = []

    def script(request: Request):
        seen.append((request.text, len(request.images), request.attempt, request.model))
        return Scripted("fine", finish_reason="length")

    url = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAABQAAAALQ" + "A" * 16
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    with LLMServer(script) as server:
        for _ in range(2):
            assert ask(server, content).choices[0].finish_reason == "length"
        # 1,280 x 720 is 3 x 2 tiles: 3 + 3 + 1 + 85 + 6 * 170 = 1,112
        assert server.counts.input_tokens == 2 * 1_112
    assert seen == [("look", 1, 0, "m"), ("look", 1, 1, "m")]
    assert size_of(url) == (1280, 720)


@pytest.mark.parametrize(
    ("size", "detail", "tokens"),
    [
        ((512, 512), "auto", 255),  # one tile
        ((1024, 1024), "high", 765),  # brought down to 768: 2 x 2 tiles
        ((2048, 4096), "high", 1_105),  # 1,024 x 2,048, then 768 x 1,536: 2 x 3 tiles
        ((4096, 4096), "low", 85),
    ],
)
def test_pictures_are_counted_in_tiles(size, detail, tokens):
    assert tiles(*size, detail) == tokens


def test_a_test_may_bring_its_own_tokenizer():
    rule = TokenRule(text=lambda text: len(text.split()), per_message=4, per_call=2)
    with LLMServer(lambda request: "a b c", tokens=rule) as server:
        assert ask(server, "one two").usage.to_dict() == {
            "prompt_tokens": 2 + 4 + 2,
            "completion_tokens": 3,
            "total_tokens": 11,
        }


def test_log_probabilities_come_only_when_asked_for():
    with LLMServer(lambda request: "Status: success") as server:
        assert ask(server).choices[0].logprobs is None
        tokens = ask(server, logprobs=True, top_logprobs=2).choices[0].logprobs.content
        assert "".join(token.token for token in tokens) == "Status: success"
        assert [rival.token for rival in tokens[-1].top_logprobs] == ["success", "failure"]
        assert tokens[-1].logprob == pytest.approx(-0.105, abs=0.001)  # ln 0.9


def test_a_plan_is_the_same_whatever_the_order_and_meets_its_rates():
    plan = FaultPlan({"reset": 0.2, "overload": 0.1}, seed=5)
    keys = [str(number) for number in range(4_000)]
    drawn = Counter(plan.fault(key, 0) for key in keys)
    # of 4,000: 800 and 400; three standard deviations are 76 and 57
    assert abs(drawn["reset"] - 800) < 76 and abs(drawn["overload"] - 400) < 57
    assert drawn == Counter(plan.fault(key, 0) for key in reversed(keys))
    assert drawn != Counter(FaultPlan(plan.rates, seed=6).fault(key, 0) for key in keys)
    assert {FaultPlan(plan.rates, at_most=2).fault(key, 2) for key in keys} == {None}


def test_a_plan_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="no such fault"):
        FaultPlan({"rate_limits": 0.1})
    with pytest.raises(ValueError, match="more than 1"):
        FaultPlan({"reset": 0.9, "timeout": 0.2})
    assert FaultPlan.each(0.05, without=("timeout",)).rates.keys() == FAULTS.keys() - {"timeout"}


def test_what_was_paid_in_vain_is_counted_apart():
    with LLMServer(faults=FaultPlan({"cut_json": 1.0})) as server:
        with pytest.raises(json.JSONDecodeError):
            ask(server)
        assert (server.counts.answers.total(), server.counts.unusable.total()) == (0, 1)
        assert server.counts.output_tokens > 0


def test_an_answer_that_nobody_waited_for_is_not_counted_as_one():
    with LLMServer(latency_s=600) as server:
        client = http.client.HTTPConnection("127.0.0.1", server.port)
        client.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "messages": []}))
        eventually(lambda: server.counts.in_flight == 1)
        client.close()
        eventually(lambda: server.counts.left == 1)
        assert server.counts.answers.total() == 0


def test_rules_refuse_what_the_script_is_never_asked():
    with LLMServer(unsupported={"seed"}, max_input_tokens=20) as server:
        with pytest.raises(openai.BadRequestError) as refused:
            ask(server, seed=1)
        assert (refused.value.code, refused.value.param) == ("unsupported_parameter", "seed")
        with pytest.raises(openai.BadRequestError) as refused:
            ask(server, "word " * 50)
        assert refused.value.code == "context_length_exceeded"


def test_a_script_that_fails_is_seen_by_the_client(capsys):
    def broken(_request):
        raise RuntimeError("a mistake in the test")

    with (
        LLMServer(broken) as server,
        pytest.raises(openai.InternalServerError, match="a mistake in the test"),
    ):
        ask(server)
    assert "a mistake in the test" in capsys.readouterr().err


def test_a_key_is_looked_at_where_one_is_set():
    with LLMServer(api_key="right") as server, pytest.raises(openai.AuthenticationError):
        ask(server)


def test_runs_in_a_process_of_its_own():
    with LLMProcess(rates={"server_error": 1.0}) as server:
        with pytest.raises(openai.InternalServerError):
            ask(server)
        assert (server.counts.calls, server.counts.statuses) == (1, {500: 1})


ASKING = [entry.judge for entry in entries() if getattr(entry.judge, "models", None)]


def scripted_reply(call):
    body = request_body(ModelSettings("m"), call.messages, 100)
    key = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
    return Reply(judges(Request(body, key, 0)))


@pytest.mark.parametrize("judge", ASKING, ids=lambda judge: judge.name)
def test_the_script_for_judges_answers_each_of_them_with_a_verdict(judge):
    assert judged(judge, view(), scripted_reply).answer.state == "ok"


def test_the_script_for_judges_says_yes_and_no():
    aer = ASKING[1]
    answers = Counter(judged(aer, view(actions), scripted_reply).answer.success for actions in range(1, 30))
    assert answers[True] > 4 and answers[False] > 4
