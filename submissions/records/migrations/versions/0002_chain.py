"""The chain of records; those made before it are put into it in the order they came."""

import hashlib
import json
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)
SUBMITTED = (
    "suite", "split", "file_sha256", "content_hash", "file_name", "size_bytes", "rows", "coverage", "kind",
    "inputs", "model", "authors", "link",
)  # fmt: skip


def upgrade() -> None:
    records = op.create_table(
        "records",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(32), nullable=False, index=True),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("actor", sa.String(80), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.Column("subject", sa.String(16), index=True),
    )
    op.create_table(
        "commits",
        sa.Column("through_sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("commit", sa.String(64), nullable=False),
        sa.Column("committed_at", MOMENT, nullable=False),
    )
    op.add_column("submissions", sa.Column("label_version", sa.String(16), nullable=False, server_default=""))
    for name in ("digests", "halves"):
        op.add_column("scores", sa.Column(name, sa.JSON, nullable=False, server_default="{}"))
    _adopt(records)


def downgrade() -> None:
    with op.batch_alter_table("scores") as scores:
        scores.drop_column("digests")
        scores.drop_column("halves")
    with op.batch_alter_table("submissions") as submissions:
        submissions.drop_column("label_version")
    op.drop_table("commits")
    op.drop_table("records")


def _adopt(records: sa.Table) -> None:
    connection, previous = op.get_bind(), "0" * 64
    for sequence, (kind, at, actor, body) in enumerate(_acts(connection), start=1):
        said = {
            "sequence": sequence, "kind": kind, "at": at.isoformat(timespec="microseconds"), "actor": actor,
            "body": body, "previous": previous,
        }  # fmt: skip
        found = hashlib.sha256(_canonical(said)).hexdigest()
        row = {
            **said,
            "at": at,
            "body": _canonical(body).decode(),
            "hash": found,
            "subject": body["submission_id"],
        }
        connection.execute(records.insert().values(**row))
        previous = found


def _acts(connection: sa.Connection) -> list[tuple[str, datetime, str, dict]]:
    """(kind, moment, account, body) of what was submitted and scored, a score behind its submission."""
    tables = sa.MetaData()
    tables.reflect(connection, only=("accounts", "judges", "submissions", "scores"))
    accounts, judges, submissions, scores = (
        tables.tables[name] for name in ("accounts", "judges", "submissions", "scores")
    )
    found = connection.execute(
        sa.select(submissions, judges.c.name.label("judge"), accounts.c.name.label("account"))
        .join(judges, submissions.c.judge_id == judges.c.id)
        .join(accounts, judges.c.account_id == accounts.c.id)
    ).mappings()
    acts, came = [], {}
    for row in found:
        came[row["id"]] = row["account"], _utc(row["submitted_at"])
        body = {name: row[name] for name in SUBMITTED} | {
            "submission_id": row["id"], "account": row["account"], "judge": row["judge"],
            "test_labels_used": bool(row["test_labels_used"]), "label_version": "",
        }  # fmt: skip
        acts.append((_utc(row["submitted_at"]), 0, "submitted", row["account"], body))
    for row in connection.execute(sa.select(scores).order_by(scores.c.id)).mappings():
        body = {
            "submission_id": row["submission_id"], "label_version": row["label_version"],
            "policy": row["policy"], "report": _json(row["report"]),
            "counts_by_task": _json(row["counts_by_task"]), "digests": {}, "halves": {},
        }  # fmt: skip
        account, submitted_at = came[row["submission_id"]]
        acts.append((max(_utc(row["scored_at"]), submitted_at), 1, "scored", account, body))
    acts.sort(key=lambda act: (act[0], act[1], act[4]["submission_id"]))
    return [(kind, at, actor, body) for at, _, kind, actor, body in acts]


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _json(value):
    return json.loads(value) if isinstance(value, str) else value


def _canonical(value) -> bytes:
    said = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return said.encode()
