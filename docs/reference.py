"""Make the reference pages of the documentation from the code, as a hook of mkdocs (mkdocs.yml)."""

import base64
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils.meta import get_data

sys.path.insert(0, str(Path(__file__).parents[1]))  # because mkdocs runs a hook by its path


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, make in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content="\n".join(make()) + "\n"))
    for path in sorted(Path(__file__).parent.glob("*.ipynb")):
        for name, content in notebook(path).items():
            files.append(File.generated(config, name, content=content))
    return files


def on_post_build(config: MkDocsConfig) -> None:
    """Delete files that are not needed, half of the bytes, and those that need the address of the site.

    The former are source maps and the search in other languages. The latter are the sitemap, which is empty,
    and 404.html, which has no style under /docs, where the Space answers with its own page.
    """
    site = Path(config.site_dir)
    shutil.rmtree(site / "assets" / "javascripts" / "lunr", ignore_errors=True)
    for path in [*site.rglob("*.map"), *site.glob("sitemap.xml*"), site / "404.html"]:
        path.unlink()


def commands() -> Iterator[str]:
    """Return every command with its help."""
    from arb.__main__ import PACKAGES, app
    from arb.core.cli import EXIT_CODES

    yield "# Commands"
    yield "[Installing](../index.md#install) the project adds the command `arb` to an environment."
    yield "Run `arb --install-completion` once to complete commands, options, splits and judges in bash, zsh"
    yield "and fish."
    yield from ("", "## Output", "")
    yield "Without `--json` most commands end with a suggestion for the next command. With `--json` a command"
    yield "prints one JSON document on stdout. Messages and progress go to stderr."
    yield from ("", "## Exit codes", "", "| exit code | meaning |", "|---|---|")
    yield from (f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())
    yield from _help(app, "arb", [])
    for command in app.registered_commands:
        called = command.name or command.callback.__name__.replace("_", "-")
        yield from _help(app, f"arb {called}", [called])
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
    """Return every operation of the REST API, from its OpenAPI document."""
    from arb.core.settings import Settings
    from space.app import create_app

    with TemporaryDirectory() as folder:
        app = create_app(Settings(labels="none", state_dir=Path(folder)), wait_s=0)
        document = app.openapi()
    yield "# REST"
    yield document["info"]["description"]
    yield "A running Space shows this page at `/api` and the OpenAPI document at `/api/openapi.json`."
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield from ("", f"## {method.upper()} {path}", "", operation["summary"], "")
            yield from (operation.get("description", ""), "")
            yield from _fields(document, operation)
            yield ""
            for status, answer in operation["responses"].items():
                yield f"- **{status}** {answer.get('description', '')}"


