"""Which forms of a file wait for a maintainer."""

import numpy as np
import pytest

from dataset_script.suite import Trajectory
from dataset_script.suite_rules import SuiteRules
from submissions.probing.form_checks import reasons_to_hold

RULES = SuiteRules(fewest_positives=30)
TRAJECTORIES = tuple(
    Trajectory(f"{name}/a/{number}", name, "a", str(number), "test")
    for name in ("webarena", "workarena")
    for number in range(50)
)


class _File:
    repetition = None

    def __init__(self, positives, no_verdict=(), side_effect=None):
        self.success = np.zeros(100, dtype=np.int8)
        self.success[list(no_verdict)] = -1
        self.success[list(positives)] = 1
        self.side_effect = side_effect


@pytest.mark.parametrize(
    ("positives", "words"),
    [
        ((), ["no trajectory"]),
        (range(100), ["every trajectory"]),
        (range(30, 59), ["calls 29 of 100"]),
        (range(50), ["one benchmark, webarena"]),
        (range(50, 60), ["calls 10 of 100", "one benchmark, workarena"]),
        (range(30, 60), []),
        (range(99), []),
    ],
)
def test_each_form_has_its_reasons(positives, words):
    reasons = reasons_to_hold(_File(positives), TRAJECTORIES, RULES)
    assert len(reasons) == len(words)
    for reason, word in zip(reasons, words, strict=True):
        assert word in reason
        assert reason.endswith(".")


def test_null_is_no_positive():
    assert reasons_to_hold(_File((), no_verdict=range(100)), TRAJECTORIES, RULES)


def test_the_fewest_are_the_suites():
    assert reasons_to_hold(_File(range(45, 55)), TRAJECTORIES, SuiteRules(fewest_positives=10)) == ()


def test_a_suite_of_one_benchmark_knows_no_one_sided_file():
    assert reasons_to_hold(_File(range(40)), TRAJECTORIES[:50] * 2, RULES) == ()


def test_rare_side_effects_hold_nothing():
    side_effect = np.zeros(100, dtype=np.int8)
    side_effect[3] = 1
    assert reasons_to_hold(_File(range(30, 60), side_effect=side_effect), TRAJECTORIES, RULES) == ()
