"""Replies that are not there yet: every judge reads them, and they are like those that are known."""

from collections import Counter

import pytest

from arb.judges.engine.cache import CallCache, KnownReply, call_kind
from arb.judges.engine.tokens import TokenCounters
from arb.judges.run.scheduler import drive_offline
from arb.judges.run.typical_replies import (
    LEAST_SPREAD,
    SCENARIOS,
    Range,
    _learned,
    dummy_reply,
    learn,
)
from arb.judges.types import Call, Message, ModelSettings, Reply
from tests.support.judges import judges, view

ASKING = {name: judge for name, judge in judges().items() if getattr(judge, "models", None)}
MODEL = ModelSettings("m", provider="any")


def known(output_tokens: int, text="Status: success", images=0, **usage) -> KnownReply:
    usage = {"input_tokens": 100} | usage
    return KnownReply("verdict", 400, images, Reply(text, output_tokens=output_tokens, **usage))


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize(("scenario", "success"), [("low", False), ("high", True)])
def test_every_judge_reads_the_verdict_of_a_dummy_reply(name, scenario, success):
    answer = drive_offline(ASKING[name], view(3), lambda call: dummy_reply(call, "ab" * 32, scenario, 1024))
    assert (answer.state, answer.success) == ("ok", success)


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("purpose", ["verdict", "caption", "change", "key points", "rating", "another"])
def test_replies_have_about_the_tokens_they_stand_for_and_never_more_than_allowed(scenario, purpose):
    count = TokenCounters().of(ModelSettings("m", provider="any")).count
    for room in (1, 100, 1024):
        reply = dummy_reply(Call(purpose, ()), "0" * 64, scenario, room)
        assert 0 < reply.output_tokens <= room
    assert count(reply.text) == pytest.approx(reply.output_tokens, rel=0.15, abs=25)


def test_different_calls_get_different_replies_and_equal_ones_equal():
    call = Call("caption", ())
    assert dummy_reply(call, "1" * 64, "low", 99) == dummy_reply(call, "1" * 64, "low", 99)
    assert dummy_reply(call, "1" * 64, "low", 99).text != dummy_reply(call, "2" * 64, "low", 99).text


def test_what_is_learned_is_the_mean_and_two_standard_errors():
    found = _learned([known(80), known(100), known(120)])
    # The standard deviation is 20, the standard error 20 / sqrt(3) = 11.55.
    assert found.output_tokens == pytest.approx((100 - 23.09, 100, 100 + 23.09), abs=0.01)
    assert (found.number, found.per_character) == (3, 0.25)
    assert _learned([known(100)]).output_tokens == Range(50, 100, 150)  # one tells little: two quarters
    assert _learned([known(100)] * 9).output_tokens.high == 100 * (1 + LEAST_SPREAD)


def test_hidden_reasoning_is_paid_but_no_text():
    found = _learned([known(500, reasoning_tokens=400), known(700, reasoning_tokens=600)])
    assert (found.output_tokens.expected, found.text_tokens.expected) == (600, 100)


def test_what_is_cached_is_learned_without_the_call_that_filled_the_cache():
    cold, warm = known(1), known(1, cached_input_tokens=60)
    assert _learned([warm, cold, warm]).cached_share == 0.6
    assert _learned([cold, warm, cold]).cached_share == 0.3  # (60 + 0) / 200
    assert _learned([cold]).cached_share == 0.0


def test_samples_of_one_request_have_its_input_once():
    found = _learned([known(10), known(20, input_tokens=0), known(30, input_tokens=0)])
    assert (found.per_character, found.output_tokens.expected) == (0.25, 20)
    assert _learned([known(10, images=1)]).per_character is None


def test_the_expected_reply_is_one_of_those_known_and_different_calls_get_different_ones():
    found = _learned([known(100, "Status: success"), known(200, "Status: failure")])
    texts = {}
    for number in range(40):
        key = f"{number:08x}" * 8
        reply = dummy_reply(Call("verdict", ()), key, "expected", 1024, 1.0, found, number)
        assert reply.output_tokens == 150
        texts[reply.text] = reply.text.splitlines()[1]
    assert len(texts) == 40
    # Each known reply in its turn: of 40 calls 20 say yes, not as many as chance would have it.
    assert Counter(texts.values()) == {"Status: success": 20, "Status: failure": 20}
    assert dummy_reply(Call("verdict", ()), "a" * 64, "expected", 120, 1.0, found).output_tokens == 120


def test_low_and_high_say_no_and_yes_whatever_is_known():
    found = _learned([known(100, "Status: success"), known(200, "Status: failure")])
    for scenario, word in (("low", "failure"), ("high", "success")):
        reply = dummy_reply(Call("verdict", ()), "ab" * 32, scenario, 1024, 1.0, found)
        assert f"Status: {word}" in reply.text
        assert reply.output_tokens == round(found.output_tokens.of(scenario))


def test_a_cache_teaches_of_its_kinds(tmp_path):
    call = Call("verdict", (Message("system", "Judge."), Message("user", "four")))
    cache = CallCache(tmp_path)
    for number, tokens in enumerate((10, 30)):
        reply = Reply("Status: success", input_tokens=5, output_tokens=tokens)
        cache.put(f"{number:064x}", reply, call, MODEL)
    cache.put("f" * 64, Reply("of no known call", output_tokens=999))
    cache.close()
    (kind,) = learn(CallCache(tmp_path))
    assert kind == call_kind(MODEL, call)
    found = learn(CallCache(tmp_path))[kind]
    assert (found.purpose, found.number, found.output_tokens.expected) == ("verdict", 2, 20)
    assert found.per_character == 0.5  # 5 tokens for "Judge." and "four"
