"""Limits on the requests per minute of each sender.

A sender is an account, or the address that connected (on a Space, the address that the Hub's proxy saw).
"""

import math
import time
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from fastapi import HTTPException
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from starlette.requests import HTTPConnection

from arb.core.settings import Settings
from space.operations.metrics import Metrics
from submissions.intake.accounts import Actor

UNKNOWN: Final = "unknown"
_NETWORK_BITS: Final = 64
"""The prefix length of a household's IPv6 network, whose addresses all count as one sender."""
_SITE_BITS: Final = 48
"""The prefix length of the largest IPv6 network that a customer may get. Its 65,536 household networks share
`TIMES_A_SITE` times the limit of a single one."""
TIMES_A_SITE: Final = 4


def client_address(request: HTTPConnection, on_space: bool) -> str:
    """Return the address whose limits apply to a request.

    On a Space, this is the last hop in X-Forwarded-For, which the Hub's proxy adds. Clients can forge earlier
    hops and, outside a Space, the whole header.
    """
    address = request.client.host if request.client else ""
    if on_space:
        last_hop = ",".join(request.headers.getlist("x-forwarded-for")).split(",")[-1]
        address = last_hop.strip() or address
    return counted_as(address)


def counted_as(address: str) -> str:
    """Return an IPv4 address as it is, an IPv6 address as its /64, and anything else as `UNKNOWN`."""
    try:
        found = ip_address(address.strip().partition("%")[0])
    except ValueError:
        return UNKNOWN
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return f"{IPv6Address(int(found) >> _NETWORK_BITS << _NETWORK_BITS)}/{_NETWORK_BITS}"
    return str(found)


def sender_of(request: HTTPConnection, on_space: bool, actor: Actor | None = None) -> str:
    """Return the sender whose limits apply to a request: the account or, if there is none, the address."""
    if actor is None:
        return client_address(request, on_space)
    return f"account {actor.subject or actor.name.casefold()}"


def site_of(address: str) -> str | None:
    """Return the /48 that contains an IPv6 /64, as returned by `counted_as`; None for any other address."""
    if not address.endswith(f"/{_NETWORK_BITS}"):
        return None
    return str(IPv6Network(address).supernet(new_prefix=_SITE_BITS))


MOST_ADDRESSES: Final = 10_000
SWEEP_EVERY_SECONDS: Final = 1.0
OTHERS: Final = "others"
_COUNTERS: Final = 2
"""The number of counters that a sliding window keeps per address."""
REFUSAL_DELAY_SECONDS: Final = 1.0
"""The delay of further refusals, once a sender has been refused as often in a minute as it may send files.
Without the delay, a client that never waits would get hundreds of responses per second."""


class SenderRefused(HTTPException):
    """Raised when a sender has to wait ``retry_after`` seconds (an integer) before it tries again.

    If the sender does not stop after many refusals (``goes_on``), the response is delayed by `delay_s`.
    """

    def __init__(self, status: int, problem: str, retry_after: int, goes_on: bool = False) -> None:
        message = (
            f"{problem}; try again in {retry_after} s, or check the file on your own machine: "
            "arb submissions check FILE"
        )
        super().__init__(status, message, {"Retry-After": str(retry_after)})
        self.retry_after = retry_after
        self.delay_s = REFUSAL_DELAY_SECONDS if goes_on else 0.0

    def __str__(self) -> str:
        return self.detail


class TooManyChecks(SenderRefused):
    """Raised when an address or account has reached its limit per minute (429)."""

    def __init__(self, limit: str, retry_after: int, goes_on: bool = False) -> None:
        super().__init__(429, f"{limit} per minute", retry_after, goes_on)


class CounterStorage(MemoryStorage):
    """Counters in memory that remove expired entries while counting.

    The library `limits` would start a thread for this at every count, and the event loop would wait for it.
    """

    _swept = -math.inf

    def _MemoryStorage__schedule_expiry(self) -> None:
        if time.monotonic() > self._swept + SWEEP_EVERY_SECONDS:
            self._swept = time.monotonic()
            self._MemoryStorage__expire_events()  # type: ignore[attr-defined]  # private there


class CheckLimit:
    """The limit on checks per address and per account, with a sliding window in memory.

    At most ``most_addresses`` senders are counted separately. While all of these are active, new senders
    share one count.
    """

    def __init__(
        self, settings: Settings, metrics: Metrics, most_addresses: int = MOST_ADDRESSES, times: int = 1
    ) -> None:
        """Limit files per minute. If ``times`` is above 1, allow ``times`` as many other requests instead."""
        self._on_space = settings.space_id is not None
        self._item = RateLimitItemPerMinute(times * settings.checks_a_minute)
        self._site_item = RateLimitItemPerMinute(TIMES_A_SITE * self._item.amount)
        self._refusable = RateLimitItemPerMinute(settings.checks_a_minute)
        self._what = "have {} files checked" if times == 1 else "send {} requests"
        self._storage, self._refused = CounterStorage(), CounterStorage()
        self._limiter = SlidingWindowCounterRateLimiter(self._storage)
        self._refusals = SlidingWindowCounterRateLimiter(self._refused)
        self._most, self._metrics = most_addresses, metrics

    def take(self, request: HTTPConnection, actor: Actor | None = None) -> None:
        """Count one check for the account, or for the address if ``actor`` is None. Raises TooManyChecks.

        An IPv6 address counts towards the limits of its /64 and of its /48.
        """
        sender = sender_of(request, self._on_space, actor)
        if len(self._storage.storage) >= _COUNTERS * self._most and not self._is_known(sender):
            sender = OTHERS
        site = site_of(sender) if actor is None else None
        if site is not None and not self._limiter.test(self._site_item, site):
            who, item, sender = f"one IPv6 /{_SITE_BITS}", self._site_item, site
        elif self._limiter.hit(self._item, sender):
            if site is not None:
                self._limiter.hit(self._site_item, site)
            return
        else:
            who, item = f"one {'address' if actor is None else 'account'}", self._item
        self._metrics.checks.labels("limited").inc()
        reset = self._limiter.get_window_stats(item, sender).reset_time
        goes_on = not self._refusals.hit(self._refusable, sender)
        raise TooManyChecks(
            f"{who} may {self._what.format(item.amount)}", max(1, math.ceil(reset - time.time())), goes_on
        )

    def _is_known(self, sender: str) -> bool:
        return self._limiter.get_window_stats(self._item, sender).remaining < self._item.amount


def count_file(checks: CheckLimit, request: HTTPConnection) -> None:
    """Count a request towards the sender's file limit before its body is read, and mark it as counted."""
    checks.take(request)
    request.state.is_counted = True


def is_counted(request: HTTPConnection) -> bool:
    return getattr(request.state, "is_counted", False)
