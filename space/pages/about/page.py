"""``/about``: how scores are made, what the labels are, rules, leak budget, versions, terms, changes.

Each figure comes from the code that uses it.
"""

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from arb.core.files import project_file
from arb.core.suite import OFFICIAL, SuiteRules
from dataset_script.card import PAPER_BIBTEX
from leaderboard.board.ranks import DESIGN_EFFECTS
from leaderboard.judge_precision.intervals import CONFIDENCE, N_RESAMPLES
from space.pages.maintain.page import describe_epsilon
from space.services import Services
from space.web.cells import FEW
from space.web.frame import PageFrame
from submissions.app import SubmissionsApp
from submissions.privacy.leak_budget import Leak, account_budget, common_budget
from submissions.privacy.server_secret import SecretUnavailable
from submissions.records.database import snapshot
from submissions.records.event_log import head

PATH: Final = "/about"
PACKAGES: Final = (
    "datasets",
    "evaluate",
    "gradio",
    "huggingface_hub",
    "numpy",
    "pandas",
    "pyarrow",
    "sqlalchemy",
)


@dataclass(frozen=True)
class Release:
    """An entry of the change log: its date and its lines."""

    date: str
    lines: tuple[str, ...]


def facts_of(service: SubmissionsApp) -> dict[str, Any]:
    """Everything about suite, labels and metrics on the page that is no fixed sentence."""
    suite, test = service.suite, service.suite.split("test")
    return {
        "suite": suite.name,
        "is_official": suite.name == OFFICIAL,
        "labels_are_public": suite.labels_are_public,
        "label_version": service.label_version,
        "n_trajectories": len(suite.trajectories),
        "n_test": len(test),
        "n_tasks": len({(each.benchmark, each.task) for each in test}),
        "n_agents": len({each.agent for each in test}),
        "n_benchmarks": len({each.benchmark for each in test}),
        "n_resamples": N_RESAMPLES,
        "confidence": round(100 * CONFIDENCE),
        "few": FEW,
        "design_effects": dict(DESIGN_EFFECTS),
        "max_upload_bytes": service.settings.max_upload_bytes,
        "board_digest": service.records.board().digest,
        "versions": tuple((package, version(package)) for package in PACKAGES),
        "releases": read_change_log(),
    }


def read_change_log() -> tuple[Release, ...]:
    """The entries of the change log, newest first; empty where the file is not there."""
    try:
        text = project_file("CHANGELOG.md").read_text(encoding="utf-8")
    except OSError:
        return ()
    releases = []
    for entry in text.split("\n## ")[1:]:
        date, _, body = entry.partition("\n")
        lines = (" ".join(item.split()) for item in f"\n{body}".split("\n- ")[1:])
        releases.append(Release(date.strip(), tuple(lines)))
    return tuple(releases)


def trust_of(service: SubmissionsApp) -> dict[str, Any]:
    """Rules, leak budget, key of receipts and head of the event log as they are now.

    ``leak`` is None where the labels are public, ``public_key`` without a secret.
    """
    suite = service.suite
    with snapshot(service.engine) as session:
        n_records, last = head(session)
    try:
        report = service.records.leak.get()
    except SecretUnavailable:
        report = None
    try:
        public_key = service.signer.public_key
    except SecretUnavailable:
        public_key = None
    leaks = report.by_label_version.items() if report else ()
    return {
        "rules": describe_rules(suite.rules, suite.labels_are_public),
        "leak": None if suite.labels_are_public else [_leak_line(name, leak) for name, leak in leaks],
        "leak_in_all": report and _leak_line("In all", report.total),
        # Epsilon of what an account and what all together may be shown in a year, over all label versions.
        "budgets": {
            "account": describe_epsilon(Leak(rho=account_budget(suite.rules))),
            "everybody": describe_epsilon(Leak(rho=common_budget(suite.rules))),
        },
        "public_key": public_key,
        "n_records": n_records,
        "head": last,
    }


def _leak_line(name: str, leak: Leak) -> tuple[str, int, str]:
    return name, leak.figures, describe_epsilon(leak)


FOR_EVERY_SUITE: Final = {
    "files_a_day": "test files of an account that are scored in 24 hours, over all its judges",
    "files_a_year": "the same in 365 days, over all label versions",
    "account_age_days": "how many days old an account has to be before it submits",
}
FOR_PRIVATE_LABELS: Final = {
    "private_noise": "noise on the true positives that a file's owner sees (standard deviation)",
    "public_noise": "the same on public rows; on their benchmarks the larger of the two",
    "public_rows_a_year": "rows that an account may make public in 365 days",
    "accounts_a_year": "what all accounts together are shown in 365 days: at most what so many may at their "
    "limits",
    "reserved_share": "the share of that which is kept for accounts that a maintainer confirmed",
    "round_days": "days of a round; rows made public in it appear together, at its end",
    "fewest_positives": "a file that calls fewer trajectories successful waits for a maintainer",
    "ranking_half": "ranks come from {ranks}",
}
RANKS: Final = {
    True: "a fixed half of the tasks that is not shown; the figures come from the other half",
    False: "the figures that are shown, with their noise",
}


def describe_rules(rules: SuiteRules, labels_are_public: bool) -> list[tuple[str, str, str]]:
    """Return every rule of the suite as (name in ``suite.toml``, value, meaning)."""
    meanings = FOR_EVERY_SUITE if labels_are_public else FOR_EVERY_SUITE | FOR_PRIVATE_LABELS
    ranks = RANKS[rules.ranking_half]
    return [(name, _rule_value(name, rules), text.format(ranks=ranks)) for name, text in meanings.items()]


def _rule_value(name: str, rules: SuiteRules) -> str:
    value = getattr(rules, name)
    if name == "ranking_half":
        return "yes" if value else "no"
    if name == "reserved_share":
        return f"{value:.0%}"
    return f"± {value:g}" if name.endswith("_noise") else str(value)


def build_about_router(services: Services, pages: PageFrame) -> APIRouter:
    """The route; the page is the same for every reader."""
    router, service = APIRouter(), services.submissions

    @router.head(PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    def about(request: Request) -> Response:
        values = about_values(service)
        return pages.cached(request, repr(values), "about/page.html", "About", PATH, lambda: values)

    return router


def about_values(service: SubmissionsApp) -> dict[str, Any]:
    """Everything that the page shows, as it is now."""
    return {"facts": facts_of(service), "trust": trust_of(service), "citation": PAPER_BIBTEX}
