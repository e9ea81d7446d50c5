"""The tables of commit 7d56a80, the oldest records that are read. New databases never run this."""

revision = "0006"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing: every database that is upgraded has these tables."""
