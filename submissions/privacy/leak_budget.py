"""The leak budget: how many noisy figures were shown, and what they can reveal of one label.

The account is that of differential privacy for the Gaussian mechanism. Two label sets are neighbours if one
label differs, or two of one cell that keep its number of positives, which is no secret: a count of true
positives then differs by at most 1. With noise of standard deviation sd a figure costs

    rho = 1 / (2 sd^2)

of zero-concentrated differential privacy (Bun and Steinke 2016, proposition 1.6), and costs add up over
figures (lemma 1.7), even if the next file was made from the last answer. A budget rho means

    epsilon = rho + 2 sqrt(rho ln(1 / delta))

at delta (proposition 1.3): whatever is seen is at most e^epsilon times as likely under one label set as under
its neighbour, except with probability delta. That bounds all attacks, whatever the attacker knows beforehand.
`tests/attacks` measures what real attacks gain, which is far less.

**One budget for all label versions.** A figure under a new version is one more figure: with new noise it
could be averaged with the old one, and with the same noise the difference would be the correction itself. So
nothing is shown because labels changed. A submission keeps the figures of the labels that it was first scored
under (`queries.disclosure_history`) until its owner asks for newer ones, which costs as much as a new file.
In any 365 days, in rho,

    an account    files_a_year x file + public_rows_a_year x row
    a judge       no more than its account, to which it belongs under every name
    everybody     accounts_a_year x account, whatever the number of accounts
    strangers     (1 - reserved_share) x everybody: all accounts that no maintainer confirmed

A file is charged when its figures can be seen: when it is submitted, or when a maintainer releases it. A file
that is held, was rejected before it was scored, or belongs to an account that was banned before it saw the
figures is not charged. All of it follows from the events, so a restart or a restore charges the same.

``file`` is the cost of an owner's overall figure, ``row`` what a public row adds (`file_cost`, `row_cost`).
The order of public rows follows from overall figures of the hidden half with the public noise; a label is in
one half only, and no row costs it more there than in the other.
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
"""The cell of a figure that nobody sees but in the order of rows: overall, of the hidden half."""


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


def disclosures_in(report: Mapping[str, Any], digests: Digests, account: str, judge: str) -> list[Disclosure]:
    """The noisy figures of a disclosed report; none for an exact one.

    A cell of which the file calls nothing positive, or everything, is left out: its figures follow from
    constants.
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
    costs: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for (_, label, cell, _), sd in finest.items():
        costs[label][cell] += _rho(sd)
    return Leak(len(finest), max(map(_worst, costs.values()), default=0.0))


def _rho(sd: float) -> float:
    return 1 / (2 * sd * sd) if sd else inf


def _worst(cells: Mapping[str, float]) -> float:
    """What a label can have lost most: it is in the half that ranks, or in a benchmark of the one shown."""
    benchmarks = [rho for cell, rho in cells.items() if cell not in (OVERALL, RANKING)]
    return max(cells.get(OVERALL, 0.0) + max(benchmarks, default=0.0), cells.get(RANKING, 0.0))


def file_cost(rules: SuiteRules) -> float:
    """What one file costs, in rho: its owner sees an overall figure of each label."""
    return _rho(rules.private_noise)


def row_cost(rules: SuiteRules) -> float:
    """What a public row adds: the finer overall figure in place of the owner's, and one of each benchmark."""
    is_finer = rules.public_noise < rules.private_noise
    finer = _rho(rules.public_noise) - _rho(rules.private_noise) if is_finer else 0.0
    return finer + _rho(cell_noise(rules))


def _times(number: float, cost: float) -> float:
    """Return the cost of a number of things; 0 for none of them, even if one has no bound."""
    return number * cost if number else 0.0


def account_budget(rules: SuiteRules) -> float:
    """Return what an account may be shown in a year, in rho."""
    return _times(rules.files_a_year, file_cost(rules)) + _times(rules.public_rows_a_year, row_cost(rules))


def common_budget(rules: SuiteRules) -> float:
    """Return what all accounts together may be shown in a year, in rho."""
    return _times(rules.accounts_a_year, account_budget(rules))


def strangers_budget(rules: SuiteRules) -> float:
    """Return what all accounts that no maintainer confirmed may be shown in a year, in rho."""
    return _times(1 - rules.reserved_share, common_budget(rules))


class Charge(NamedTuple):
    """Something that was asked for and is paid for, in rho."""

    at: datetime
    account: str
    judge: str
    rho: float


