"""Without a Space the server is for its own machine only: there whoever reaches it is believed their name."""

import ipaddress
from typing import Final

from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp

from dataset_script.settings import Settings

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def host_problem(host: str, settings: Settings) -> str | None:
    """Why this server may not listen on ``host``, and what to do; None where it may."""
    if settings.space_id or is_loopback(host):
        return None
    return (
        f"{host} can be reached from other machines, and without a Space (SPACE_ID) nobody signs in here: "
        "anyone could submit under any name. Serve on 127.0.0.1 and reach it through a tunnel (ssh -L "
        "7860:127.0.0.1:7860 HOST), or put it on the Hub as a Space"
    )


def with_checked_host(app: ASGIApp, settings: Settings, host: str) -> ASGIApp:
    """The application as it is served on ``host``: on a Space as it is, else under loopback names only.

    The name that a browser asked for is checked because a page of another site may let its own name point
    to 127.0.0.1 once it is loaded (DNS rebinding).
    """
    if settings.space_id:
        return app
    return TrustedHostMiddleware(app, allowed_hosts=[*LOOPBACK_NAMES, host.lower()], www_redirect=False)
