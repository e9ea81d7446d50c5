"""REST routes for the board, its judges, and the boards under other label versions."""

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from arb.core.cache import ByteCache
from arb.core.formats import FORMATS
from arb.core.suites.targets import Target, scored
from leaderboard.board.board import Board, BoardRow, canonical
from leaderboard.board.export import board_to_csv
from leaderboard.board.ranks import Rank
from space.auth.auth import Auth
from space.pages.leaderboard.query import LeaderboardQuery, chosen_rows
from space.pages.rows import overall_of
from space.web.responses import CachedResponse
from submissions.app import SubmissionsApp
from submissions.records.database import snapshot
from submissions.records.event_log import number_of_events
from submissions.records.queries import POLICY, versions_scored

JSON, CSV = "application/json", "text/csv; charset=utf-8"
CACHE_BYTES: Final = 16_000_000
METRICS: Final = ("n", "precision", "precision_ci", "recall", "recall_ci", "f1", "f1_ci", "kappa")
"""The fields of a binary target's overall cell that ``/api/judges`` returns. The board returns all fields."""


def judges_response(board: Board) -> dict[str, Any]:
    """Return the response of ``/api/judges``: the judges in board order, without reference rows."""
    rows = [row for row in board.rows if row.provenance != "reference"]
    return {
        "suite": board.suite,
        "label_version": board.label_version,
        "board_digest": board.digest,
        "judges": [_judge(judge_rows, board) for judge_rows in _by_judge(rows)],
    }


def _by_judge(rows: Iterable[BoardRow]) -> Iterable[Sequence[BoardRow]]:
    """Return the rows in groups: one group per judge of an account, and one per row from a paper."""
    found: dict[tuple[str, str], list[BoardRow]] = {}
    for row in rows:
        key = (row.account, row.judge) if row.provenance == "scored" else ("", row.id)
        found.setdefault(key, []).append(row)
    return found.values()


def _judge(rows: Sequence[BoardRow], board: Board) -> dict[str, Any]:
    best = _best(rows, board.main.name) or rows[0]
    return {
        "judge": best.judge,
        "account": best.account,
        "kind": best.kind,
        "inputs": best.inputs,
        "model": best.model,
        "provenance": best.provenance,
        "best_row": best.id,
        "rows": [row.id for row in rows],
        "figures": {each.name: _metrics(_best(rows, each.name), each) for each in scored(board.targets)},
    }


def _best(rows: Sequence[BoardRow], label: str) -> BoardRow | None:
    for row in rows:
        score = row.labels.get(label)
        if score is not None and score.get("best"):
            return row
    return None


def _names(target: Target) -> tuple[str, ...]:
    """Return the names of the fields of a cell that responses include. They depend on the target's type."""
    if target.type == "binary":
        return METRICS
    return "n", *(name for metric in target.metrics for name in (metric, f"{metric}_ci"))


def _metrics(row: BoardRow | None, target: Target) -> Mapping[str, Any] | None:
    score = row.labels.get(target.name) if row is not None else None
    if row is None or score is None:
        return None
    overall: Mapping[str, Any] = score["overall"]
    ranked = {name: score.get(name) for name in ("rank", "n_separated", "separated_from")}
    found = {"row": row.id, **ranked, **{name: overall.get(name) for name in _names(target)}}
    return {**found, "noise": overall["noise"]} if "noise" in overall else found


MOST_TOP_ROWS: Final = 100
MOST_TOP_BYTES: Final = 9_000
"""The largest result of `top_of_board` in bytes, as a JSON string. This keeps a response within 10 kB."""
_ABOUT: Final = ("id", "judge", "account", "kind", "inputs", "model", "provenance")


