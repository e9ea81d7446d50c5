"""How much of the private labels was leaked so far: in all, by account, judge and label version."""

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from core.suite import Suite
from submissions.privacy.disclosure import Audience
from submissions.privacy.leak_budget import (
    Disclosure,
    Leak,
    disclosures_in,
    leak_by_account,
    leak_by_judge,
    leak_by_label_version,
    leak_of,
)
from submissions.records.database import snapshot
from submissions.records.event_log import number_of_events
from submissions.records.models import Score
from submissions.records.queries import current_statuses, scores_of, versions_scored
from submissions.scoring.board import DisclosurePolicy
from submissions.scoring.scorer import POLICY


@dataclass(frozen=True)
class LeakReport:
    """The leak so far, in all and in parts."""

    total: Leak
    by_label_version: Mapping[str, Leak]
    by_account: Mapping[str, Leak]
    by_judge: Mapping[tuple[str, str], Leak]


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
        self._kept: tuple[tuple[int, int], LeakReport] | None = None
        self._seen: dict[tuple[int, Audience], tuple[Disclosure, ...]] = {}

    def get(self) -> LeakReport | None:
        """What was shown until now; None where the labels are public: then there is nothing to keep."""
        if self._suite.labels_are_public:
            return None
        with self._lock, snapshot(self._engine) as session:
            state = (number_of_events(session), self._policy.round(self._clock()))
            if self._kept is None or self._kept[0] != state:
                self._kept = (state, _report(list(self._disclosures(session))))
            return self._kept[1]

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


def _report(disclosures: list[Disclosure]) -> LeakReport:
    return LeakReport(
        leak_of(disclosures),
        leak_by_label_version(disclosures),
        leak_by_account(disclosures),
        leak_by_judge(disclosures),
    )
