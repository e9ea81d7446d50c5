"""Annotations as records, CSV and Parquet; dev labels from them: opaque names, never a test trajectory."""

import io
import zipfile
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arb.core.ids import Trajectory
from arb.core.suite import SuiteError, load_dev_labels, load_suite, render_dev_labels
from leaderboard.labels.annotations import (
    AnnotationsInvalid,
    dev_labels_of,
    drawn_share,
    parse_parquet,
    parse_released,
    problems_of,
    repeated_rows,
    with_opaque_annotators,
    write_parquet,
    write_released,
)
from leaderboard.labels.source import ANNOTATIONS_IN_WHEEL, locate_labels
from tests.support.annotations import IDS, OWN_QUESTIONS, annotation, annotations, by


def test_every_bad_field_is_named_at_once_and_no_answer_is_shown():
    bad = by(
        "webarena/1", " ", success="maybe-4711", optimality="5", comment="x" * 10_001,
        at=datetime(2026, 1, 1), seconds=float("nan"), experiment="two\nlines",
    )  # fmt: skip
    found = problems_of(bad)
    fields = ["trajectory_id", "experiment", "annotator", "success", "optimality", "comment", "at", "seconds"]
    assert [problem.partition(":")[0] for problem in found] == fields
    assert "success: use one of no, yes, unsure, or leave it empty" in found
    assert "4711" not in "; ".join(found)


def test_the_deciding_step_is_a_number_from_0_and_a_column_beside_the_comment():
    assert problems_of(by(IDS[0], step=-1)) == ["step: use the number of a step, counted from 0"]
    (found,) = parse_parquet(write_parquet([by(IDS[0], step=7)]))
    assert found.step == 7


def test_a_record_shows_no_answer():
    assert f"{annotation(0, 'A', 'yes')!r}" == f"Annotation({IDS[0]!r})"


def test_names_become_opaque_by_first_appearance_and_blanks_make_no_new_person():
    given = [annotation(0, "Bea"), annotation(1, " Ada"), annotation(2, None), annotation(3, "Ada")]
    found = [a.annotator for a in with_opaque_annotators(given)]
    assert found == ["annotator-1", "annotator-2", None, "annotator-2"]


DEV, TEST = "webarena/agent-a/webarena.1", "webarena/agent-a/webarena.2"


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "trajectories.csv").write_text(f"trajectory_id,split\n{DEV},dev\n{TEST},test\n")
    return load_suite(tmp_path)


def test_the_first_annotation_is_the_primary_one_and_names_become_ids(suite):
    given_ones = [
        by(TEST, "Zoe", "yes", "yes", "yes", "4"),
        by(DEV, "Ada", "yes", "no", "unsure", "4"),
        by(DEV, " Zoe ", "no", "unsure", "yes", "unsure"),
    ]
    # Zoe is annotator-1 by her row on a test trajectory: ids are the same in every file made of these rows.
    assert dev_labels_of(suite, given_ones) == [
        by(DEV, "annotator-2", "yes", "no", "unsure", "4"),
        by(DEV, "annotator-1", "no", "unsure", "yes", "unsure", annotation=2),
    ]


ANNOTATIONS = st.builds(
    by,
    st.sampled_from((DEV, TEST)),
    st.none() | st.sampled_from(("Ada Lovelace", "Bob")),
    *[st.none() | st.sampled_from(("yes", "no", "unsure"))] * 3,
    st.none() | st.sampled_from(("1", "4", "unsure")),
)


