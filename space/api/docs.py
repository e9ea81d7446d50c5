"""The page ``/api`` (Swagger UI without a CDN) and the built documentation at ``/docs``."""

import os
from pathlib import Path
from typing import Any, Final

import fastapi_offline
from fastapi import FastAPI, Response
from fastapi.openapi.docs import get_swagger_ui_html
from starlette.staticfiles import StaticFiles

from space.operations.security import POLICY, content_policy, script_hashes

PATH: Final = "/api"
OPENAPI_PATH: Final = "/api/openapi.json"
ASSETS_PATH: Final = "/swagger"
ASSETS: Final = Path(fastapi_offline.__file__).parent / "static"
ABOUT_REST: Final = (
    "Responses are JSON unless stated otherwise. In an error, `detail` says what is wrong and what to "
    "do. Reading needs no account. On a Space, submitting needs a Hugging Face access token, sent as "
    "`Authorization: Bearer hf_…`. It is used to ask the Hub for your name and is not stored."
)


def add_api_page(app: FastAPI, on_space: bool) -> None:
    """Serve Swagger UI at ``/api`` and its files at ``/swagger``."""
    app.mount(ASSETS_PATH, StaticFiles(directory=ASSETS))

    @app.get(PATH, include_in_schema=False)
    def describe() -> Response:
        page = get_swagger_ui_html(
            openapi_url=OPENAPI_PATH,
            title=f"API · {app.title}",
            swagger_js_url=f"{ASSETS_PATH}/swagger-ui-bundle.js",
            swagger_css_url=f"{ASSETS_PATH}/swagger-ui.css",
            swagger_favicon_url=f"{ASSETS_PATH}/favicon.png",
            swagger_ui_parameters={"docExpansion": "list", "defaultModelsExpandDepth": -1},
        )
        page.headers[POLICY] = content_policy(on_space, script_hashes(bytes(page.body).decode()))
        return page


class Documentation(StaticFiles):
    """The built documentation (`make docs`), with a content policy that allows its inline scripts."""

    def __init__(self, folder: Path, on_space: bool) -> None:
        super().__init__(directory=folder, html=True)
        self._on_space = on_space

    def file_response(self, full_path: os.PathLike[str] | str, *args: Any, **options: Any) -> Response:
        response = super().file_response(full_path, *args, **options)
        if Path(full_path).suffix == ".html":
            hashes = script_hashes(Path(full_path).read_text(encoding="utf-8"))
            response.headers[POLICY] = content_policy(self._on_space, hashes, is_embeddable=True)
        return response
