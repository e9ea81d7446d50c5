"""Tests of the limit on checks: per address, in a sliding window, with bounded memory."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import HTTPConnection

from arb.core.settings import Settings
from space.operations.limits import CheckLimit, TooManyChecks, client_address, counted_as
from space.operations.metrics import Metrics
from submissions.intake.accounts import Actor

START = 1_800_000_000.0
"""The start of a minute: divisible by 60."""


def request_from(host: str | None, *forwarded: str) -> HTTPConnection:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return HTTPConnection({"type": "http", "headers": headers, "client": host and (host, 1234)})


@pytest.fixture
def clock(monkeypatch):
    """A clock that changes only when it is set. `limits` reads `time.time`."""
    now = [START]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def limit(**options) -> CheckLimit:
    settings = {"checks_a_minute": 3, **{k: v for k, v in options.items() if k == "space_id"}}
    most = {k: v for k, v in options.items() if k == "most_addresses"}
    return CheckLimit(Settings(**settings), Metrics(), **most)


def taken(checks: CheckLimit, request: HTTPConnection, times: int) -> int:
    """Return how many of ``checks`` checks are allowed."""
    done = 0
    for _ in range(times):
        try:
            checks.take(request)
            done += 1
        except TooManyChecks:
            pass
    return done


def test_an_address_has_so_many_checks_a_minute_and_another_its_own(clock):
    checks = limit()
    assert taken(checks, request_from("192.0.2.1"), 5) == 3
    assert taken(checks, request_from("192.0.2.2"), 5) == 3


def test_the_refusal_says_when_to_come_back_and_then_it_is_let_in(clock):
    checks = limit()
    assert taken(checks, request_from("192.0.2.1"), 3) == 3
    with pytest.raises(TooManyChecks, match="3 files checked per minute; try again in") as refused:
        checks.take(request_from("192.0.2.1"))
    assert 1 <= refused.value.retry_after <= 60
    # Two windows later, none of the three counts any more.
    clock[0] += 120
    assert taken(checks, request_from("192.0.2.1"), 5) == 3


def test_the_window_slides(clock):
    checks = limit()
    assert taken(checks, request_from("192.0.2.1"), 3) == 3
    clock[0] += 90  # half a window later, half of the three (1.5) still counts, so one more makes 2.5
    assert taken(checks, request_from("192.0.2.1"), 5) == 2


def test_the_networks_of_one_ipv6_site_share_a_higher_limit(clock):
    checks = limit()
    networks = [request_from(f"2001:db8:1:{n:x}::1") for n in range(80)]
    # Three for each of four networks: 4 x 3 = 12 for the /48.
    assert [taken(checks, network, 5) for network in networks] == [3] * 4 + [0] * 76
    with pytest.raises(TooManyChecks, match="one IPv6 /48 may have 12 files checked per minute"):
        checks.take(networks[-1])
    assert taken(checks, request_from("2001:db8:2::1"), 5) == 3  # another site
    assert taken(checks, request_from("192.0.2.1"), 5) == 3


def test_one_ipv6_network_cannot_use_up_the_limit_of_its_site(clock):
    checks = limit()
    assert taken(checks, request_from("2001:db8:1::1"), 50) == 3
    assert taken(checks, request_from("2001:db8:1:1::1"), 5) == 3


def test_elsewhere_a_claimed_address_does_not_help(clock):
    checks = limit()
    total = sum(taken(checks, request_from("192.0.2.1", f"198.51.100.{n}"), 1) for n in range(9))
    assert total == 3


def test_on_a_space_the_last_hop_counts_and_claimed_ones_do_not(clock):
    checks = limit(space_id="a/b")
    total = sum(taken(checks, request_from("10.0.0.1", f"198.51.100.{n}, 192.0.2.1"), 1) for n in range(9))
    assert total == 3
    assert taken(checks, request_from("10.0.0.1", "192.0.2.1, 198.51.100.7"), 1) == 1


def test_an_account_has_its_own_count_however_many_addresses_it_uses(clock):
    checks, ada = limit(), Actor("Ada", how="token")
    for number in range(3):
        checks.take(request_from(f"192.0.2.{number}"), ada)
    with pytest.raises(TooManyChecks, match="one account may have 3 files checked"):
        checks.take(request_from("192.0.2.9"), Actor("ada", how="session"))
    assert taken(checks, request_from("192.0.2.0"), 5) == 3  # IPv4 addresses are counted separately


def test_who_goes_on_after_as_many_refusals_waits_for_each_further_one(clock):
    checks, delays = limit(), []
    for _ in range(9):
        try:
            checks.take(request_from("192.0.2.1"))
        except TooManyChecks as refused:
            delays.append(refused.delay_s)
    assert delays == [0, 0, 0, 1, 1, 1]  # the first refusals are not delayed


def test_other_requests_are_counted_in_multiples(clock):
    checks = CheckLimit(Settings(checks_a_minute=3), Metrics(), times=10)
    assert taken(checks, request_from("192.0.2.1"), 40) == 30
    with pytest.raises(TooManyChecks, match="one address may send 30 requests per minute"):
        checks.take(request_from("192.0.2.1"))


def test_memory_is_bounded_in_addresses(clock):
    checks = limit(most_addresses=5)
    for number in range(200):
        taken(checks, request_from(f"192.0.2.{number}"), 1)
    assert len(checks._storage.storage) <= 2 * 5 + 2  # two counters each, and the shared count
    assert taken(checks, request_from("192.0.2.0"), 5) == 2  # earlier senders keep their own counts
    for number in range(200):
        taken(checks, request_from(f"2001:db8:{number:x}::"), 1)
    assert len(checks._storage.storage) <= 2 * 5 + 2


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        (" 192.0.2.1 ", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "unknown"),
        ("", "unknown"),
        ("<script>", "unknown"),
    ],
)
def test_addresses_are_counted_by_network(address, counted):
    assert counted_as(address) == counted


@given(st.lists(st.text(alphabet=st.characters(max_codepoint=255), max_size=60), max_size=4), st.booleans())
def test_whatever_is_claimed_an_address_is_found_and_short(claimed, on_space):
    headers = [(b"x-forwarded-for", each.encode("latin-1")) for each in claimed]
    request = HTTPConnection({"type": "http", "headers": headers, "client": ("192.0.2.9", 1)})
    found = client_address(request, on_space)
    assert found and len(found) <= 45
    if not on_space:
        assert found == "192.0.2.9"