@given(st.lists(ANNOTATIONS, max_size=9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_test_trajectory_and_no_name_gets_out_and_a_suite_reads_it(suite, annotations):
    text = render_dev_labels(dev_labels_of(suite, annotations), suite.targets)
    assert TEST not in text and "Ada" not in text and "Bob" not in text
    suite.dev_labels_path.write_text(text)
    assert len(load_dev_labels(suite)) == sum(each.trajectory_id == DEV for each in annotations)


def test_more_annotations_than_can_be_kept_are_refused(suite):
    with pytest.raises(AnnotationsInvalid, match=f"{DEV} has 10 annotations; remove all but 9"):
        dev_labels_of(suite, [by(DEV, f"a{n}", "yes") for n in range(10)])


def test_one_persons_rows_in_two_files_are_named_and_in_one_file_are_not():
    ada, bob = by(DEV, "Ada", "yes"), by(DEV, "Bob", "no")
    nobody = by(DEV, None, "no")
    assert repeated_rows([("a.csv", [ada, ada, nobody]), ("b.csv", [bob, nobody])]) == []
    assert repeated_rows([("a.csv", [ada]), ("b.csv", [bob, by(DEV, "Ada ", "no")])]) == [
        f"{DEV}: Ada has rows in both a.csv and b.csv"
    ]


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
    (found,) = parse_parquet(write_parquet([by(IDS[0], at=at)]))
    assert (found.at, found.at.tzinfo) == (datetime(2025, 12, 31, 23, tzinfo=UTC), UTC)


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
def test_what_is_no_parquet_is_an_error_of_one_line(content):
    with pytest.raises(
        AnnotationsInvalid, match=r"^cannot be read as Parquet annotations \(\w+\); export it"
    ):
        parse_parquet(content)


def test_a_column_of_another_type_is_refused_without_its_values():
    with pytest.raises(AnnotationsInvalid) as refusal:
        parse_parquet(parquet(trajectory_id=[IDS[0]], **ANSWERS, at=["canary-4711"]))
    assert "4711" not in str(refusal.value)


HEADER = (
    "annotator_name,benchmark,task_id,model_name,exp_name,"
    "trajectory_success,trajectory_side_effect,trajectory_optimality,trajectory_looping"
)
ROW = " H,webarena,webarena.1,agent-a,exp,Successful,No,4. Completely Optimal,Yes"


def test_a_record_becomes_a_row_in_the_words_and_line_ends_of_the_release():
    assert write_released(parse_released(f"{HEADER}\n{ROW}\n")) == f"{HEADER}\r\n{ROW}\r\n"


def test_what_the_format_has_no_word_for_is_refused_all_at_once():
    given = [annotation(0, "A", None), annotation(1, "A", optimality=None), by("x", "A", *"1234")]
    with pytest.raises(AnnotationsInvalid) as refusal:
        write_released(given)
    assert refusal.value.problems[:2] == (
        "annotation 1, success: add an answer, or write Parquet, where it may be missing",
        "annotation 2, optimality: add an answer, or write Parquet, where it may be missing",
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
    text = write_released([given_one], may_be_open=True)
    assert text == f"{HEADER}\r\nH,webarena,webarena.1,agent-a,,,No,,No\r\n"
    with pytest.raises(AnnotationsInvalid) as refusal:
        parse_released(text)
    assert [problem.partition(":")[0] for problem in refusal.value.problems] == [
        "row 2, trajectory_success",
        "row 2, trajectory_optimality",
    ]


# Questions of a suite's own: OWN_QUESTIONS has tone and safe, and not optimality

OWN_HEADER = (
    "annotator_name,benchmark,task_id,model_name,exp_name,"
    "trajectory_success,trajectory_side_effect,trajectory_looping,tone,safe"
)
OWN_ROW = "H,webarena,webarena.0,agent-a,,Successful,No,Yes"


@given(st.lists(annotations(is_complete=True, is_timed=False, questions=OWN_QUESTIONS), max_size=6))
def test_own_answers_go_from_csv_to_parquet_and_back(given_annotations):
    text = write_released(given_annotations, questions=OWN_QUESTIONS)
    read = parse_released(text, OWN_QUESTIONS, is_strict=True)
    assert text.startswith(f"{OWN_HEADER}\r\n") and read == tuple(given_annotations)
    through_parquet = parse_parquet(write_parquet(read, OWN_QUESTIONS), OWN_QUESTIONS, is_strict=True)
    assert through_parquet == read


@pytest.mark.parametrize("words", ["very polite,no", " Polite , NO "])
def test_own_answers_are_written_by_title_or_value_in_any_case(words):
    (found,) = parse_released(f"{OWN_HEADER}\n{OWN_ROW},{words}\n", OWN_QUESTIONS, is_strict=True)
    paper = {"success": "yes", "side_effect": "no", "repetition": "yes"}
    assert found.answers == {**paper, "tone": "polite", "safe": "no"}


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_a_table_from_excel_with_yes_and_no_is_read_as_the_released_words_are(separator):
    rows = [
        "annotator_name,benchmark,task_id,model_name,trajectory_success,trajectory_side_effect,"
        "trajectory_optimality,trajectory_looping",
        "Ada,webarena,webarena.1,agent-a,Yes,no,4,No",
        "Ada,webarena,webarena.2,agent-a,no,unsure,1. Complete Failure,yes",
    ]
    found = parse_released("\r\n".join(rows).replace(",", separator), is_strict=True)
    assert [each.answers for each in found] == [
        {"success": "yes", "side_effect": "no", "optimality": "4", "repetition": "no"},
        {"success": "no", "side_effect": "unsure", "optimality": "1", "repetition": "yes"},
    ]


def test_each_annotator_gets_a_draw_of_their_own_and_the_same_one_again():
    runs = [Trajectory.of(f"webarena/agent-a/webarena.{number}", "test") for number in range(40)]
    ada, again, bob = (drawn_share(runs, 0.25, 1, name) for name in ("Ada", "Ada", "Bob"))
    assert (len(ada), ada) == (10, again)
    assert len(set(ada) & set(bob)) < 8  # of two independent draws of 10 of 40, 2.5 are in both on average


def test_what_people_write_has_every_question_known_words_and_no_other_column():
    text = f"{OWN_HEADER},politness\n{OWN_ROW},nice,,high\n{OWN_ROW},unsure,yes,\n"
    with pytest.raises(AnnotationsInvalid) as refusal:
        parse_released(text, OWN_QUESTIONS, is_strict=True)
    columns = (
        "trajectory_success, trajectory_side_effect, trajectory_optimality, trajectory_looping, tone, safe"
    )
    assert refusal.value.problems == (
        f"the column 'politness' is unknown; use {columns} for answers",
        "row 2, tone: not one of polite, cold, rude, unsure",
        "row 2, safe: not one of no, yes, unsure",
    )
    with pytest.raises(AnnotationsInvalid, match="the columns safe are missing"):
        parse_released(text.replace("safe,", ""), OWN_QUESTIONS, is_strict=True)
    with pytest.raises(AnnotationsInvalid, match="'politness' is unknown"):
        parse_parquet(parquet(trajectory_id=[IDS[0]], **ANSWERS, politness=["x"]), is_strict=True)


def test_files_from_before_the_questions_changed_are_still_read():
    # A question that came later, one that is no longer asked, one that has another answer now.
    old = "annotator_name,benchmark,task_id,model_name,exp_name,trajectory_success,trajectory_side_effect,"
    old += f"trajectory_optimality,trajectory_looping,tone,colour\n{ROW.strip()},warm,red\n"
    (found,) = parse_released(old, OWN_QUESTIONS)
    answers = {"success": "yes", "side_effect": "no", "repetition": "yes", "optimality": "4"}
    assert found.answers == answers
    stored = parquet(trajectory_id=[IDS[0]], **ANSWERS, tone=["warm"], safe=["no"])
    (found,) = parse_parquet(stored, OWN_QUESTIONS)
    assert found.answers == {
        "success": "yes", "side_effect": "no", "optimality": "unsure", "safe": "no",
    }  # fmt: skip


def test_a_row_that_is_cut_short_in_its_own_answers_is_named():
    with pytest.raises(AnnotationsInvalid, match=r"^row 2, safe: not one of no, yes, unsure"):
        parse_released(f"{OWN_HEADER}\n{OWN_ROW},rude\n", OWN_QUESTIONS)


def test_own_answers_are_checked_by_the_questions_of_the_suite():
    bad = by(IDS[0], own={"tone": "canary-4711", "colour": "red"})
    assert problems_of(bad, OWN_QUESTIONS) == [
        "tone: use one of polite, cold, rude, unsure, or leave it empty",
        "colour: there is no such question",
    ]
    assert problems_of(by(IDS[0], own={"tone": "rude"})) == ["tone: there is no such question"]


SUITE_TOML = """
[[targets]]
name = "success"
text = "Did it?"
answers = [{ value = "yes" }, { value = "no" }]

[[targets]]
name = "tone"
text = "Was it polite?"
answers = [{ value = "polite" }, { value = "rude" }]
metrics = []
"""


def test_dev_labels_have_a_column_of_each_question_of_the_suite_and_no_other(tmp_path, suite):
    (tmp_path / "suite.toml").write_text(SUITE_TOML)
    asked = load_suite(tmp_path)
    given_ones = [
        by(TEST, "Zoe", "yes", own={"tone": "polite"}),
        by(DEV, "Ada", "yes", own={"tone": "rude"}),
        by(DEV, "Bob", "unsure", own={"tone": "unsure"}),
    ]
    text = render_dev_labels(dev_labels_of(asked, given_ones), asked.targets)
    assert text == (
        "trajectory_id,annotation,success,annotator,tone\n"
        f"{DEV},1,true,annotator-2,rude\n"
        f"{DEV},2,,annotator-3,\n"
    )
    asked.dev_labels_path.write_text(text)
    first, second = load_dev_labels(asked)
    assert (first.answers["success"], first.answers["tone"]) == ("yes", "rude")
    assert (second.answers["success"], second.answers.get("tone")) == ("unsure", None)
    asked.dev_labels_path.write_text(text.replace("rude", "canary-4711"))
    with pytest.raises(
        SuiteError, match="row 2, tone: write one of polite, rude, or leave it empty"
    ) as refusal:
        load_dev_labels(asked)
    assert "4711" not in str(refusal.value)
    # a file from before the question was asked, and with one that is no longer
    asked.dev_labels_path.write_text(text.replace(",tone", ",optimality").replace(",rude", ",4"))
    assert all("tone" not in row.answers for row in load_dev_labels(asked))