def charges_in(session: Session, suite: Suite, found: SubmissionStatuses) -> list[Charge]:
    """Every charge of a suite. They bound `leak_of` what was shown: equal verdicts are paid for each time."""
    rules, charges = suite.rules, []
    for name, came, *owner in queries.owned_submissions(session, suite.name):
        status = found.of(name)
        if (at := found.charged_at(name, came)) is not None:
            charges.append(Charge(at, *owner, file_cost(rules)))
        for at, _ in found.refreshed.get(name, ()):
            is_public = status.published_at is not None and status.published_at <= at
            rho = file_cost(rules) + (row_cost(rules) if is_public else 0.0)
            charges.append(Charge(at, *owner, rho))
        if status.published_at is not None:
            charges.append(Charge(status.published_at, *owner, row_cost(rules)))
    return sorted(charges)


def fits_from(charges: Iterable[Charge], cost: float, budget: float, now: datetime) -> datetime:
    """From when on ``cost`` fits into a budget of 365 days: ``now``, or when enough of the charges are older.

    The far end of the calendar where it never does.
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
    """From when on something fits into the budgets: the account's own, and those that it shares."""

    own: datetime
    shared: datetime
    is_reserved: bool
    """Whether it would fit sooner if a maintainer confirmed the account."""


def budget_fits_from(
    session: Session, suite: Suite, account: str, found: SubmissionStatuses, cost: float, now: datetime
) -> FitsFrom:
    """Return from when on something fits into what may be shown in a year."""
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
    """What is left to an account: by number of files, and where labels are private by what they reveal."""
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
    groups: dict[Any, list[Disclosure]] = defaultdict(list)
    for found in disclosures:
        groups[group(found)].append(found)
    return {name: leak_of(found) for name, found in sorted(groups.items())}


class LeakBudget:
    """Counts what a suite with private labels has shown of them. Safe for threads.

    Counted is every figure that may have been seen: a score's owner could look at it since it was made, and
    everybody at a row since its round, also where it was hidden or withdrawn later.
    """

    def __init__(self, app: Resources) -> None:
        self._app, self._policy = app, app.disclosure_policy
        self._lock = threading.Lock()
        self._cached: tuple[tuple[int, int], LeakReport] | None = None
        self._seen: dict[tuple[int, Audience], tuple[Disclosure, ...]] = {}

    def get(self) -> LeakReport | None:
        """What was shown until now; None where the labels are public: then there is nothing to keep."""
        if self._app.suite.labels_are_public:
            return None
        with self._lock, snapshot(self._app.engine) as session:
            state = (number_of_events(session), self._policy.round(self._app.clock()))
            if self._cached is None or self._cached[0] != state:
                self._cached = (state, LeakReport.of(list(self._disclosures(session))))
            return self._cached[1]

    def _disclosures(self, session: Session) -> Iterable[Disclosure]:
        found, now = queries.current_statuses(session), self._policy.round(self._app.clock())
        seen: list[tuple[int, Audience]] = []
        for history in queries.disclosure_histories(session, self._app.suite.name, found):
            later = [at for _, at in history[1:]]
            published_at = found.of(history[0][0].submission_id).published_at
            is_public = published_at is not None and self._policy.round(published_at) < now
            for (score, _), until in zip_longest(history, later):
                seen.append((score.id, "owner"))
                if is_public and (until is None or until > published_at):
                    seen.append((score.id, "public"))
        unseen: dict[int, list[Audience]] = defaultdict(list)
        for score_id, audience in seen:
            if (score_id, audience) not in self._seen:
                unseen[score_id].append(audience)
        for score in queries.scores_by_id(session, list(unseen)):
            for audience in unseen[score.id]:
                self._seen[score.id, audience] = tuple(self._disclosures_of(score, audience))
        for key in seen:
            yield from self._seen[key]

    def _disclosures_of(self, score: ScoreRow, audience: Audience) -> list[Disclosure]:
        """The figures of a score that an audience is shown: always the same ones, so looked up once."""
        judge = score.submission.judge
        digests = (score.halves.get("shown") or {"digests": score.digests})["digests"]
        owner = (judge.account.name, judge.name)
        figures = disclosures_in(self._policy.report(score, audience), digests, *owner)
        if audience == "public" and (ranked := score.halves.get("ranked")):
            order = disclosures_in(self._policy.ranking_report(ranked), ranked["digests"], *owner)
            figures += [figure._replace(cell=RANKING) for figure in order if figure.cell == OVERALL]
        return figures
