"""``arb space``: run the Space on this machine (``serve``) or put it on the Hub (``deploy``)."""

import errno
import gc
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from arb.core.cli import AgentFromOption, new_command, read_settings, stop
from arb.core.lazy import lazy_imports
from arb.core.memory import keep_memory_small
from space.auth import commands as auth_commands
from space.deploy import commands as deploy_commands

with lazy_imports():
    from arb.core import suite as suites
    from dataset_script import commands as dataset_commands
    from space import app as space_app
    from space.auth import auth
    from space.operations import logging as request_logs
    from submissions import errors, served_suites

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from arb.core.settings import Settings

SWITCH_SECONDS = 0.001
"""How long a busy thread runs before Python lets another thread run."""
LAST_ANSWERS_SECONDS = 10
"""How long a stopping server waits for responses that are still being sent."""
TAKEN = "port {port} on {host} is in use; stop the program that uses it, or choose another port with --port"
PUBLISHED = (
    "Other machines can reach this Space. Everybody can read it; accounts with an access token can submit. "
    "Make a token with `arb space token NAME`."
)
app = new_command()
app.command()(deploy_commands.deploy)
app.command()(auth_commands.token)


@app.callback()
def space() -> None:
    """Serve the leaderboard, the submit page and the REST API, on this machine or on the Hub."""


@app.command()
def serve(
    host: Annotated[
        str | None, typer.Option(help="Listen on this address (default: ARB_HOST, else 127.0.0.1).")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Listen on this port, 0 for any (default: ARB_PORT, else 7860).")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            help="Show the runs in this folder or log (a dataset, the released layout, AgentLab, Inspect and "
            "others). There are no labels, nothing can be submitted, and nothing is recorded.",
        ),
    ] = None,
    agent_from: AgentFromOption = None,
    log_format: Annotated[
        Literal["text", "json"] | None,
        typer.Option(help="Choose the format of logs (default: text on a terminal, json elsewhere)."),
    ] = None,
) -> None:
    """Start the Space; stop it with Ctrl-C."""
    # Requests are already answered in parallel, so more threads for linear algebra would only slow them down.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    keep_memory_small()
    settings = read_settings()
    request_logs.configure_logs(settings, log_format=log_format)
    if source is None:
        try:
            served_suites.served_suites(settings)
        except (suites.SuiteError, errors.RecordsUnavailable) as problem:
            stop(str(problem))
    _check_sign_in(settings)
    host, port = (host or settings.host).strip("[]"), settings.port if port is None else port
    settings = settings.model_copy(update={"host": host})
    listener = _bind(host, port)  # before the slow imports, to report a port in use at once
    if source is not None:
        settings = _settings_of_source(source, settings, agent_from)

    # Nothing imported here is garbage. Searching it for garbage would take a sixth of the startup time, and
    # later up to 0.2 s during a request.
    gc.disable()
    try:
        built = space_app.create_app(settings, wait_s=0)
    except errors.RecordsUnavailable as error:
        stop(str(error))
    gc.freeze()
    gc.enable()
    if not (settings.is_local or settings.has_oauth):
        typer.echo(PUBLISHED, err=True)
    path = "" if source is None else "/trajectories"
    _serve(auth.with_checked_host(built, settings), listener, host, path, built.state.end_streams)


def _check_sign_in(settings: "Settings") -> None:
    """Stop the command if the settings for signing in with Hugging Face are incomplete."""
    values = (settings.oauth_client_id, settings.oauth_client_secret)
    if settings.space_id is None and any(values) and not (all(values) and settings.allowed_host_names):
        stop(
            "to sign in with Hugging Face, set all of OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET and "
            "ARB_ALLOWED_HOSTS (the Space's host name); without it, set none of the first two"
        )


def _settings_of_source(
    source: Path, settings: "Settings", agent_from: list[str] | None = None
) -> "Settings":
    """Convert a source. Return settings that serve its runs, without labels, records and repositories."""
    built = dataset_commands.read_source(source, agent_from)
    changes = {
        "suite": str(built.suite_folder),
        "suites": "",
        "suite_labels": "",
        "data_dir": built.folder,
        "labels": "none",
        "state_dir": built.folder.parent / "state",
        "database_url": None,
        "records_repo": None,
        "board_repo": None,
        "paper_verdicts": None,
    }
    return settings.model_copy(update=changes)


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the address but does not listen yet, or stop the command."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without IPPROTO_TCP, asyncio does not set TCP_NODELAY, and each page on an open connection arrives 40 ms
    # late, because Nagle's algorithm waits for a delayed acknowledgement.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError) as error:
        bound.close()
        if getattr(error, "errno", None) == errno.EADDRINUSE:
            stop(TAKEN.format(port=port, host=host))
        stop(f"the Space cannot listen on {host}:{port}: {error}")
    return bound


def _serve(
    application: "ASGIApp", listener: socket.socket, host: str, path: str, end_streams: Callable[[], None]
) -> None:
    """Serve the application until Ctrl-C. Print its address, followed by ``path``, once it has started.

    ``end_streams`` closes the open event streams, which a stopping server would otherwise wait for.
    """
    import uvicorn  # noqa: PLC0415 - of the extra `space`

    # With the default of 5 ms, a thread that reads a file delays every step of every response by 5 ms.
    sys.setswitchinterval(SWITCH_SECONDS)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                name = f"[{host}]" if ":" in host else host
                port = listener.getsockname()[1]
                typer.echo(f"The Space is at http://{name}:{port}{path} (stop it with Ctrl-C)", err=True)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            end_streams()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        application,
        log_config=None,  # `configure_logs` has set up logging
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # clients can forge them; `client_address` reads them only on a Space
        server_header=False,
        timeout_graceful_shutdown=LAST_ANSWERS_SECONDS,
    )
    server = Server(config)
    try:
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])
    except OSError:  # another program bound the same address and listened first
        stop(TAKEN.format(port=listener.getsockname()[1], host=host))
    if not server.started:
        stop("the Space did not start; the lines above say why")


if __name__ == "__main__":
    app(prog_name="arb space")
