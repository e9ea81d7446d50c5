"""The reference pages of the documentation, made from the code when mkdocs builds: its hook (mkdocs.yml)."""

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1]))  # mkdocs runs a hook by its path


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, make in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content="\n".join(make()) + "\n"))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Take away half of the bytes (source maps, the search in other languages), and what needs the address of
    the site, which nobody knows here: an empty sitemap, and a 404.html that has no style under /docs, where
    the Space answers with its own page.
    """
    site = Path(config.site_dir)
    shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)
    for path in [*site.rglob("*.map"), *site.glob("sitemap.xml*"), site / "404.html"]:
        path.unlink()


def commands() -> Iterator[str]:
    """Every command with its help."""
    from arb.__main__ import PACKAGES, app
    from core.cli import EXIT_CODES

    yield "# Commands"
    yield "After `pip install`, `arb`; in a checkout `python -m` with the package's name does the same."
    yield from ("", "| exit code | |", "|---|---|")
    yield from (f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    yield ""
    yield "With `--json` a command prints one JSON document on stdout; messages and progress are on stderr."
    yield "Without, most end with the command that comes next. After `arb --install-completion` bash, zsh and"
    yield "fish complete commands, options, splits and the names of judges."
    yield from _help(app, "arb", [])
    for group in app.registered_groups:
        for command in group.typer_instance.registered_commands:
            called = command.name or command.callback.__name__.replace("_", "-")
            yield from _help(app, f"arb {group.name} {called}", [group.name, called])
    for name, (package, _) in PACKAGES.items():
        own = import_module(f"{package}.__main__").app
        yield from _help(own, f"arb {name}", [])
        for command in own.registered_commands:
            called = command.name or command.callback.__name__.replace("_", "-")
            yield from _help(own, f"arb {name} {called}", [called])
        for group in own.registered_groups:
            for command in group.typer_instance.registered_commands:
                called = command.name or command.callback.__name__.replace("_", "-")
                yield from _help(own, f"arb {name} {group.name} {called}", [group.name, called])


def _help(app: Any, name: str, arguments: list[str]) -> Iterator[str]:
    from typer.testing import CliRunner

    shown = CliRunner().invoke(app, [*arguments, "--help"], prog_name=name.removesuffix(" ".join(arguments)))
    yield from ("", f"## {name}", "", "```text", shown.stdout.strip(), "```")


def rest() -> Iterator[str]:
    """Every operation of the REST API, from its OpenAPI document."""
    from core.settings import Settings
    from space.api.docs import operations_of
    from space.app import create_app

    with TemporaryDirectory() as folder:
        app = create_app(Settings(labels="none", state_dir=Path(folder)), wait_s=0)
        document = app.openapi()
    yield "# REST"
    yield document["info"]["description"]
    yield "A running Space has the same under `/api`, and the OpenAPI document under `/api/openapi.json`."
    for each in operations_of(document):
        yield from ("", f"## {each.method} {each.path}", "", each.details.get("summary", ""), "")
        if description := each.details.get("description"):
            yield from (description, "")
        if each.fields:
            yield from ("| field | in | type | |", "|---|---|---|---|")
        for field in each.fields:
            needed = "required. " if field.is_required else ""
            yield f"| `{field.name}` | {field.place} | {field.type} | {needed}{_cell(field.schema)} |"
        yield ""
        yield from (
            f"- **{status}** {answer.get('description', '')}"
            for status, answer in each.details["responses"].items()
        )


def _cell(schema: Mapping[str, Any]) -> str:
    return " ".join(str(schema.get("description", "")).split()).replace("|", "\\|")


def judges() -> Iterator[str]:
    """A section for each judge: what it sees, how often it asks, whose it is, and how it is run."""
    from judges.registry import entries

    yield "# Judges, one by one"
    yield "How each differs from what its authors released is in [one table](../judges.md)."
    for entry in entries():
        judge = entry.judge
        models = getattr(judge, "models", {})
        yield from ("", f"## {judge.name}", "")
        if judge.__doc__:
            yield from (" ".join(judge.__doc__.split()), "")
        yield f"- **Sees** {getattr(judge, 'inputs', '') or 'nothing'}"
        yield f"- **Calls** for a trajectory: {getattr(judge, 'calls', '0')}"
        if models:
            roles = ", ".join(f"{role}: `{model}`" for role, model in models.items())
            yield f"- **Models** of its authors: {roles}"
        yield f"- **Source** {getattr(judge, 'source', '') or 'ours'}"
        if entry.aliases:
            yield f"- **Other names** {', '.join(entry.aliases)}"
        yield from ("", "```text", f"arb judges run {judge.name} --split dev --out runs/{judge.name}", "```")


def results() -> Iterator[str]:
    """Every published row with its source and what its figures rest on, and the audit of the paper's rows."""
    from typer.testing import CliRunner

    from core.console import percent
    from core.suite import OFFICIAL
    from core.vocabulary import EVIDENCE
    from leaderboard.__main__ import app
    from leaderboard.board.board import make_board
    from leaderboard.paper.published import load_published_rows

    rows = make_board(OFFICIAL, [], load_published_rows(), None).ranking("success")
    yield "# Results"
    yield "The published rows of the board, on success; a Space adds what was submitted there."
    yield from (
        "",
        "| judge | sees | precision | recall | F1 | evidence | source |",
        "|---|---|---|---|---|---|---|",
    )
    for row in rows:
        cell = row.labels["success"]["overall"]
        figures = " | ".join(percent(cell[name]) for name in ("precision", "recall", "f1"))
        source = f"[{row.source}]({row.link})" if row.link else row.source
        yield f"| {row.judge} | {row.inputs} | {figures} | {row.evidence} | {source} |"
    yield ""
    yield from (f"- **{name}**: {meaning}" for name, meaning in EVIDENCE.items())
    audit = CliRunner().invoke(app, ["audit"]).stdout.strip()
    yield from ("", "## Audit", "", "Counts behind the paper's printed figures, where some fit:", "")
    yield from ("```text", audit, "```")


def python() -> Iterator[str]:
    """The functions for notebooks, from their docstrings."""
    yield from ("# Python", "", "::: arb")


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "rest": rest,
    "judges": judges,
    "results": results,
    "python": python,
}
