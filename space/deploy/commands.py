"""The command `arb space deploy`."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from arb.core.cli import (
    JsonOption,
    complete_suite,
    print_json,
    read_settings,
    read_suite,
    stop,
    stopped_like_ctrl_c,
)
from arb.core.console import counted, printable
from arb.core.hub import HubError, Publication, PublishError, hub_of
from arb.core.lazy import lazy_imports

with lazy_imports():
    from arb.core import suite as suites
    from space.deploy import deployer
    from space.deploy import files as deploy_files
    from submissions import served_suites

if TYPE_CHECKING:
    from collections.abc import Mapping

    from arb.core.settings import Settings

PUBLIC_LABELS = "wheel"


def deploy(  # noqa: PLR0913  # typer takes one argument per option
    space: Annotated[str, typer.Option(help="Deploy to this Space, owner/name; created if missing.")],
    data: Annotated[str, typer.Option(help="Show this published dataset, owner/name.")],
    private: Annotated[str, typer.Option(help="Keep the records in this private dataset.")],
    board: Annotated[str | None, typer.Option(help="Publish the board in this public dataset.")] = None,
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="Serve this suite, a name or a folder (default: ARB_SUITES, else ARB_SUITE). Repeat to add "
            "suites; the first one is the default suite.",
            autocompletion=complete_suite,
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="Set ARB_LABELS to wheel (default, official suite only), hub:OWNER/REPO, records or none."
        ),
    ] = None,
    maintainer: Annotated[
        list[str] | None,
        typer.Option(
            help="Make this account a maintainer (default: ARB_MAINTAINERS, else HF_TOKEN's owner). "
            "Repeat to add maintainers."
        ),
    ] = None,
    sdk: Annotated[
        Literal["gradio", "docker"], typer.Option(help="Deploy as this kind of Space.")
    ] = "gradio",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be sent, without asking the Hub.")
    ] = False,
    list_files: Annotated[
        bool, typer.Option("--list-files", help="With --dry-run, also print file names and the card.")
    ] = False,
    as_json: JsonOption = False,
) -> Publication | None:
    """Put the Space on the Hub.

    The command sends the code, the card and the variables, and mounts the dataset. It creates the
    repositories for records and board if they are missing. It sends nothing that the Space already has.
    Secrets are not sent; the command prints the names of those that you have to set. HF_TOKEN needs write
    access.

    Exit code 0: deployed, or up to date; 2: refused, or the Hub failed.
    """
    settings = read_settings()
    served = {each: read_suite(each, settings) for each in suite or settings.suite_places or [settings.suite]}
    default, *further = served.values()
    hub = hub_of(settings)
    try:
        deployment = deployer.Deployment(
            space=space,
            data=data,
            private=private,
            board=board,
            suite=default.name,
            labels=labels or PUBLIC_LABELS,
            maintainers=tuple(maintainer or sorted(settings.maintainer_names)),
            profile=default.profile,
            sdk=sdk,
            further=tuple(each.name for each in further),
            suite_labels=settings.labels_by_suite,
        )
        if problems := [*deployment.problems(), *served_suites.source_problems(settings, deployment.further)]:
            raise PublishError("; ".join(problems))
        files = checked_files(served, settings)
        if dry_run:
            if as_json:
                print_json(_plan_facts(deployment, files))
            else:
                _say_plan(deployment, files, list_files)
            return None
        with stopped_like_ctrl_c():
            running = deployer.Deployer(hub, lambda line: typer.echo(printable(line), err=True))
            done = running.deploy(deployment, files)
    except (PublishError, HubError, OSError) as error:
        stop(printable(str(error)), 2)
    except KeyboardInterrupt:
        stop("interrupted; the Space has no incomplete commit. Run the command again to resume", 130)
    address = f"https://huggingface.co/spaces/{space}"
    if as_json:
        print_json(asdict(done) | {"address": address})
    else:
        _say_done(address, done)
    return done.files


def _plan_facts(deployment: "deployer.Deployment", files: dict[str, Path]) -> dict[str, Any]:
    return {
        **{name: getattr(deployment, name) for name in ("space", "data", "private", "board", "suite", "sdk")},
        "files": sorted([*files, *deploy_files.MADE[deployment.sdk]]),
        "bytes": deploy_files.total_bytes(files),
        "variables": {name: value for name, value in deployment.variables().items() if value},
        "secrets": {**deployer.NEEDED_SECRETS, **deployer.OTHER_SECRETS},
    }


def checked_files(served: "Mapping[str, suites.Suite]", settings: "Settings") -> dict[str, Path]:
    """Return the files to send, keyed by path. Raises PublishError if one has test labels or is not needed.

    ``served`` has the suites, keyed by the name or folder from which each was loaded.
    """
    files = deploy_files.space_files(list(served))
    kind, _, place = settings.labels.partition(":")
    own_labels = Path(place).expanduser() if kind == "csv" and place else None
    names = {suite.name for suite in served.values()}
    others = [suites.load_suite(each) for each in suites.shipped_suites() if each not in names]
    if problems := deploy_files.label_problems(files, [*served.values(), *others], own_labels):
        raise PublishError("nothing was sent: " + "; ".join(problems))
    return files


def _say_plan(deployment: "deployer.Deployment", files: dict[str, Path], list_files: bool) -> None:
    folders = deploy_files.by_folder(files)
    has_documentation = any(name.startswith(f"{deploy_files.SITE}/") for name in files)
    plan = deployer.render(
        "plan.txt",
        **_plan_facts(deployment, files),
        folders=folders,
        width=max(map(len, folders)),
        made=deploy_files.MADE[deployment.sdk],
        mounted_at=deployer.MOUNTED_AT,
        lacks_documentation=deployment.suite == suites.OFFICIAL and not has_documentation,
        card=deployer.render_file("README.md", deployment) if list_files else "",
    )
    typer.echo(plan, nl=False)


def _say_done(address: str, done: "deployer.Deployed") -> None:
    files = done.files
    what = f"{counted(len(files.written), 'file')} written, {len(files.removed)} removed"
    typer.echo(f"{files.repo} at {files.commit}: {what if files.committed else 'up to date; no commit'}")
    typer.echo(address)
    if done.secrets:
        typer.echo("Set these secrets in the Space's settings. Until then it accepts no submissions:")
        for name, purpose in done.secrets.items():
            typer.echo(f"  {name}: {purpose}")
        typer.echo(f"Next, set them: {address}/settings", err=True)
    else:
        typer.echo(f"Next, open it and submit a file: {address}", err=True)
