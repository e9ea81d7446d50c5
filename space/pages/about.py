"""The about page: how scores are made, what the labels are, which versions, terms, citation, changes."""

from typing import Any, Final

from fastapi import APIRouter, Request, Response

from dataset_script.citation import PAPER_BIBTEX
from space.about_facts import about_facts
from space.page import Services
from space.plain_page import PageFrame
from space.trust_facts import trust_facts
from submissions.service import SubmissionService

PATH: Final = "/about"


def build_about_router(services: Services, pages: PageFrame) -> APIRouter:
    """The route; the page is the same for every reader."""
    router, service = APIRouter(), services.submissions

    @router.head(PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    def about(request: Request) -> Response:
        values = about_values(service)
        return pages.cached(request, repr(values), "about.html", "About", PATH, lambda: values)

    return router


def about_values(service: SubmissionService) -> dict[str, Any]:
    """The facts as they are now."""
    return {"facts": about_facts(service), "trust": trust_facts(service), "citation": PAPER_BIBTEX}
