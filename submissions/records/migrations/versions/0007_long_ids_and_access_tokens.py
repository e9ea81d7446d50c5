"""Widen submission ids to 32 hexadecimal digits (older ids keep 12), and add the table of access tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

COLUMNS = (("records", "subject", True), ("submissions", "id", False), ("scores", "submission_id", False))


def upgrade() -> None:
    for table, column, nullable in COLUMNS:
        with op.batch_alter_table(table) as batch:
            batch.alter_column(
                column, type_=sa.String(32), existing_type=sa.String(16), existing_nullable=nullable
            )
    op.create_table(
        "access_tokens",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("account", sa.String(80), nullable=False, index=True),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
    )
