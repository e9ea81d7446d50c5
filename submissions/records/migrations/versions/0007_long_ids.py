"""Ids of submissions with 128 bits: 32 hexadecimal digits. The older ones with 12 stay as they are."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

COLUMNS = (("records", "subject", True), ("submissions", "id", False), ("scores", "submission_id", False))


def upgrade() -> None:
    _resize(16, 32)


def downgrade() -> None:
    _resize(32, 16)


def _resize(before: int, after: int) -> None:
    for table, column, nullable in COLUMNS:
        with op.batch_alter_table(table) as batch:
            batch.alter_column(
                column, type_=sa.String(after), existing_type=sa.String(before), existing_nullable=nullable
            )
