"""Access tokens for the accounts of a Space that runs outside the Hub and that other machines can reach.

The operator of the Space makes a token for each account and gives it to the account's owner. The database
stores only a digest of the token. Backups do not contain tokens.
"""

import hashlib
import re
import secrets
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import Engine, delete, func

from submissions.intake.accounts import Actor
from submissions.records.database import AccessToken, BrowserSession, snapshot, transaction

PREFIX: Final = "arb_"
_TOKEN: Final = re.compile(r"arb_[A-Za-z0-9_-]{43}")


class AccessTokens:
    """The access tokens in the database. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def make(self, account: str) -> str:
        """Return a new token for an account, and store its digest."""
        token = PREFIX + secrets.token_urlsafe(32)
        with transaction(self._engine) as session:
            session.add(AccessToken(id=digest_of(token), account=account, made_at=datetime.now(UTC)))
        return token

    def holder(self, token: str) -> Actor | None:
        """Return the account that holds a token, or None if the token is unknown or revoked."""
        if not _TOKEN.fullmatch(token):
            return None
        with snapshot(self._engine) as session:
            found = session.get(AccessToken, digest_of(token))
            if found is None:
                return None
            return Actor(found.account, since=found.made_at.date(), how="token")

    def revoke(self, account: str) -> int:
        """Delete all tokens and sessions of an account; return the number of deleted tokens."""
        with transaction(self._engine) as session:
            same = func.lower(BrowserSession.account) == account.lower()
            session.execute(delete(BrowserSession).where(same))
            wanted = delete(AccessToken).where(func.lower(AccessToken.account) == account.lower())
            return session.connection().execute(wanted).rowcount


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
