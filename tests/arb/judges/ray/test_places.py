"""Answers in a bucket of S3 and of Google Cloud Storage: a server of the protocol on loopback, s3fs and gcsfs
as the clients.
"""

import os
import threading
from functools import cache

import pyarrow as pa
import pytest

from arb.judges.engine.answers import AnswerStore, Journal, Place, journal_lines
from arb.judges.engine.cache import answer_line, key_in
from arb.judges.types import Reply
from tests.support.buckets import STORES, bucket_server

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=STORES)
def bucket(request):
    with bucket_server(request.param) as url:
        yield url


@pytest.fixture
def url(bucket, request):
    return f"{bucket}/{request.node.originalname}"


def answers_of(partition: int, numbers: range) -> dict[bytes, bytes]:
    keys = [bytes([partition]) + number.to_bytes(31, "big") for number in numbers]
    return {key: line_of(key) for key in keys}


@cache  # a line says when it was made
def line_of(key: bytes) -> bytes:
    return answer_line(key.hex(), Reply(f"reply {key[-1]}"))


def test_a_file_is_there_for_others_as_soon_as_it_is_written_and_gone_once_it_is_removed(url):
    mine, other = Place(url), Place(url)
    assert other.files("plans") == []
    mine.write("plans/a/1.jsonl", b"one")
    assert other.files("plans") == ["plans/a/1.jsonl"]
    mine.write("plans/a/2.parquet", b"two")
    assert other.read("plans/a/2.parquet") == b"two"  # though it was not in what `files` listed
    mine.write("plans/a/1.jsonl", b"another")
    assert other.read("plans/a/1.jsonl") == b"another"
    assert other.modified_at("plans/a/1.jsonl") > 0
    mine.remove("plans")
    assert other.files("plans") == []
    mine.remove("plans")  # once more is no error
    with pytest.raises(FileNotFoundError):
        other.read("plans/a/2.parquet")


def test_keys_are_read_without_the_lines_that_they_lie_beside(url):
    store = AnswerStore(url)
    texts = answers_of(7, range(2_000))
    long = {key: line[:-1] + os.urandom(500).hex().encode() + b"\n" for key, line in texts.items()}
    store.add(7, long)
    place = Place(url)
    (name,) = place.files("answers")
    size = len(place.read(name))
    reader = AnswerStore(url)
    assert reader.keys(7).to_pylist() == sorted(long)
    # 2,000 keys of 32 bytes and 64 kB for the footer, of more than a megabyte
    assert reader.place.bytes_read < 2_000 * 40 + 70_000 < size
    assert reader.line(sorted(long)[1_500]) == long[sorted(long)[1_500]]


def test_a_writer_for_each_partition_needs_no_lock_and_the_same_answers_make_the_same_file(url):
    per_writer = 300

    def write(partition: int) -> None:
        for numbers in (range(200), range(100, per_writer), range(per_writer)):  # the last one adds nothing
            AnswerStore(url).add(partition, answers_of(partition, numbers))

    writers = [threading.Thread(target=write, args=(partition,)) for partition in range(4)]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    place = Place(url)
    assert len(place.files("answers")) == 4 * 2
    for partition in range(4):
        keys = AnswerStore(url).keys(partition).to_pylist()
        assert sorted(keys) == sorted(answers_of(partition, range(per_writer)))  # each of them once
    # a writer that was killed after its file was there, and is run again
    before = place.files("answers")
    again = AnswerStore(f"{url}/other")
    again.add(0, answers_of(0, range(200)))
    assert {name.split("/")[-1] for name in again.place.files("answers")} <= {
        name.split("/")[-1] for name in before
    }


def test_what_a_journal_was_told_is_whole_lines_after_a_flush(url):
    place, lines = Place(url), [*answers_of(1, range(500)).values()]
    journal = Journal(place, "journal/session/chunk")
    for line in lines[:400]:
        journal.append(line)
    journal.flush()
    found = [line for name in place.files("journal") for line in journal_lines(place, name)]
    assert sorted(found) == sorted(lines[:400])
    for line in lines[400:]:
        journal.append(line)
    journal.close()
    found = [line for name in place.files("journal") for line in journal_lines(place, name)]
    assert {key_in(line) for line in found} == {key_in(line) for line in lines}


def test_tables_pass_through_a_bucket_unchanged(url):
    table = pa.table(
        {"session": pa.array([1, 2], pa.int32()), "key": pa.array([b"a" * 32] * 2, pa.binary(32))}
    )
    Place(url).write_table("plans/calls.parquet", table)
    assert Place(url).read_table("plans/calls.parquet").equals(table)
    assert Place(url).read_table("plans/calls.parquet", ["key"]).column_names == ["key"]
