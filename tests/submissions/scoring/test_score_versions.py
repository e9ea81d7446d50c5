"""Tests that every field of a report belongs to a version of the metric, so older scores can be checked."""

import numpy as np

from leaderboard.costs import with_cost
from leaderboard.report import score_report
from leaderboard.score import (
    CELL_FIELDS,
    METRIC_VERSION,
    REPORT_FIELDS,
    is_known_version,
    report_of_version,
)
from tests.support.verdict_tables import verdict_table


def report(service) -> dict:
    labels = service.labels.test
    n = len(labels.trajectories)
    made = with_cost(score_report(verdict_table(success=[1] * n, side_effect=[1] * n), labels), np.ones(n))
    assert made.pop("format") == 1  # it is not compared, because older reports do not have it
    return made


def test_the_fields_of_todays_report_are_those_of_the_newest_version(service):
    """If this test fails, the report has changed: add a version to `leaderboard.score`."""
    made = report(service)
    assert set(made) == REPORT_FIELDS[METRIC_VERSION]
    for label in ("success", "side_effect"):
        found = made["labels"][label]
        cells = [found["overall"], *found["by_benchmark"].values(), *found["by_agent"].values()]
        assert {frozenset(cell) for cell in cells} == {CELL_FIELDS[METRIC_VERSION]}
    assert report_of_version(made, METRIC_VERSION) == made


def test_the_newest_version_is_the_last_one_that_is_known():
    assert max(CELL_FIELDS) == max(REPORT_FIELDS) == METRIC_VERSION
    assert is_known_version(METRIC_VERSION) and not is_known_version(METRIC_VERSION + 1)


def test_a_field_that_a_version_did_not_have_is_left_out_everywhere(service):
    made = report(service)
    grown = {**made, "new": 1, "labels": dict(made["labels"])}
    for label in ("success", "side_effect"):
        found = made["labels"][label]
        grown["labels"][label] = {
            "overall": {**found["overall"], "new": 1},
            "by_benchmark": {name: {**cell, "new": 1} for name, cell in found["by_benchmark"].items()},
            "by_agent": {name: {**cell, "new": 1} for name, cell in found["by_agent"].items()},
        }
    assert report_of_version(grown, 1) == made
