"""What a run tells while it goes on."""

import io

import pytest
from rich.console import Console

from arb.judges.run.progress import INTERVAL_WITHOUT_TERMINAL_S, Progress, Spend, duration
from arb.judges.types import Reply


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def progress_of(total=100, done=0, spend=None):
    said, clock = io.StringIO(), Clock()
    console = Console(file=said, width=200, markup=False, highlight=False)
    return Progress(total, done, spend or Spend(), console, clock), said, clock


def test_the_line_has_done_states_rate_time_left_and_dollars():
    spend = Spend(before_usd=0.5)
    progress, _, clock = progress_of(100, 40, spend)
    for number in range(20):
        clock.now += 0.5
        progress.judged("ok" if number else "error")
    spend.count(Reply("yes", cost_usd=0.25))
    progress.event("retried")
    # 20 in 10 s are 2 a second; of 100, 40 were done before, so 40 are left: 20 s
    assert progress.line() == ("60 of 100, 1 error, 19 ok, 2.0/s, 20 s left, $0.7500 spent, 1 retried")


def test_why_the_first_call_is_made_again_is_said_once():
    progress, said, _ = progress_of()
    progress.event("retried", failure="transient", message="no connection: refused")
    progress.event("retried", failure="transient", message="503: overloaded")
    assert said.getvalue() == "a call failed and is retried: no connection: refused\n"


def test_what_an_endpoint_sent_gets_to_no_terminal_as_it_is():
    progress, said, _ = progress_of()
    progress.event("retried", failure="transient", message="503: \x1b]0;title\x07\x1b[2J\nplease wait")
    assert said.getvalue() == "a call failed and is retried: 503: �]0;title��[2J\nplease wait\n"


def test_the_rate_is_that_of_late():
    progress, _, clock = progress_of(1000)
    for _ in range(100):
        clock.now += 0.1
        progress.judged("ok")
    clock.now += 20
    # the window of 30 s has all 100
    assert progress.rate() == pytest.approx(100 / 30)
    clock.now += 40
    assert progress.rate() is None


def test_where_stderr_is_a_file_a_line_is_added_now_and_then():
    progress, said, clock = progress_of()
    with progress:
        for _ in range(100):
            clock.now += INTERVAL_WITHOUT_TERMINAL_S / 20
            progress.judged("ok")
    assert len(said.getvalue().splitlines()) == 5


def test_an_unknown_price_is_unknown_not_zero():
    spend = Spend()
    spend.count(Reply("yes", cost_usd=0.25))
    spend.count(Reply("yes", cost_usd=None))
    assert "unknown amount spent" in progress_of(spend=spend)[0].line()


def test_what_came_from_the_cache_or_never_came_is_not_paid_and_a_refusal_is():
    spend = Spend()
    spend.count(Reply("yes", cost_usd=1.0, is_from_cache=True))
    spend.count(Reply(None, "error", error="503"))
    assert (spend.usd, spend.calls) == (0.0, 0)
    spend.count(Reply(None, "refused", input_tokens=10, output_tokens=0, cost_usd=0.125))
    spend.count(Reply(None, "error", error="tried in vain", cost_usd=0.25))
    assert (spend.usd, spend.calls) == (0.375, 2)


def test_strangers_words_are_no_markup():
    progress, said, _ = progress_of()
    progress.say("[bold]not bold[/bold]")
    assert said.getvalue() == "[bold]not bold[/bold]\n"


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0 s"), (59.4, "59 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")]
)
def test_times_are_written_for_people(seconds, said):
    assert duration(seconds) == said
