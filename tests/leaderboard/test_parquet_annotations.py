import io
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.annotations import Annotation, AnnotationsInvalid
from leaderboard.parquet_annotations import parse_parquet, write_parquet
from tests.leaderboard.annotation_samples import IDS, annotation, annotations


def parquet(**columns) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


ANSWERS = {"success": ["yes"], "side_effect": ["no"], "repetition": [None], "optimality": ["unsure"]}


@given(st.lists(annotations(), max_size=6))
def test_every_field_comes_back_as_it_was(given_annotations):
    assert parse_parquet(write_parquet(given_annotations)) == tuple(given_annotations)


def test_the_same_annotations_give_the_same_bytes():
    given_annotations = [annotation(number, "A") for number in range(5)]
    assert write_parquet(given_annotations) == write_parquet(given_annotations)


def test_a_time_of_another_zone_is_the_same_moment_in_utc():
    at = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=2)))
    (found,) = parse_parquet(write_parquet([Annotation(IDS[0], at=at)]))
    assert (found.at, found.at.tzinfo) == (datetime(2025, 12, 31, 23, tzinfo=UTC), UTC)


def test_columns_beside_the_id_and_the_answers_may_be_absent():
    (found,) = parse_parquet(parquet(trajectory_id=[IDS[0]], **ANSWERS))
    assert found == Annotation(IDS[0], None, "yes", "no", None, "unsure")


def test_missing_columns_are_named():
    with pytest.raises(AnnotationsInvalid, match=r"^the columns side_effect, repetition, optimality are"):
        parse_parquet(parquet(trajectory_id=[IDS[0]], success=["yes"]))


def test_every_bad_row_is_named_without_its_answer():
    content = parquet(trajectory_id=[None], **{**ANSWERS, "success": ["canary-4711"]})
    with pytest.raises(AnnotationsInvalid) as refusal:
        parse_parquet(content)
    assert [problem.partition(":")[0] for problem in refusal.value.problems] == [
        "row 1, trajectory_id",
        "row 1, success",
    ]
    assert "4711" not in str(refusal.value)


@pytest.mark.parametrize("content", [b"", b"PAR1 no", b"trajectory_id,success\n"])
def test_what_is_no_parquet_is_told_in_a_line(content):
    with pytest.raises(AnnotationsInvalid, match=r"^cannot be read as Parquet annotations \(\w+\); write it"):
        parse_parquet(content)


def test_a_column_of_another_type_is_refused_without_its_values():
    with pytest.raises(AnnotationsInvalid) as refusal:
        parse_parquet(parquet(trajectory_id=[IDS[0]], **ANSWERS, at=["canary-4711"]))
    assert "4711" not in str(refusal.value)


def test_bad_records_are_not_written():
    with pytest.raises(AnnotationsInvalid, match="row 2, success"):
        write_parquet([annotation(0, "A"), annotation(1, "A", "maybe")])
