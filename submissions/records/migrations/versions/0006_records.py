"""The tables as of commit 7d56a80, the oldest version that can be upgraded. New databases skip this."""

revision = "0006"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Do nothing: every database that is upgraded has these tables."""
