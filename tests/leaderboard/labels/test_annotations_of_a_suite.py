"""Annotations as `labels` gives them: of a split or a suite, from the source, a file or the published dev."""

import pytest

from arb.core.settings import Settings
from leaderboard.labels.labels import LabelsInvalid, load_annotations, load_labels, write_annotations
from leaderboard.labels.source import LabelsUnavailable
from tests.support.annotations import by, success_of

VWA_A = "visualwebarena/agent-a/visualwebarena.resized.7"
WA_A, WA_B = "webarena/agent-a/webarena.1", "webarena/agent-b/webarena.1"
ROWS = [
    (WA_A, "Successful", "No", "Unsure", "No", "A"),
    (VWA_A.replace(".resized", ""), "Unsure", "No", "2. Suboptimal", "No", "B"),
    (WA_A, "Unsuccessful", "No", "1. Complete Failure", "No", "B"),
]


@pytest.fixture
def settings(write_annotations):
    return Settings(labels=f"csv:{write_annotations(ROWS)}")


def test_they_come_in_the_order_of_the_file_under_the_suites_ids(small_suite, settings):
    found = load_annotations(small_suite, settings)
    assert [(a.trajectory_id, a.annotator, success_of(a), a.answers.get("optimality")) for a in found] == [
        (WA_A, "A", "yes", "unsure"),
        (VWA_A, "B", "unsure", "2"),
        (WA_A, "B", "no", "1"),
    ]


def test_those_of_dev_come_from_the_suites_own_file_and_need_no_source(small_suite):
    small_suite.dev_labels_path.write_text(
        "trajectory_id,annotation,success,side_effect,repetition,optimality,annotator\n"
        f"{WA_A},2,false,,true,,annotator-2\n{WA_A},1,true,false,false,4,annotator-1\n"
    )
    found = load_annotations(small_suite, Settings(labels="none"), "dev")
    assert found == (
        by(WA_A, "annotator-1", "yes", "no", "no", "4"),
        by(WA_A, "annotator-2", "no", "unsure", "yes", "unsure", annotation=2),
    )


def test_a_file_of_ones_own_is_read_in_either_format(small_suite, settings, tmp_path):
    csv_file, parquet_file = tmp_path / "own.csv", tmp_path / "own.parquet"
    given = load_annotations(small_suite, settings)
    none = Settings(labels="none")
    for path in (csv_file, parquet_file):
        write_annotations(given, path)
        assert load_annotations(small_suite, none, file=path) == given
        assert path.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.glob("*own*")) == ["own.csv", "own.parquet"]


def test_labels_may_be_read_from_our_parquet_and_have_the_version_of_the_csv(small_suite, settings, tmp_path):
    path = tmp_path / "own.parquet"
    write_annotations(load_annotations(small_suite, settings), path)
    from_csv = load_labels(small_suite, "test", settings)
    from_parquet = load_labels(small_suite, "test", Settings(labels=f"csv:{path}"))
    assert from_parquet.version == from_csv.version


def test_an_unanswered_question_is_no_label(small_suite, tmp_path):
    path = tmp_path / "own.parquet"
    write_annotations([by(VWA_A, "A", success="yes")], path)
    labels = load_labels(small_suite, "test", Settings(labels=f"csv:{path}"))
    found = {name: int(values[0]) for name, values in labels.primary.items()}
    assert found == {"success": 1, "side_effect": -1, "repetition": -1, "optimality": -1}


def test_a_file_of_another_suite_is_refused_in_one_sentence(small_suite, tmp_path):
    path = tmp_path / "own.parquet"
    write_annotations([by("webarena/agent-z/webarena.9")], path)
    with pytest.raises(LabelsInvalid, match=r"^own.parquet: no row is on a trajectory of the suite small"):
        load_annotations(small_suite, Settings(labels="none"), file=path)


def test_every_stranger_in_a_parquet_is_named_by_its_row_from_1(small_suite, tmp_path):
    path = tmp_path / "own.parquet"
    write_annotations([by("webarena/agent-z/webarena.9"), by(WA_A)], path)
    with pytest.raises(LabelsInvalid, match=r"^own.parquet: row 1: 'webarena/agent-z/webarena.9' is not in"):
        load_annotations(small_suite, Settings(labels="none"), file=path)


def test_without_a_source_the_whole_suites_cannot_be_had(small_suite):
    with pytest.raises(LabelsUnavailable, match="ARB_LABELS is 'none'"):
        load_annotations(small_suite, Settings(labels="none"))


def test_what_cannot_be_written_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="annotation 1, success: add an answer"):
        write_annotations([by(WA_A)], tmp_path / "own.csv")
    assert list(tmp_path.iterdir()) == []