def top_of_board(board: Board, label: str, metric: str, limit: int) -> str:
    """Return the best ``limit`` judges by a metric as JSON, or fewer if they would take too many bytes.

    The readers are language models, which pay per token, so metrics have three decimals and unknown values
    are left out. Raises ValueError if the board is not ranked by the metric.
    """
    chosen = chosen_rows(board, LeaderboardQuery(label, metric, targets=scored(board.targets)))
    judges, ranks = [row for row in chosen if row.provenance != "reference"], board.ranks(label, metric)
    facts = {
        "suite": board.suite,
        "label_version": board.label_version,
        "board_digest": board.digest,
        "label": label,
        "metric": metric,
        "n_rows": len(judges),
        "all_rows": "GET /api/board.json",
    }
    rows: list[dict[str, Any]] = []
    text = canonical({**facts, "rows": rows}).decode()
    for row in judges[:limit]:
        rows.append(_top_row(row, board.target(label), ranks.get(row.id)))
        longer = canonical({**facts, "rows": rows}).decode()
        if len(canonical(longer)) > MOST_TOP_BYTES:
            break
        text = longer
    return text


def _top_row(row: BoardRow, target: Target, rank: Rank | None) -> dict[str, Any]:
    overall: Mapping[str, Any] = overall_of(row, target.name) or {}
    found = {name: getattr(row, name) for name in _ABOUT}
    found |= {name: _rounded(overall.get(name)) for name in _names(target)}
    if rank:  # the ids of the rows that it is separated from are in /api/board.json
        found["rank"] = {name: getattr(rank, name) for name in ("place", "low", "high", "n_separated")}
    return {name: value for name, value in found.items() if value not in ("", None)}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _csv(board: Board) -> bytes:
    return board_to_csv(board).encode()


def _judges_json(board: Board) -> bytes:
    return json.dumps(judges_response(board), ensure_ascii=False, allow_nan=False).encode()


MOST_ROWS: Final = 1_000
_CURSOR: Final = re.compile(r"[A-Za-z0-9_-]{1,400}")
BAD_CURSOR: Final = "cursor: does not belong to this board; start again without a cursor"


def board_page(board: Board, cursor: str, limit: int) -> bytes:
    """Return a page of the board as canonical JSON: the rows after a cursor, and the cursor of the next page.

    A cursor contains the id of the last row of a page and, in case that row leaves the board, its sort key. A
    client therefore gets every row once, even if rows are added between its requests. Raises ValueError if
    the cursor is not valid.
    """
    start = _after(board, cursor) if cursor else 0
    has_more = start + limit < len(board.rows)
    facts = {
        "format": FORMATS["board.json"],
        "suite": board.suite,
        "split": "test",
        "label_version": board.label_version,
        "policy": POLICY,
        "n_rows": len(board.rows),
        "next": _cursor(board, board.rows[start + limit - 1]) if has_more else None,
    }
    return canonical({**facts, "rows": [vars(row) for row in board.rows[start : start + limit]]})


def _cursor(board: Board, row: BoardRow) -> str:
    text = json.dumps([row.id, *board.order(row)])  # may contain Infinity, which json.loads accepts
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _after(board: Board, cursor: str) -> int:
    try:
        if not _CURSOR.fullmatch(cursor):
            raise ValueError(cursor)
        row_id, *order = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if row_id in board.places:
            return board.places[row_id] + 1
        if [type(value) for value in order[:2] + order[-2:]] != [bool, bool, str, str]:
            raise ValueError(cursor)
        return bisect_right(board.rows, tuple(order), key=board.order)
    except (ValueError, TypeError, RecursionError):
        raise ValueError(BAD_CURSOR) from None


