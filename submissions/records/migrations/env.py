"""Alembic runs this to migrate; the connection comes from ``submissions.records.database.migrate``."""

from alembic import context

from submissions.records.database import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
context.run_migrations()
