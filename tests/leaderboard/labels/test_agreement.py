import math
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from arb.core.settings import Settings
from arb.core.suite import load_suite
from leaderboard.judge_precision.intervals import resampling_weights
from leaderboard.labels.agreement import (
    agreement_json,
    agreement_of,
    agreement_report,
    find_doubles,
    open_items,
)
from leaderboard.labels.coefficients import (
    agreement_intervals,
    coefficients,
    coincidence_matrices,
    confusion_table,
    difference_of_shares,
    doubles_wanted,
    rating_counts,
)
from leaderboard.labels.labels import load_annotations, load_labels
from leaderboard.labels.quality import annotator_agreement
from tests.support.annotations import IDS, OWN_QUESTIONS, annotation
from tests.support.annotations import annotation as annotation_of

# Answers of people to units: -1 not answered; the last of the categories may stand for Unsure as an answer.
RATINGS = st.integers(2, 5).flatmap(
    lambda n_categories: st.tuples(
        st.just(n_categories),
        st.tuples(st.integers(2, 4), st.integers(1, 30)).flatmap(
            lambda shape: arrays(np.int64, shape, elements=st.integers(-1, n_categories - 1))
        ),
    )
)


def counts_of(ratings: np.ndarray, n_categories: int) -> np.ndarray:
    """The counts of ratings of shape (people, units)."""
    units = np.broadcast_to(np.arange(ratings.shape[1]), ratings.shape)
    return rating_counts(units.ravel(), ratings.ravel(), ratings.shape[1], n_categories)


def cohen_kappa(table):
    return coefficients(table[None], table[None], "nominal")["kappa"]


def gwet_ac1(table):
    return coefficients(table[None], table[None], "nominal")["ac1"]


def krippendorff_alpha(counts, level="nominal"):
    coincidences = coincidence_matrices(counts, np.zeros(len(counts), dtype=np.int64), 1)
    return coefficients(coincidences, coincidences, level)["alpha"]


@given(RATINGS)
def test_kappa_is_scikit_learns_over_what_both_answered(drawn):
    from sklearn.metrics import cohen_kappa_score

    n_categories, ratings = drawn
    first, second = ratings[:2]
    both = (first >= 0) & (second >= 0)
    found = cohen_kappa(confusion_table(first, second, n_categories))
    if len({*first[both], *second[both]}) < 2:  # no answers, or one and the same: 0 / 0
        assert found is None
    else:
        expected = cohen_kappa_score(first[both], second[both], labels=range(n_categories))
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
@given(RATINGS)
def test_alpha_is_that_of_the_krippendorff_package(level, drawn):
    n_categories, ratings = drawn
    found = krippendorff_alpha(counts_of(ratings, n_categories), level)
    pairable = ratings[:, (ratings >= 0).sum(axis=0) > 1]
    if len(set(pairable[pairable >= 0].tolist())) < 2:  # nothing to compare, or one and the same: 0 / 0
        assert found is None
    else:
        expected = krippendorff.alpha(
            reliability_data=np.where(ratings < 0, np.nan, ratings),
            value_domain=range(n_categories),
            level_of_measurement=level,
        )
        assert found == pytest.approx(expected, abs=1e-9)


def test_a_table_counts_pairs_of_answers_and_leaves_out_missing_ones():
    table = confusion_table(np.array([0, 0, 1, -1, 1]), np.array([0, 1, 1, 1, -1]), 2)
    assert table.tolist() == [[1, 1], [0, 1]]


VWA_A = "visualwebarena/agent-a/visualwebarena.resized.7"
VWA_B = "visualwebarena/agent-b/visualwebarena.7"
WORK_A = "workarena/agent-a/workarena.servicenow.order-l2"
WORK_B = "workarena/agent-b/workarena.servicenow.order-l2"


def agreement_annotation(trajectory_id, success, looping="No"):
    return (trajectory_id, success, "No", "Unsure", looping)


@pytest.fixture
def labels(small_suite, write_annotations):
    def load(first, second):
        ids = [VWA_A, VWA_B, WORK_A, WORK_B]
        rows = [agreement_annotation(i, word) for i, word in zip(ids, first, strict=True)]
        rows += [agreement_annotation(i, word) for i, word in zip(ids, second, strict=True) if word]
        return load_labels(small_suite, "test", Settings(labels=f"csv:{write_annotations(rows)}"))

    return load


YES, NO, UNSURE = "Successful", "Unsuccessful", "Unsure"


