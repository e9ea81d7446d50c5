"""Tests that a digest depends only on the trajectories that a file calls positive."""

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arb.core.predictions import read_predictions
from arb.core.predictions.check import check
from arb.core.predictions.raw import ReadingLimits
from arb.core.suite import load_suite
from submissions.privacy.disclosure import OVERALL, benchmark_cell, digests_of
from tests.support.verdict_tables import verdict_table

SUITE = load_suite()
DIGESTS_TEST = SUITE.split("test")


def _digests(rows: list[dict]):
    content = "\n".join(json.dumps(row) for row in rows).encode()
    table, findings = read_predictions(content, limits=ReadingLimits(max_bytes=10_000_000))
    return digests_of(check(table, findings, SUITE, "test").aligned, DIGESTS_TEST)


def _rows(**columns) -> list[dict]:
    return [
        {"trajectory_id": t.trajectory_id, "success": place % 3 == 0, **columns}
        for place, t in enumerate(DIGESTS_TEST)
    ]


def _names(digests) -> dict:
    return {cell: said["digest"] for cell, said in digests["success"].items()}


def test_order_spelling_columns_and_null_for_false_change_no_digest():
    plain = _rows()
    dressed = [
        {
            "trajectory_id": row["trajectory_id"].replace(".resized.", ".").replace(".improved.", "."),
            "success": row["success"] or None,
            "side_effect": place % 2 == 0,
            "score": 0.5,
            "reasoning": "because",
            "cost_usd": place,
        }
        for place, row in enumerate(plain)
    ]
    np.random.default_rng(0).shuffle(dressed)
    assert _names(_digests(dressed)) == _names(_digests(plain))


def test_a_cell_counts_rows_positives_and_rows_without_a_verdict():
    rows = _rows()
    rows[1]["success"] = None
    cells = _digests(rows)["success"]
    # 1,106 rows, every third from the first on is called a success: 369.
    assert (cells[OVERALL]["rows"], cells[OVERALL]["positives"], cells[OVERALL]["no_verdict"]) == (
        1106,
        369,
        1,
    )
    benchmarks = {t.benchmark for t in DIGESTS_TEST}
    for count, total in (("rows", 1106), ("positives", 369), ("no_verdict", 1)):
        assert sum(cells[benchmark_cell(name)][count] for name in benchmarks) == total


def test_labels_are_apart_and_one_that_is_not_answered_is_not_there():
    digests = _digests(_rows(side_effect=True, repetition=None))
    assert set(digests) == {"success", "side_effect"}
    assert digests["success"] == _digests(_rows())["success"]


def _column(success):
    return verdict_table(success=success)


columns = st.lists(st.sampled_from([1, 0, -1]), min_size=40, max_size=40)


@given(columns, columns)
def test_digests_are_the_same_exactly_where_the_positives_are(first, second):
    trajectories = DIGESTS_TEST[::28][:40]
    found = [digests_of(_column([1, *column[1:]]), trajectories) for column in (first, second)]
    names = [t.benchmark for t in trajectories]
    for cell in found[0]["success"]:
        inside = [cell in (OVERALL, benchmark_cell(name)) for name in names]
        positives = [
            {place for place in range(40) if inside[place] and (place == 0 or column[place] == 1)}
            for column in (first, second)
        ]
        same = found[0]["success"][cell]["digest"] == found[1]["success"][cell]["digest"]
        assert same == (positives[0] == positives[1])
