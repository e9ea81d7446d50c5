"""The leak budget: how many noisy figures were shown, and how much they can reveal about one label.

The accounting is that of differential privacy for the Gaussian mechanism. Two label sets are neighbours if
one label differs, or if two labels of a cell differ and its number of positives, which is not secret, stays
the same. A count of true positives then differs by at most 1. A figure with noise of standard deviation sd
costs

    rho = 1 / (2 sd^2)

of zero-concentrated differential privacy (Bun and Steinke 2016, proposition 1.6), and costs add up over
figures (lemma 1.7), even if each file is made in response to the previous figures. A budget rho means

    epsilon = rho + 2 sqrt(rho ln(1 / delta))

at delta (proposition 1.3): any outcome is at most e^epsilon times as likely under one label set as under its
neighbour, except with probability delta. That bounds every attack, regardless of what the attacker knows.
`tests/attacks` measures what real attacks gain, which is far less.

**One budget for all label versions.** A figure under a new version counts as one more: with new noise, the
two could be averaged; with the same noise, their difference would be the correction itself. So the figures
shown do not change when labels do. A submission keeps those of the labels under which it was first scored
(`queries.disclosure_history`) until its owner asks for newer ones, which costs as much as a new file. The
limits in any 365 days, in rho, are

    account       files_a_year x file + public_rows_a_year x row, for all judges of an account together
    everybody     accounts_a_year x account, however many accounts there are
    strangers     (1 - reserved_share) x everybody, for all accounts that no maintainer confirmed

``file`` is the cost of the overall figure that an owner sees, and ``row`` is what a public row adds to it
(`file_cost`, `row_cost`). The hidden half needs no budget of its own: each label is in one half only, and a
row never costs a label more in the hidden half than in the half that is shown.

A file is charged when its figures can be seen: when it is submitted, or when a maintainer releases it. A file
is not charged if it is held, was rejected before it was scored, or belongs to an account that was banned
before it saw the figures. All of this follows from the events, so a restart or a restore charges the same.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from math import inf, log, sqrt
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from arb.core.suite import Suite, SuiteRules
from submissions.intake.accounts import YEAR, AccountQuota, is_same_name, remaining_quota
from submissions.privacy.disclosure import OVERALL, Audience, Digests, benchmark_cell, cell_noise
from submissions.records import queries
from submissions.records.database import ScoreRow, snapshot
from submissions.records.event_log import number_of_events
from submissions.records.statuses import SubmissionStatuses
from submissions.resources import Resources

DELTA: Final = 1e-6
_ROUNDING: Final = 1e-9
RANKING: Final = "ranking"
"""The name of the cell of the hidden half, whose figures are visible only in the order of the rows."""


class Disclosure(NamedTuple):
    """One noisy count of true positives that was shown. All other figures of its cell follow from it."""

    account: str
    judge: str
    label_version: str
    label: str
    cell: str
    digest: str
    tp_sd: float


@dataclass(frozen=True)
class Leak:
    """The number of distinct figures shown, and how much they can reveal about one label.

    ``rho`` and ``epsilon`` are infinite if a figure had no noise.
    """

    figures: int = 0
    rho: float = 0.0

    @property
    def epsilon(self) -> float:
        """The bound on epsilon at DELTA; see the module docstring."""
        return self.rho + 2 * sqrt(self.rho * log(1 / DELTA)) if self.rho < inf else inf


def disclosures_in(report: Mapping[str, Any], digests: Digests, account: str, judge: str) -> list[Disclosure]:
    """Return the noisy figures in a report; an exact report has none.

    A cell is left out if the file calls all or none of its trajectories positive, because its figures then
    reveal nothing about single labels.
    """
    found = []
    for label, figures in report["labels"].items():
        if not figures:
            continue
        cells = {OVERALL: figures["overall"]}
        cells |= {benchmark_cell(name): cell for name, cell in figures["by_benchmark"].items()}
        for name, cell in cells.items():
            digest = digests[label][name]
            if "noise" in cell and 0 < digest["positives"] < digest["rows"]:
                version, sd = report["label_version"], cell["noise"]["tp_sd"]
                found.append(Disclosure(account, judge, version, label, name, digest["digest"], sd))
    return found


def leak_of(disclosures: Iterable[Disclosure]) -> Leak:
    """Return how much all disclosures together reveal about one label.

    A figure that was shown with different noise counts once, with the least noise: the others are blurred
    copies of it (`disclosure.layered_noise`). Figures of several label versions add up, since a correction
    leaves most labels as they are. A label is part of the overall cell and of one benchmark, so the benchmark
    that costs most is added to the overall cell. Each target has separate labels, so only the target that
    costs most counts.
    """
    finest: dict[tuple[str, str, str, str], float] = {}
    for found in disclosures:
        key = (found.label_version, found.label, found.cell, found.digest)
        finest[key] = min(found.tp_sd, finest.get(key, inf))
    costs: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (_, label, cell, _), sd in finest.items():
        costs[label][cell] += _rho(sd)
    return Leak(len(finest), max(map(_worst, costs.values()), default=0.0))


def _rho(sd: float) -> float:
    return 1 / (2 * sd * sd) if sd else inf


def _worst(cells: Mapping[str, float]) -> float:
    """Return the highest cost for a single label, in the half that ranks or the half that is shown."""
    benchmarks = [rho for cell, rho in cells.items() if cell not in (OVERALL, RANKING)]
    return max(cells.get(OVERALL, 0.0) + max(benchmarks, default=0.0), cells.get(RANKING, 0.0))


def file_cost(rules: SuiteRules) -> float:
    """Return the cost of one file in rho. Its owner sees one overall figure per label."""
    return _rho(rules.private_noise)


def row_cost(rules: SuiteRules) -> float:
    """Return what a public row adds to the cost of its file, in rho.

    The public may see the overall figure with less noise than the owner, and it also sees one figure per
    benchmark.
    """
    is_finer = rules.public_noise < rules.private_noise
    finer = _rho(rules.public_noise) - _rho(rules.private_noise) if is_finer else 0.0
    return finer + _rho(cell_noise(rules))


def _times(number: float, cost: float) -> float:
    """Return number x cost, with 0 x infinity = 0, since a cost without noise is infinite."""
    return number * cost if number else 0.0


def account_budget(rules: SuiteRules) -> float:
    """Return the leak budget of an account per year, in rho."""
    return _times(rules.files_a_year, file_cost(rules)) + _times(rules.public_rows_a_year, row_cost(rules))


def common_budget(rules: SuiteRules) -> float:
    """Return the leak budget of all accounts together per year, in rho."""
    return _times(rules.accounts_a_year, account_budget(rules))


def strangers_budget(rules: SuiteRules) -> float:
    """Return the leak budget of all unconfirmed accounts together per year, in rho."""
    return _times(1 - rules.reserved_share, common_budget(rules))


class Charge(NamedTuple):
    """One charge to the leak budget, in rho."""

    at: datetime
    account: str
    judge: str
    rho: float


def charges_in(session: Session, suite: Suite, found: SubmissionStatuses) -> list[Charge]:
    """Return every charge of a suite, oldest first.

    Equal verdicts are charged each time. The sum may therefore be larger than what `leak_of` returns for the
    figures, but never smaller.
    """
    rules = suite.rules
    charges = []
    for each in queries.owned_submissions(session, suite.name):
        costs: list[tuple[datetime, float]] = []
        published_at = found.of(each.id).published_at
        if (charged_at := found.charged_at(each.id, each.submitted_at)) is not None:
            costs.append((charged_at, file_cost(rules)))
        for at, _ in found.refreshed.get(each.id, ()):
            is_public = published_at is not None and published_at <= at
            costs.append((at, file_cost(rules) + (row_cost(rules) if is_public else 0.0)))
        if published_at is not None:
            costs.append((published_at, row_cost(rules)))
        charges += [Charge(at, each.account, each.judge, rho) for at, rho in costs]
    return sorted(charges)


def fits_from(charges: Iterable[Charge], cost: float, budget: float, now: datetime) -> datetime:
    """Return when ``cost`` fits within a budget: ``now``, or once enough charges are older than 365 days.

    If it never fits, return the last moment of the calendar.
    """
    inside = sorted(charge for charge in charges if charge.at > now - YEAR)
    used = sum(charge.rho for charge in inside)
    if used + cost <= budget + _ROUNDING:
        return now
    for place, charge in enumerate(inside, start=1):
        if sum(later.rho for later in inside[place:]) + cost <= budget + _ROUNDING:
            return charge.at + YEAR
    return datetime.max.replace(tzinfo=now.tzinfo)


class FitsFrom(NamedTuple):
    """The earliest times at which a cost fits within the account's own budget and the shared budgets."""

    own: datetime
    shared: datetime
    is_reserved: bool
    """Whether the cost would fit sooner if a maintainer confirmed the account."""


