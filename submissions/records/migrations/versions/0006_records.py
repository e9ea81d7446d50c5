"""Create the tables of commit 7d56a80, the oldest version that can be upgraded."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = None
branch_labels = None
depends_on = None

MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(80), nullable=False, unique=True),
        sa.Column("created_at", MOMENT, nullable=False),
    )
    op.create_table(
        "judges",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("account_id", sa.Integer, sa.ForeignKey("accounts.id"), nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.UniqueConstraint("account_id", "name"),
    )
    op.create_table(
        "submissions",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("judge_id", sa.Integer, sa.ForeignKey("judges.id"), nullable=False),
        sa.Column("suite", sa.String(200), nullable=False),
        sa.Column("split", sa.String(10), nullable=False),
        sa.Column("file_sha256", sa.String(64), nullable=False),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("file_name", sa.String(200), nullable=False),
        sa.Column("size_bytes", sa.Integer, nullable=False),
        sa.Column("rows", sa.Integer, nullable=False),
        sa.Column("coverage", sa.Float, nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("inputs", sa.String(120), nullable=False),
        sa.Column("model", sa.String(120), nullable=False),
        sa.Column("authors", sa.Text, nullable=False),
        sa.Column("link", sa.Text, nullable=False),
        sa.Column("test_labels_used", sa.Boolean, nullable=False),
        sa.Column("submitted_at", MOMENT, nullable=False),
        sa.Column("label_version", sa.String(16), nullable=False, server_default=""),
        sa.UniqueConstraint("judge_id", "suite", "split", "file_sha256"),
    )
    op.create_table(
        "scores",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("submission_id", sa.String(16), sa.ForeignKey("submissions.id"), nullable=False),
        sa.Column("label_version", sa.String(16), nullable=False),
        sa.Column("policy", sa.String(16), nullable=False),
        sa.Column("report", sa.JSON, nullable=False),
        sa.Column("counts_by_task", sa.JSON, nullable=False),
        sa.Column("scored_at", MOMENT, nullable=False),
        sa.Column("digests", sa.JSON, nullable=False, server_default="{}"),
        sa.Column("halves", sa.JSON, nullable=False, server_default="{}"),
        sa.UniqueConstraint("submission_id", "label_version", "policy"),
    )
    op.create_table(
        "records",
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.String(32), nullable=False, index=True),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("actor", sa.String(80), nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False, unique=True),
        sa.Column("subject", sa.String(16), index=True),
        sa.Column("nonce", sa.String(64)),
    )
    op.create_table(
        "commits",
        sa.Column("through_sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("commit", sa.String(64), nullable=False),
        sa.Column("committed_at", MOMENT, nullable=False),
    )
    op.create_table(
        "files",
        sa.Column("sha256", sa.String(64), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("account", sa.String(80), nullable=False, index=True),
        sa.Column("begun_at", MOMENT, nullable=False),
        sa.Column("browser", sa.String(200), nullable=False),
    )
    op.create_table(
        "secret",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("check_value", sa.String(16), nullable=False),
    )
