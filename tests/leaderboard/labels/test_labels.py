import csv
import logging
import random
import traceback
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from arb.core.settings import Settings
from arb.core.suite import load_suite
from leaderboard.labels.labels import LabelsInvalid, load_labels
from leaderboard.labels.source import LabelsUnavailable
from tests.support.annotations import OWN_QUESTIONS

VWA_A = "visualwebarena/agent-a/visualwebarena.resized.7"
VWA_B = "visualwebarena/agent-b/visualwebarena.7"
WORK_A = "workarena/agent-a/workarena.servicenow.order-l2"
WORK_B = "workarena/agent-b/workarena.servicenow.order-l2"
WA_A, WA_B = "webarena/agent-a/webarena.1", "webarena/agent-b/webarena.1"

# trajectory id, success, side effect, optimality, looping
ROWS = [
    (VWA_A, "Successful", "No", "4. Completely Optimal", "No"),
    (VWA_B, "Unsuccessful", "Yes", "1. Complete Failure", "Yes"),
    (WORK_A, "Unsure", "Unsure", "Unsure", "No"),
    (WORK_B, "Unsuccessful", "No", "2. Suboptimal", "Yes"),
    (WA_A, "Successful", "No", "3. Somewhat Optimal", "No"),
]


def csv_settings(path) -> Settings:
    return Settings(labels=f"csv:{path}")


@pytest.fixture
def load(small_suite, write_annotations):
    """A function that writes rows and reads them as labels of the small suite."""
    return lambda rows=ROWS, split="test", **how: load_labels(
        small_suite, split, csv_settings(write_annotations(rows, **how))
    )


# -- what is read


def test_words_become_codes_in_the_order_of_the_split(load):
    labels = load()
    assert [t.trajectory_id for t in labels.trajectories] == [VWA_A, VWA_B, WORK_A, WORK_B]
    assert labels.primary["success"].tolist() == [1, 0, -1, 0]
    assert labels.primary["side_effect"].tolist() == [0, 1, -1, 0]
    assert labels.primary["repetition"].tolist() == [0, 1, 0, 1]
    assert labels.primary["optimality"].tolist() == [3, 0, -1, 1]
    assert (labels.suite, labels.split, labels.source) == ("small", "test", "csv")


def test_the_first_row_of_a_trajectory_is_primary_and_the_next_is_second(load):
    labels = load([*ROWS, (VWA_A, "Unsuccessful", "Yes", "1. Complete Failure", "Yes")])
    assert labels.primary["success"][0] == 1
    assert labels.second["success"].tolist() == [0, -1, -1, -1]
    assert labels.second["optimality"].tolist() == [0, -1, -1, -1]
    assert labels.annotated_twice.tolist() == [True, False, False, False]


def test_columns_may_come_in_any_order_and_after_a_byte_order_mark(load, write_annotations, small_suite):
    path = write_annotations(ROWS)
    lines = [line.split(",") for line in path.read_text().splitlines()]
    path.write_text("\n".join(",".join([*line[1:], line[0]]) for line in lines), encoding="utf-8-sig")
    assert path.read_bytes().startswith(b"\xef\xbb\xbfbenchmark,")
    assert load_labels(small_suite, "test", csv_settings(path)).version == load().version


def test_a_trajectory_without_a_row_has_no_label(load):
    labels = load(ROWS[:1])
    assert labels.primary["success"].tolist() == [1, -1, -1, -1]
    assert labels.annotated_twice.tolist() == [False] * 4


# -- dev: the suite's own file


@pytest.fixture
def suite_with_dev(small_suite):
    def write(rows, encoding="utf-8"):
        text = "trajectory_id,annotation,success,side_effect,repetition,optimality\n" + "\n".join(rows) + "\n"
        small_suite.dev_labels_path.write_text(text, encoding=encoding)
        return small_suite

    return write


def test_dev_labels_come_from_the_suites_own_file_and_need_no_source(suite_with_dev):
    suite = suite_with_dev([f"{WA_A},1,true,false,true,4", f"{WA_B},1,,,,"])
    labels = load_labels(suite, "dev", Settings(labels="none"))
    assert labels.source == "published"
    found = {name: values.tolist() for name, values in labels.primary.items()}
    assert found == {"success": [1, -1], "side_effect": [0, -1], "repetition": [1, -1], "optimality": [3, -1]}


