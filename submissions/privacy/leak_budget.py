"""The leak budget: how many noisy figures were shown, and what they can reveal of one label.

The account is that of differential privacy for the Gaussian mechanism. Two label sets are neighbours when one
label differs, or two of one cell that keep its number of positives, which is no secret: a count of true
positives differs by at most 1. With noise of standard deviation sd a figure then costs

    rho = 1 / (2 sd^2)

of zero-concentrated differential privacy (Bun and Steinke 2016, proposition 1.6), and costs add up over
figures (their lemma 1.7), also where the next file was made from the last answer. A budget rho means

    epsilon = rho + 2 sqrt(rho ln(1 / delta))

at delta (their proposition 1.3): whatever is seen is at most e^epsilon times as likely under one label set as
under its neighbour, but for a chance of delta. That is a bound over all attacks and all that an attacker may
know beforehand; what real attacks gain is far less, and is measured in `tests/attacks`.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf, log, sqrt
from typing import Any, Final, NamedTuple

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from core.suite import Suite
from submissions.privacy.disclosure import (
    OVERALL,
    POLICY,
    Audience,
    Digests,
    DisclosurePolicy,
    benchmark_cell,
)
from submissions.records.database import snapshot
from submissions.records.event_log import number_of_events
from submissions.records.models import Score
from submissions.records.queries import current_statuses, scores_of, versions_scored

DELTA: Final = 1e-6


class Disclosure(NamedTuple):
    """One noisy figure that somebody was shown: the true positives of a cell, all others following."""

    account: str
    judge: str
    label_version: str
    label: str
    cell: str
    digest: str
    tp_sd: float


@dataclass(frozen=True)
class Leak:
    """What disclosures reveal: ``figures`` distinct ones, and what they can say of one label.

    ``rho`` and ``epsilon`` are infinite where a figure carried no noise.
    """

    figures: int = 0
    rho: float = 0.0

    @property
    def epsilon(self) -> float:
        """The bound at DELTA, see the module."""
        return self.rho + 2 * sqrt(self.rho * log(1 / DELTA)) if self.rho < inf else inf


def disclosures_in(
    disclosed: Mapping[str, Any], digests: Digests, account: str, judge: str
) -> list[Disclosure]:
    """The noisy figures of a disclosed report; none for an exact one.

    A cell of which the file calls nothing positive, or everything, is left out: its figures follow from
    constants.
    """
    found = []
    for label, shown in disclosed["labels"].items():
        if not shown:
            continue
        cells = {OVERALL: shown["overall"]}
        cells |= {benchmark_cell(name): cell for name, cell in shown["by_benchmark"].items()}
        for name, cell in cells.items():
            digest = digests[label][name]
            if "noise" in cell and 0 < digest["positives"] < digest["rows"]:
                version, sd = disclosed["label_version"], cell["noise"]["tp_sd"]
                found.append(Disclosure(account, judge, version, label, name, digest["digest"], sd))
    return found


def leak_of(disclosures: Iterable[Disclosure]) -> Leak:
    """What all of them together reveal.

    A digest counts once for a cell, however often and to whomever it was shown, at the finest noise: the
    coarser figure is a blur of the finer one (`noise.layered_noise`). Figures of several label versions add
    up: most labels outlive a correction. A label of one trajectory is part of the overall cell and of one
    benchmark, so the dearest benchmark counts; success, side effects and repetition are labels apart, so the
    dearest of them counts.
    """
    finest: dict[tuple[str, str, str, str], float] = {}
    for found in disclosures:
        key = (found.label_version, found.label, found.cell, found.digest)
        finest[key] = min(found.tp_sd, finest.get(key, inf))
    costs: dict[str, dict[str, float]] = {}
    for (_, label, cell, _), sd in finest.items():
        of_label = costs.setdefault(label, {})
        of_label[cell] = of_label.get(cell, 0.0) + _rho(sd)
    return Leak(len(finest), max(map(_worst, costs.values()), default=0.0))


def _rho(sd: float) -> float:
    return 1 / (2 * sd * sd) if sd else inf


def _worst(cells: Mapping[str, float]) -> float:
    return cells.get(OVERALL, 0.0) + max((rho for cell, rho in cells.items() if cell != OVERALL), default=0.0)


@dataclass(frozen=True)
class LeakReport:
    """The leak so far, in all and in parts."""

    total: Leak
    by_label_version: Mapping[str, Leak]
    by_account: Mapping[str, Leak]
    by_judge: Mapping[tuple[str, str], Leak]
    """By account and judge."""

    @classmethod
    def of(cls, disclosures: Sequence[Disclosure]) -> "LeakReport":
        """What all of them reveal together and in parts; labels that stayed are in every version's."""
        return cls(
            total=leak_of(disclosures),
            by_label_version=_leak_by(disclosures, lambda found: found.label_version),
            by_account=_leak_by(disclosures, lambda found: found.account),
            by_judge=_leak_by(disclosures, lambda found: (found.account, found.judge)),
        )


def _leak_by(disclosures: Iterable[Disclosure], group: Callable[[Disclosure], Any]) -> dict[Any, Leak]:
    groups: dict[Any, list[Disclosure]] = {}
    for found in disclosures:
        groups.setdefault(group(found), []).append(found)
    return {name: leak_of(found) for name, found in sorted(groups.items())}


class LeakBudget:
    """Counts what a suite with private labels has shown of them. Safe for threads.

    Counted is every figure that may have been seen: a score's owner could look at it since it was made, and
    everybody at a row since its round, also where it was hidden or withdrawn later.
    """

    def __init__(
        self, engine: Engine, suite: Suite, disclosure_policy: DisclosurePolicy, clock: Callable[[], datetime]
    ) -> None:
        self._engine, self._suite, self._policy, self._clock = engine, suite, disclosure_policy, clock
        self._lock = threading.Lock()
        self._cached: tuple[tuple[int, int], LeakReport] | None = None
        self._seen: dict[tuple[int, Audience], tuple[Disclosure, ...]] = {}

    def get(self) -> LeakReport | None:
        """What was shown until now; None where the labels are public: then there is nothing to keep."""
        if self._suite.labels_are_public:
            return None
        with self._lock, snapshot(self._engine) as session:
            state = (number_of_events(session), self._policy.round(self._clock()))
            if self._cached is None or self._cached[0] != state:
                self._cached = (state, LeakReport.of(list(self._disclosures(session))))
            return self._cached[1]

    def _disclosures(self, session: Session) -> Iterable[Disclosure]:
        found, now = current_statuses(session), self._policy.round(self._clock())
        for version in versions_scored(session, self._suite.name, POLICY):
            for score in scores_of(session, self._suite.name, version, POLICY):
                yield from self._disclosures_of(score, "owner")
                published_at = found.of(score.submission_id).published_at
                if published_at is not None and self._policy.round(published_at) < now:
                    yield from self._disclosures_of(score, "public")

    def _disclosures_of(self, score: Score, audience: Audience) -> tuple[Disclosure, ...]:
        """The figures of a score that an audience is shown: always the same ones, so looked up once."""
        key = (score.id, audience)
        if key not in self._seen:
            judge = score.submission.judge
            digests = (score.halves.get("shown") or {"digests": score.digests})["digests"]
            disclosed = self._policy.report(score, audience)
            self._seen[key] = tuple(disclosures_in(disclosed, digests, judge.account.name, judge.name))
        return self._seen[key]
