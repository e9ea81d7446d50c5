"""What people see and do of their own, and maintainers of everybody's: pages and REST, in one router."""

from fastapi import APIRouter

from space.labels_routes import build_labels_router
from space.maintain.pages import build_maintain_pages
from space.maintain.rescoring_job import RescoringJob
from space.maintain.rest import build_maintain_router
from space.old_boards import build_old_boards_router
from space.own.pages import build_own_pages
from space.own.rest import build_own_router
from space.page import Services
from space.plain_page import PageFrame


def build_people_router(services: Services, pages: PageFrame) -> APIRouter:
    """``/mine``, ``/maintain``, boards of other label versions, and what is about labels; with their REST."""
    service, auth, router = services.submissions, services.auth, APIRouter()
    job = RescoringJob(service)
    router.include_router(build_own_router(service, auth), tags=["Your submissions"])
    router.include_router(build_own_pages(service, auth, pages))
    router.include_router(build_maintain_router(service, auth, job), tags=["Maintainers"])
    router.include_router(build_maintain_pages(service, auth, job, pages))
    router.include_router(build_old_boards_router(service, auth), tags=["The board"])
    router.include_router(build_labels_router(services, pages))
    return router
