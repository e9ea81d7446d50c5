"""Builds the ``gr.Blocks`` with the named endpoints and the form of /submit, and adapts how Gradio works."""

import json
import warnings
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import gradio as gr
import gradio.utils
from fastapi import FastAPI
from gradio.components import Navbar
from gradio.exceptions import InvalidPathError
from gradio.routes import App
from starlette.routing import Match, Mount
from starlette.types import Scope

from arb.core.settings import Settings
from space.gradio_app.endpoints import Endpoints, add_endpoints, gradio_errors
from space.gradio_app.mcp_server import add_mcp
from space.gradio_app.submit_page import PATH, build_form, build_submit_router
from space.operations.upload_queue import MOST_WAITING
from space.services import Services
from space.web.frame import PageFrame

MOST_SESSIONS: Final = 32
"""The maximum number of sessions for which Gradio keeps the form's state (0.2 MB each). No response depends
on this state."""
THEME: Final = Path(__file__).with_name("theme.json")
"""The values of Gradio's theme variables; most of them refer to variables of ``static/tokens.css``."""


def mount_gradio(app: FastAPI, services: Services, settings: Settings, pages: PageFrame) -> App:
    """Add the page /submit, the MCP server and Gradio, and return Gradio's own application.

    Gradio is mounted at ``/`` after all other routes, so that ours take precedence.
    """
    endpoints = Endpoints(services)
    app.include_router(build_submit_router(services, pages))
    add_mcp(app, endpoints, settings, services.submissions.suite)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="SSR mode is not supported")  # we do not ask for it
        gr.mount_gradio_app(
            app,
            build_blocks(services, endpoints),
            path="/",
            theme=build_theme(),
            max_file_size=settings.max_upload_bytes,
            show_error=False,
            run_history=False,
            ssr_mode=False,
            mcp_server=False,
            enable_monitoring=False,  # else /monitoring/summary tells anyone how the endpoints are used
            footer_links=[],
        )
    mount = app.routes[-1]
    assert isinstance(mount, Mount) and isinstance(mount.app, App)
    app.router.routes[-1] = GradioMount(mount.path, mount.app)
    return mount.app


class GradioMount(Mount):
    """Gradio's mount, which leaves our paths to our routes, even for methods that they refuse (405)."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        # Of several partial matches, the router takes the first one, and our routes come before Gradio's.
        return Match.PARTIAL if match is Match.FULL else match, child


def build_blocks(services: Services, endpoints: Endpoints) -> gr.Blocks:
    """Return the Blocks with the endpoints, and with the form as a separate page."""
    title = services.submissions.suite.profile.title
    with gr.Blocks(title=title, analytics_enabled=False, fill_width=True) as blocks:
        Navbar(visible=False)
        add_endpoints(endpoints)
    with blocks.route("Submit", PATH):
        Navbar(visible=False)
        build_form(blocks, services, endpoints)
    blocks.queue(max_size=MOST_WAITING)
    blocks.state_session_capacity = MOST_SESSIONS
    blocks.has_launched = True  # otherwise Gradio 6.31 does not check the paths in a request
    for event in blocks.fns.values():
        for part in event.inputs:
            take_uploads_only(part)
    make_calls_cheap(blocks)
    admit_calls(blocks, endpoints)
    return blocks


def make_calls_cheap(blocks: gr.Blocks) -> None:
    """Remove work that Gradio 6.31 does on the event loop for every call and that is not needed here.

    On the first call of a session Gradio describes all components again (10 ms and 200 kB). Before each call
    it sets up matplotlib, if installed, whose import blocks the event loop for half a second.
    """
    for part in blocks.blocks.values():
        changed: Any = part  # its method is replaced
        changed.get_config = _constant(part.get_config())
    utils: Any = gradio.utils  # its class is replaced
    utils.MatplotlibBackendMananger = nullcontext


def _constant(config: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    return lambda cls=None: dict(config)


def admit_calls(blocks: gr.Blocks, endpoints: Endpoints) -> None:
    """Make every call of Gradio, including Gradio's own work on it, wait for a slot in the upload queue."""
    process: Callable[..., Awaitable[dict[str, Any]]] = blocks.process_api

    async def process_admitted(*args: Any, request: gr.Request, **options: Any) -> dict[str, Any]:
        called, inputs = options.get("block_fn"), options.get("inputs", [])
        if called is not None and len(inputs) == len(called.inputs) - 1:  # from a client without suites
            options["inputs"] = [*inputs, ""]
        with gradio_errors():
            async with endpoints.slot(request):
                return await process(*args, request=request, **options)

    changed: Any = blocks  # its method is replaced
    changed.process_api = process_admitted


def take_uploads_only(part: gr.File) -> gr.File:
    """Make a component accept only files in the folder for uploads, and return the component.

    A stranger can send any path or URL instead of the path of an upload. Gradio 6.31 checks paths only after
    its own ``launch``: mounted on another app, it would read any file of the server and fetch URLs of any
    size. The methods of the instance are replaced, because Gradio writes a stub file next to the source of
    every subclass.
    """
    folder = Path(part.GRADIO_CACHE)

    async def take_from_folder(path: str | Path | None) -> str | None:
        """Return the path if it lies in the folder for uploads, else raise InvalidPathError."""
        if path is None:
            return None
        found = Path(path).resolve()
        if not found.is_relative_to(folder.resolve()):
            raise InvalidPathError("Only a file that was uploaded here can be read.")
        return str(found)

    changed: Any = part  # its methods are replaced
    changed.async_move_resource_to_block_cache = take_from_folder
    changed._process_single_file = lambda file: file.path
    return part


def build_theme() -> gr.themes.Base:
    """Return a theme with our colours, the same in light and dark mode, and with the system's fonts."""
    ours = json.loads(THEME.read_text(encoding="utf-8"))
    teal = gr.themes.Color(*ours["palette"])
    teal.name = "accent"
    fonts = {"font": ours["fonts"], "font_mono": ours["monospaced"]}
    theme = gr.themes.Base(primary_hue=teal, neutral_hue="slate", **fonts)
    values = {name: value for value, names in ours["values"].items() for name in names}
    dark = {f"{name}_dark": value for name, value in values.items() if hasattr(theme, f"{name}_dark")}
    return theme.set(**dark, **values)
