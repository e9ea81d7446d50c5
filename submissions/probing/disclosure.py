"""What each audience sees of a score where the test labels are private.

The exact report stays in the records; maintainers see it. Everybody else sees a report of the same shape
whose true positives carry noise, from which all other figures follow:

- The owner of a file sees its overall figures for each label, with ``private_noise``.
- The public sees the overall figures with ``public_noise``, and each benchmark with the larger of the two.
- Nobody sees figures by agent, counts by task or an interval from the exact counts.

So the attacks decided (`tests/attacks`; the strongest one, by five accounts in a year, on 60 generated label
sets). With noise of 6 and 3 true positives it gains 2.3 points of precision from overall figures alone, 2.6
with benchmarks at 6, 2.7 with benchmarks at 3; with 5 and 3 it is 2.9 and 3.2, so the default is 6.
Benchmarks of every private file would be five more figures of as many fewer unknowns each.

What is not noisy follows from the file and from constants of the label version: how many trajectories of a
cell are labelled, and how many are labelled positive. A label that is all positive or all negative in some
benchmark would be told by that: then its benchmarks are all withheld (the others and the sum would give the
missing one away), and a label that is so overall is not shown.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

from leaderboard.judge_precision.confusion import figures
from submissions.probing.digests import OVERALL, CellDigest, Digests, benchmark_cell
from submissions.probing.noise import layered_noise, noisy_count
from submissions.probing.noisy_intervals import noisy_intervals

Audience = Literal["owner", "public", "maintainer"]
POLICY: Final = "strict"
_KEPT: Final = ("suite", "split", "label_version", "policy", "coverage", "cost")
"""What is taken over as it is: the file or the suite says it. Named, so that nothing new slips out."""


class NoiseRules(Protocol):
    """The part of a suite's rules that disclosure needs: standard deviations, in true positives."""

    @property
    def private_noise(self) -> float:
        """For the overall figures that a file's owner sees."""

    @property
    def public_noise(self) -> float:
        """For the overall figures of a public row."""


def cell_noise(rules: NoiseRules) -> float:
    """The standard deviation for one benchmark of a public row."""
    return max(rules.private_noise, rules.public_noise)


def disclose(
    report: Mapping[str, Any], digests: Digests, rules: NoiseRules, key: bytes, audience: Audience
) -> dict[str, Any]:
    """The score report of product.md as ``audience`` may see it; for "maintainer" the exact one.

    A noisy CELL has ``"noise": {"tp_sd": …}`` beside its figures. ``digests`` are those of the report's file,
    ``key`` is the server's for the purpose "noise". Raises ValueError for an unknown audience, and for
    another policy than "strict": elsewhere rows without a verdict change how many positives are counted, so
    that a count that nobody blurs would tell labels.
    """
    if audience == "maintainer":
        return dict(report)
    if audience not in ("owner", "public"):
        raise ValueError(f"there is no audience {audience!r}: use owner, public or maintainer")
    if report["policy"] != POLICY:
        raise ValueError(f"policy {report['policy']!r} cannot be disclosed: only {POLICY!r} can")
    blurred = _Blur(rules, key, report["label_version"], audience)
    return {
        **{name: report[name] for name in _KEPT if name in report},
        "labels": {
            label: found and blurred.label(label, found, digests[label])
            for label, found in report["labels"].items()
        },
    }


class _Blur:
    """The noise of one label version for one audience."""

    def __init__(self, rules: NoiseRules, key: bytes, label_version: str, audience: Audience) -> None:
        self._rules, self._key, self._label_version, self._audience = rules, key, label_version, audience

    def label(
        self, label: str, exact: Mapping[str, Any], digests: Mapping[str, CellDigest]
    ) -> dict[str, Any] | None:
        """One label of the report; None where all its labels are alike."""
        if _is_told_by_constants(exact["overall"]):
            return None
        is_public = self._audience == "public"
        wanted = self._rules.public_noise if is_public else self._rules.private_noise
        finest = min(self._rules.public_noise, self._rules.private_noise)
        by_benchmark = {}
        if is_public and not any(map(_is_told_by_constants, exact["by_benchmark"].values())):
            sd = cell_noise(self._rules)
            for name, cell in exact["by_benchmark"].items():
                key = benchmark_cell(name)
                by_benchmark[name] = self._cell(label, key, cell, digests[key], sd, sd)
        return {
            "overall": self._cell(label, OVERALL, exact["overall"], digests[OVERALL], finest, wanted),
            "by_benchmark": by_benchmark,
            "by_agent": {},
        }

    def _cell(
        self, label: str, name: str, exact: Mapping[str, Any], said: CellDigest, finest: float, wanted: float
    ) -> dict[str, Any]:
        n, positives = exact["n"], exact["positives"]
        predicted, no_verdict = (
            _share_of(n, said[count], said["rows"]) for count in ("positives", "no_verdict")
        )
        figure = (self._label_version, label, name, said["digest"])
        noise = layered_noise(self._key, figure, finest, wanted, self._audience)
        tp = noisy_count(exact["tp"], noise, max(0, predicted + positives - n), min(predicted, positives))
        fp, fn = predicted - tp, positives - tp
        return {
            **figures(tp, fp, fn, n - positives - fp, no_verdict, policy=POLICY),
            **noisy_intervals(tp, fp, fn, wanted),
            "noise": {"tp_sd": wanted},
        }


def _is_told_by_constants(cell: Mapping[str, Any]) -> bool:
    """Whether the counts that carry no noise already say the label of every trajectory of the cell."""
    return cell["positives"] in (0, cell["n"])


def _share_of(n: int, count: int, rows: int) -> int:
    """``count`` of ``rows`` scaled to the ``n`` labelled ones, rounded to a whole number.

    The exact count over labelled rows would say of a single trajectory whether its label is "unsure".
    """
    return (2 * count * n + rows) // (2 * rows)
