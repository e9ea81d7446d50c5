"""What the records of a service hold, for tests to look at."""

from pathlib import Path

from sqlalchemy import func, select

from submissions.database import snapshot
from submissions.records import Account, Judge, Score, Submission
from submissions.service import SubmissionService

TABLES = (Account, Judge, Submission, Score)


def counts(service: SubmissionService) -> dict[str, int]:
    """How many entries each table has."""
    with snapshot(service.engine) as session:
        return {
            table.__tablename__: session.scalar(select(func.count()).select_from(table)) for table in TABLES
        }


def stored_files(service: SubmissionService) -> list[Path]:
    """The files in the store, half-written ones too."""
    return [path for path in (service.settings.state_dir / "files").rglob("*") if path.is_file()]


def score_of(service: SubmissionService, submission_id: str) -> Score:
    """The one score of a submission."""
    with snapshot(service.engine) as session:
        return session.scalars(select(Score).where(Score.submission_id == submission_id)).one()


def again(service: SubmissionService, **changes) -> SubmissionService:
    """The same records after a restart."""
    return SubmissionService(service.settings.model_copy(update=changes))


def assert_nothing_was_written(service: SubmissionService) -> None:
    """No entry and no file."""
    assert counts(service) == {"accounts": 0, "judges": 0, "submissions": 0, "scores": 0}
    assert stored_files(service) == []
