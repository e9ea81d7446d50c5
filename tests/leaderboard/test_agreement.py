import numpy as np
import pytest

from dataset_script.settings import Settings
from dataset_script.suite import load_suite
from leaderboard.agreement import agreement_of, annotator_agreement, find_doubles
from leaderboard.agreement_report import agreement_report
from leaderboard.judge_precision.confusion import confusion_counts, figures
from leaderboard.labels import load_labels
from tests.leaderboard.annotation_samples import annotation as annotation_of

VWA_A = "visualwebarena/agent-a/visualwebarena.resized.7"
VWA_B = "visualwebarena/agent-b/visualwebarena.7"
WORK_A = "workarena/agent-a/workarena.servicenow.order-l2"
WORK_B = "workarena/agent-b/workarena.servicenow.order-l2"


def annotation(trajectory_id, success, looping="No"):
    return (trajectory_id, success, "No", "Unsure", looping)


@pytest.fixture
def labels(small_suite, write_annotations):
    def load(first, second):
        ids = [VWA_A, VWA_B, WORK_A, WORK_B]
        rows = [annotation(i, word) for i, word in zip(ids, first, strict=True)]
        rows += [annotation(i, word) for i, word in zip(ids, second, strict=True) if word]
        return load_labels(small_suite, "test", Settings(labels=f"csv:{write_annotations(rows)}"))

    return load


YES, NO, UNSURE = "Successful", "Unsuccessful", "Unsure"


def test_agreement_is_the_share_of_equal_answers_and_kappa_cohens(labels):
    found = annotator_agreement(labels([YES, YES, NO, NO], [YES, NO, NO, NO]), "success")
    # 3 of 4 agree; first says yes to 2, second to 1: p_e = (2 * 1 + 2 * 3) / 16 = 1/2; (3/4 - 1/2) / (1/2)
    assert (found.pairs, found.percent, found.kappa) == (4, 0.75, 0.5)


def test_alpha_is_krippendorffs(labels):
    found = annotator_agreement(labels([YES, YES, NO, NO], [YES, NO, NO, NO]), "success")
    # Coincidences: 1 unit yes/no gives 2 of 8 values; 3 yes and 5 no: 1 - (8 - 1) * 2 / (2 * 3 * 5)
    assert found.alpha == pytest.approx(1 - 14 / 30)


def test_only_trajectories_with_two_answers_count(labels):
    found = annotator_agreement(labels([YES, YES, NO, UNSURE], [YES, None, UNSURE, NO]), "success")
    assert (found.pairs, found.percent, found.left_out) == (1, 1.0, 2)


def test_without_doubles_agreement_is_undefined(labels):
    found = annotator_agreement(labels([YES, YES, NO, NO], [None] * 4), "success")
    assert (found.pairs, found.percent, found.kappa, found.alpha) == (0, None, None, None)


def test_kappa_is_undefined_where_both_always_say_the_same(labels):
    found = annotator_agreement(labels([NO] * 4, [NO] * 4), "success")
    assert (found.percent, found.kappa) == (1.0, None)


def test_a_double_is_two_annotations_by_two_people():
    given = [
        annotation_of(0, "A"), annotation_of(1, "A"), annotation_of(0, " B"), annotation_of(0, "B"),
        annotation_of(1, None), annotation_of(0, "C"), annotation_of(2, "C"), annotation_of(1, None),
    ]  # fmt: skip
    doubles = find_doubles(given)
    named = [
        (doubles.annotations[one].annotator, doubles.annotations[other].annotator)
        for one, other in zip(doubles.first, doubles.second, strict=True)
    ]
    # B's second annotation of 0 does not count; unknown people are different ones
    assert named == [("A", " B"), ("A", None), ("A", "C"), (" B", "C"), ("A", None), (None, None)]


def test_three_people_make_three_doubles_and_one_unit_of_alpha():
    given = [annotation_of(0, "A", "yes"), annotation_of(0, "B", "yes"), annotation_of(0, "C", "no")]
    given += [annotation_of(1, "A", "no"), annotation_of(1, "B", "no")]
    found = agreement_of(find_doubles(given), "success")
    assert (found.pairs, found.percent) == (4, 0.5)  # AB agree on both, AC and BC do not
    # Units yyn and nn: disagreeing coincidences 2 * (2 * 1) / 2 = 2; 2 yes, 3 no: 1 - 4 * 2 / (2 * 2 * 3)
    assert found.alpha == pytest.approx(1 - 8 / 12)


def test_kappa_by_people_does_not_depend_on_who_came_first():
    rows = [("yes", "no"), ("yes", "yes"), ("no", "no"), ("no", "yes"), ("no", "yes")]
    in_order = [
        annotation_of(n, who, word) for n, row in enumerate(rows) for who, word in zip("AB", row, strict=True)
    ]
    b_first = [a for n in range(5) for a in in_order[2 * n : 2 * n + 2][:: -1 if n % 2 else 1]]
    pairs = [agreement_report(given).questions["success"].by_pair for given in (in_order, b_first)]
    assert pairs[0] == pairs[1]
    assert (pairs[0][0].first, pairs[0][0].second) == ("A", "B")


@pytest.mark.labels
def test_the_official_annotators_agree_as_the_released_data_says(official_test_labels):
    found = {
        label: annotator_agreement(official_test_labels, label)
        for label in ("success", "side_effect", "repetition", "optimality")
    }
    assert {agreement.pairs for agreement in found.values()} == {84}
    # released-data.md: 89.3 %, 96.4 %, 86.9 %; 75, 81 and 73 of 84; optimality 52 of 84
    assert {label: round(100 * agreement.percent, 1) for label, agreement in found.items()} == {
        "success": 89.3,
        "side_effect": 96.4,
        "repetition": 86.9,
        "optimality": 61.9,
    }
    assert round(found["success"].kappa, 3) == 0.777


@pytest.mark.labels
def test_the_second_annotator_as_a_judge_of_the_first_reaches_about_85(official_settings):
    both = [load_labels(load_suite(), split, official_settings) for split in ("dev", "test")]
    assert sum(int(labels.annotated_twice.sum()) for labels in both) == 106
    first = np.concatenate([labels.primary["success"][labels.annotated_twice] for labels in both])
    second = np.concatenate([labels.second["success"][labels.annotated_twice] for labels in both])
    cell = figures(*confusion_counts(second, first, np.zeros(106, dtype=np.int64), 1)[0])
    # 33 TP, 6 FP, 6 FN: 33 / 39 = 84.6 % both ways
    assert (cell["tp"], cell["fp"], cell["fn"]) == (33, 6, 6)
    assert (round(100 * cell["precision"], 1), round(100 * cell["recall"], 1)) == (84.6, 84.6)
