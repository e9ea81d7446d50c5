"""What readers see and do about labels: disputes, errors of judges, label versions, in one router."""

from fastapi import APIRouter

from space.disputes.pages import build_disputes_pages
from space.disputes.rest import build_disputes_router
from space.errors.pages import build_errors_pages
from space.errors.rest import build_errors_router
from space.label_log import build_label_log
from space.page import Services
from space.plain_page import PageFrame
from submissions.reader_acts import ReaderActions


def build_labels_router(services: Services, pages: PageFrame) -> APIRouter:
    """``/disputes``, ``/errors``, ``/labels`` and their REST answers."""
    service, auth, router = services.submissions, services.auth, APIRouter()
    acts = ReaderActions(service.engine, service.suite, service.clock)
    columns = services.judge_columns
    router.include_router(build_disputes_router(service, auth, acts), tags=["Disputes"])
    router.include_router(build_disputes_pages(service, auth, acts, pages))
    router.include_router(build_errors_router(service, auth, acts, columns), tags=["Errors of judges"])
    router.include_router(build_errors_pages(service, columns, pages))
    router.include_router(build_label_log(service, auth, pages))
    return router
