"""Accounts, judges, submissions, scores."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
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
        sa.UniqueConstraint("submission_id", "label_version", "policy"),
    )


def downgrade() -> None:
    for table in ("scores", "submissions", "judges", "accounts"):
        op.drop_table(table)
