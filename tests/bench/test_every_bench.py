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


def test_the_bench_of_faults_says_what_was_asked_again_after_a_kill(printed_by):
    # Too few calls to meet all kinds of fault, which the status says.
    printed = printed_by("hostile", "--judge", "simplified-neither", "--kills", "1", statuses=(1,))
    assert "killed 1 times" in printed and "usable answers: " in printed