def test_dev_labels_come_from_the_source_where_the_suite_publishes_none(load):
    labels = load(split="dev")
    assert (labels.source, labels.primary["success"].tolist()) == ("csv", [1, -1])


# -- versions


def test_the_same_content_has_the_same_version(load):
    rows = [*ROWS, (VWA_A, "Unsuccessful", "Yes", "Unsure", "Yes"), (VWA_A, "Unsure", "No", "Unsure", "No")]
    version = load(rows).version
    others = [row for row in rows if row[0] != VWA_A]
    random.Random(1).shuffle(others)
    assert load([*others, *(row for row in rows if row[0] == VWA_A)]).version == version  # order of others
    assert load(rows, newline="\r\n").version == version
    assert load(rows, encoding="utf-8-sig").version == version
    assert load([(*row, " H") for row in rows]).version == version  # annotators
    assert load(rows[:4] + rows[5:]).version == version  # a row of the other split


def test_a_second_annotation_and_the_order_of_the_two_change_the_version(load):
    second = (VWA_A, "Unsuccessful", "Yes", "1. Complete Failure", "Yes")
    versions = {load().version, load([*ROWS, second]).version, load([second, *ROWS]).version}
    assert len(versions) == 3


# -- what cannot be read

CANARY = "canary-4711"


def test_every_bad_cell_is_named_by_row_and_column_and_no_value_is_shown(load, caplog):
    caplog.set_level(logging.DEBUG)
    rows = [(VWA_A, CANARY, "No", CANARY, "No"), ROWS[1], (WORK_A, "Unsure", CANARY, "Unsure", "")]
    with pytest.raises(LabelsInvalid) as refusal:
        load(rows)
    assert str(refusal.value) == (
        "labels: row 2, trajectory_success: not one of Successful, Unsuccessful, Unsure; "
        "row 2, trajectory_optimality: not one of 1. Complete Failure, 2. Suboptimal, "
        "3. Somewhat Optimal, 4. Completely Optimal, Unsure; "
        "row 4, trajectory_side_effect: not one of Yes, No, Unsure; "
        "row 4, trajectory_looping: not one of Yes, No, Unsure"
    )
    shown = "".join(traceback.format_exception(refusal.value)) + repr(refusal.value) + caplog.text
    assert CANARY not in shown
    assert refusal.value.__cause__ is None


def test_every_unknown_trajectory_is_named(load):
    strangers = [("webarena/agent-z/webarena.9", *ROWS[0][1:]), ("webarena/agent-z/webarena.8", *ROWS[0][1:])]
    with pytest.raises(LabelsInvalid) as refusal:
        load([ROWS[0], strangers[0], *ROWS[1:], strangers[1]])
    assert str(refusal.value) == (
        "labels: row 3: 'webarena/agent-z/webarena.9' is not in the suite small; "
        "row 8: 'webarena/agent-z/webarena.8' is not in the suite small"
    )


def test_labels_of_another_suite_are_refused_in_one_sentence(load):
    rows = [(f"webarena/agent-z/webarena.{task}", *ROWS[0][1:]) for task in range(500)]
    with pytest.raises(LabelsInvalid) as refusal:
        load(rows)
    assert str(refusal.value) == (
        "labels: no row is on a trajectory of the suite small; check ARB_SUITE and ARB_LABELS"
    )


def test_the_sample_names_its_own_label_file_instead_of_the_wheel_which_has_none_of_its_labels():
    with pytest.raises(LabelsUnavailable, match=r"set ARB_LABELS=csv:dataset_script/sample/annotations\.csv"):
        load_labels(load_suite("sample"), "test", Settings(suite="sample"))
    shipped = Settings(suite="sample", labels="csv:dataset_script/sample/annotations.csv")
    assert load_labels(load_suite("sample"), "test", shipped).trajectories


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_an_empty_file_is_refused(small_suite, tmp_path, content):
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(LabelsInvalid, match="the columns benchmark, model_name"):
        load_labels(small_suite, "test", csv_settings(path))


