"""The explorer's answers: pictures, trees, and what judges wrote."""

import hashlib
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from space.explorer.explorer import Explorer, Form, Kind
from space.explorer.pictures import WIDTHS, BrokenPicture, NoPicture
from space.explorer.shown import TrajectoriesUnavailable
from space.explorer.verdict_column import reasoning_in
from space.prepared import CachedResponse
from space.templating import render

FOR_GOOD = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
HTML = "text/html; charset=utf-8"
Id = Annotated[str, Query(max_length=300)]
Version = Annotated[str, Query(max_length=64, description="The dataset's version; then cached forever.")]
Width = Annotated[int | None, Query(description=f"{', '.join(map(str, WIDTHS))}; default: as recorded.")]


def build_explorer_router(explorer: Explorer) -> APIRouter:
    """Routes over an explorer. Answers about one version of the dataset may be kept for good."""
    router = APIRouter()

    @router.get("/api/screenshot", summary="The screenshot of a step of a published trajectory")
    def screenshot(
        request: Request, trajectory_id: Id, num: str, width: Width = None, v: Version = ""
    ) -> Response:
        """``num`` is a step's number, or ``last``: that answers 204 where no screenshot was recorded."""
        return picture_answer(explorer, request, "step", trajectory_id, num, width, v)

    @router.get("/api/goal_image", summary="A picture that belongs to the goal of a published trajectory")
    def goal_image(
        request: Request, trajectory_id: Id, num: str, width: Width = None, v: Version = ""
    ) -> Response:
        return picture_answer(explorer, request, "goal", trajectory_id, num, width, v)

    @router.get("/api/tree", summary="The accessibility tree of a step of a published trajectory")
    def tree(request: Request, trajectory_id: Id, num: int, form: Form = "full", v: Version = "") -> Response:
        return tree_answer(explorer, request, trajectory_id, num, form, v)

    @router.get("/trajectories/reasoning", include_in_schema=False)
    def reasoning(request: Request, trajectory_id: Id, judge: Id) -> Response:
        try:
            text = explorer.reasoning(trajectory_id, judge)
        except KeyError:
            return PlainTextResponse("There is no such trajectory.", status_code=404)
        except TrajectoriesUnavailable:
            return PlainTextResponse("The dataset cannot be read now.", status_code=503)
        html = render("trajectories_reasoning.html", text=reasoning_in(text or ""))
        return CachedResponse.of(html.encode(), HTML).answer(request)

    return router


_SAFE = {"X-Content-Type-Options": "nosniff"}


def tree_answer(
    explorer: Explorer,
    request: Request,
    trajectory_id: str,
    num: int,
    form: Form,
    v: str,
    for_good: str = FOR_GOOD,
) -> Response:
    """A tree as text; ``for_good`` is how long it keeps under an address that names the dataset's version."""
    try:
        version = explorer.holding(trajectory_id).version
        text = explorer.tree(trajectory_id, num, form)
    except KeyError:
        return _problem(404, "there is no such tree")
    except TrajectoriesUnavailable as reason:
        return _problem(503, str(reason))
    answer = CachedResponse.of(text.encode(), "text/plain; charset=utf-8")
    return answer.answer(request, {"Cache-Control": _keeping(v, version, for_good), **_SAFE})


def picture_answer(
    explorer: Explorer,
    request: Request,
    kind: Kind,
    trajectory_id: str,
    num: str,
    width: int | None,
    v: str,
    for_good: str = FOR_GOOD,
) -> Response:
    """A picture, as `tree_answer` gives a tree."""
    is_last = num == "last" and kind == "step"
    if width not in (None, *WIDTHS) or not (is_last or (num.isascii() and num.isdigit() and len(num) < 7)):
        wanted = "a number of a step, or last" if kind == "step" else "a number from 0"
        return _problem(422, f"num is {wanted}; width is one of {', '.join(map(str, WIDTHS))}, or absent")
    try:
        version = explorer.holding(trajectory_id).version
        headers = {
            "ETag": _tag(version, kind, trajectory_id, num, width),
            "Cache-Control": _keeping(v, version, for_good),
            **_SAFE,
        }
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        found = explorer.picture(kind, trajectory_id, None if is_last else int(num), width)
    except NoPicture:
        return Response(status_code=204) if is_last else _problem(404, "there is no such picture")
    except KeyError:
        return _problem(404, "there is no such trajectory")
    except BrokenPicture as reason:
        return _problem(404, f"the picture cannot be shown: {reason}")
    except TrajectoriesUnavailable as reason:
        return _problem(503, str(reason))
    return Response(found.content, media_type=found.media_type, headers=headers)


def _keeping(asked: str, version: str, for_good: str) -> str:
    """For good under an address that names this version; another address is asked again each time."""
    return for_good if asked == version else ASK_AGAIN


def _tag(*names: object) -> str:
    """A tag from what names the content: known before the picture is read."""
    return f'"{hashlib.sha256(repr(names).encode()).hexdigest()[:32]}"'


def _problem(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": message}, status_code=status)