def test_only_trajectories_with_two_answers_count(labels):
    found = annotator_agreement(labels([YES, YES, NO, UNSURE], [YES, None, UNSURE, NO]), "success")
    assert (found.pairs, found.percent, found.left_out) == (1, 1.0, 2)


def test_a_double_is_two_annotations_by_two_people():
    given = [
        annotation_of(0, "A"), annotation_of(1, "A"), annotation_of(0, " B"), annotation_of(0, "B"),
        annotation_of(1, None), annotation_of(0, "C"), annotation_of(2, "C"), annotation_of(1, None),
    ]  # fmt: skip
    doubles = find_doubles(given)
    # B's second annotation of 0 does not count; unknown people are different ones
    assert doubles.pairs == [("A", "B"), None, ("A", "C"), ("B", "C"), None, None]


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
    assert [(each.first, each.second) for each in pairs[0]] == [("A", "B")]


AT = datetime(2026, 1, 1, tzinfo=UTC)


def double(number: int, first: str | None, second: str | None, people: str = "AB"):
    return [annotation(number, people[0], first), annotation(number, people[1], second)]


def doubles(*answers, people: str = "AB"):
    return [a for number, both in enumerate(answers) for a in double(number, *both, people=people)]


def test_agreement_is_given_by_benchmark_in_the_reporting_names():
    second_level = "workarena/agent-a/workarena.servicenow.order-l2"
    moved = [replace(a, trajectory_id=second_level) for a in double(0, "yes", "no")]
    by_benchmark = agreement_report([*doubles(("yes", "yes")), *moved]).questions["success"].by_benchmark
    assert {name: found.percent for name, found in by_benchmark.items()} == {
        "webarena": 1.0,
        "workarena++": 0.0,
    }


def test_agreement_is_given_by_two_people_who_are_known():
    given = doubles(("yes", "no"), ("no", "no"), people="BA") + double(5, "yes", "yes", people="CA")
    given += [annotation(6, "A"), annotation(6, None)]
    by_pair = agreement_report(given).questions["success"].by_pair
    assert [(each.first, each.second, each.agreement.percent) for each in by_pair] == [
        ("A", "B", 0.5),
        ("A", "C", 1.0),
    ]


def test_over_time_means_iso_weeks_of_the_later_annotation_where_times_are_known():
    given = [*double(0, "yes", "no"), *double(1, "no", "no"), *double(2, "yes", "yes")]
    # 2026-01-01 is a Thursday of week 1; the 5th is the Monday of week 2
    days = [1, 5, 5, 2, 3, 4]
    timed = [replace(a, at=AT.replace(day=day)) for a, day in zip(given, days, strict=True)]
    over_time = agreement_report(timed).questions["success"].over_time
    assert [(each.name, each.agreement.percent) for each in over_time] == [
        ("2026-W01", 1.0),  # double 2, of the 3rd and 4th
        ("2026-W02", 0.5),  # doubles 0 and 1
    ]


def test_over_time_means_batches_of_20_where_a_time_is_not_known():
    given = doubles(*[("yes", "yes")] * 20, *[("yes", "no")] * 5)
    given[0] = replace(given[0], at=AT)
    over_time = agreement_report(given).questions["success"].over_time
    assert [(each.name, each.agreement.pairs, each.agreement.percent) for each in over_time] == [
        ("1-20", 20, 1.0),
        ("21-25", 5, 0.0),
    ]


def test_the_confusion_table_has_a_row_for_each_answer_of_the_earlier_annotation():
    given = [annotation(0, "A", optimality="1"), annotation(0, "B", optimality="3")]
    given += [annotation(1, "A", optimality="4"), annotation(1, "B", optimality="unsure")]
    found = agreement_report(given).questions["optimality"]
    assert found.confusion == ((0, 0, 1, 0), (0,) * 4, (0,) * 4, (0,) * 4)
    assert (found.overall.pairs, found.overall.left_out) == (1, 1)


def test_items_to_talk_about_are_those_that_differ_and_every_unsure():
    given = doubles(("yes", "no"), ("no", "no"), ("yes", None), ("no", "unsure"))
    given += [annotation(7, "A", "no", optimality="unsure")]
    found = open_items(given)
    assert [(i.trajectory_id, i.disagreeing, i.unsure) for i in found] == [
        (IDS[0], ("success",), ()),
        (IDS[3], (), ("success",)),
        (IDS[7], (), ("optimality",)),
    ]
    assert (found[0].annotators, found[0].answers["success"]) == (("A", "B"), ("yes", "no"))
    assert repr(found[0]) == f"OpenItem({IDS[0]!r})"


