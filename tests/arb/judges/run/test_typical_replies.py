"""Dummy replies for a plan: every judge reads them."""

import pytest

from arb.judges.engine.tokens import TokenCounters
from arb.judges.run.scheduler import drive_offline
from arb.judges.run.typical_replies import SCENARIOS, PilotReplies, dummy_reply
from arb.judges.types import Call, ModelSettings
from tests.support.judges import judges, view

ASKING = {name: judge for name, judge in judges().items() if getattr(judge, "models", None)}


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


def test_after_a_pilot_replies_are_as_long_as_its_own_and_the_expected_one_has_its_words():
    pilot = PilotReplies(("Status: success",), 1, 150.0, 1.0, 0.0)
    for scenario, tokens, words in (
        ("low", 128, "failure"),
        ("expected", 150, "success"),
        ("high", 180, "success"),
    ):
        reply = dummy_reply(Call("verdict", ()), "ab" * 32, scenario, 1024, pilot=pilot)
        assert (reply.output_tokens, f"Status: {words}" in reply.text) == (tokens, True)
    assert dummy_reply(Call("verdict", ()), "ab" * 32, "expected", 120, pilot=pilot).output_tokens == 120
