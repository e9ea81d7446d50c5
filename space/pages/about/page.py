"""The page ``/about``, which explains scores, labels, rules, leak budget, versions and terms.

Every number on the page is read from the code that uses it.
"""

from contextlib import suppress
from importlib.metadata import version
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from arb.core.suite import OFFICIAL
from arb.core.vocabulary import metric_name
from dataset_script.card import PAPER_BIBTEX
from leaderboard.board.ranks import DESIGN_EFFECTS, TESTED_TOGETHER
from leaderboard.judge_precision.intervals import CONFIDENCE, N_RESAMPLES
from leaderboard.suites.published import summarise_fits
from space.pages.maintain.page import describe_epsilon
from space.pages.rows import MISSING, meaning_of, rated_target
from space.services import Services
from space.web.cells import FEW
from space.web.frame import PageFrame
from submissions.app import SubmissionsApp
from submissions.privacy.leak_budget import Leak, account_budget, common_budget
from submissions.privacy.server_secret import SecretUnavailable
from submissions.records.database import snapshot
from submissions.records.event_log import head

PATH: Final = "/about"
PUBLISHED: Final = "about/published.html"
"""The template of the page for a suite of published metrics."""
PACKAGES: Final = (
    "datasets", "evaluate", "gradio", "huggingface_hub", "numpy", "pandas", "pyarrow", "sqlalchemy",
)  # fmt: skip


def facts_of(service: SubmissionsApp) -> dict[str, Any]:
    suite, test, board = service.suite, service.suite.split("test"), service.records.board()
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
        "tested_together": TESTED_TOGETHER,
        "design_effects": {metric_name(name): effect for name, effect in DESIGN_EFFECTS.items()},
        "max_upload_bytes": service.settings.max_upload_bytes,
        "board_digest": board.digest,
        "provenances": sorted({row.provenance for row in board.rows}),
        "versions": tuple((package, version(package)) for package in PACKAGES),
    }


def trust_of(service: SubmissionsApp) -> dict[str, Any]:
    """Return the current rules, leak budget, public key of receipts, and head of the event log.

    ``leak`` is None if the labels are public; ``public_key`` is None if the server secret is missing.
    """
    suite = service.suite
    with snapshot(service.engine) as session:
        n_records, last = head(session)
    report = public_key = None
    with suppress(SecretUnavailable):
        report = service.records.leak.get()
        public_key = service.signer.public_key
    leaks = dict(report.by_label_version) if report else {}
    return {
        "rules": suite.rules,
        "leak": None if suite.labels_are_public else leaks,
        "leak_in_all": report and report.total,
        # The epsilon that an account, and all accounts together, may use up in a year, over all versions.
        "budgets": {
            "account": describe_epsilon(Leak(rho=account_budget(suite.rules))),
            "everybody": describe_epsilon(Leak(rho=common_budget(suite.rules))),
        },
        "public_key": public_key,
        "n_records": n_records,
        "head": last,
    }


def build_about_router(services: Services, pages: PageFrame) -> APIRouter:
    router, service = APIRouter(), services.submissions

    @router.get(PATH, include_in_schema=False)
    def about(request: Request) -> Response:
        suite = service.suite
        if suite.published_path is not None:
            published = {"suite": suite, "fits": summarise_fits(suite.published_path)}
            return pages.cached(request, suite.name, PUBLISHED, "About", PATH, lambda: published)
        values = {"facts": facts_of(service), "trust": trust_of(service), "citation": PAPER_BIBTEX}
        main = service.suite.main_target
        more = {
            "describe_epsilon": describe_epsilon,
            "targets": sorted(service.suite.scored_targets, key=lambda each: each is not main),
            "rated": rated_target(service.suite),
            "meaning": meaning_of(main),
            "missing": MISSING[main.missing],
        }
        return pages.cached(request, repr(values), "about/page.html", "About", PATH, lambda: values | more)

    return router