def build_board_router(service: SubmissionsApp) -> APIRouter:
    """Return the routes of the board and its judges."""
    router = APIRouter()
    cache: ByteCache[CachedResponse] = ByteCache(CACHE_BYTES, lambda response: response.size)

    def make(media_type: str, encode: Callable[[Board], bytes]) -> CachedResponse:
        board = service.records.board()
        return cache.get((encode, board.key), lambda: CachedResponse.of(encode(board), media_type))

    async def current(media_type: str, encode: Callable[[Board], bytes]) -> CachedResponse:
        """Return a response made from the current board. It is cached until the board changes."""
        board = service.records.cached_board()
        found = cache.find((encode, board.key)) if board is not None else None
        if found is not None:
            return found  # without a thread, which would take longer than the response
        return await run_in_threadpool(make, media_type, encode)

    @router.get("/api/board.json", summary="The board: rows, metrics, intervals, digest")
    async def board_json(request: Request) -> Response:
        """The response contains everything that the leaderboard shows, and its SHA-256 digest.

        It has an ETag. Send that as ``If-None-Match`` to get 304 while nothing has changed.
        """
        return (await current(JSON, Board.to_bytes)).answer(request)

    @router.get("/api/board", summary="The board in pages: the rows after a cursor, in the board's order")
    def pages_of_board(
        request: Request,
        cursor: Annotated[str, Query(max_length=400, description="`next` of the previous page.")] = "",
        limit: Annotated[int, Query(ge=1, le=MOST_ROWS, description="Number of rows per page.")] = 100,
    ) -> Response:
        """The rows are those of ``/api/board.json``. Send ``next`` as the next cursor until it is null.

        Even if rows are added meanwhile, you get every other row exactly once. The response has an ETag.
        """
        try:
            content = board_page(service.records.board(), cursor, limit)
        except ValueError as problem:
            raise HTTPException(422, str(problem)) from None
        return CachedResponse.of(content, JSON).answer(request)

    @router.get("/api/board.csv", summary="The board as CSV, one line per row and label")
    async def board_csv(request: Request) -> Response:
        name = re.sub(r"[^A-Za-z0-9._-]", "-", service.suite.name)
        disposition = {"Content-Disposition": f'attachment; filename="{name}-board.csv"'}
        return (await current(CSV, _csv)).answer(request, disposition)

    @router.get("/api/judges", summary="The judges: who submitted them, their best row, its metrics")
    async def judges(request: Request) -> Response:
        """The judges are in the order of the leaderboard.

        For each label, ``figures`` has the judge's best row with its rank and its overall metrics as
        fractions, or null if the judge gives no such verdicts. The response has an ETag.
        """
        return (await current(JSON, _judges_json)).answer(request)

    return router


NO_BOARD = "there is no board for this label version"


def build_board_versions_router(service: SubmissionsApp, auth: Auth) -> APIRouter:
    """Return the routes of the label versions and their boards.

    If labels are private, only maintainers may use these routes, because they show a public row's metrics
    under every label version, while its owner agreed to publish only one set of metrics.
    """
    router = APIRouter()
    cache: ByteCache[CachedResponse] = ByteCache(CACHE_BYTES, lambda response: response.size)

    def require_access(request: Request) -> None:
        if not (service.suite.labels_are_public or auth.is_maintainer(request)):
            raise HTTPException(404, NO_BOARD)

    def versions() -> tuple[list[str], int]:
        with snapshot(service.engine) as session:
            return versions_scored(session, service.suite.name), number_of_events(session)

    @router.get("/api/boards", summary="The label versions that have a board, oldest first")
    def boards(request: Request) -> JSONResponse:
        require_access(request)
        found = {"label_versions": versions()[0], "current": service.label_version}
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    @router.get("/api/boards/{label_version}", summary="The board of a label version, as JSON")
    def board(request: Request, label_version: str) -> Response:
        """The response is like that of ``/api/board.json``, with the scores under these labels.

        Otherwise it is up to date: judges have their current names, and withdrawn submissions are left out.
        """
        require_access(request)
        known, state = versions()
        if label_version not in known:
            raise HTTPException(404, NO_BOARD)
        day = service.clock().date()  # rows of a private suite appear when a new round begins
        response = cache.get(
            (label_version, state, day),
            lambda: CachedResponse.of(service.records.board_under(label_version).to_bytes(), JSON),
        )
        return response.answer(request)

    return router
