"""Several samples in one request (``n``): the input is paid once, and each sample is a reply of its own."""

import asyncio

import pytest

from arb.judges.engine.budget import Budget
from arb.judges.engine.errors import classify_status
from arb.judges.engine.prices import ANY_PROVIDER, Price, PriceTable
from tests.support.call_executor import Kit, call
from tests.support.llm_server.chat import Scripted
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.server import LLMServer
from tests.support.llm_server.tokens import InputCache

PRICES = PriceTable({(ANY_PROVIDER, "m"): Price(10.0, 20.0, cached_input=1.0)})
FOUR = tuple(range(4))


def different(request) -> str:
    """Every answer another, and of another length."""
    return f"Status: success {request.attempt} " + "because " * (10 * request.choice + request.attempt)


def samples(question: str = "Status: ?", numbers=FOUR):
    return [call(question, sample=number, together=tuple(numbers)) for number in numbers]


def kit(folder, server, **settings):
    return Kit(folder, server, budget=Budget(None, PRICES), **{"temperature": 0.7} | settings)


def test_four_samples_are_one_request_and_each_is_a_reply_of_its_own(tmp_path):
    with LLMServer(different, input_cache=InputCache()) as server:
        asked = kit(tmp_path, server)
        replies = asked.ask(*samples("Status: ? " + "page " * 2_000))
        assert server.counts.calls == 1
        assert server.chat.bodies[0]["n"] == 4
        assert len({reply.text for reply in replies}) == len({reply.key for reply in replies}) == 4
        assert not any(reply.is_from_cache for reply in replies)  # each was paid, and counts once
        assert [reply.input_tokens for reply in replies] == [server.counts.input_tokens, 0, 0, 0]
        assert sum(reply.output_tokens for reply in replies) == server.counts.output_tokens
        lengths = [len(reply.text) for reply in replies]
        for reply, length in zip(replies, lengths, strict=True):
            assert reply.output_tokens == pytest.approx(
                server.counts.output_tokens * length / sum(lengths), abs=2
            )
        assert sum(reply.cost_usd for reply in replies) == pytest.approx(server.counts.usd(10, 20, 1))
        assert asked.kinds() == {"answered": 4}
        again = kit(tmp_path, server).ask(*samples("Status: ? " + "page " * 2_000))
        assert [reply.text for reply in again] == [reply.text for reply in replies]
        assert all(reply.is_from_cache for reply in again)
        assert server.counts.calls == 1


@pytest.mark.parametrize("settings", [{"temperature": 0.0}, {"extra": {"n": 1}}])
def test_where_samples_cannot_differ_or_the_user_has_set_n_each_is_a_request(settings, tmp_path):
    with LLMServer(different) as server:
        kit(tmp_path, server, **settings).ask(*samples())
        assert server.counts.calls == 4
        assert [body.get("n") for body in server.chat.bodies] == [settings.get("extra", {}).get("n")] * 4


def test_a_refusal_of_n_is_learned(tmp_path):
    with LLMServer(different, unsupported=["n"]) as server:
        asked = kit(tmp_path, server)
        replies = asked.ask(*samples())
        assert [reply.state for reply in replies] == ["ok"] * 4
        assert asked.executor.unsupported_params == {"judge": ["n"]}
        assert server.counts.statuses[200] == 4
        assert server.counts.statuses[400] == 1
        before = server.counts.calls
        asked.ask(*samples("Another?"))  # a new executor: it learns it again, once
        assert (server.counts.calls - before, server.counts.statuses[400]) == (5, 2)


def test_an_endpoint_that_does_not_read_n_is_asked_for_each_sample_and_not_with_n_again(tmp_path):
    with LLMServer(different, most_choices=1) as server:

        async def both(executor):
            first = await asyncio.gather(*map(executor.ask, samples()))
            return [*first, *await asyncio.gather(*map(executor.ask, samples("Another?")))]

        asked = kit(tmp_path, server)
        replies = asked.run(both)
        assert len({reply.key for reply in replies}) == 8
        assert [body.get("n") for body in server.chat.bodies] == [4, *[None] * 7]
        assert sum(reply.cost_usd for reply in replies) == pytest.approx(server.counts.usd(10, 20))


def test_an_endpoint_that_gives_fewer_is_asked_for_the_rest(tmp_path):
    with LLMServer(different, most_choices=2) as server:
        replies = kit(tmp_path, server).ask(*samples(numbers=range(5)))
        assert sorted(body.get("n", 1) for body in server.chat.bodies) == [1, 3, 5]
        assert len({reply.key for reply in replies}) == 5
        assert server.counts.paid_twice(samples=5) == {}


def test_an_answer_without_text_among_others_is_asked_for_again_alone(tmp_path):
    def blank_once(request):
        return Scripted(None if request.choice == 1 else different(request))

    with LLMServer(blank_once) as server:
        replies = kit(tmp_path, server).ask(*samples())
        assert [body.get("n") for body in server.chat.bodies] == [4, None]
        assert all(reply.text for reply in replies)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_fails_every_sample_has_one_reply_and_costs_are_the_endpoints_books(seed, tmp_path):
    storm = FaultPlan.each(0.06, seed=seed, at_most=4, without=("timeout", "too_long", "slow_stream"))
    with LLMServer(different, faults=storm) as server:
        asked = kit(tmp_path, server)
        questions = [f"Status: ? {number}" for number in range(12)]
        replies = asked.ask(*(each for question in questions for each in samples(question)))
        assert len({reply.key for reply in replies}) == 48
        assert not any(reply.is_from_cache for reply in replies)
        unread = server.counts.faults["cut_body"] + server.counts.faults["cut_json"]
        paid = sum(reply.cost_usd for reply in replies)
        assert paid <= server.counts.usd(10, 20) + 1e-9  # answers that were cut are charged, and not counted
        if not unread:
            assert paid == pytest.approx(server.counts.usd(10, 20))


def test_samples_that_nobody_asked_for_together_stay_requests_of_their_own(tmp_path):
    with LLMServer(different) as server:
        kit(tmp_path, server).ask(*(call("?", sample=number) for number in FOUR))
        assert server.counts.calls == 4


@pytest.mark.parametrize(
    "message",
    [
        "n must be 1 when using greedy sampling, got 4.",  # vLLM
        "'n' : number must be at most 1",
        "Invalid value for 'n': this model supports a single choice",
        "only n=1 is allowed",
        "multiple choices are not available for this model",
    ],
)
def test_refusals_of_n_are_known_by_their_words(message):
    failure = classify_status(400, f'{{"error": {{"message": "{message}"}}}}')
    assert (failure.kind, failure.parameter) == ("unsupported_parameter", "n")


@pytest.mark.parametrize(
    "message", ["you have n tokens left", "messages[0].content must be a string", "invalid model name"]
)
def test_other_refusals_are_not_taken_for_one_of_n(message):
    assert classify_status(400, f'{{"error": {{"message": "{message}"}}}}').parameter is None
