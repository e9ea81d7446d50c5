"""The page ``/judge``: a judge's traits, metrics, neighbours and costs, and how to check and cite it."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from leaderboard.board.board import Board, BoardRow
from leaderboard.paper.published import SECOND_ANNOTATOR
from leaderboard.score import metric_of
from space.pages.judge.plots import plot_values
from space.pages.judge.summary import (
    describe_label_noise,
    dollars,
    eval_results_yaml,
    file_facts,
    judge_bibtex,
    spread,
)
from space.pages.judge.view import BY_AGENT, JudgeView, view_judge
from space.pages.leaderboard.query import PROVENANCES
from space.pages.rows import INPUTS, ranked_rows
from space.services import Services
from space.verdicts import JudgeVerdicts
from space.web.cells import (
    choices_of,
    describe_marks,
    describe_noise,
    metric_cell,
    origin,
    short_name,
)
from space.web.frame import PageFrame
from space.web.query import QueryParam, choices_in, link_to
from submissions.app import SubmissionsApp

PATH: Final = "/judge"
ERRORS: Final = "/errors"


def build_judge_router(services: Services, pages: PageFrame) -> APIRouter:
    service, verdicts, router = services.submissions, services.verdicts, APIRouter()
    titles, main = {each.name: each.title for each in service.suite.scored_targets}, verdicts.target
    controls = (QueryParam("id", "one", ""), QueryParam("label", "one", main.name, tuple(titles)))

    @router.get(PATH, include_in_schema=False)
    def judge_page(request: Request) -> Response:
        chosen, unknown = choices_in(request.scope["query_string"].decode("latin-1"), controls)
        board = service.records.board()
        row, label = board.row(chosen["id"]), chosen["label"]
        common = {
            "chosen": chosen,
            "judges": choices_of(board),
            "labels": [(title, key) for key, title in titles.items()],
            "main": main,
            "origin": origin,
        }
        if row is None and (chosen["id"] or "id" in unknown):
            title = "There is no such judge"
            more = {"row": None, "heading": title, "rows": board.rows, "unknown": unknown}
            return pages.answer("judge/page.html", title, PATH, 404, **common, **more)

        def values() -> Mapping[str, Any]:
            if row is None:
                return {**common, "row": None, "heading": "Choose a judge", "rows": board.rows}
            view = view_judge(board, verdicts.with_figures(row), label)
            return {
                **common,
                "row": row,
                "view": view,
                **(_values(service, verdicts, board, view) if view else {}),
            }

        title = short_name(row) if row else "Judges"
        key = (board.key, verdicts.version, row and row.id, label)
        return pages.cached(request, key, "judge/page.html", title, PATH, values, unknown=unknown)

    return router


def _values(
    service: SubmissionsApp, verdicts: JudgeVerdicts, board: Board, view: JudgeView
) -> dict[str, Any]:
    row, label, suite = view.row, view.target.name, service.suite
    facts = file_facts(service, row, label)
    errors_on = verdicts.splits_with_errors(row) if label == verdicts.target.name else ()
    return {
        "metric_cell": metric_cell,
        "summary": " · ".join(
            part for part in (row.kind, row.inputs, row.model, origin(row), *row.marks) if part
        ),
        "human_marks": _human_marks(view),
        "is_human": row.id == SECOND_ANNOTATOR,
        "has_agents": any(heading == BY_AGENT for heading, _ in view.sections),
        "noise": describe_noise(view.found),
        "label_noise": describe_label_noise(service, row, label, view.axes.get("precision")),
        "errors_address": link_to(ERRORS, judge=row.id) if errors_on else "",
        # The metrics are those of test, so they link to the errors on test.
        "errors_behind": partial(link_to, ERRORS, judge=row.id, split="test")
        if "test" in errors_on
        else None,
        "is_recomputed": row.provenance != "scored" and view.found.get("intervals") == "tasks",
        "spread": spread,
        "neighbours": neighbours(board, row, label) if suite.profile.serves("/compare") else [],
        **facts,
        **(plot_values(facts["calibration"]) if facts["calibration"] else {}),
        "dollars": dollars,
        "provenances": PROVENANCES,
        "inputs": INPUTS,
        "describe_marks": describe_marks,
        "label_version": board.label_version,
        "eval_results": eval_results_yaml(board, row, suite.profile)
        if row.provenance != "reference" and row.is_comparable
        else "",
        "bibtex": judge_bibtex(row, suite),
        "suite": suite.name,
    }


def _human_marks(view: JudgeView) -> dict[str, list[tuple[float, str]]]:
    """Return the second annotator's mark for each metric: [(percent of the axis, name)], or [] if unknown."""
    marks: dict[str, list[tuple[float, str]]] = {}
    for metric, axis in view.axes.items():
        value = metric_of(view.human or {}, metric)
        marks[metric] = [] if value is None else [(axis.place(value), "human")]
    return marks


def neighbours(board: Board, row: BoardRow, label: str) -> list[tuple[str, str]]:
    """Return (name, address of the comparison) for the judges just above and below in the ranking."""
    ranked = [other for other, _ in ranked_rows(board, label)]
    place = next((place for place, other in enumerate(ranked) if other.id == row.id), None)
    if place is None:
        return []
    nearest = [*ranked[max(0, place - 1) : place], *ranked[place + 1 : place + 2]]
    other_label = "" if label == board.main.name else label
    return [
        (short_name(other), link_to("/compare", judges=[row.id, other.id], label=other_label))
        for other in nearest
    ]
