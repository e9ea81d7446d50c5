"""Predict how exactly submitters see figures under the rules of a suite with private labels."""

from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import Final

from arb.core.suite import SuiteRules

_QUANTILE: Final = 1.96
_PRECISION: Final = 0.8
_POSITIVE: Final = 0.5
"""A typical judge is assumed to call this share of the runs positive, `_PRECISION` of them rightly."""
MOST_NOISE: Final = 0.1
"""With more noise than this, figures hide the differences between judges."""


@dataclass(frozen=True, slots=True)
class NoisyPrecision:
    """How exactly submitters can see the precision of a typical judge.

    Attributes:
        n_visible: The number of test runs whose figures submitters see.
        n_ranking: The number of test runs that rank judges.
        noise: The 95 % margin of the noise, as a share.
        margin: The 95 % margin of the noise and of the sampling of runs together.
    """

    n_visible: int
    n_ranking: int
    noise: float
    margin: float


def noisy_precision(rules: SuiteRules, test_runs: int) -> NoisyPrecision:
    """Predict how exactly submitters see a precision of 80 % if ``test_runs`` runs of test are labelled."""
    n_ranking = (test_runs + 1) // 2 if rules.ranking_half else test_runs
    n_visible = test_runs - n_ranking if rules.ranking_half else test_runs
    positive = max(1.0, n_visible * _POSITIVE)
    noise = _QUANTILE * rules.private_noise / positive
    sample = _QUANTILE * sqrt(_PRECISION * (1 - _PRECISION) / positive)
    return NoisyPrecision(n_visible, n_ranking, min(1.0, noise), min(1.0, hypot(noise, sample)))


def fewer_files(rules: SuiteRules) -> SuiteRules:
    """Return rules that allow one file a year and reveal no more about a label than ``rules`` do.

    They add as little noise as possible: a file reveals 1 / (2 sd^2) (see `submissions.privacy.leak_budget`),
    so n files with noise sd reveal as much as one file with noise sd / sqrt(n).
    """
    noise = rules.private_noise / sqrt(max(1, rules.files_a_year))
    return replace(rules, files_a_year=1, private_noise=round(noise + 0.005, 2))


def privacy_lines(rules: SuiteRules, test_runs: int) -> list[str]:
    """Describe what submitters see, and suggest other rules if noise hides the differences between judges."""
    found = noisy_precision(rules, test_runs)
    runs = f"{found.n_visible:,} of {test_runs:,} test runs"
    runs += f"; the other {found.n_ranking:,} rank" if rules.ranking_half else ""
    lines = [
        f"what submitters see: figures of {runs}. A precision of 80% on half of them has noise of ± "
        f"{_points(found.noise)}, and an interval of ± {_points(found.margin)}."
    ]
    if found.noise > MOST_NOISE:
        rarely = fewer_files(rules)
        whole = replace(rarely, ranking_half=False)
        noise, of_all = (_points(noisy_precision(each, test_runs).noise) for each in (rarely, whole))
        lines += [
            "The noise hides the differences between judges. Collect more runs, or write into suite.toml:",
            '  labels = "public": figures are exact, and the test labels are not secret',
            f"  files_a_year = 1 and private_noise = {rarely.private_noise:g}: one file a year, which "
            f"protects labels as much, with noise of ± {noise}",
            f"  ranking_half = false, too: figures of all test runs, which also rank; noise of ± {of_all}",
        ]
    return lines


def _points(share: float) -> str:
    return f"{100 * share:.0f} points"
