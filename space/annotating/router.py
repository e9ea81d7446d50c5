"""Labelling in one router: the annotators' pages and REST, the discussion, and what maintainers do there."""

from fastapi import APIRouter

from space.annotating.access import Access
from space.annotating.discuss_rest import build_discussing_router
from space.annotating.label_office_rest import build_label_office_router
from space.annotating.pages import build_annotating_pages
from space.annotating.rest import build_annotating_router
from space.page import Services
from space.plain_page import PageFrame


def build_labelling_router(services: Services, pages: PageFrame) -> APIRouter:
    """``/annotate``, ``/discuss`` and the REST answers behind them."""
    desk, explorer = services.labelling, services.trajectories
    access, router = Access(desk, services.auth), APIRouter()
    router.include_router(build_annotating_router(desk, explorer, access), tags=["Annotators"])
    router.include_router(build_discussing_router(desk, access), tags=["Discussion of labels"])
    router.include_router(build_label_office_router(desk, explorer, access), tags=["Discussion of labels"])
    router.include_router(build_annotating_pages(desk, explorer, access, pages))
    return router