def test_a_file_in_another_encoding_is_refused_without_its_content(small_suite, write_annotations):
    path = write_annotations([(*ROWS[0], "Müller")], encoding="latin-1")
    with pytest.raises(LabelsInvalid) as refusal:
        load_labels(small_suite, "test", csv_settings(path))
    assert str(refusal.value) == "annotations.csv is not UTF-8 text; save it as UTF-8 CSV"
    assert "Successful" not in "".join(traceback.format_exception(refusal.value))


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"\xd0\xcf\x11\xe0"])
@pytest.mark.parametrize("name", ["labels.xlsx", "labels.csv"])
def test_an_excel_workbook_is_refused_with_the_way_to_save_it(small_suite, tmp_path, start, name):
    path = tmp_path / name
    path.write_bytes(start + b"\x80" * 100)
    with pytest.raises(LabelsInvalid) as refusal:
        load_labels(small_suite, "test", csv_settings(path))
    assert str(refusal.value) == (
        f'{name} is an Excel workbook; in Excel, use "Save As" with the type "CSV UTF-8"'
    )


def test_a_file_that_is_no_csv_is_refused_without_its_content(small_suite, write_annotations):
    path = write_annotations(ROWS)
    path.write_text(path.read_text() + '"' + CANARY * 20_000)  # beyond csv's limit of a field
    before = csv.field_size_limit(131_072)  # other tests may have raised it in this process
    with pytest.raises(LabelsInvalid) as refusal:
        load_labels(small_suite, "test", csv_settings(path))
    csv.field_size_limit(before)
    assert "cannot be read as CSV" in str(refusal.value)
    assert CANARY not in "".join(traceback.format_exception(refusal.value))


def test_a_file_that_this_user_may_not_read_is_said_so(small_suite, write_annotations, monkeypatch):
    path = write_annotations(ROWS)

    def read_bytes(path: Path) -> bytes:  # as for any user but root
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    with pytest.raises(LabelsUnavailable) as refusal:
        load_labels(small_suite, "test", csv_settings(path))
    said = f"{path.name} cannot be read (Permission denied); check that this user may read it"
    assert str(refusal.value) == said


def test_a_wheel_that_is_broken_or_lacks_the_annotations_is_unavailable(small_suite, tmp_path):
    broken, empty = tmp_path / "broken.whl", tmp_path / "empty.whl"
    broken.write_bytes(b"PK no")
    zipfile.ZipFile(empty, "w").close()
    for path in (broken, empty):
        with pytest.raises(LabelsUnavailable, match=rf"{path.name} cannot be read; fetch it again"):
            load_labels(small_suite, "test", csv_settings(path))


def test_a_label_set_shows_no_label(load):
    labels = load()
    assert repr(labels) == str(labels) == f"LabelSet(small/test, 4 rows, version {labels.version})"
    assert f"{labels}" == f"{labels!s}"
    assert "array" not in repr([labels])


# -- questions of a suite's own


def own_columns(path, cells: list[str]):
    """The file with the columns tone and safe: the cells of each row."""
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join(f"{line},{cell}" for line, cell in zip(lines, ["tone,safe", *cells], strict=True))
    )
    return csv_settings(path)


def test_own_answers_become_codes_in_the_order_of_the_questions_values(small_suite, write_annotations):
    suite = replace(small_suite, targets=OWN_QUESTIONS)
    settings = own_columns(
        write_annotations(ROWS), ["rude,yes", "Very polite,no", "Unsure,", "cold,yes", ","]
    )
    labels = load_labels(suite, "test", settings)
    # tone: polite 0, cold 1, rude 2; safe: no 0, yes 1
    assert labels.primary["tone"].tolist() == [2, 0, -1, 1]
    assert labels.primary["safe"].tolist() == [1, 0, -1, 1]
    assert labels.second["tone"].tolist() == [-1] * 4


def test_the_version_is_of_own_answers_too_and_a_question_without_answers_changes_no_version(
    small_suite, write_annotations, load
):
    suite = replace(small_suite, targets=OWN_QUESTIONS)

    def version(*cells: str) -> str:
        return load_labels(suite, "test", own_columns(write_annotations(ROWS), list(cells))).version

    before = load_labels(small_suite, "test", csv_settings(write_annotations(ROWS))).version
    assert load_labels(suite, "test", csv_settings(write_annotations(ROWS))).version == before
    assert version(",", ",", ",", ",", ",") == before
    others = [
        version("rude,", ",", ",", ",", ","),
        version("cold,", ",", ",", ",", ","),
        version(",yes", *[","] * 4),
    ]
    assert len({before, *others}) == 4
