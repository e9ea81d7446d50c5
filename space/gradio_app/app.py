"""The one gr.Blocks: named endpoints and the form of /submit, mounted last so that our own routes win."""

import json
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import gradio as gr
import gradio.utils
from fastapi import FastAPI
from gradio.exceptions import InvalidPathError

from arb.core.settings import Settings
from space.gradio_app.endpoints import Endpoints, add_endpoints, gradio_errors
from space.gradio_app.mcp_server import add_mcp
from space.gradio_app.submit_page import PATH, build_form, build_submit_router
from space.operations.limits import MOST_WAITING
from space.services import Services
from space.web.frame import PageFrame

MOST_SESSIONS: Final = 32
"""Sessions whose changes of the form Gradio remembers, 0.2 MB each; no answer depends on them."""
THEME: Final = Path(__file__).with_name("theme.json")
"""Gradio's variables by the value of each: most are variables of ``static/tokens.css``."""


def mount_gradio(app: FastAPI, services: Services, settings: Settings, pages: PageFrame) -> FastAPI:
    """Add the page /submit, the MCP server and, after all other routes, Gradio at ``/``."""
    endpoints = Endpoints(services)
    app.include_router(build_submit_router(services, pages))
    add_mcp(app, endpoints, settings, services.submissions.suite)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="SSR mode is not supported")  # nor is it asked for
        return gr.mount_gradio_app(
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


def build_blocks(services: Services, endpoints: Endpoints) -> gr.Blocks:
    """Return the Blocks: the endpoints, and the form as a page of its own."""
    title = services.submissions.suite.profile.title
    with gr.Blocks(title=title, analytics_enabled=False, fill_width=True) as blocks:
        gr.Navbar(visible=False)
        add_endpoints(endpoints)
    with blocks.route("Submit", PATH):
        gr.Navbar(visible=False)
        build_form(services, endpoints)
    blocks.queue(max_size=MOST_WAITING)
    blocks.state_session_capacity = MOST_SESSIONS
    blocks.has_launched = True  # else Gradio 6.31 checks no path of a request: it does so from launch() on
    for event in blocks.fns.values():
        for part in event.inputs:
            take_uploads_only(part)
    make_calls_cheap(blocks)
    admit_calls(blocks, endpoints)
    return blocks


def make_calls_cheap(blocks: gr.Blocks) -> None:
    """Spare every call what Gradio 6.31 does on the event loop for it and nothing here needs.

    The first call of a session describes every part of the page again (10 ms and 200 kB). Before each call,
    matplotlib is set up if it is installed; to import it stops the event loop for half a second.
    """
    for part in blocks.blocks.values():
        described = part.get_config()
        part.get_config = lambda cls=None, described=described: dict(described)
    gradio.utils.MatplotlibBackendMananger = nullcontext


def admit_calls(blocks: gr.Blocks, endpoints: Endpoints) -> None:
    """Have every call wait for its slot in the queue that all uploads share.

    The slot covers what Gradio itself does with the inputs and outputs of a call, not only our function.
    """
    process = blocks.process_api

    async def process_admitted(*args, request=None, **options):
        with gradio_errors():
            async with endpoints.slot(request):
                return await process(*args, request=request, **options)

    blocks.process_api = process_admitted


def take_uploads_only(part: gr.File) -> gr.File:
    """Make a part of the page strict about where a file comes from, and return it.

    A page's script sends back the path that its upload got; a stranger can send any path, or an address.
    Gradio 6.31 reads any file of the server then when it is mounted on another app (it checks paths only
    after its own ``launch``), and fetches public addresses of any size. The part refuses both, and takes an
    upload where it lies; Gradio's own makes an empty temporary file for each call.
    Methods of this one part, since Gradio writes a stub file next to the source of every subclass.
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

    part.async_move_resource_to_block_cache = take_from_folder
    part._process_single_file = lambda file: file.path
    return part


def build_theme() -> gr.themes.Base:
    """Gradio's own parts in our colours, with the system's fonts: nothing is fetched from elsewhere.

    Light and dark are the same variables.
    """
    ours = json.loads(THEME.read_text(encoding="utf-8"))
    teal = gr.themes.Color(*ours["palette"], name="accent")
    fonts = {"font": ours["fonts"], "font_mono": ours["monospaced"]}
    theme = gr.themes.Base(primary_hue=teal, neutral_hue="slate", **fonts)
    values = {name: value for value, names in ours["values"].items() for name in names}
    dark = {f"{name}_dark": value for name, value in values.items() if hasattr(theme, f"{name}_dark")}
    return theme.set(**dark, **values)