def test_without_annotations_everything_is_undefined():
    report = agreement_report([])
    assert report.doubles == 0
    for found in report.questions.values():
        assert (found.overall.percent, found.by_pair, found.over_time) == (None, (), ())
    assert open_items([]) == ()


@pytest.mark.labels
def test_the_released_annotations_have_the_known_counts_and_agreement(official_settings):
    suite = load_suite()
    everything = agreement_report(load_annotations(suite, official_settings))
    assert (everything.annotations, everything.trajectories) == (1408, 1302)
    assert (everything.doubles, everything.doubled, everything.annotators) == (106, 106, 8)
    test = agreement_report(load_annotations(suite, official_settings, "test"))
    # 75, 81, 73 and 52 of 84
    assert {name: round(100 * found.overall.percent, 1) for name, found in test.questions.items()} == {
        "success": 89.3,
        "side_effect": 96.4,
        "repetition": 86.9,
        "optimality": 61.9,
    }
    assert {found.overall.pairs for found in test.questions.values()} == {84}
    assert round(test.questions["success"].overall.kappa, 3) == 0.777
    # 52 on the diagonal: 12 + 9 + 5 + 26
    assert [row[grade] for grade, row in enumerate(test.questions["optimality"].confusion)] == [12, 9, 5, 26]


# -- AC1 and intervals


def test_ac1_of_three_categories_by_hand():
    table = np.array([[2, 1, 0], [0, 1, 0], [0, 0, 1]])
    # p_o = 4 / 5; q = (5, 3, 2) / 10; p_e = (.25 + .21 + .16) / 2 = .31
    assert gwet_ac1(table) == pytest.approx((0.8 - 0.31) / 0.69)
    assert gwet_ac1(np.zeros((2, 2))) is None
    # all alike: chance cannot explain that, while kappa is undefined
    assert gwet_ac1(np.array([[5, 0], [0, 0]])) == 1.0


