"""Acts over HTTP: refusals as status codes, before anything is recorded, and whether the record lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

from fastapi import HTTPException

from leaderboard.error_tags import ErrorTagInvalid
from submissions.accounts import Actor
from submissions.database import snapshot
from submissions.declaration import DeclarationError
from submissions.durability import nothing_lasts
from submissions.lookup import state_of_records
from submissions.refusals import NotAllowed, SubmissionRefused, TooMany
from submissions.service import DURABLE_WITHIN_SECONDS, SubmissionService
from submissions.told import ToldSubmission

NO_STORE: Final = MappingProxyType({"Cache-Control": "no-store"})
NOT_YOURS: Final = "only its owner and maintainers may do this, or no submission has this id"
NONE_SUCH: Final = "no submission has this id"
REFUSALS: Final = {
    401: {"description": "Nobody is signed in."},
    403: {"description": "Not yours; also for an id that there is none of, so that nobody learns which are."},
    404: {"description": "There is no such thing; of submissions only maintainers get to know."},
    409: {"description": "It makes no sense as things stand; the answer says why."},
    422: {"description": "The body is not in order."},
    429: {"description": "The bound of the day is reached; the answer says when the next one may come."},
    503: {"description": "Records cannot be kept at the moment."},
}


@contextmanager
def refusals_as_http(actor: Actor) -> Iterator[None]:
    """Turn what the service refuses into HTTPException.

    Whoever may not know of a submission gets one answer for those of others and for those that there are
    none of.
    """
    try:
        yield
    except KeyError:
        raise _unknown(actor) from None
    except DeclarationError as error:
        raise HTTPException(422, "; ".join(message for _, message in error.problems)) from None
    except NotAllowed:
        raise HTTPException(403, NOT_YOURS) from None
    except SubmissionRefused as error:
        raise HTTPException(409, str(error)) from None


@contextmanager
def recording(service: SubmissionService, none_such: str) -> Iterator[None]:
    """Around an act on what anybody may know of; ``none_such`` is the answer to what there is none of."""
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


@contextmanager
def acting(service: SubmissionService, actor: Actor) -> Iterator[None]:
    """The same around an act of an owner or maintainer: refused while records cannot be kept."""
    if service.durability.closed:
        raise HTTPException(503, f"nothing was done: {service.durability.closed}")
    with refusals_as_http(actor):
        yield


def told_to(service: SubmissionService, submission_id: str, actor: Actor) -> ToldSubmission:
    """What an actor may see of a submission. Raises HTTPException 403, or 404 for maintainers."""
    with refusals_as_http(actor):
        return service.submission(submission_id, actor)


def wait_until_it_lasts(service: SubmissionService) -> bool:
    """Whether every record up to now lasts, after a wait."""
    with snapshot(service.engine) as session:
        last = state_of_records(session)
    return service.durability.wait(last, DURABLE_WITHIN_SECONDS)


def _unknown(actor: Actor) -> HTTPException:
    return HTTPException(404, NONE_SUCH) if actor.is_maintainer else HTTPException(403, NOT_YOURS)
