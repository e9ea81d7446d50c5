"""What readers add to the records over HTTP: refusals as status codes, before anything is recorded."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from fastapi import HTTPException

from leaderboard.error_tags import ErrorTagInvalid
from submissions.durability import nothing_lasts
from submissions.refusals import NotAllowed, SubmissionRefused, TooMany
from submissions.service import SubmissionService

NO_STORE: Final = MappingProxyType({"Cache-Control": "no-store"})
REFUSALS: Final = MappingProxyType(
    {
        401: {"description": "Nobody is signed in."},
        403: {"description": "This account may not; the answer says why."},
        404: {"description": "There is no such trajectory, judge or dispute."},
        409: {"description": "It makes no sense as things stand; the answer says why."},
        422: {"description": "The body is not in order."},
        429: {"description": "The bound of the day is reached; the answer says when the next one may come."},
        503: {"description": "Records cannot be kept at the moment."},
    }
)


@contextmanager
def recording(service: SubmissionService, none_such: str) -> Iterator[None]:
    """Around an act that adds a record; ``none_such`` is the answer to what there is none of."""
    if closed := service.durability.closed or nothing_lasts(service.settings):
        raise HTTPException(503, f"nothing was recorded: {closed}")
    try:
        yield
    except KeyError:
        raise HTTPException(404, none_such) from None
    except ErrorTagInvalid as invalid:
        raise HTTPException(422, str(invalid)) from None
    except TooMany as refusal:
        raise HTTPException(429, str(refusal)) from None
    except NotAllowed as refusal:
        raise HTTPException(403, str(refusal)) from None
    except SubmissionRefused as refusal:
        raise HTTPException(409, str(refusal)) from None
