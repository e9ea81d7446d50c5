import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.annotations import Annotation, AnnotationsInvalid
from leaderboard.label_source import ANNOTATIONS_IN_WHEEL, locate_labels
from leaderboard.parquet_annotations import parse_parquet, write_parquet
from leaderboard.released_annotations import parse_released, write_open, write_released
from tests.leaderboard.annotation_samples import annotation, annotations

HEADER = (
    "annotator_name,benchmark,task_id,model_name,exp_name,"
    "trajectory_success,trajectory_side_effect,trajectory_optimality,trajectory_looping"
)
ROW = " H,webarena,webarena.1,agent-a,exp,Successful,No,4. Completely Optimal,Yes"


def test_a_row_becomes_a_record_with_our_words_and_its_name_as_written():
    assert parse_released(f"{HEADER}\n{ROW}\n") == (
        Annotation("webarena/agent-a/webarena.1", " H", "yes", "no", "yes", "4", experiment="exp"),
    )


def test_a_record_becomes_a_row_in_the_words_and_line_ends_of_the_release():
    assert write_released(parse_released(f"{HEADER}\n{ROW}\n")) == f"{HEADER}\r\n{ROW}\r\n"


def test_the_names_of_annotator_and_experiment_may_be_absent():
    lines = [line.split(",") for line in (HEADER, ROW)]
    text = "\n".join(",".join([*line[1:4], *line[5:]]) for line in lines)
    (found,) = parse_released(text)
    assert (found.annotator, found.experiment, found.success) == (None, "", "yes")


def test_what_the_format_has_no_word_for_is_refused_all_at_once():
    given = [annotation(0, "A", None), annotation(1, "A", optimality=None), Annotation("x", "A", *"1234")]
    with pytest.raises(AnnotationsInvalid) as refusal:
        write_released(given)
    assert refusal.value.problems[:2] == (
        "annotation 1, success: not answered; the released format has no word for that",
        "annotation 2, optimality: not answered; the released format has no word for that",
    )
    assert "annotation 3, trajectory_id: expected <benchmark>/<agent>/<task_id>" in refusal.value.problems


@given(st.lists(annotations(is_complete=True, is_timed=False), max_size=6))
def test_from_csv_to_parquet_and_back_nothing_is_lost(given_annotations):
    text = write_released(given_annotations)
    read = parse_released(text)
    assert read == tuple(given_annotations)
    through_parquet = parse_parquet(write_parquet(read))
    assert through_parquet == read
    assert write_released(through_parquet) == text


@pytest.mark.labels
def test_the_released_file_goes_through_parquet_and_comes_back_byte_for_byte(official_settings):
    with zipfile.ZipFile(locate_labels(official_settings)) as wheel:
        released = wheel.read(ANNOTATIONS_IN_WHEEL)
    read = parse_released(released.decode())
    assert len(read) == 1408
    assert write_released(parse_parquet(write_parquet(read))).encode() == released


def test_an_open_file_has_nothing_where_a_question_is_not_answered_and_is_refused_until_it_is():
    given_one = annotation(1, "H", None, optimality=None)
    text = write_open([given_one])
    assert text == f"{HEADER}\r\nH,webarena,webarena.1,agent-a,,,No,,No\r\n"
    with pytest.raises(AnnotationsInvalid) as refusal:
        parse_released(text)
    assert [problem.partition(":")[0] for problem in refusal.value.problems] == [
        "row 2, trajectory_success",
        "row 2, trajectory_optimality",
    ]
