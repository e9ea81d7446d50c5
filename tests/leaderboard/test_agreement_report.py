import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dataset_script.suite import load_suite
from leaderboard.agreement_report import agreement_json, agreement_report, open_items
from leaderboard.labels import load_annotations
from tests.leaderboard.annotation_samples import IDS, annotation

AT = datetime(2026, 1, 1, tzinfo=UTC)


def double(number: int, first: str | None, second: str | None, people: str = "AB"):
    return [annotation(number, people[0], first), annotation(number, people[1], second)]


def doubles(*answers, people: str = "AB"):
    return [a for number, both in enumerate(answers) for a in double(number, *both, people=people)]


def test_the_report_counts_annotations_people_and_doubles():
    report = agreement_report([*doubles(("yes", "no"), ("no", "no")), annotation(9, "C")])
    assert (report.annotations, report.trajectories, report.annotators) == (5, 3, 3)
    assert (report.doubles, report.doubled) == (2, 2)
    assert report.questions["success"].overall.percent == 0.5
    assert report.questions["repetition"].overall.percent == 1.0


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
    assert [(pair.first, pair.second, pair.agreement.percent) for pair in by_pair] == [
        ("A", "B", 0.5),
        ("A", "C", 1.0),
    ]


def test_over_time_means_iso_weeks_of_the_later_annotation_where_times_are_known():
    given = [*double(0, "yes", "no"), *double(1, "no", "no"), *double(2, "yes", "yes")]
    # 2026-01-01 is a Thursday of week 1; the 5th is the Monday of week 2
    days = [1, 5, 5, 2, 3, 4]
    timed = [replace(a, at=AT.replace(day=day)) for a, day in zip(given, days, strict=True)]
    over_time = agreement_report(timed).questions["success"].over_time
    assert [(period.name, period.agreement.percent) for period in over_time] == [
        ("2026-W01", 1.0),  # double 2, of the 3rd and 4th
        ("2026-W02", 0.5),  # doubles 0 and 1
    ]


def test_over_time_means_batches_of_20_where_a_time_is_not_known():
    given = doubles(*[("yes", "yes")] * 20, *[("yes", "no")] * 5)
    given[0] = replace(given[0], at=AT)
    over_time = agreement_report(given).questions["success"].over_time
    assert [(p.name, p.agreement.pairs, p.agreement.percent) for p in over_time] == [
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


def test_the_report_is_json_with_or_without_its_items():
    given = doubles(("yes", "no"))
    found = json.loads(json.dumps(agreement_json(agreement_report(given), open_items(given))))
    assert found["questions"]["success"]["by_pair"][0]["agreement"]["percent"] == 0.0
    assert found["items"][0]["answers"]["success"] == ["yes", "no"]
    assert json.loads(json.dumps(agreement_json(agreement_report(given))))["items"] is None


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
