"""Store the key derivation that the records were made with, next to the check value of their secret."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("secret", sa.Column("derivation", sa.Integer, nullable=False, server_default="1"))
