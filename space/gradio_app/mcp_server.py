"""An MCP server at /mcp with the same functions as the Gradio endpoints.

It uses the server of the ``mcp`` package, version 2 or 1: for a Gradio Space, the Hub installs
``gradio[mcp]``, which requires mcp below 2. The server has no sessions, so nothing is stored for callers.
Every request waits in the upload queue; see `space.operations.upload_queue`.
"""

import base64
import binascii
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from fastapi import FastAPI
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from arb.core import __version__
from arb.core.settings import Settings
from arb.core.suite import Suite
from leaderboard.board.ranks import RANKED_METRICS
from space.api.board import MOST_TOP_ROWS, judges_response, top_of_board
from space.gradio_app.endpoints import CallRefused, Endpoints, Split, errors_as, with_declaration
from space.gradio_app.mcp_body import ContentOutside, content_of
from submissions.intake.upload import Upload

_IS_MCP_1: Final = find_spec("mcp.server.mcpserver") is None
if TYPE_CHECKING or not _IS_MCP_1:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
else:  # the same classes elsewhere
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer
    from mcp.server.fastmcp.exceptions import ToolError

MCP_PATH: Final = "/mcp"
MCP_BODY_BYTES: Final = 4_194_304
"""The maximum size of a call in bytes. Larger files have to be sent to the REST API."""
INSTRUCTIONS: Final = (
    "{title} ranks automatic judges of {noun} against expert labels. Check a prediction file, "
    "submit it, and read the leaderboard. Files over 4 MB go to POST /api/check and POST /api/submissions."
)
Encoding = Literal["text", "base64"]


def add_mcp(app: FastAPI, endpoints: Endpoints, settings: Settings, suite: Suite) -> None:
    """Serve the tools at ``/mcp`` under the name of the suite."""
    logging.getLogger("mcp").setLevel(logging.WARNING)  # `RequestLog` already logs every request
    instructions = INSTRUCTIONS.format(title=suite.profile.title, noun=suite.profile.noun)
    transport: dict[str, Any] = {
        "streamable_http_path": MCP_PATH,
        "json_response": True,
        "stateless_http": True,
        "max_request_body_size": MCP_BODY_BYTES,
        "transport_security": _allowed_callers(settings),
    }
    # Version 1 takes these options earlier: when the server is made, not when its application is.
    early, late = (transport, {}) if _IS_MCP_1 else ({"version": __version__}, transport)
    server = MCPServer(suite.name, instructions=instructions, log_level="WARNING", **early)
    if _IS_MCP_1:  # FastMCP has no parameter for it, and would send the version of the package `mcp`
        server._mcp_server.version = __version__  # type: ignore[attr-defined]  # of version 1
    for tool in _tools(endpoints, suite):
        # The board goes out only as text: as structured content too, it would be twice as long.
        structured = False if tool.__name__ == "board" else None
        server.add_tool(tool, annotations=_hints(tool.__name__), structured_output=structured)
    served = server.streamable_http_app(**late)
    for route in served.routes:
        if isinstance(route, Route):
            route.app = ContentOutside(route.app)
    _join(app, served)


