"""The page ``/suites``: the judges of all suites of the Space side by side. ``/api/suites`` has the data."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Query, Request, Response

from arb.core.vocabulary import METRIC_TITLES, metric_name
from leaderboard.suites.matrix import (
    COMMON_METRIC,
    FEWEST_COMMON,
    SuiteBoard,
    common_metrics,
    make_matrix,
)
from space.pages.rows import INPUTS
from space.services import Services
from space.suites import SuiteClosed
from space.web.frame import PageFrame
from space.web.query import QueryParam, choices_in, link_to
from space.web.responses import CachedResponse
from space.web.suite_path import root_of

PATH: Final = "/suites"
JSON: Final = "application/json"


def boards_of(suites: Mapping[str, Services]) -> tuple[tuple[SuiteBoard, ...], list[str]]:
    """Return the current boards, and the names of suites that cannot be opened now."""
    found, closed = [], []
    for name in suites:
        try:
            service = suites[name].submissions
        except SuiteClosed:
            closed.append(name)
            continue
        suite = service.suite
        found.append(SuiteBoard(name, suite.profile.title, service.records.board(), suite.labels_are_public))
    return tuple(found), closed


def build_suites_routers(services: Services, pages: PageFrame) -> tuple[APIRouter, APIRouter]:
    """Return the routes of the page and of the REST API."""
    page, rest = APIRouter(), APIRouter()
    by_name = services.suites or {services.submissions.suite.name: services}

    @page.get(PATH, include_in_schema=False)
    def suites(request: Request) -> Response:
        boards, closed = boards_of(by_name)
        metrics = common_metrics(boards)
        choice, unknown = choices_in(request.url.query, [QueryParam("metric", "one", COMMON_METRIC, metrics)])
        metric = choice["metric"]

        def values() -> dict[str, Any]:
            return {
                "matrix": make_matrix(boards, metric),
                "titles": {each.name: each.title for each in boards},
                "metrics": [(METRIC_TITLES[name], name) for name in metrics],
                "metric_name": metric_name(metric),
                "closed": closed,
                "fewest": FEWEST_COMMON,
                "inputs": INPUTS,
                "judge_page": lambda suite, row_id: link_to(f"{root_of(suite)}/judge", id=row_id),
                "common": COMMON_METRIC,
            }

        key = (metric, tuple(closed), *(each.digest for each in boards))
        return pages.cached(request, key, "suites/page.html", "All suites", PATH, values, unknown=unknown)

    @rest.get("/api/suites", summary="The judges of all suites side by side, in one metric")
    def matrix_json(
        request: Request,
        metric: Annotated[str, Query(max_length=40, description="A metric of every suite.")] = COMMON_METRIC,
    ) -> Response:
        """Each row is a judge with its cells by suite. ``agreements`` has Kendall's tau per pair of suites.

        Figures are fractions. The response has an ETag.
        """
        boards, _ = boards_of(by_name)
        if metric not in (known := common_metrics(boards)):
            raise HTTPException(422, f"metric: not all suites show {metric!r}; use one of {', '.join(known)}")
        content = json.dumps(asdict(make_matrix(boards, metric)), ensure_ascii=False).encode()
        return CachedResponse.of(content, JSON).answer(request)

    return page, rest
