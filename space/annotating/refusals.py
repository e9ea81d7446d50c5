"""What labelling refuses, as status codes: 403 who may not, 409 what makes no sense, 503 while closed."""

from collections.abc import Iterator
from contextlib import contextmanager

from fastapi import HTTPException

from submissions.durability import nothing_lasts
from submissions.refusals import NotAllowed, SubmissionRefused
from submissions.service import SubmissionService


@contextmanager
def refused_as_http(service: SubmissionService) -> Iterator[None]:
    """Around an act that adds a record: refused as a whole while records cannot be kept."""
    if closed := nothing_lasts(service.settings) or service.durability.closed:
        raise HTTPException(503, f"nothing was saved: {closed}")
    try:
        yield
    except NotAllowed as refusal:
        raise HTTPException(403, str(refusal)) from None
    except SubmissionRefused as refusal:
        raise HTTPException(409, str(refusal)) from None
