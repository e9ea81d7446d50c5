"""Tests of the paths and the format of records in the repository."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submissions.hub.repository import (
    EventFile,
    EventFilesDamaged,
    event_file_of,
    file_path,
    read_lines,
    read_writer,
    writer_file,
)
from submissions.privacy.server_secret import KnownSecret
from submissions.records.event_log import NO_HASH, Event, hash_of, to_lines


def chain_of(number: int) -> list[Event]:
    records, previous = [], NO_HASH
    for sequence in range(1, number + 1):
        at = datetime(2026, 1, 1, tzinfo=UTC)
        record = Event(
            sequence, "banned", at, "Ada", {"account": f"é\u2028{sequence}"}, previous, "", "00" * 32
        )
        record.hash = hash_of(record)
        records.append(record)
        previous = record.hash
    return records


def test_paths_are_named_after_what_they_hold():
    assert EventFile(1, 50).path == "records/0000/00000001-00000050.jsonl"
    assert EventFile(10_000, 10_001).path == "records/0000/00010000-00010001.jsonl"
    assert EventFile(10_001, 10_001).path == "records/0001/00010001-00010001.jsonl"
    assert file_path("ab" * 32) == f"files/ab/{'ab' * 32}"


@given(st.integers(1, 10**9), st.integers(0, 10**6))
def test_a_path_gives_back_its_span(first, more):
    span = EventFile(first, first + more, 7)
    assert event_file_of(span.path, 7) == span


@pytest.mark.parametrize(
    "path",
    ["README.md", "records/notes.txt", "records/0001/00000001-00000002.jsonl",
     "records/0000/00000002-00000001.jsonl", "x/records/0000/00000001-00000002.jsonl"],
)  # fmt: skip
def test_other_files_are_no_records(path):
    assert event_file_of(path) is None


def test_records_read_back_as_they_were_and_changed_ones_are_refused():
    records = chain_of(3)
    content = to_lines(records)
    assert read_lines(content, EventFile(1, 3)) == records
    with pytest.raises(EventFilesDamaged, match="its content was changed"):
        read_lines(content.replace(b"Ada", b"Eve"), EventFile(1, 3))
    with pytest.raises(EventFilesDamaged, match="its name does not match its records"):
        read_lines(content, EventFile(1, 4))


def test_the_writer_reads_back_and_anything_else_is_nobody():
    assert read_writer(writer_file("abc")) == ("abc", None)
    assert read_writer(writer_file("abc", KnownSecret("12", 2))) == ("abc", KnownSecret("12", 2))
    # 7d56a80 had only the first derivation, and did not name it.
    assert read_writer(b'{"writer": "abc", "secret": "12"}') == ("abc", KnownSecret("12", 1))
    assert [read_writer(content) for content in (b"", b"[]", b"{}", b"\xff")] == [(None, None)] * 4
