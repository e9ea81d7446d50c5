from datetime import datetime

import pytest

from leaderboard.annotations import Annotation, problems_of, with_opaque_annotators
from tests.leaderboard.annotation_samples import IDS, annotation


def test_a_good_annotation_has_no_problems_answered_or_not():
    assert problems_of(annotation(0, "A", "unsure")) == []
    assert problems_of(Annotation(IDS[0])) == []


def test_every_bad_field_is_named_at_once_and_no_answer_is_shown():
    bad = Annotation(
        "webarena/1", " ", success="maybe-4711", optimality="5", comment="x" * 10_001,
        at=datetime(2026, 1, 1), seconds=float("nan"), experiment="two\nlines",
    )  # fmt: skip
    found = problems_of(bad)
    fields = ["trajectory_id", "experiment", "annotator", "success", "optimality", "comment", "at", "seconds"]
    assert [problem.partition(":")[0] for problem in found] == fields
    assert "success: write no, yes, unsure or nothing" in found
    assert "4711" not in "; ".join(found)


@pytest.mark.parametrize("seconds", [-0.1, float("inf")])
def test_a_duration_is_a_number_from_0(seconds):
    assert problems_of(Annotation(IDS[0], seconds=seconds)) == ["seconds: write a number from 0"]


def test_a_record_shows_no_answer():
    assert f"{annotation(0, 'A', 'yes')!r}" == f"Annotation({IDS[0]!r})"


def test_names_become_opaque_by_first_appearance_and_blanks_make_no_new_person():
    given = [annotation(0, "Bea"), annotation(1, " Ada"), annotation(2, None), annotation(3, "Ada")]
    found = [a.annotator for a in with_opaque_annotators(given)]
    assert found == ["annotator-1", "annotator-2", None, "annotator-2"]
