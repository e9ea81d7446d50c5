"""Tags of judges' errors among the records: what people said of which error."""

from collections.abc import Iterable

from sqlalchemy import Engine

from leaderboard.error_tags import ErrorTag, make_tag
from submissions.chain import ERROR_TAG_KINDS, Event, events_after
from submissions.database import snapshot


def tags_in(records: Iterable[Event], suite: str) -> list[ErrorTag]:
    """Every tag of a suite in the order in which it was given; the later one of a person counts."""
    return [
        make_tag(
            trajectory_id=record.body["trajectory_id"],
            judge=record.body["judge"],
            tagger=record.actor,
            category=record.body["category"],
            note=record.body["note"],
            at=record.at,
        )
        for record in records
        if record.kind == "error_tagged" and record.body["suite"] == suite
    ]


def error_tags(engine: Engine, suite: str) -> list[ErrorTag]:
    """The same as the records are now."""
    with snapshot(engine) as session:
        return tags_in(events_after(session, kinds=ERROR_TAG_KINDS), suite)
