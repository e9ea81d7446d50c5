"""Whose request it is: the address that connected, or on a Space the one that the Hub's proxy saw."""

from ipaddress import IPv6Address, ip_address
from typing import Final

from starlette.requests import HTTPConnection

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
