"""Tests of the event log: each event contains the hash of the previous one, so edits are noticed."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submissions.records import event_log
from submissions.records.database import open_database, snapshot, transaction
from submissions.records.event_log import (
    NO_HASH,
    Event,
    EventLogBroken,
    add_event,
    canonical,
    check_event_log,
    events_after,
    hash_of,
    head,
    parse_event,
)

SALT = "00112233445566778899aabbccddeeff" * 2
NOON = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)


@pytest.fixture
def engine():
    return open_database("sqlite://")


def add(engine, *bodies, kind="hidden"):
    with transaction(engine) as session:
        return [add_event(session, kind, "ada", NOON + timedelta(n), body) for n, body in enumerate(bodies)]


def test_each_record_names_the_hash_of_the_one_before(engine):
    first, second = add(engine, {"submission_id": "a"}, {"submission_id": "b"})
    assert (first.sequence, first.previous) == (1, NO_HASH)
    assert (second.sequence, second.previous) == (2, first.hash)
    with snapshot(engine) as session:
        assert events_after(session) == [first, second]
        assert events_after(session, 1) == [second]
        assert head(session) == (2, second.hash)
    assert check_event_log([first, second]) == []


def test_the_hash_is_the_sha256_of_the_record_without_it(engine):
    import hashlib

    (record,) = add(engine, {"submission_id": "a"})
    said = json.loads(record.line())
    assert said.pop("hash") == record.hash
    in_one_spelling = json.dumps(said, sort_keys=True, separators=(",", ":")).encode()
    assert hashlib.sha256(in_one_spelling).hexdigest() == record.hash
    assert said["at"] == "2026-03-01T12:00:00.123456+00:00"


def test_an_unknown_kind_is_refused(engine):
    with pytest.raises(ValueError, match="unknown kind of event 'edited'"), transaction(engine) as session:
        add_event(session, "edited", "ada", NOON, {})


def test_a_record_that_was_changed_removed_or_moved_is_named(engine):
    records = add(engine, *({"submission_id": str(n)} for n in range(4)))
    changed = [*records[:1], replace(records[1], actor="eve"), *records[2:]]
    assert check_event_log(changed) == ["record 2: its content was changed (the hash differs)"]
    forged = replace(records[1], actor="eve")
    forged = replace(forged, hash=hash_of(forged))
    assert check_event_log([records[0], forged, *records[2:]]) == [
        "record 3 does not contain the hash of record 2"
    ]
    assert check_event_log([*records[:1], *records[2:]]) == ["record 2 is missing; the next one is 3"]
    assert check_event_log(records[1:]) == ["record 1 is missing; the next one is 2"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.slow
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), JSON, max_size=4))
def test_a_record_comes_back_from_its_line_whatever_it_says(body):
    with transaction(open_database("sqlite://")) as session:
        record = add_event(session, "hidden", "ada", NOON, {**body, "submission_id": "a"})
    assert b"\n" not in record.line()
    assert parse_event(record.line()) == record


@pytest.mark.parametrize(
    "line",
    [b"", b"{}", b"[]", b"nothing", b'{"sequence":1}', b"[" * 100_000, b"\xff"],
)
def test_a_line_that_is_no_record_is_refused(line):
    with pytest.raises(EventLogBroken):
        parse_event(line)


@pytest.mark.parametrize("kind", ["merged", "", None])
def test_a_line_of_a_kind_that_only_a_later_version_may_know_is_refused(engine, kind):
    (record,) = add(engine, {"submission_id": "a"})
    later = replace(record, kind=kind)
    later.hash = hash_of(later)
    with pytest.raises(EventLogBroken, match=r"its kind .* is unknown"):
        parse_event(later.line())


def test_the_same_event_has_another_hash_under_another_nonce(monkeypatch):
    def added(nonce: bytes) -> Event:
        monkeypatch.setattr(event_log, "random_nonce", lambda: nonce)
        with transaction(open_database("sqlite://")) as session:
            return add_event(session, "hidden", "ada", NOON, {"submission_id": "a"})

    one, same, other = added(bytes.fromhex(SALT)), added(bytes.fromhex(SALT)), added(bytes(32))
    assert one == same
    assert one.nonce == SALT
    assert one.hash != other.hash
    # No hash covers only the public part, since anyone could compute that.
    assert one.hash != hash_of(replace(one, nonce=None))


def test_a_nonce_is_new_for_each_event_and_in_no_text_of_it(engine):
    records = add(engine, {"submission_id": "a"}, {"submission_id": "a"})
    assert {len(bytes.fromhex(record.nonce)) for record in records} == {32}
    assert records[0].nonce != records[1].nonce
    assert not any(record.nonce in f"{record!r} {record}" for record in records)


@pytest.mark.parametrize("nonce", ["", "00", "x" * 64, "A" * 64, None, 7, ["0" * 64]])
def test_a_line_with_something_else_for_a_nonce_is_refused(engine, nonce):
    (record,) = add(engine, {"submission_id": "a"})
    said = {**json.loads(record.line()), "nonce": nonce}
    with pytest.raises(EventLogBroken, match="its body or nonce is invalid"):
        parse_event(canonical(said))
