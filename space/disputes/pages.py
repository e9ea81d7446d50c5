"""``/disputes``: the public list with its decisions, the form for a trajectory, what maintainers decide."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from leaderboard.annotations import QUESTION_TITLES
from space.address import link_to
from space.auth.auth import Auth
from space.disputes.form import API, PATH, dispute_form
from space.disputes.rest import shown_disputes
from space.plain_page import PageFrame
from submissions.disputes import DECISIONS
from submissions.reader_acts import DISPUTES_A_DAY, REASON_LENGTH, TEXT_LENGTH, ReaderActions
from submissions.service import SubmissionService

ON_A_PAGE = 25
OUTCOMES = {
    "open": "open",
    "decided": "decided",
    "corrected": "label corrected",
    "kept": "label kept",
    "declined": "declined",
}
DECISION_WORDS = {
    "corrected": "Correct the label",
    "kept": "Keep the label",
    "declined": "Decline: nothing to review",
}


def build_disputes_pages(
    service: SubmissionService, auth: Auth, acts: ReaderActions, pages: PageFrame
) -> APIRouter:
    """The route."""
    router = APIRouter()

    @router.get(PATH, include_in_schema=False)
    def disputes(
        request: Request,
        trajectory_id: Annotated[str, Query(max_length=300)] = "",
        state: Literal["", "open", "decided"] = "",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> Response:
        suite, is_maintainer = service.suite, auth.is_maintainer(request)
        found = shown_disputes(service, acts, is_maintainer, trajectory_id, state)
        known = suite.find(trajectory_id) if trajectory_id else None
        split = known.split if known else "test"  # blind: no labels are passed on
        return pages.answer(
            "disputes.html",
            "Disputes of labels",
            PATH,
            disputes=found[(page - 1) * ON_A_PAGE : page * ON_A_PAGE],
            n_found=len(found),
            number=page,
            n_pages=-(-len(found) // ON_A_PAGE),
            address=lambda **changes: link_to(
                PATH, **{"trajectory_id": trajectory_id, "state": state, **changes}
            ),
            story_address=lambda name: link_to("/trajectories", id=name),
            trajectory_id=trajectory_id,
            is_unknown=bool(trajectory_id) and known is None,
            state=state,
            form=dispute_form(known.trajectory_id if known else "", split, None, suite.labels_are_public),
            api=API,
            titles=QUESTION_TITLES,
            outcomes=OUTCOMES,
            decisions=[(each, DECISION_WORDS[each]) for each in DECISIONS],
            is_maintainer=is_maintainer,
            is_private=not suite.labels_are_public,
            most_a_day=DISPUTES_A_DAY,
            text_length=TEXT_LENGTH,
            reason_length=REASON_LENGTH,
        )

    return router
