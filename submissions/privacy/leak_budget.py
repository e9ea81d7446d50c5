"""The leak budget: how many noisy figures were shown, and how much they can reveal about one label.

The accounting is that of differential privacy for the Gaussian mechanism. Two label sets are neighbours if
one label differs, or if two labels of a cell differ and its number of positives, which is not secret, stays
the same. A count of true positives then differs by at most 1. With noise of standard deviation sd a figure
costs

    rho = 1 / (2 sd^2)

of zero-concentrated differential privacy (Bun and Steinke 2016, proposition 1.6), and costs add up over
figures (lemma 1.7), even if each file is made in response to the previous figures. A budget rho means

    epsilon = rho + 2 sqrt(rho ln(1 / delta))

at delta (proposition 1.3): any outcome is at most e^epsilon times as likely under one label set as under its
neighbour, except with probability delta. That bounds every attack, regardless of what the attacker knows.
`tests/attacks` measures what real attacks gain, which is far less.

**One budget for all label versions.** A figure under a new version is one more figure: with new noise it
could be averaged with the old one, and with the same noise the difference would be the correction itself. So
a mere change of labels shows nothing. A submission keeps the figures of the labels under which it was first
scored (`queries.disclosure_history`) until its owner asks for newer ones, which costs as much as a new file.
The limits in any 365 days, in rho, are

    an account    files_a_year x file + public_rows_a_year x row
    a judge       no more than its account, to which it belongs under every name
    everybody     accounts_a_year x account, for any number of accounts
    strangers     (1 - reserved_share) x everybody: all accounts that no maintainer confirmed

A file is charged when its figures can be seen: when it is submitted, or when a maintainer releases it. A file
is not charged if it is held, was rejected before it was scored, or belongs to an account that was banned
before it saw the figures. All of this follows from the events, so a restart or a restore charges the same.

``file`` is the cost of an owner's overall figure, ``row`` what a public row adds (`file_cost`, `row_cost`).
The order of public rows follows from overall figures of the hidden half with the public noise; each label is
in one half only, and a row never costs a label more in the hidden half than in the half that is shown.
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
from submissions.privacy.disclosure import (
    OVERALL,
    Audience,
    Digests,
    benchmark_cell,
    cell_noise,
)
from submissions.records import queries
from submissions.records.database import ScoreRow, snapshot
from submissions.records.event_log import number_of_events
from submissions.records.statuses import SubmissionStatuses
from submissions.resources import Resources

DELTA: Final = 1e-6
_ROUNDING: Final = 1e-9
RANKING: Final = "ranking"
"""The cell name of overall figures of the hidden half, which are visible only in the order of rows."""


class Disclosure(NamedTuple):
    """One noisy figure that was shown: the true positives of a cell, from which its other figures follow."""

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
    """Return the noisy figures of a disclosed report; an exact report has none.

    A cell is left out if the file calls all or none of it positive, since its figures follow from constants.
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
    """Return what all disclosures together reveal.

    A digest counts once per cell, however often it was shown, at its finest noise: a coarser figure is a
    blurred copy of the finer one (`disclosure.layered_noise`). Figures of several label versions add up,
    since most labels survive a correction. The label of one trajectory is part of the overall cell and of one
    benchmark, so the most expensive benchmark counts. Success, side effects and repetition are separate
    labels, so the most expensive of them counts.
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
    """Return the cost of one file in rho: its owner sees an overall figure of each label."""
    return _rho(rules.private_noise)


def row_cost(rules: SuiteRules) -> float:
    """Return the additional cost of a public row in rho: a finer overall figure and one per benchmark."""
    is_finer = rules.public_noise < rules.private_noise
    finer = _rho(rules.public_noise) - _rho(rules.private_noise) if is_finer else 0.0
    return finer + _rho(cell_noise(rules))


def _times(number: float, cost: float) -> float:
    """Multiply a cost, which may be infinite; 0 times any cost is 0."""
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

    The charges add up to at least the `leak_of` all shown figures: equal verdicts are charged each time.
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
    """Return when ``cost`` fits into a budget of 365 days: now, or once enough charges are older.

    If it never does, return the last moment of the calendar.
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
    """When a cost fits into the account's own budget, and into the budgets that it shares."""

    own: datetime
    shared: datetime
    is_reserved: bool
    """Whether it would fit sooner if a maintainer confirmed the account."""


def budget_fits_from(
    session: Session, suite: Suite, account: str, found: SubmissionStatuses, cost: float, now: datetime
) -> FitsFrom:
    """Return from when ``cost`` fits into the yearly leak budgets."""
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
    """Return how many files an account may still send, by its limits and, for private labels, its budget."""
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
    """The leak so far, in total and by label version, account and judge."""

    total: Leak
    by_label_version: Mapping[str, Leak]
    by_account: Mapping[str, Leak]
    by_judge: Mapping[tuple[str, str], Leak]
    """(account, judge) to the leak of that judge's figures."""

    @classmethod
    def of(cls, disclosures: Sequence[Disclosure]) -> "LeakReport":
        return cls(
            total=leak_of(disclosures),
            by_label_version=_leak_by(disclosures, lambda found: found.label_version),
            by_account=_leak_by(disclosures, lambda found: found.account),
            by_judge=_leak_by(disclosures, lambda found: (found.account, found.judge)),
        )


def _leak_by(disclosures: Iterable[Disclosure], group: Callable[[Disclosure], Any]) -> dict[Any, Leak]:
    groups: dict[Any, list[Disclosure]] = defaultdict(list)
    for found in disclosures:
        groups[group(found)].append(found)
    return {name: leak_of(found) for name, found in sorted(groups.items())}


class LeakBudget:
    """A counter of what a suite with private labels has revealed about them. Thread-safe.

    It counts every figure that may have been seen. The owner of a score could see it as soon as it was
    made. Everybody could see a public row from its round on, even if it was hidden or withdrawn later.
    """

    def __init__(self, app: Resources) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._cached: tuple[tuple[int, int], LeakReport] | None = None
        self._seen: dict[tuple[int, Audience], tuple[Disclosure, ...]] = {}

    def get(self) -> LeakReport | None:
        """Return what was shown so far, or None if the labels are public and there is nothing to protect."""
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
            order = disclosures_in(policy.ranking_report(ranked), ranked["digests"], *owner)
            figures += [figure._replace(cell=RANKING) for figure in order if figure.cell == OVERALL]
        return figures
