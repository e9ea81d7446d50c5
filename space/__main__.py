"""``python -m space``: the Space on this machine (``serve``), or on the Hub (``deploy``)."""

from typing import Annotated

import typer

from dataset_script.command_line import new_command, read_settings, read_suite, stop
from space.deploy import commands as deploy_commands

app = new_command()
app.command()(deploy_commands.deploy)


@app.callback()
def space() -> None:
    """Serve the leaderboard, the submit page and the REST answers, here or on the Hub."""


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Default: ARB_HOST, else 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Default: ARB_PORT, else 7860.")] = None,
) -> None:
    """Start the Space; stop it with Ctrl-C."""
    import uvicorn

    from space.app import create_app
    from space.auth.loopback import under_own_names, why_not_on
    from space.operations.logs import configure_logs
    from submissions.database import DatabaseUnavailable
    from submissions.opening import RepositoryMisnamed

    settings = read_settings()
    configure_logs(settings)
    read_suite(None, settings)
    address = (host or settings.host, settings.port if port is None else port)
    if refusal := why_not_on(address[0], settings):
        stop(refusal)
    try:
        application = under_own_names(create_app(settings), settings, address[0])
    except (DatabaseUnavailable, RepositoryMisnamed) as error:
        stop(str(error))
    typer.echo(f"The Space is at http://{address[0]}:{address[1]} (stop it with Ctrl-C)", err=True)
    uvicorn.run(
        application,
        host=address[0],
        port=address[1],
        log_config=None,  # ours is set up
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # a client could name any address; `client_address` reads them where they count
        server_header=False,
    )


if __name__ == "__main__":
    app(prog_name="python -m space")
