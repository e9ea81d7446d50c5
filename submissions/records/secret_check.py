"""Compares the server's secret with the one that the records were made with.

The table ``secret`` and every export have the check value of the secret in use. The Hub's ``writer.json`` has
that of the first secret. Each replacement is an event ``secret_replaced`` in the log.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Final

from sqlalchemy import Engine, exists, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from arb.core.settings import Settings
from submissions.privacy.server_secret import (
    NEWEST_DERIVATION,
    KnownSecret,
    SecretChanged,
    SecretUnavailable,
    ServerSecret,
)
from submissions.records.database import Event, ScoreRow, SecretCheck, transaction
from submissions.records.event_log import add_event

THE_OPERATOR: Final = "the operator"
"""The actor of events that are caused by settings or by a command."""


def last_replacement(events: Iterable[Event]) -> KnownSecret | None:
    """Return the secret that the last ``secret_replaced`` event names, or None."""
    replaced = [event.body["check_value"] for event in events if event.kind == "secret_replaced"]
    return KnownSecret(replaced[-1], NEWEST_DERIVATION) if replaced else None


def known_secret(session: Session) -> KnownSecret | None:
    """Return the secret that the records were made with, or None if no record has needed one yet."""
    if (row := session.get(SecretCheck, 1)) is not None:
        return KnownSecret(row.check_value, row.derivation)
    # Each submission uses a secret, but commit 7d56a80 stored its check value only when a server started.
    has_records = session.scalar(select(exists().where(Event.kind == "submitted")))
    return KnownSecret(None, 1) if has_records else None


def claim_secret(engine: Engine, settings: Settings, clock: Callable[[], datetime]) -> ServerSecret:
    """Return the server's secret with the key derivation of the records; record its check value if needed.

    Raises SecretChanged if the records were made with another secret and ARB_ACCEPT_SECRET does not name this
    one, and the errors of `ServerSecret.of`.
    """
    with transaction(engine) as session:
        known = known_secret(session)
    try:
        secret = ServerSecret.of(settings, may_make=known is None)
    except SecretUnavailable:
        if known is None or settings.secret is not None or not settings.disk_is_lasting:
            raise
        raise SecretChanged from None
    with suppress(IntegrityError), transaction(engine) as session:  # another replica may be first
        if session.get(SecretCheck, 1) is None:
            note_secret(session, secret.under(known.derivation if known else NEWEST_DERIVATION))
    with transaction(engine) as session:
        noted = known_secret(session)
        if noted is not None and secret.is_known_as(noted):
            return secret.under(noted.derivation)
        check_accepted(secret, settings)
        replace_secret(session, secret, clock())
    return secret


def check_accepted(secret: ServerSecret, settings: Settings) -> None:
    """Raise SecretChanged unless ARB_ACCEPT_SECRET names this secret."""
    if settings.accept_secret != secret.check_value:
        raise SecretChanged(secret.check_value)


def note_secret(session: Session, secret: ServerSecret) -> None:
    session.merge(SecretCheck(id=1, check_value=secret.check_value, derivation=secret.derivation))
    session.flush()


def replace_secret(session: Session, secret: ServerSecret, at: datetime) -> None:
    """Record that a new secret is used from now on, which withdraws the figures of hidden labels.

    The event lists the label versions of all scores so far, whose noise and hidden half cannot be computed
    with the new secret.
    """
    versions = sorted(session.scalars(select(ScoreRow.label_version).distinct()))
    body = {"check_value": secret.check_value, "label_versions": versions}
    add_event(session, "secret_replaced", THE_OPERATOR, at, body)
    note_secret(session, secret)