def budget_fits_from(
    session: Session, suite: Suite, account: str, found: SubmissionStatuses, cost: float, now: datetime
) -> FitsFrom:
    """Return the earliest times at which ``cost`` fits within the yearly leak budgets."""
    rules, charges = suite.rules, charges_in(session, suite, found)
    own = [charge for charge in charges if is_same_name(charge.account, account)]
    everybody = strangers = fits_from(charges, cost, common_budget(rules), now)
    if not found.is_confirmed(account):
        confirmed = {name.casefold() for name in found.confirmed}
        of_strangers = [charge for charge in charges if charge.account.casefold() not in confirmed]
        strangers = fits_from(of_strangers, cost, strangers_budget(rules), now)
    own_from = fits_from(own, cost, account_budget(rules), now)
    return FitsFrom(own_from, max(everybody, strangers), strangers > everybody)


def quota_of(
    session: Session, suite: Suite, account: str, found: SubmissionStatuses, now: datetime
) -> AccountQuota:
    """Return how many files an account may still submit, given its limits and the leak budgets."""
    came = queries.counted_submissions(session, suite.name, account, found)
    left = remaining_quota(came, suite.rules, now)
    if suite.labels_are_public:
        return left
    fits = budget_fits_from(session, suite, account, found, file_cost(suite.rules), now)
    own = max(fits.own, left.next_at or now)
    if fits.shared > own:
        return replace(left, next_at=fits.shared, is_suite_full=True, is_reserved=fits.is_reserved)
    return left if own == now else replace(left, next_at=own)


