"""Benchmarks without a test of their own run on small inputs and print what they measure."""

import os

import pytest

pytestmark = pytest.mark.slow


def test_the_bench_of_clusters_prints_the_cost_of_each_size(printed_by):
    if not os.environ.get("REQUIRE_EVERY_TEST"):
        pytest.importorskip("ray", reason="Ray is not here: pip install 'ray[data]'")
    assert printed_by("ray", "--sizes", "20").startswith("20 calls: ")


def test_the_bench_of_suites_prints_three_ratios(printed_by):
    printed = printed_by("suites", "--quick", statuses=(0, 1))
    assert [line.split(":")[0] for line in printed.splitlines()[1:]] == [
        "first view", "after a change", "later views",
    ]  # fmt: skip


def test_a_run_with_faults_and_a_kill_gives_the_answers_of_a_clean_run_and_pays_each_once(printed_by):
    # About 100 calls meet every kind of fault but one. A few get no answer for 6 seconds, and the kill comes
    # after one of the first 34 calls, so that the run cannot end before it.
    printed = printed_by("hostile", "--judge", "nnetnav", "--kills", "1")
    assert printed.splitlines()[-1] == (
        "Every trajectory has one state and the answer of a clean run; none was paid twice."
    )
