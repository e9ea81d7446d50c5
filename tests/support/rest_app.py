"""An application of REST routes as the Space has it: errors as status codes, bodies bounded."""

import tempfile
from pathlib import Path

from fastapi import FastAPI

from space.auth.auth import Auth
from space.pages.annotate.api import ANSWERS_PATH, MOST_ANSWER_BYTES
from space.web.body_limits import BodyLimits
from space.web.http_errors import add_error_handlers
from submissions.service import SubmissionService


def rest_app(service: SubmissionService) -> FastAPI:
    """The application without any route."""
    app = FastAPI()
    add_error_handlers(app, service)
    app.add_middleware(
        BodyLimits,
        upload_bytes=service.settings.max_upload_bytes,
        folder=Path(tempfile.gettempdir()),
        keep_seconds=3600,
        gates={"/api/submissions": Auth(service.settings).submitter_of},
        larger={ANSWERS_PATH: MOST_ANSWER_BYTES},
    )
    return app
