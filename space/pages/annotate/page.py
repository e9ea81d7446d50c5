"""``/annotate`` and ``/discuss``: pages that are another one for every reader, and never kept by a cache."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse

from space.pages.annotate.access import Access, AnnotatorContext
from space.pages.annotate.discuss import view_agreement, view_annotators, view_boards, view_discussions
from space.pages.annotate.item import PATH, view_item, view_queue
from space.pages.trajectories.dataset import Explorer, TrajectoriesUnavailable
from space.web.frame import PageFrame
from space.web.http_errors import AccessRefused, HubUnavailable
from submissions.labels.annotation_service import AnnotationService
from submissions.labels.annotation_state import discussion_items
from submissions.labels.versions import published_versions
from submissions.scoring.rescore import rescorings

DISCUSS = "/discuss"
SIGN_IN = "Sign in with the account that was invited."
NOT_INVITED = (
    "Only annotators and maintainers can see this page. Maintainers invite annotators by the name of "
    "their account."
)
NOT_YOURS = "This trajectory is not assigned to you, or it does not exist."
Step = Annotated[str, Query(max_length=10)]
Id = Annotated[str, Query(max_length=300)]


def build_annotating_pages(
    annotations: AnnotationService, explorer: Explorer, access: Access, pages: PageFrame
) -> APIRouter:
    """The routes; a reader whom nobody knows is asked to sign in."""
    router = APIRouter()

    def context_or_refusal(request: Request, heading: str) -> AnnotatorContext | HTMLResponse:
        try:
            return access.reader(request)
        except HubUnavailable as silent:
            return pages.refusal(heading, silent.detail, request.url.path, 503)
        except AccessRefused:  # a token that is none: as if nobody had signed in
            return pages.refusal(heading, SIGN_IN, request.url.path, 401)
        except HTTPException:
            return pages.refusal(heading, NOT_INVITED, request.url.path, 403)

    @router.get(PATH, include_in_schema=False)
    def annotate(request: Request, id: Id = "", step: Step = "") -> Response:
        reader = context_or_refusal(request, "Annotate")
        if isinstance(reader, HTMLResponse):
            return reader
        return _item(reader, id, step) if id else _queue(reader)

    @router.get(DISCUSS, include_in_schema=False)
    def discuss(request: Request) -> Response:
        reader = context_or_refusal(request, "Discuss")
        return reader if isinstance(reader, HTMLResponse) else _discussion(reader)

    def _queue(reader: AnnotatorContext) -> HTMLResponse:
        tasks = reader.state.queue(reader.annotator) if reader.annotator else ()
        n_open = sum(
            bool(discussion.open) for discussion in discussion_items(reader.state, reader.annotator, False)
        )
        return pages.answer(
            "annotate/queue.html", "Annotate", PATH,
            view=view_queue(tasks), reader=reader, n_open=n_open,
        )  # fmt: skip

    def _item(reader: AnnotatorContext, trajectory_id: str, step: str) -> HTMLResponse:
        try:
            reader.require_story_access(trajectory_id)
            story = explorer.blind_story(trajectory_id)
        except HTTPException:
            return pages.refusal("You cannot see this page", NOT_YOURS, PATH, 403)
        except KeyError:
            return pages.refusal(
                "This trajectory cannot be shown", "The dataset of this Space does not have it.", PATH, 404
            )
        except TrajectoriesUnavailable as problem:
            return pages.refusal("This trajectory cannot be shown now", f"{problem}.", PATH, 503)
        view = view_item(story, reader.state, reader.annotator, step)
        return pages.answer("annotate/item.html", view.title, PATH, view=view, story=story)

    def _discussion(reader: AnnotatorContext) -> HTMLResponse:
        found = discussion_items(reader.state, reader.annotator, reader.actor.is_maintainer)
        more = _maintained(reader) if reader.actor.is_maintainer else {}
        shown = view_discussions(found, goal_of)
        return pages.answer(
            "annotate/discuss.html", "Discuss", DISCUSS, discussions=shown, reader=reader, **more
        )

    def _maintained(reader: AnnotatorContext) -> dict:
        service = annotations.service
        versions = published_versions(service.engine, service.suite.name)
        last = rescorings(service)[-1:]
        boards = [service.board_under(record.body[name]) for record in last for name in ("from", "to")]
        report = annotations.agreement()
        return {
            "people": view_annotators(reader.state),
            "report": report,
            "agreement": view_agreement(report),
            "versions": list(enumerate(versions, start=1))[::-1],
            "n_done": sum(given.is_done for given in reader.state.given.values()),
            "rescored": last[0].body if last else None,
            "boards": view_boards(*boards) if boards else (),
        }

    def goal_of(trajectory_id: str) -> str:
        try:
            return explorer.holding(trajectory_id).entry(trajectory_id).goal
        except (KeyError, TrajectoriesUnavailable):
            return ""

    return router