def _fields(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table of the parameters of an operation and the fields of its body."""
    schemas = [part["schema"] for part in operation.get("requestBody", {}).get("content", {}).values()]
    rows = [
        (each["name"], "address", each.get("description", "")) for each in operation.get("parameters", [])
    ]
    while schemas:
        schema = schemas.pop()
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        schemas += schema.get("allOf", [])
        for name, field in schema.get("properties", {}).items():
            rows.append((name, "body", field.get("description", "")))
    if rows:
        yield from ("| field | in | |", "|---|---|---|")
    for name, place, description in rows:
        text = " ".join(description.split()).replace("|", "\\|")
        yield f"| `{name}` | {place} | {text} |"


def judges() -> Iterator[str]:
    """Return a line for each judge, with the page that describes it."""
    from arb.judges.registry import entries

    yield "# Which judges there are"
    yield "Some names stand for one judge with different models or with different views of the last page."
    yield from ("", "| judge | sees | calls | model of its authors | other names |", "|---|---|---|---|---|")
    pages = {name: page.name for page in sorted(JUDGE_PAGES.glob("*.md")) for name in _meta(page)["judges"]}
    for entry in entries():
        judge = entry.judge
        models = ", ".join(f"`{model}`" for model in dict.fromkeys(getattr(judge, "models", {}).values()))
        page = f"[{judge.name}](../judges/{pages[judge.name]})"
        aliases = ", ".join(f"`{alias}`" for alias in entry.aliases)
        yield f"| {page} | {judge.inputs} | {judge.calls} | {models} | {aliases} |"
    yield ""
    yield "The column *calls* counts calls per trajectory. n is the number of its steps or screenshots."
    yield "You can also write [a judge of your own](../own_judge.md)."


JUDGE_PAGES = Path(__file__).parent / "judges"
DEVIATIONS = Path(__file__).parent / "judges.md"


def _meta(page: Path) -> dict[str, Any]:
    return get_data(page.read_text(encoding="utf-8"))[1]


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Add the data of a judge to its page: cost, results, deviations, and how to run it."""
    if "judges" not in page.meta:
        return markdown
    parts = (_cost(page.meta["judges"]), _judge_results(page.meta), _deviations(page.meta))
    return "\n".join([markdown, *(line for part in parts for line in part)]) + "\n"


def _cost(names: Sequence[str]) -> Iterator[str]:
    """Return what `judges plan` expects of each judge on the sample, and the command for the first one."""
    from arb.judges.cli.options import RunOptions
    from arb.judges.run.config import build_config
    from arb.judges.run.plan import plan_run

    yield from ("", "## Models and cost", "")
    yield "| judge | models of its authors | calls | tokens in | tokens out | dollars for 1,000 |"
    yield "|---|---|---|---|---|---|"
    with TemporaryDirectory() as folder:
        for name in (each for each in names if not each.startswith("simplified-")):  # these accept any model
            options = RunOptions(judge=name, suite="sample", split="dev", cache=Path(folder) / "none")
            plan = plan_run(build_config(options, will_run=False))
            each = 1 / plan.trajectories
            tokens_in, tokens_out = (
                sum(getattr(role, kind) for role in plan.roles) * each
                for kind in ("input_tokens", "output_tokens")
            )
            models = ", ".join(dict.fromkeys(f"`{role.model.model}`" for role in plan.roles)) or "none"
            usd = "unknown" if plan.usd is None else f"{1000 * plan.usd * each:.2f}"
            yield (
                f"| {name} | {models} | {plan.calls * each:.1f} | {tokens_in:,.0f} "
                f"| {tokens_out:,.0f} | {usd} |"
            )
    yield from (
        "",
        "Calls and tokens are per trajectory, as `judges plan` estimates them for the sample's 20 dev runs.",
        "Pages of real websites are longer, so plan with your own runs. Add `--pilot 5` if you do not know",
        "how long the replies are. The price of a model that you serve yourself is unknown.",
        "",
        "```text",
        f'arb judges plan "{names[0]}" --split dev',
        f'arb judges run "{names[0]}" --split dev --out runs/mine',
        "```",
    )


def _judge_results(meta: Mapping[str, Any]) -> Iterator[str]:
    """Return the published rows of the judges of a page, for each label that they have."""
    from arb.core.console import percent
    from arb.core.suite import OFFICIAL
    from arb.judges.registry import entries
    from leaderboard.board.board import make_board
    from leaderboard.paper.published import load_published_rows
    from leaderboard.paper.published_files import LABEL_TITLES

    names = {alias for entry in entries() if entry.judge.name in meta["judges"] for alias in entry.aliases}
    names |= set(meta.get("rows", ()))
    board = make_board(OFFICIAL, [], load_published_rows(), None)
    yield from ("", "## Results", "")
    yield from (
        "| judge | label | precision | recall | F1 | evidence | source |",
        "|---|---|---|---|---|---|---|",
    )
    for row in (each for each in board.ranking("success") if each.id in names):
        title = f"{row.judge} ({row.inputs})" if row.inputs else row.judge
        source = f"[{row.source}]({row.link})" if row.link else row.source
        for label, found in row.labels.items():
            if found is not None:
                figures = " | ".join(
                    percent(found["overall"][name]) for name in ("precision", "recall", "f1")
                )
                yield f"| {title} | {LABEL_TITLES[label]} | {figures} | {row.evidence} | {source} |"
    if meta.get("ablation"):
        yield from _ablation()
    yield from (
        "",
        "[Results](../reference/results.md) explains *evidence* and audits the figures.",
    )


def _ablation() -> Iterator[str]:
    from arb.core.suite import read_rows
    from leaderboard.paper.published_files import LABEL_TITLES, PUBLISHED

    yield from ("", "The paper's Table 2 compares GPT-4o Mini with and without tree and screenshot:", "")
    yield from ("| tree | screenshot | label | precision | recall | F1 |", "|---|---|---|---|---|---|")
    for row in read_rows(PUBLISHED / "ablation.csv"):
        figures = " | ".join(row[name] for name in ("precision", "recall", "f1"))
        yield f"| {row['tree']} | {row['screenshot']} | {LABEL_TITLES[row['label']]} | {figures} |"


def _deviations(meta: Mapping[str, Any]) -> Iterator[str]:
    """Return the rows of the table of deviations that are about the judges of a page."""
    if not (about := meta.get("deviations")):
        return
    heading, line, *rows = (
        row for row in DEVIATIONS.read_text(encoding="utf-8").splitlines() if row.startswith("|")
    )
    yield from ("", "## Where it differs from the original", "")
    yield "The column *wording* says whether a difference holds only in our own wording (*own*), or with"
    yield "`--prompts official` too (*both*)."
    yield from ("", heading, line)
    yield from (row for row in rows if any(each in row.split("|")[1] for each in about))
    yield from (
        "",
        "[All deviations](../judges.md) lists those of all judges and explains the names of the sources.",
    )


def settings() -> Iterator[str]:
    """Return every setting, from the class that reads them."""
    from arb.core.settings import Settings, variable_of

    yield "# Settings"
    yield "Set these as environment variables, or as lines of a file `.env` in the working folder."
    yield "[Operate a board](../operate.md) says which of them a board needs."
    yield from ("", "| variable | default | what it sets |", "|---|---|---|")
    for name, field in Settings.model_fields.items():
        default = "none" if field.default in (None, "") else f"`{field.default}`"
        yield f"| `{variable_of(name)}` | {default} | {field.description} |"


def columns() -> Iterator[str]:
    """Return every column of the dataset and of a prediction file, and every state of an answer."""
    from arb.core.predictions.columns import prediction_columns
    from arb.core.vocabulary import STATES
    from dataset_script.schema import CONFIGURATIONS, DEFAULT

    yield "# Columns and states"
    yield "These are the columns of a dataset that `arb data build` makes. The dataset's card lists them too."
    yield "Every column except ids may be null."
    default = CONFIGURATIONS[DEFAULT].columns
    for name, configuration in CONFIGURATIONS.items():
        found = configuration.columns
        yield from (
            "",
            f"## {name}",
            "",
            f"A row is {configuration.row}. Use it for {configuration.purpose}.",
            "",
        )
        if name != DEFAULT and found[: len(default)] == default:
            yield from (f"It has the columns of [{DEFAULT}](#{DEFAULT}) and these:", "")
            found = found[len(default) :]
        yield from _columns_table(found)
        for column in found:
            if column.fields:
                yield from (
                    "",
                    f"Each element of `{column.name}` has these fields:",
                    "",
                    *_columns_table(column.fields),
                )
    yield from ("", "## A prediction file", "", "| column | what it holds |", "|---|---|")
    yield from (f"| `{name}` | {column.description} |" for name, column in prediction_columns().items())
    yield from ("", "## The states of an answer", "", "| state | meaning |", "|---|---|")
    yield from (f"| `{state}` | {STATE_MEANINGS[state]} |" for state in STATES)
    yield from ("", "Only `ok` has a verdict; [how the others count](../read_the_board.md#no-verdict).")


def _columns_table(found: Sequence[Any]) -> Iterator[str]:
    yield from ("| column | type | what it holds |", "|---|---|---|")
    yield from (f"| `{each.name}` | {each.type_description} | {each.sentence} |" for each in found)


STATE_MEANINGS = {
    "ok": "a verdict was read",
    "unsure": "the reply says that the model cannot tell",
    "unparsed": "the reply contains no readable verdict",
    "refused": "the model or its provider refused to answer",
    "truncated": "the reply reached its token limit before a verdict",
    "too_long": "the prompt does not fit the model, not even in its shorter form",
    "error": "the call failed, or the run lacks something that the judge needs; `--retry error` asks again",
}


def results() -> Iterator[str]:
    """Return every published row with its source and basis, and the audit of the paper's rows."""
    from typer.testing import CliRunner

    from arb.core.console import percent
    from arb.core.suite import OFFICIAL
    from arb.core.vocabulary import EVIDENCE
    from leaderboard.__main__ import app
    from leaderboard.board.board import make_board
    from leaderboard.paper.published import load_published_rows

    rows = make_board(OFFICIAL, [], load_published_rows(), None).ranking("success")
    yield "# Results"
    yield "These are the published rows of the board, on success. A Space adds its own submissions."
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
    yield from (
        "",
        "## Audit",
        "",
        "The audit searches for counts that give the figures printed in the paper:",
        "",
    )
    yield from ("```text", audit, "```")


def python() -> Iterator[str]:
    """Return the functions for notebooks and programs, from their docstrings."""
    yield from ("# Python", "", "::: arb", "", "::: arb.rewards", "", "::: arb.inspect", "", "::: arb.scout")


EXTENSIONS: Mapping[str, Sequence[str]] = {
    "A judge: arb.judges.types": (
        "arb.judges.types.View",
        "arb.judges.types.ViewStep",
        "arb.judges.types.Wants",
        "arb.judges.types.Call",
        "arb.judges.types.Message",
        "arb.judges.types.Image",
        "arb.judges.types.Reply",
        "arb.judges.types.Answer",
        "arb.judges.types.Evidence",
        "arb.judges.types.StepQuestion",
        "arb.judges.types.Tool",
        "arb.judges.types.ToolCall",
        "arb.judges.types.JudgeSession",
        "arb.judges.types.Judge",
        "arb.judges.types.RewardJudge",
        "arb.judges.types.DescribedJudge",
        "arb.judges.types.JudgeTraits",
        "arb.judges.types.ImageOptions",
        "arb.judges.types.TokenProbability",
    ),
    "Prompts: arb.judges.prompting": (
        "arb.judges.prompting.prompts_hash",
        "arb.judges.prompting.steps_text",
        "arb.judges.prompting.last_step",
        "arb.judges.prompting.goal_parts",
        "arb.judges.prompting.content_of",
        "arb.judges.prompting.with_bounded_texts",
        "arb.judges.prompting.cut_middle",
    ),
    "Tools: arb.judges.tools": ("arb.judges.tools.TOOLS", "arb.judges.tools.RunTools"),
    "Replies: arb.judges.parsing": (
        "arb.judges.parsing.parse_answer",
        "arb.judges.parsing.parse_rating",
        "arb.judges.parsing.parse_steps",
        "arb.judges.parsing.score_of",
        "arb.judges.parsing.shorten",
        "arb.judges.prompting.text_of",
        "arb.judges.prompting.failed_answer",
    ),
    "A source of recorded runs": (
        "dataset_script.sources.base.TrajectorySource",
        "dataset_script.sources.base.SourceListing",
        "dataset_script.sources.base.SourceFile",
        "dataset_script.sources.base.FoundRun",
        "dataset_script.sources.agents.AgentFacts",
        "dataset_script.sources.problems.UnusableFileError",
        "dataset_script.sources.problems.Note",
        "dataset_script.sources.values.id_part",
        "dataset_script.sources.files.file_stamp",
        "dataset_script.sources.files.find_links_out",
        "arb.core.trajectory.Recording",
        "arb.core.trajectory.Step",
    ),
    "A provider of models": ("arb.judges.endpoints.providers.Provider",),
}
"""What judges, sources and providers of users import, under the headings of its page."""


SHOWN = (
    "show_root_heading: true, heading_level: 3, merge_init_into_class: true, separate_signature: true, "
    "show_signature_annotations: true, line_length: 90, show_bases: false"
)
"""The options of each of them: a heading with its import, and the signature with types."""


def extensions() -> Iterator[str]:
    """Return the classes and functions for judges, sources and providers, from their docstrings."""
    yield "# Python for your own judge"
    yield "[A judge of your own](../own_judge.md) and [packages that add judges](../plugins.md) import these"
    yield "classes and functions."
    for heading, names in EXTENSIONS.items():
        yield from ("", f"## {heading}")
        for name in names:
            yield from ("", f"::: {name}", f"    options: {{{SHOWN}}}")


def notebook(path: Path) -> dict[str, str | bytes]:
    """Return a notebook with its stored outputs as a page, and its pictures, by file name."""
    import nbformat

    files: dict[str, str | bytes] = {}
    parts = []
    for cell in nbformat.read(path, as_version=4).cells:
        parts.append(cell.source if cell.cell_type == "markdown" else f"```python\n{cell.source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "image/png" in data:
                name = f"{path.stem}_{len(files) + 1}.png"
                files[name] = base64.b64decode(data["image/png"])
                parts.append(f"![The plot that the code above draws]({name})")
            elif "text/html" in data:  # a DataFrame: only its table, without pandas' style sheet
                table = data["text/html"].partition("<table")[2].partition(">")[2].partition("</table>")[0]
                table = table.replace(' style="text-align: right;"', "")
                parts.append(f"<table>{table}</table>")
            else:
                parts.append(f"```text\n{data['text/plain'].strip()}\n```")
    link = f"[Download the notebook]({path.name}) to run it. The outputs on this page are stored in it."
    parts.insert(1, link)
    return {f"{path.stem}.md": "\n\n".join(parts) + "\n", **files}


def changes() -> Iterator[str]:
    """Return the change log."""
    text = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    yield text.replace("](docs/", "](../")


PAGES: Mapping[str, Callable[[], Iterator[str]]] = {
    "commands": commands,
    "rest": rest,
    "settings": settings,
    "columns": columns,
    "judges": judges,
    "results": results,
    "python": python,
    "extensions": extensions,
    "changes": changes,
}