@dataclass(frozen=True)
class LeakReport:
    """How much has been revealed so far: in total, and by label version, account and judge."""

    total: Leak
    by_label_version: Mapping[str, Leak]
    by_account: Mapping[str, Leak]
    by_judge: Mapping[tuple[str, str], Leak]
    """The leak from each judge's figures, keyed by (account, judge)."""

    @classmethod
    def of(cls, disclosures: Sequence[Disclosure]) -> "LeakReport":
        def by(group: Callable[[Disclosure], Any]) -> dict[Any, Leak]:
            groups: dict[Any, list[Disclosure]] = defaultdict(list)
            for found in disclosures:
                groups[group(found)].append(found)
            return {name: leak_of(found) for name, found in sorted(groups.items())}

        by_judge = by(lambda found: (found.account, found.judge))
        by_version, by_account = by(lambda found: found.label_version), by(lambda found: found.account)
        return cls(leak_of(disclosures), by_version, by_account, by_judge)


class LeakBudget:
    """A count of how much a suite has revealed about its private labels. Thread-safe.

    It counts every figure that somebody could see: the owner sees a score as soon as it is computed, and
    everybody sees a public row once its round is over, even if it is hidden or withdrawn later.
    """

    def __init__(self, app: Resources) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._cached: tuple[tuple[int, int], LeakReport] | None = None
        self._seen: dict[tuple[int, Audience], tuple[Disclosure, ...]] = {}

    def get(self) -> LeakReport | None:
        """Return how much has been revealed so far, or None if the labels are public."""
        app = self._app
        if app.suite.labels_are_public:
            return None
        with self._lock, snapshot(app.engine) as session:
            state = (number_of_events(session), app.disclosure_policy.round(app.clock()))
            if self._cached is None or self._cached[0] != state:
                self._cached = (state, LeakReport.of(self._disclosures(session)))
            return self._cached[1]

    def _disclosures(self, session: Session) -> list[Disclosure]:
        seen = self._visible_scores(session)
        unseen: dict[int, list[Audience]] = defaultdict(list)
        for score_id, audience in seen:
            if (score_id, audience) not in self._seen:
                unseen[score_id].append(audience)
        for score in queries.scores_by_id(session, list(unseen)):
            for audience in unseen[score.id]:
                self._seen[score.id, audience] = tuple(self._disclosures_of(score, audience))
        return [disclosure for key in seen for disclosure in self._seen[key]]

    def _visible_scores(self, session: Session) -> list[tuple[int, Audience]]:
        """Return (score id, audience) for every score that was shown."""
        policy = self._app.disclosure_policy
        found, now = queries.current_statuses(session), policy.round(self._app.clock())
        seen: list[tuple[int, Audience]] = []
        for history in queries.disclosure_histories(session, self._app.suite.name, found):
            later = [at for _, at in history[1:]]
            published_at = found.of(history[0][0].submission_id).published_at
            for (score, _), until in zip_longest(history, later):
                seen.append((score.id, "owner"))
                if published_at is None or policy.round(published_at) >= now:
                    continue
                if until is None or until > published_at:
                    seen.append((score.id, "public"))
        return seen

    def _disclosures_of(self, score: ScoreRow, audience: Audience) -> list[Disclosure]:
        """Return the noisy figures of a score that an audience is shown; they never change."""
        policy, judge = self._app.disclosure_policy, score.submission.judge
        digests = (score.halves.get("shown") or {"digests": score.digests})["digests"]
        owner = (judge.account.name, judge.name)
        figures = disclosures_in(policy.report(score, audience), digests, *owner)
        if audience == "public" and (ranked := score.halves.get("ranked")):
            order = disclosures_in(policy.report_of_half(ranked, "public"), ranked["digests"], *owner)
            figures += [figure._replace(cell=RANKING) for figure in order if figure.cell == OVERALL]
        return figures
