"""What an attacker asks: a column of verdicts in, the figures that are shown out, within the limits.

`Oracle` is the whole interface of the attacks, so that the same ones run against counts made here (fast: an
attack asks a hundred files, on many seeds) and against the real service.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from arb.core.suite import SuiteRules
from arb.core.suites.targets import default_targets
from leaderboard.judge_precision.confusion import confusion_counts, figures
from submissions.intake.upload import reasons_to_hold
from submissions.privacy.disclosure import digests_of, disclose
from submissions.privacy.leak_budget import Disclosure, Leak, disclosures_in, leak_of
from tests.attacks.world import World
from tests.support.verdict_tables import verdict_table

ACCOUNTS = 5
KEY = b"a key that no attacker has, 32 b"


class BudgetSpent(Exception):
    """No account has a file left this year."""


class FileHeld(Exception):
    """The form of the file is suspicious: a maintainer looks at it first, and no figure is shown."""


class Oracle(Protocol):
    """Figures for verdicts (int8 of shape (n,): 1, 0, -1), as in score reports (docs/formats.md).

    ``files_left`` and ``public_rows_left`` count over all colluding accounts.
    """

    files_left: int
    public_rows_left: int

    def figures(self, verdicts: np.ndarray) -> Mapping[str, Any]:
        """Submit a file and see what its owner sees. Raises BudgetSpent, FileHeld."""

    def public_figures(self, verdicts: np.ndarray) -> Mapping[str, Any]:
        """Submit a file, make its row public, and see what everybody sees. Raises BudgetSpent, FileHeld."""


@dataclass
class GeneratedOracle:
    """An oracle over a generated label set: exact figures, or disclosure as the suite's rules say."""

    world: World
    rules: SuiteRules = field(default_factory=SuiteRules)
    is_exact: bool = False
    accounts: int = ACCOUNTS
    key: bytes = KEY
    shown: list[tuple[np.ndarray, Mapping[str, Any]]] = field(default_factory=list)
    disclosures: list[Disclosure] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files_left = self.accounts * self.rules.files_a_year
        self.public_rows_left = self.accounts * self.rules.public_rows_a_year
        self._rows = self.world.benchmark_rows()
        self._codes = np.searchsorted(list(self._rows), self.world.benchmarks)

    def figures(self, verdicts: np.ndarray) -> Mapping[str, Any]:
        """What the owner sees."""
        if not self.files_left:
            raise BudgetSpent
        self.files_left -= 1
        return self._seen(verdicts, "owner")

    def public_figures(self, verdicts: np.ndarray) -> Mapping[str, Any]:
        """What everybody sees of the row; its file counts too, and its owner's figures are known."""
        self.figures(verdicts)
        if not self.public_rows_left:
            raise BudgetSpent
        self.public_rows_left -= 1
        return self._seen(verdicts, "public")

    def leak(self) -> Leak:
        """What everything that was shown can have told."""
        return leak_of(self.disclosures)

    def _seen(self, verdicts: np.ndarray, audience: str) -> Mapping[str, Any]:
        file = verdict_table(success=verdicts)
        if not self.is_exact and reasons_to_hold(
            file, self.world.trajectories, self.rules, default_targets()[0]
        ):
            raise FileHeld
        report = self.exact_report(file.targets["success"])
        if not self.is_exact:
            digests = digests_of(file, self.world.trajectories)
            report = disclose(report, digests, self.rules, self.key, audience)
            self.disclosures += disclosures_in(report, digests, "colluders", "judge")
        self.shown.append((file.targets["success"], report))
        return report

    def exact_report(self, success: np.ndarray) -> dict[str, Any]:
        """`leaderboard.report.score_report` without its bootstrap: 40 times as fast."""
        by_benchmark = confusion_counts(success, self.world.truth, self._codes, len(self._rows))
        cells = dict(zip(self._rows, (figures(*counts) for counts in by_benchmark), strict=True))
        overall = figures(*by_benchmark.sum(axis=0))
        return {
            "format": 1, "suite": "generated", "split": "test", "label_version": "generated-1",
            "policy": "strict", "coverage": float((success >= 0).mean()),
            "labels": {
                "success": {"overall": overall, "by_benchmark": cells, "by_agent": {}},
                "side_effect": None, "repetition": None,
            },
        }  # fmt: skip