def _tools(endpoints: Endpoints, suite_of_board: Suite) -> tuple[Callable[..., Any], ...]:
    """Return the functions that are served as tools. A client sees their names, types and docstrings."""
    main, labels, metrics = suite_of_board.main_target, [], dict[str, None]()
    for target in suite_of_board.scored_targets:
        labels.append(target.name)
        metrics |= dict.fromkeys(RANKED_METRICS if target.type == "binary" else target.metrics)
    if TYPE_CHECKING:
        Label: TypeAlias = str
        Metric: TypeAlias = str
    else:  # the schema lists the targets of the suite and their metrics
        Label, Metric = Literal[tuple(labels)], Literal[tuple(metrics)]

    async def check(
        content: str, context: Context, split: Split = "test", encoding: Encoding = "text", suite: str = ""
    ) -> dict[str, Any]:
        """Check a prediction file and return every finding; nothing is recorded and no label is read.

        content: the file: JSONL or CSV as text, or Parquet in base64 (encoding "base64").
        split: the split that the file is for.
        suite: the suite, by default the server's default suite.
        """
        request = _request_of(context)

        def checked() -> dict[str, Any]:
            file = _decoded(content_of(request, content), encoding)
            return endpoints.check(file, "", split, suite).check.to_json()

        with errors_as(ToolError):
            endpoints.count(request)
            return await endpoints.run(request, checked)

    @with_declaration
    async def submit(
        content: str, context: Context, encoding: Encoding = "text", suite: str = "", **fields: str
    ) -> dict[str, Any]:
        """Submit a judge's verdicts on test; sending the same file again makes no second submission.

        On a Space, send a Hugging Face token (Authorization: Bearer); elsewhere, give your name as account.

        content: the file: JSONL or CSV as text, or Parquet in base64 (encoding "base64").
        suite: the suite, by default the server's default suite.
        {fields}
        """
        request = _request_of(context)

        def checked() -> Upload:
            return endpoints.check(_decoded(content_of(request, content), encoding), "", "test", suite)

        with errors_as(ToolError):
            return await endpoints.run(request, endpoints.submit, request, checked, suite, **fields)

    async def board(
        context: Context,
        label: Label = main.name,
        metric: Metric = main.main_metric,
        suite: str = "",
        limit: Annotated[int, Field(ge=1, le=MOST_TOP_ROWS)] = 20,
    ) -> str:
        """Return the best judges as JSON, best first, with ranks, metrics as fractions and 95 % intervals.

        label: what the verdicts are about.
        metric: the metric to rank by.
        suite: the suite, by default the server's default suite.
        limit: the maximum number of judges. An answer has at most 10 kB, so it may list fewer; n_rows
            counts all judges.
        """
        with errors_as(ToolError):
            return await endpoints.run(
                _request_of(context), lambda: top_of_board(endpoints.board(suite), label, metric, limit)
            )

    async def judges(context: Context, suite: str = "") -> dict[str, Any]:
        """Return the judges in the order of the leaderboard, each with its best row and metrics.

        suite: the suite, by default the server's default suite.
        """
        with errors_as(ToolError):
            return await endpoints.run(_request_of(context), lambda: judges_response(endpoints.board(suite)))

    return check, submit, board, judges


def _hints(tool: str) -> ToolAnnotations:
    """Return what a client may assume about a tool: only submit changes anything, by adding records."""
    hints = {"readOnlyHint": tool != "submit", "destructiveHint": False, "idempotentHint": True}
    return ToolAnnotations.model_validate({**hints, "openWorldHint": False})


def _request_of(context: Context) -> Request:
    request = context.request_context.request
    if not isinstance(request, Request):
        raise RuntimeError("the MCP server called a tool without a request")
    return request


def _join(app: FastAPI, served: Starlette) -> None:
    """Add the routes of ``served`` to ``app``, and start and stop it together with ``app``."""
    app.router.routes.extend(served.routes)
    around = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[Any]:
        async with around(app) as state, served.router.lifespan_context(served):
            yield state

    app.router.lifespan_context = lifespan


def _allowed_callers(settings: Settings) -> TransportSecuritySettings:
    """Return the host names and origins that may call if only this machine can reach the server.

    Such callers need no token, so another site could call by pointing its host name to this machine (DNS
    rebinding).
    """
    hosts = [f"{name}{port}" for name in ("127.0.0.1", "localhost", "[::1]") for port in ("", ":*")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=settings.is_local,
        allowed_hosts=hosts,
        allowed_origins=[f"http://{host}" for host in hosts],
    )


def _decoded(content: str, encoding: str) -> bytes:
    if encoding == "text":
        return content.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(content, validate=True)
    except (ValueError, binascii.Error):
        raise CallRefused("content: is not base64; send it in base64, or set encoding to text") from None
