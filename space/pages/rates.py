"""The success rates page: how often agents succeed, by whose judgement, and the effect on training."""

from collections.abc import Mapping
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from dataset_script.vocabulary import BENCHMARKS
from leaderboard.rates import OVERALL
from space.address import QueryParam, choices_in
from space.page import Services
from space.plain_page import PageFrame
from space.rates_source import MOST_EVALUATORS, RateSources
from space.rates_view import (
    agent_title,
    benchmark_title,
    describe_kept,
    describe_rate,
    kept_span,
    view_rates,
    view_training,
)
from submissions.service import SubmissionService

PATH: Final = "/rates"


def build_rates_router(services: Services, pages: PageFrame) -> APIRouter:
    """``GET /rates``."""
    service, router = services.submissions, APIRouter()
    sources, benchmarks = RateSources(service), benchmarks_of(service)

    @router.head(PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    def rates_page(request: Request) -> Response:
        controls = (
            QueryParam("benchmark", "one", OVERALL, benchmarks),
            QueryParam("by", "many", sources.default()),
        )
        chosen, unknown = choices_in(request.scope["query_string"].decode("latin-1"), controls)
        benchmark, by = chosen["benchmark"], chosen["by"] or sources.default()
        board = service.board()
        labels_are_public = service.labels_for_public_figures() is not None

        def values() -> Mapping[str, Any]:
            evaluators, problems = sources.find(by)
            choices = sources.choices()
            known = {row_id for _, row_id in choices}
            training_axis, training = view_training(board)
            return {
                "view": view_rates(evaluators, benchmark) if evaluators else None,
                "problems": problems,
                "unknown": unknown,
                "labels_are_public": labels_are_public,
                "benchmark": benchmark,
                "benchmarks": [(benchmark_title(name), name) for name in benchmarks],
                "chosen": [row_id for row_id in by if row_id in known][:MOST_EVALUATORS],
                "choices": choices,
                "default": ",".join(sources.default()),
                "most": MOST_EVALUATORS,
                "training_axis": training_axis,
                "training": training,
                "kept_span": kept_span,
                "describe_kept": describe_kept,
                "describe_rate": describe_rate,
                "agent_title": agent_title,
                "benchmark_title": benchmark_title,
            }

        key = (board.digest, labels_are_public, benchmark, *by, "", *unknown)
        return pages.cached(request, key, "rates.html", "Success rates", PATH, values)

    return router


def benchmarks_of(service: SubmissionService) -> tuple[str, ...]:
    """``overall`` and the benchmarks of the suite's test split, the official ones in the paper's order."""
    found = {trajectory.benchmark for trajectory in service.suite.split("test")}
    known = tuple(name for name in BENCHMARKS if name in found)
    return (OVERALL, *known, *sorted(found - set(known)))
