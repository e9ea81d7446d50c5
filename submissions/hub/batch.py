"""Which records go into the next commit, with their files. Pure but for the reading of files."""

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from submissions.chain import Event
from submissions.hub.layout import Span, file_path, to_lines
from submissions.store import FileStore

logger = logging.getLogger(__name__)
MOST_RECORDS: Final = 500
MOST_BYTES: Final = 50_000_000
WAIT_FOR_A_FILE: Final = timedelta(minutes=10)
"""A file that is not here may be at another process, which then commits it; after so long it is lost."""


def next_batch(records: Sequence[Event], files: FileStore, now: datetime) -> tuple[int, dict[str, bytes]]:
    """How many of the records go into one commit, and the content of it by path; 0 where none can go.

    A record and its file are never in two commits. It ends before a record whose file is not here.
    """
    taken: list[Event] = []
    contents: dict[str, bytes] = {}
    size = 0
    for record in records[:MOST_RECORDS]:
        content = b""
        if sha256 := record.file_sha256:
            try:
                content = files.read(sha256)
            except (OSError, ValueError):
                if now - record.at < WAIT_FOR_A_FILE:
                    break
                logger.error("record %d goes to the Hub without its file %s", record.sequence, sha256)
        size += len(content) + len(record.line())
        if taken and size > MOST_BYTES:
            break
        taken.append(record)
        if content:
            contents[file_path(sha256)] = content
    if taken:
        contents[Span(taken[0].sequence, taken[-1].sequence).path] = to_lines(taken)
    return len(taken), contents
