"""How many files one address may have checked in a minute: checking costs time and needs no account.

The address is the one that connected, or on a Space the one that the Hub's proxy saw.
"""

import math
import time
from ipaddress import IPv6Address, ip_address
from typing import Final

from fastapi import HTTPException
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter
from starlette.requests import HTTPConnection

from core.settings import Settings
from space.operations.metrics import Metrics

UNKNOWN: Final = "unknown"
_NETWORK_BITS: Final = 64
"""One house has a whole IPv6 network of this length, so its addresses count as one."""


def client_address(request: HTTPConnection, on_space: bool) -> str:
    """An address to count by; on a Space the last hop of X-Forwarded-For, which our proxy wrote.

    The hops before it, and the whole header elsewhere, are whatever the client likes to claim.
    """
    connected = request.client.host if request.client else ""
    if on_space:
        hops = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
        return counted_as(hops[-1]) if hops[-1].strip() else counted_as(connected)
    return counted_as(connected)


def counted_as(address: str) -> str:
    """The spelling to count by: IPv4 as it is, IPv6 by its network, anything else as one unknown."""
    try:
        found = ip_address(address.strip().partition("%")[0])
    except ValueError:
        return UNKNOWN
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return f"{IPv6Address(int(found) >> _NETWORK_BITS << _NETWORK_BITS)}/{_NETWORK_BITS}"
    return str(found)


MOST_ADDRESSES: Final = 10_000
OTHERS: Final = "others"
_COUNTERS: Final = 2
"""A sliding window is held as two counters an address."""


class TooManyChecks(HTTPException):
    """One address asked too often (429); ``retry_after`` is in whole seconds, from 1."""

    def __init__(self, a_minute: int, retry_after: int) -> None:
        message = (
            f"one address may have {a_minute} files checked in a minute; try again in {retry_after} s, or "
            "check the file on your own machine: python -m submissions check FILE"
        )
        super().__init__(429, message, {"Retry-After": str(retry_after)})
        self.retry_after = retry_after

    def __str__(self) -> str:
        return self.detail


class CheckLimit:
    """Counts checks by address in memory, in a window that slides. One instance an application.

    No more than ``most_addresses`` are kept apart: while as many are busy, all new ones share one count.
    """

    def __init__(self, settings: Settings, metrics: Metrics, most_addresses: int = MOST_ADDRESSES) -> None:
        self._on_space = settings.space_id is not None
        self._item = RateLimitItemPerMinute(settings.checks_a_minute)
        self._storage = MemoryStorage()
        self._limiter = SlidingWindowCounterRateLimiter(self._storage)
        self._most, self._metrics = most_addresses, metrics

    def take(self, request: HTTPConnection) -> None:
        """Count one check of this request's address. Raises TooManyChecks."""
        address = client_address(request, self._on_space)
        if len(self._storage.storage) >= _COUNTERS * self._most and not self._is_known(address):
            address = OTHERS
        if not self._limiter.hit(self._item, address):
            self._metrics.checks.labels("limited").inc()
            reset = self._limiter.get_window_stats(self._item, address).reset_time
            raise TooManyChecks(self._item.amount, max(1, math.ceil(reset - time.time())))

    def _is_known(self, address: str) -> bool:
        return self._limiter.get_window_stats(self._item, address).remaining < self._item.amount
