"""Replies that are not there yet: every judge reads them, and after a pilot they are like the pilot's."""

from collections import Counter

import pytest

from arb.judges.engine.tokens import TokenCounters
from arb.judges.run import typical_replies
from arb.judges.run.scheduler import drive_offline
from arb.judges.run.typical_replies import PilotReplies, dummy_reply
from arb.judges.types import Call, ModelSettings, Reply
from tests.support.judges import judges, view

ASKING = {name: judge for name, judge in judges().items() if getattr(judge, "models", None)}


def pilot_of(*replies: Reply, tokens_by_rule: int = 100) -> PilotReplies:
    pilot = PilotReplies()
    for reply in replies:
        pilot.add(reply, tokens_by_rule)
    return pilot


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize(("yes_share", "success"), [(0.0, False), (1.0, True)])
def test_every_judge_reads_the_verdict_of_a_dummy_reply(name, yes_share, success, monkeypatch):
    monkeypatch.setattr(typical_replies, "YES_SHARE", yes_share)
    answer = drive_offline(ASKING[name], view(3), lambda call: dummy_reply(call, "ab" * 32, 1024))
    assert (answer.state, answer.success) == ("ok", success)


@pytest.mark.parametrize("purpose", ["verdict", "caption", "change", "key points", "rating", "another"])
def test_replies_have_about_the_tokens_they_stand_for_and_never_more_than_allowed(purpose):
    count = TokenCounters().of(ModelSettings("m", provider="any")).count
    for room in (1, 100, 1024):
        reply = dummy_reply(Call(purpose, ()), "0" * 64, room)
        assert 0 < reply.output_tokens <= room
    assert count(reply.text) == pytest.approx(reply.output_tokens, rel=0.15, abs=25)


def test_different_calls_get_different_replies_and_equal_ones_equal():
    call = Call("caption", ())
    assert dummy_reply(call, "1" * 64, 99) == dummy_reply(call, "1" * 64, 99)
    assert dummy_reply(call, "1" * 64, 99).text != dummy_reply(call, "2" * 64, 99).text


def test_a_pilot_gives_the_mean_length_with_hidden_reasoning_and_the_endpoints_count_of_input():
    replies = [Reply("yes", input_tokens=120, output_tokens=500, reasoning_tokens=400)]
    replies += [Reply("no", input_tokens=100, output_tokens=700, reasoning_tokens=600)]
    pilot = pilot_of(*replies)
    assert pilot.mean_output == 600  # (500 + 700) / 2
    assert pilot.input_ratio == 1.1  # (120 + 100) / (100 + 100)


def test_the_cached_share_leaves_out_the_call_that_filled_the_cache():
    cold, warm = Reply("", input_tokens=100), Reply("", input_tokens=100, cached_input_tokens=60)
    assert pilot_of(warm, cold, warm).cached_share == 0.6
    assert pilot_of(cold, warm, cold).cached_share == 0.3  # (60 + 0) / 200
    assert pilot_of(cold).cached_share == 0.0


def test_further_samples_and_shortened_prompts_tell_nothing_of_the_input():
    pilot = pilot_of(Reply("", input_tokens=0), Reply("", input_tokens=50, used_shorter=True))
    assert (pilot.input_ratio, pilot.cached_share) == (1.0, 0.0)


def test_after_a_pilot_each_of_its_replies_comes_in_its_turn_and_different_calls_get_different_ones():
    yes = Reply("Status: success", output_tokens=100, key="a")
    no = Reply("Status: failure", output_tokens=200, key="b")
    pilot = pilot_of(yes, no)
    texts = {}
    for number in range(40):
        reply = dummy_reply(Call("verdict", ()), f"{number:08x}" * 8, 1024, pilot, number)
        assert reply.output_tokens == 150
        texts[reply.text] = reply.text.splitlines()[1]
    assert len(texts) == 40
    assert Counter(texts.values()) == {"Status: success": 20, "Status: failure": 20}
    assert dummy_reply(Call("verdict", ()), "a" * 64, 120, pilot).output_tokens == 120
