"""The session cookie: who signed in, how and when, signed by the server. No token is in it."""

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

from fastapi import Response
from itsdangerous import BadSignature, URLSafeTimedSerializer

from core.settings import Settings
from submissions.intake.accounts import How
from submissions.intake.receipts import SecretUnavailable, ServerSecret

logger = logging.getLogger(__name__)
Mode = Literal["local", "hub"]
SESSION_SECONDS: Final = 480 * 60
HINT: Final = "arb-signed-in"
"""A cookie that scripts may read, and that says only that it is worth asking ``/api/me`` who it is."""
LONGEST_COOKIE: Final = 2_000


@dataclass(frozen=True)
class SignedIn:
    """What a session says: a name, the day its account was made where known, and how it was learned."""

    name: str
    since: date | None
    how: How


def session_key(settings: Settings) -> bytes:
    """The key that sessions are signed with; of this process only where the server has no secret."""
    try:
        return ServerSecret.of(settings).key("session")
    except SecretUnavailable as reason:
        logger.warning("sessions end when this process does: %s", reason)
        return secrets.token_bytes(32)


class SessionCookie:
    """Writes and reads the cookie of one mode; a cookie of the other mode does not count.

    On a Space it goes over HTTPS only and into the frame that huggingface.co shows the Space in, which takes
    ``SameSite=None``: what a cookie may do is therefore decided by where a request comes from, too.
    """

    def __init__(self, key: bytes, mode: Mode) -> None:
        self._serializer = URLSafeTimedSerializer(key, salt=f"arb-session-{mode}")
        self._is_hub = mode == "hub"
        self.name = "__Host-arb-session" if self._is_hub else "arb-session"

    def read(self, cookies: Mapping[str, str]) -> SignedIn | None:
        """Who signed in; None without a session, with an old one, or with one that we did not sign."""
        text = cookies.get(self.name, "")
        if not text or len(text) > LONGEST_COOKIE:
            return None
        try:
            name, since, how = self._serializer.loads(text, max_age=SESSION_SECONDS)
        except (BadSignature, ValueError, TypeError):
            return None
        return SignedIn(name, date.fromisoformat(since) if since else None, how)

    def write(self, response: Response, signed_in: SignedIn) -> None:
        """Put the session into an answer."""
        since = signed_in.since.isoformat() if signed_in.since else None
        text = self._serializer.dumps([signed_in.name, since, signed_in.how])
        self._set(response, self.name, text, SESSION_SECONDS, is_for_scripts=False)
        self._set(response, HINT, "1", SESSION_SECONDS, is_for_scripts=True)

    def clear(self, response: Response) -> None:
        """End the session in this browser."""
        self._set(response, self.name, "", 0, is_for_scripts=False)
        self._set(response, HINT, "", 0, is_for_scripts=True)

    def _set(self, response: Response, name: str, value: str, seconds: int, is_for_scripts: bool) -> None:
        response.set_cookie(
            name,
            value,
            max_age=seconds,
            path="/",
            secure=self._is_hub,
            httponly=not is_for_scripts,
            samesite="none" if self._is_hub else "lax",
        )
