"""What the about page states of trust: the suite's rules, the leak budget, receipts, the chain of records."""

from dataclasses import dataclass
from typing import NamedTuple

from dataset_script.suite_rules import SuiteRules
from space.maintain.view import describe_epsilon
from submissions.chain import head
from submissions.database import snapshot
from submissions.revealed import LeakReport
from submissions.secret import SecretUnavailable
from submissions.service import SubmissionService


class Rule(NamedTuple):
    """A rule of the suite: its name in ``suite.toml``, its value, and what it means."""

    name: str
    value: str
    meaning: str


class LeakLine(NamedTuple):
    """What was shown under one label version."""

    label_version: str
    figures: int
    epsilon: str


@dataclass(frozen=True)
class TrustFacts:
    """As things are now. ``leak`` is None where the labels are public, ``public_key`` without a secret."""

    rules: tuple[Rule, ...]
    leak: tuple[LeakLine, ...] | None
    leak_in_all: LeakLine | None
    public_key: str | None
    n_records: int
    head: str


def trust_facts(service: SubmissionService) -> TrustFacts:
    """The facts of a service."""
    suite = service.suite
    with snapshot(service.engine) as session:
        n_records, last = head(session)
    revealed = _revealed(service)
    return TrustFacts(
        rules=tuple(rules_told(suite.rules, suite.labels_are_public)),
        leak=None if suite.labels_are_public else tuple(
            LeakLine(version, leak.figures, describe_epsilon(leak))
            for version, leak in (revealed.by_label_version.items() if revealed else ())
        ),
        leak_in_all=revealed and LeakLine("", revealed.total.figures, describe_epsilon(revealed.total)),
        public_key=_public_key(service),
        n_records=n_records,
        head=last,
    )  # fmt: skip


def rules_told(rules: SuiteRules, labels_are_public: bool) -> list[Rule]:
    """Every rule that holds, in words; those against probing only where labels are private."""
    found = [
        (
            "files_a_day",
            f"{rules.files_a_day}",
            "test files of an account that are scored in 24 hours, over all its judges",
        ),
        (
            "files_a_year",
            f"{rules.files_a_year}",
            "the same in 365 days; both count anew under each label version",
        ),
        (
            "account_age_days",
            f"{rules.account_age_days}",
            "how many days old an account has to be before it submits",
        ),
    ]
    if not labels_are_public:
        found += _against_probing(rules)
    return [Rule(*each) for each in found]


def _against_probing(rules: SuiteRules) -> list[tuple[str, str, str]]:
    ranks = (
        "from a fixed half of the tasks that is not shown; the figures come from the other half"
        if rules.ranking_half
        else "from the figures that are shown, with their noise"
    )
    return [
        (
            "private_noise",
            f"± {rules.private_noise:g}",
            "noise on the true positives that a file's owner sees (standard deviation)",
        ),
        (
            "public_noise",
            f"± {rules.public_noise:g}",
            "the same on public rows; on their benchmarks the larger of the two",
        ),
        (
            "public_rows_a_year",
            f"{rules.public_rows_a_year}",
            "rows that an account may make public in a year",
        ),
        (
            "round_days",
            f"{rules.round_days}",
            "days of a round; rows made public in it appear together, at its end",
        ),
        (
            "fewest_positives",
            f"{rules.fewest_positives}",
            "a file that calls fewer trajectories successful waits for a maintainer",
        ),
        ("ranking_half", "yes" if rules.ranking_half else "no", f"ranks come {ranks}"),
    ]


def _revealed(service: SubmissionService) -> LeakReport | None:
    try:
        return service.leak.get()
    except SecretUnavailable:
        return None


def _public_key(service: SubmissionService) -> str | None:
    try:
        return service.signer.public_key
    except SecretUnavailable:
        return None
