"""Reads bearer tokens from requests, and asks the Hub who holds them. Answers are cached for a minute."""

import hashlib
import hmac
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Final

from cachetools import LRUCache, TTLCache
from huggingface_hub import HfApi
from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError is not in an __all__
    HfHubHTTPError,
    HTTPError,
)

from space.web.http_errors import HubUnavailable, InvalidToken
from submissions.intake.accounts import Actor

logger = logging.getLogger(__name__)
TRY_LATER: Final = "the Hub cannot confirm the token at the moment; nothing was done, try again in a minute"
ASKED_AT_ONCE: Final = 8
"""The maximum number of tokens that the Hub is asked about at the same time. Further requests are refused,
because each call to the Hub occupies a thread that could serve pages."""
REMEMBERED_SECONDS: Final = 60.0
"""How long an answer of the Hub is used. A revoked token may still work for that long."""
MOST_REMEMBERED: Final = 5_000
TOKEN = re.compile(r"hf_[A-Za-z0-9_.\-]{5,500}")
HEADERS: Final = ("authorization", "x-hf-authorization")
"""The headers that may contain a token. ``gradio_client`` uses the second one."""


def person_of(token: str) -> tuple[str, str | None]:
    """Ask the Hub whom a token belongs to; return the account's name and its id, which outlives renames.

    The id is None if the Hub does not give one. Only tokens that people made by hand are valid. An app gets
    other tokens when people sign in there, and its operator could use these to act in their names.

    Raises InvalidToken, or HubUnavailable if the Hub does not answer. No message contains the token.
    """
    try:
        found: Any = HfApi().whoami(token)
    except HfHubHTTPError as error:
        if error.response.status_code in (401, 403):
            raise InvalidToken(
                "the Hub does not accept this token: it is mistyped, expired or revoked; make another at "
                "https://huggingface.co/settings/tokens"
            ) from None
        logger.warning("the Hub answers whoami with %d", error.response.status_code)
        raise HubUnavailable(TRY_LATER) from None
    except (HTTPError, OSError, ValueError) as error:
        logger.warning("whoami failed: %s", type(error).__name__)
        raise HubUnavailable(TRY_LATER) from None
    auth = (found.get("auth") if isinstance(found, dict) else None) or {}
    if "accessToken" not in auth or auth.get("type", "access_token") != "access_token":
        raise InvalidToken(
            "this token was issued to an app and cannot be used here; make an access token at "
            "https://huggingface.co/settings/tokens"
        )
    if found.get("type") != "user" or not isinstance(found.get("name"), str):
        raise InvalidToken("this token does not belong to a person; use a token of your own account")
    subject = found.get("id")
    return found["name"], subject if isinstance(subject, str) and subject else None


def day_of_creation(name: str) -> date | None:
    """Ask the Hub for the day on which an account was created; return None if the Hub does not say."""
    try:
        overview = HfApi().get_user_overview(name, token=False)
    except (HTTPError, OSError, ValueError) as error:
        logger.warning("the Hub did not say when %r was created: %s", name, type(error).__name__)
        return None
    try:
        return datetime.fromisoformat(getattr(overview, "createdAt", None) or "").date()
    except (TypeError, ValueError):
        return None


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the Hugging Face token of a request, or None.

    Raises InvalidToken for any other bearer token, because it must not be sent to the Hub.
    """
    token = sent_token(headers)
    if token is not None and not TOKEN.fullmatch(token):
        raise InvalidToken("this is not a Hugging Face token; those begin with hf_")
    return token


def sent_token(headers: Mapping[str, str]) -> str | None:
    """Return the bearer token of a request, of any kind, or None."""
    for name in HEADERS:
        scheme, _, token = headers.get(name, "").strip().partition(" ")
        if scheme.lower() == "bearer":
            return token.strip()
    return None


class ConfirmedTokens:
    """A cache of the Hub's answers about tokens. The methods may ask the Hub, so call them in a thread.

    The cache does not contain tokens. Its keys are HMACs of them, with a random key of this process.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._key = secrets.token_bytes(32)
        self._lock, self._room = threading.Lock(), threading.BoundedSemaphore(ASKED_AT_ONCE)
        self._remembered: TTLCache[bytes, Actor | str] = TTLCache(MOST_REMEMBERED, REMEMBERED_SECONDS, clock)
        self._made_on: LRUCache[tuple[str, str | None], date] = LRUCache(MOST_REMEMBERED)

    def holder(self, token: str) -> Actor:
        """Return the account that a token belongs to. Raises InvalidToken or HubUnavailable."""
        digest = hmac.new(self._key, token.encode(), hashlib.sha256).digest()
        with self._lock:
            found = self._remembered.get(digest)
        if found is None:
            found = self._ask(token)
            with self._lock:
                self._remembered[digest] = found
        if isinstance(found, str):
            raise InvalidToken(found)
        return found

    def _ask(self, token: str) -> Actor | str:
        """Ask the Hub which account a token belongs to. Return the account, or why the token is not valid."""
        if not self._room.acquire(blocking=False):
            raise HubUnavailable(TRY_LATER)
        try:
            name, subject = person_of(token)
            return Actor(name, since=self.made_on(name, subject), how="token", subject=subject)
        except InvalidToken as refused:
            return refused.detail
        finally:
            self._room.release()

    def made_on(self, name: str, subject: str | None) -> date | None:
        """Return the day on which an account was created, or None. Known days are cached for good."""
        with self._lock:
            known = self._made_on.get((name, subject))
        if known is None and (known := day_of_creation(name)) is not None:
            with self._lock:
                self._made_on[name, subject] = known
        return known
