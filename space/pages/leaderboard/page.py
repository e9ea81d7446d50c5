"""``/``: which judge can be trusted. Its choice is in the address: ``/?label=repetition&sort=-cost``."""

from dataclasses import dataclass
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from core.cache import ByteCache
from core.vocabulary import LABEL_TITLES
from leaderboard.board.board import Board
from leaderboard.board.history import board_history
from space.pages.leaderboard.plot import precision_recall_plot
from space.pages.leaderboard.summary import sentences, view_history
from space.pages.leaderboard.table import (
    FIGURES,
    PROVENANCES,
    LeaderboardQuery,
    agents_of,
    inputs_of,
    kinds_of,
    sorts_of,
    view_board,
)
from space.services import Services
from space.web.cells import MARKS
from space.web.frame import DESCRIPTION, PageFrame
from space.web.query import QueryParam, choices_in, link_to
from submissions.service import SubmissionService

LONGEST_SEARCH = 80


@dataclass(frozen=True)
class Options:
    """What can be chosen on a board: values with their titles, in the order of the menus."""

    labels: dict[str, str]
    figures: dict[str, str]
    agents: dict[str, str]
    kinds: dict[str, str]
    inputs: dict[str, str]
    provenances: dict[str, str]
    sorts: tuple[str, ...]


def options_of(board: Board) -> Options:
    """What the rows of this board can be chosen by."""
    return Options(
        labels=dict(LABEL_TITLES),
        figures=dict(FIGURES),
        agents=agents_of(board),
        kinds={kind: kind for kind in kinds_of(board)},
        inputs={inputs: inputs for inputs in inputs_of(board)},
        provenances={name: title for name, title in PROVENANCES.items() if name != "reference"},
        sorts=sorts_of(board),
    )


def controls(options: Options) -> list[QueryParam]:
    """The names and values that the address may hold."""
    return [
        QueryParam("label", "one", "success", tuple(options.labels)),
        QueryParam("figure", "one", "precision", tuple(options.figures)),
        QueryParam("agent", "one", "", ("", *options.agents)),
        QueryParam("kind", "many", [], tuple(options.kinds)),
        QueryParam("inputs", "many", [], tuple(options.inputs)),
        QueryParam("from", "many", [], tuple(options.provenances)),
        QueryParam("q", "text", "", max_length=LONGEST_SEARCH),
        QueryParam("every", "flag", False),
        QueryParam("sort", "one", "", ("", *options.sorts)),
    ]


def choice_in(query: str, options: Options) -> tuple[LeaderboardQuery, list[str]]:
    """The choice that a query string makes, and the names that it sets to no valid value."""
    values, refused = choices_in(query, controls(options))
    choice = LeaderboardQuery(
        label=values["label"],
        figure=values["figure"],
        search=values["q"],
        kinds=tuple(sorted(values["kind"])),
        provenances=tuple(sorted(values["from"])),
        every_submission=values["every"],
        agent=values["agent"],
        inputs=tuple(sorted(values["inputs"])),
        sort=values["sort"],
    )
    return choice, refused


def address_of_choice(choice: LeaderboardQuery, **changes: str) -> str:
    """The address that shows the board at a choice, with some of it changed; defaults are left out."""
    values = {
        "label": "" if choice.label == "success" else choice.label,
        "figure": "" if choice.figure == "precision" else choice.figure,
        "agent": choice.agent,
        "kind": choice.kinds,
        "inputs": choice.inputs,
        "from": choice.provenances,
        "q": choice.search,
        "every": choice.every_submission,
        "sort": choice.sort,
    }
    return link_to("/", **{**values, **changes})


PATH: Final = "/"
SHORT: Final = 60
"""Rows that a long table shows until one asks for all."""


@dataclass(frozen=True)
class BoardFacts:
    """What the metrics of a board rest on."""

    n_trajectories: int
    n_agents: int
    label_version: str | None
    n_judges: int
    updated: str | None
    read_only_reason: str | None


def build_leaderboard_router(services: Services, pages: PageFrame) -> APIRouter:
    """The route; a page is made once for each board and choice."""
    router, service = APIRouter(), services.submissions
    known: ByteCache[Options] = ByteCache(4, lambda _: 1)

    @router.head(PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    def leaderboard(request: Request) -> Response:
        board, reason = service.board(), service.read_only_reason
        options = known.get(board.digest, lambda: options_of(board))
        choice, refused = choice_in(request.url.query, options)
        return pages.cached(
            request,
            (board.digest, choice, tuple(refused), reason),
            "leaderboard/page.html",
            "Leaderboard",
            PATH,
            lambda: {
                "description": DESCRIPTION,
                "facts": facts_of(service, board),
                "options": options,
                "refused": refused,
                **choice_values(board, choice),
            },
        )

    return router


def choice_values(board: Board, choice: LeaderboardQuery) -> dict[str, Any]:
    """What of the page follows from a choice: table, plot, findings, history."""
    return {
        "choice": choice,
        "view": view_board(board, choice),
        "short": SHORT,
        "marks": MARKS,
        "plot": precision_recall_plot(board, choice.label, choice),
        "sentences": sentences(board, choice.label),
        "history": view_history(board_history(board, choice.label)),
        "address": lambda **changes: address_of_choice(choice, **changes),
    }


def facts_of(service: SubmissionService, board: Board) -> BoardFacts:
    """The facts of a board as it is now."""
    test = service.suite.split("test")
    dates = [row.date[:10] for row in board.rows if row.provenance == "scored"]
    return BoardFacts(
        n_trajectories=len(test),
        n_agents=len({trajectory.agent for trajectory in test}),
        label_version=board.label_version,
        n_judges=sum(1 for row in board.rows if (row.labels["success"] or {}).get("rank")),
        updated=max(dates, default=None),
        read_only_reason=service.read_only_reason,
    )