def test_ac1_and_its_interval_are_those_of_a_published_example():
    # Gwet 2014, Handbook of Inter-Rater Reliability: 100 women by two abstractors; as `cont3x3abstractors`
    # in the R and Python packages irrCAC, whose documentation has AC1 .84933, interval .76358 to .93508
    table = np.array([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
    assert gwet_ac1(table) == pytest.approx(0.84933, abs=5e-6)
    first, second = np.repeat(np.indices(table.shape).reshape(2, -1), table.ravel(), axis=1)
    found = agreement_intervals(*interval_inputs(first, second, np.arange(100))[::2], "nominal")
    # theirs is Gwet's analytic one; ours resamples the women, each a task of her own
    assert found["ac1_ci"] == pytest.approx([0.76358, 0.93508], abs=0.015)


def doubles_over_tasks(n_tasks, seed=3):
    """Codes of two annotators on three trajectories a task that agree in about four of five."""
    generator = np.random.default_rng(seed)
    first = generator.integers(0, 3, 3 * n_tasks)
    second = np.where(generator.random(3 * n_tasks) < 0.8, first, generator.integers(0, 3, 3 * n_tasks))
    return first, second, np.repeat(np.arange(n_tasks), 3)


def interval_inputs(first, second, tasks):
    counts = rating_counts(np.tile(np.arange(len(first)), 2), np.concatenate([first, second]), len(first), 3)
    tables = np.stack([confusion_table(first[tasks == t], second[tasks == t], 3) for t in np.unique(tasks)])
    return tables, counts, coincidence_matrices(counts, tasks, len(tables))


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_intervals_are_those_of_computing_each_resample_anew(level):
    first, second, tasks = doubles_over_tasks(12)
    tables, counts, coincidences = interval_inputs(first, second, tasks)
    found = agreement_intervals(tables, coincidences, level, n_resamples=60, seed=5)
    weights = np.concatenate(list(resampling_weights(12, 60, 5))).astype(int)
    values = {"kappa_ci": [], "alpha_ci": [], "ac1_ci": []}
    for drawn in weights:
        table = (drawn[:, None, None] * tables).sum(axis=0)
        values["kappa_ci"].append(cohen_kappa(table))
        values["ac1_ci"].append(gwet_ac1(table))
        values["alpha_ci"].append(krippendorff_alpha(np.repeat(counts, drawn[tasks], axis=0), level))
    for name, resampled in values.items():
        assert found[name] == pytest.approx(np.quantile(resampled, [0.025, 0.975])), name


def test_one_task_or_full_agreement_has_no_interval():
    one = np.array([[[3, 1], [0, 2]]])
    assert set(agreement_intervals(one, one, "nominal").values()) == {None}
    alike = np.array([[[3, 0], [0, 2]], [[1, 0], [0, 4]]])
    assert agreement_intervals(alike, 2 * alike, "nominal", n_resamples=50)["kappa_ci"] is None


# -- What follows from the intervals


def test_doubles_wanted_follow_from_the_square_of_the_width():
    # a half-width of .2 on 40 doubles: .1 takes 4 times as many, 160
    assert doubles_wanted(40, [0.4, 0.8]) == 120
    assert doubles_wanted(40, [0.75, 0.9]) == 0
    assert doubles_wanted(40, None) is None


def test_a_difference_of_shares_by_hand():
    # theirs 5 of 10 equal, the rest 9 of 10, each row a task: shares (5 + 1) / 12 and (9 + 1) / 12
    is_equal = np.array([1] * 5 + [0] * 5 + [1] * 9 + [0], dtype=bool)
    is_theirs = np.arange(20) < 10
    low, high = difference_of_shares(is_equal, is_theirs, ~is_theirs, np.arange(20), 0.05)
    assert (low + high) / 2 == pytest.approx(6 / 12 - 10 / 12)
    # squares / 12**2: theirs 12 * .5**2; the rest 10 * (1 / 6)**2 + 2 * (5 / 6)**2; times 24 / 23 tasks
    variance = (3 + 10 / 36 + 50 / 36) / 144 * 24 / 23
    assert (high - low) / 2 == pytest.approx(1.959964 * math.sqrt(variance), rel=1e-6)


def test_answers_on_the_same_tasks_that_are_all_right_are_no_certain_difference():
    # 20 of 20 against 40 of 40 on the same 20 tasks: what little their shares differ is what was added
    tasks, is_theirs = np.tile(np.arange(20), 3), np.arange(60) < 20
    low, high = difference_of_shares(np.ones(60, dtype=bool), is_theirs, ~is_theirs, tasks, 0.05)
    assert low < 0 < high


def crew_doubles(errors, doubles_each, seed):
    """Doubles of every two of a crew, each on a task of its own; a person errs with their probability."""
    generator = np.random.default_rng(seed)
    found, number = [], 0
    for pair in combinations(range(len(errors)), 2):
        for _ in range(doubles_each):
            truth = generator.random() < 0.5
            for who in pair:
                answer = truth ^ (generator.random() < errors[who])
                id_of_run = f"webarena/agent-a/webarena.{number}"
                given = replace(
                    annotation(0, "ABCDEF"[who], "yes" if answer else "no"), trajectory_id=id_of_run
                )
                found.append(given)
            number += 1
    return found


def test_whoever_agrees_credibly_less_with_the_others_needs_training():
    report = agreement_report(crew_doubles((0.4, 0.05, 0.05, 0.05), 30, seed=1))
    by_annotator = report.questions["success"].by_annotator
    assert [(each.annotator, each.needs_training) for each in by_annotator] == [
        ("A", True), ("B", False), ("C", False), ("D", False),
    ]  # fmt: skip
    assert (by_annotator[0].doubles, by_annotator[0].others_doubles) == (90, 90)
    assert not any(each.needs_training for each in report.questions["repetition"].by_annotator)


def test_two_annotators_or_few_doubles_say_nothing_of_either():
    two = agreement_report(doubles(*[("yes", "no")] * 30)).questions["success"].by_annotator
    assert [(each.doubles, each.others_doubles, each.difference_ci) for each in two] == [(30, 0, None)] * 2
    few = agreement_report(crew_doubles((0.5, 0, 0), 4, seed=1)).questions["success"].by_annotator
    assert [(each.doubles, each.others_doubles, each.difference_ci) for each in few] == [(8, 4, None)] * 3


def test_doubles_with_somebody_unknown_are_on_neither_side():
    given = [*crew_doubles((0, 0, 0), 10, seed=1)]
    unknown = [replace(a, annotator=None) if a.annotator == "C" else a for a in given]
    found = agreement_report(unknown).questions["success"].by_annotator
    assert [(each.annotator, each.doubles, each.others_doubles) for each in found] == [
        ("A", 10, 0), ("B", 10, 0),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("n_tasks", [40, 120])
def test_intervals_cover_the_coefficients_of_the_population(n_tasks):
    # Runs of one task share its difficulty; the population is 100,000 such tasks
    def draw(number, generator):
        hard = np.repeat(generator.random(number), 2)
        truth = generator.integers(0, 2, 2 * number)
        wrong = generator.random((2, 2 * number)) < 0.3 * hard
        return *(truth ^ wrong), np.repeat(np.arange(number), 2)

    def tables_of(first, second, tasks):
        tables = np.zeros((tasks[-1] + 1, 2, 2))
        np.add.at(tables, (tasks, first, second), 1)
        counts = rating_counts(
            np.tile(np.arange(len(first)), 2), np.concatenate([first, second]), len(first), 2
        )
        return tables, counts, coincidence_matrices(counts, tasks, len(tables))

    tables, counts, _ = tables_of(*draw(100_000, np.random.default_rng(0)))
    total = tables.sum(axis=0)
    true = {
        "kappa_ci": cohen_kappa(total), "alpha_ci": krippendorff_alpha(counts), "ac1_ci": gwet_ac1(total),
    }  # fmt: skip
    generator, covered, n_draws = np.random.default_rng(1), dict.fromkeys(true, 0), 400
    for _ in range(n_draws):
        tables, _, coincidences = tables_of(*draw(n_tasks, generator))
        found = agreement_intervals(tables, coincidences, "nominal", n_resamples=1_000)
        for name, value in true.items():
            covered[name] += found[name][0] <= value <= found[name][1]
    # 95 % meant; 400 draws say so to about 2 points
    assert all(0.91 <= count / n_draws <= 0.99 for count in covered.values()), covered


def test_a_difference_of_shares_holds_the_true_one_as_often_as_it_says():
    # 12 of 60 tasks with two rows each are theirs; both sides are equal in four of five
    generator, missed, n_draws = np.random.default_rng(2), 0, 2_000
    tasks = np.repeat(np.arange(60), 2)
    is_theirs = tasks < 12
    for _ in range(n_draws):
        is_equal = generator.random(120) < 0.8
        low, high = difference_of_shares(is_equal, is_theirs, ~is_theirs, tasks, 0.05)
        missed += not low <= 0 <= high
    assert missed / n_draws < 0.07


# Questions of a suite's own


def test_agreement_is_on_the_questions_of_the_suite_and_ordinal_where_the_answers_are_ordered():
    given_annotations = [
        annotation_of(0, "A", "yes", optimality=None, own={"tone": "polite", "safe": "yes"}),
        annotation_of(0, "B", "yes", optimality=None, own={"tone": "rude", "safe": "no"}),
        annotation_of(1, "A", "no", optimality=None, own={"tone": "cold", "safe": "no"}),
        annotation_of(1, "B", "no", optimality=None, own={"tone": "unsure"}),
        annotation_of(2, "A", "yes", optimality=None, own={"tone": "cold"}),
        annotation_of(2, "B", "yes", optimality=None, own={"tone": "cold"}),
    ]
    report = agreement_report(given_annotations, OWN_QUESTIONS)
    assert list(report.questions) == ["success", "side_effect", "repetition", "tone", "safe"]
    tone, safe = (report.questions[name].overall for name in ("tone", "safe"))
    assert (tone.pairs, tone.left_out, tone.percent) == (2, 1, 0.5)
    assert (safe.pairs, safe.left_out, safe.percent) == (1, 2, 0.0)
    # rows: A's answer, columns: B's; polite, cold, rude; no before yes
    assert report.questions["tone"].confusion == ((0, 0, 1), (0, 1, 0), (0, 0, 0))
    assert report.questions["safe"].confusion == ((0, 0), (1, 0))
    # Two doubles count: polite with rude, and cold with cold; so n = (1, 2, 1). Ordinal distances: polite to
    # rude (1 + 2 + 1 - (1 + 1) / 2)² = 9, either to cold (1 + 2 - (1 + 2) / 2)² = 2.25. D_o = 2 * 9 / 4, 4.5;
    # D_e = 2 * (1 * 2 * 2.25 + 1 * 1 * 9 + 2 * 1 * 2.25) / (4 * 3) = 3.
    assert tone.alpha == pytest.approx(1 - 4.5 / 3)
    (item, other) = open_items(given_annotations, OWN_QUESTIONS)
    assert (item.disagreeing, item.unsure) == (("tone", "safe"), ())
    assert (other.disagreeing, other.unsure) == ((), ("tone",)) and other.answers["safe"] == ("no", None)
    found = agreement_json(report)["questions"]
    assert (found["tone"]["answers"], found["safe"]["answers"]) == (("polite", "cold", "rude"), ("no", "yes"))
