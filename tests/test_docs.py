"""The documentation: built strictly, complete, served under /docs, its arithmetic and its commands right."""

import base64
import html
import io
import os
import re
from collections import Counter
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.applications import Starlette
from starlette.testclient import TestClient

from arb.__main__ import PACKAGES
from arb.core.console import percent
from arb.core.formats import FORMATS
from arb.core.settings import Settings
from leaderboard.judge_precision.confusion import figures
from leaderboard.score import CELL_FIELDS, METRIC_VERSION, REPORT_FIELDS, Noise
from space.api.docs import Documentation
from space.app import create_app
from space.operations.security import script_hashes
from submissions.records.event_log import DECLARED, FILED, KINDS
from tests.support import own_suite
from tests.support.pages import FOLLOWED

REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"


@pytest.fixture(scope="module")
def client(docs_site) -> TestClient:
    app = Starlette()
    app.mount("/docs", Documentation(docs_site, on_space=False))
    return TestClient(app)


@pytest.mark.slow
def test_every_page_of_the_folder_and_of_the_code_is_built_and_every_link_leads_somewhere(docs_site):
    pages = {path.relative_to(docs_site).as_posix() for path in docs_site.rglob("*.html")}
    names = (
        "commands",
        "rest",
        "settings",
        "columns",
        "judges",
        "results",
        "python",
        "extensions",
        "changes",
    )
    generated = {f"reference/{name}.html" for name in names} | {"verdicts_to_estimate.html"}
    assert pages == generated | {
        path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")
    }
    text = (docs_site / "reference" / "commands.html").read_text()
    assert all(f"arb {name}" in text for name in PACKAGES)
    assert 'id="post-apisubmissions"' in (docs_site / "reference" / "rest.html").read_text()


def test_the_commands_and_python_of_every_page_are_run_by_a_test():
    pages = {
        path.name
        for path in DOCS.rglob("*.md")
        if re.search("^```(bash|python)", path.read_text(), re.MULTILINE)
    }
    assert pages >= {"score.md", "data.md", "own_judge.md"}
    others = {
        "scale.md": "arb/judges/ray/test_run.py",  # followed, too, where the extra `ray` is installed
        "hub_checklist.md": "arb/test_hub_checklist.py",
        "where_you_work.md": "arb/test_inspect_and_scout.py",  # and arb/test_rewards.py
    }
    assert pages <= {*others, *(Path(name).name for name in (*FOLLOWED, *own_suite.FOLLOWED))}
    tests = Path(__file__).parent
    assert [page for page, test in others.items() if page not in (tests / test).read_text()] == []


def test_submit_is_shown_in_pictures_that_load_fast():
    text = (DOCS / "score.md").read_text(encoding="utf-8").partition("\n## Submit\n")[2].partition("\n## ")[0]
    pictures = re.findall(r"^!\[[^]]+\]\((\w+\.png)\)$", text, re.MULTILINE)
    assert pictures == ["submit_file.png", "submit_findings.png", "submit_receipt.png"]
    assert all((DOCS / name).stat().st_size < 80_000 for name in pictures)


def test_every_command_is_typed_as_arb():
    """``python -m`` helps a reader without `arb` once; benchmarks and Playwright have no other name."""
    pages = [REPOSITORY / "README.md", *sorted(DOCS.rglob("*.md")), DOCS / "reference.py"]
    found = [
        f"{page.name}: {line}"
        for page in pages
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.search(r"python -m (?!bench\.|playwright)", line)
    ]
    assert len(found) == 1 and found[0].startswith("troubleshooting.md"), found


def test_the_page_of_formats_names_every_field_and_every_kind_of_event():
    text = (DOCS / "formats.md").read_text(encoding="utf-8")
    named = {*re.findall(r"`(\w+)`", text)}
    assert REPORT_FIELDS[METRIC_VERSION] | CELL_FIELDS[METRIC_VERSION] | KINDS <= named
    assert {*Noise.__required_keys__, *DECLARED, *FILED} <= named
    assert f"version {METRIC_VERSION} of the metric" in text


def test_the_pages_name_the_version_of_every_format():
    public, formats = ((DOCS / name).read_text(encoding="utf-8") for name in ("public.md", "formats.md"))
    table = public.partition("\n## Formats and their versions\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \|", table, re.MULTILINE)
    assert {name.strip("`"): int(version) for name, version in rows} == FORMATS
    sections = {
        "Prediction file": "prediction file",
        "Annotation file": "annotation file",
        "Score report": "score report",
        "Events": "export of the records",
    }
    for heading, name in sections.items():
        section = formats.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        assert re.search(rf"version {FORMATS[name]} of the (export's )?format", section), heading
    assert f"`board.json` has version {FORMATS['board.json']} of its format" in formats


@pytest.mark.slow
def test_a_judges_page_has_its_cost_its_results_and_every_deviation_that_is_about_it(docs_site):
    pages = {path.stem: html.unescape(path.read_text()) for path in (docs_site / "judges").glob("*.html")}
    assert all('id="models-and-cost"' in text and 'id="results"' in text for text in pages.values())
    assert re.search(
        r"<td>GPT-4o \(tree\)</td>\n<td>Success</td>\n<td>69.8</td>\n<td>83.1</td>", pages["simplified"]
    )
    rows = re.findall(r"^\| (.+?) \| (?:both|own) \|", (DOCS / "judges.md").read_text(), re.MULTILINE)
    about = {*rows} - {"all that call a model"}
    marked = {re.sub("`(.*?)`", r"<code>\1</code>", cell) for cell in about}
    assert len(about) == 18
    assert [cell for cell in marked if not any(f"<td>{cell}</td>" in text for text in pages.values())] == []


@pytest.mark.slow
def test_a_page_is_served_with_a_policy_that_allows_its_own_scripts_alone(client):
    answer = client.get("/docs/")
    hashes = script_hashes(answer.text)
    assert answer.status_code == 200 and hashes
    policy = answer.headers["content-security-policy"]
    assert all(each in policy for each in hashes) and "unsafe-inline'; script" not in policy
    scripts = re.search(r"script-src ([^;]*)", policy)[1]
    assert "unsafe" not in scripts
    assert not re.search(
        r'(src|href)="https?://[^"]+\.(js|css|woff2?)"', answer.text
    )  # nothing from elsewhere


@pytest.mark.slow
@pytest.mark.parametrize("path", ["../README.md", "..%2fREADME.md", "%2e%2e/pyproject.toml", "absent.html"])
def test_nothing_outside_of_the_built_folder_is_served(client, path):
    assert client.get(f"/docs/{path}").status_code == 404


@pytest.mark.slow
def test_every_page_of_a_space_leads_to_it_and_an_absent_page_is_the_spaces_own(
    docs_site, tmp_path, monkeypatch
):
    monkeypatch.setattr("space.app.project_file", lambda name: docs_site)
    app = create_app(Settings(labels="none", state_dir=tmp_path), wait_s=0)
    client = TestClient(app, raise_server_exceptions=False)
    assert '<a href="/docs/">Documentation</a>' in client.get("/about").text
    assert client.get("/docs").url.path == "/docs/"
    absent = client.get("/docs/absent.html", headers={"Accept": "text/html"})
    assert absent.status_code == 404 and "There is no such page" in absent.text


def test_the_arithmetic_of_read_the_board_is_that_of_the_code():
    text = (DOCS / "read_the_board.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    assert sum("assert" in block for block in blocks) >= 8
    exec(compile("\n".join(blocks), "read_the_board.md", "exec"), {})


def test_read_the_board_has_every_figure_of_a_row_with_the_value_of_its_example():
    text = (DOCS / "read_the_board.md").read_text(encoding="utf-8")
    table = text.partition("| figure | question | judge A | arithmetic |\n")[2].partition("\n\n")[0]
    shown = {
        row.split("|")[1].strip().casefold(): row.split("|")[3].strip() for row in table.splitlines()[1:]
    }
    counts = {"n", "positives", "tp", "fp", "fn", "tn", "no_verdict"}
    found = {
        name.replace("_", " "): value for name, value in figures(3, 2, 1, 4).items() if name not in counts
    }
    assert shown == {
        name: f"{value:.2f}" if name == "kappa" else f"{percent(value)} %" for name, value in found.items()
    }


NOTEBOOK = DOCS / "verdicts_to_estimate.ipynb"


def shown(notebook) -> list[list[tuple[str, object]]]:
    """What the outputs of each cell show: the text of streams, tables as HTML, and plots as pixels."""
    found = []
    for cell in notebook.cells:
        outputs = []
        for each in cell.get("outputs", ()):
            data = each.get("data", {})
            if "image/png" in data:
                with Image.open(io.BytesIO(base64.b64decode(data["image/png"]))) as picture:
                    outputs.append(("image/png", np.asarray(picture.convert("L"), dtype=float)))
            else:
                kind = "text/html" if "text/html" in data else "text/plain"
                outputs.append((kind, data.get(kind) or each["text"]))
        found.append(outputs)
    return found


@pytest.mark.slow
def test_executing_the_notebook_gives_the_outputs_that_it_is_stored_with(tmp_path, monkeypatch):
    """``UPDATE_GOLDEN=1`` stores new outputs. Other versions of matplotlib may smooth letters differently."""
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    stored = nbformat.read(NOTEBOOK, as_version=4)
    executed = deepcopy(stored)
    kernel = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(executed, timeout=300, resources=kernel, record_timing=False).execute()
    if os.environ.get("UPDATE_GOLDEN"):
        executed.metadata["language_info"] = {"name": "python"}  # not the version that ran it
        nbformat.write(executed, NOTEBOOK)
        stored = executed
    kinds = Counter(kind for cell in shown(stored) for kind, _ in cell)
    assert kinds["image/png"] == 2 and kinds["text/html"] == 4  # the DataFrames
    for before, after in zip(shown(stored), shown(executed), strict=True):
        assert [kind for kind, _ in before] == [kind for kind, _ in after]
        for (kind, expected), (_, found) in zip(before, after, strict=True):
            if kind == "image/png":
                assert expected.shape == found.shape and abs(expected - found).mean() < 2  # of 255
            else:
                assert expected == found


@pytest.mark.slow
def test_the_notebooks_page_shows_its_code_tables_and_plots(docs_site):
    text = (docs_site / "verdicts_to_estimate.html").read_text()
    assert text.count("<table>") == 4 and text.count('src="verdicts_to_estimate_') == 2
    assert "style scoped" not in text and "ScriptedAgent-careful" in text
    assert 'href="verdicts_to_estimate.ipynb"' in text and (docs_site / "verdicts_to_estimate_2.png").exists()


@pytest.mark.slow
def test_everything_that_the_guides_import_has_a_reference(docs_site):
    """Own judges (the README's too) and the example packages: all of arb and dataset_script."""
    places = [REPOSITORY / "README.md", DOCS / "own_judge.md", *(REPOSITORY / "examples").rglob("*.py")]
    named = {
        f"{module}.{name}"
        for place in places
        for module, names in re.findall(
            r"^from ((?:arb|dataset_script)\.[\w.]+) import (?:\(\n)?((?:,\n|[\w, ])+)",
            place.read_text(),
            re.M,
        )
        for name in re.findall(r"\w+", names)
    }
    assert {"arb.judges.types.Wants", "dataset_script.sources.problems.UnusableFileError"} <= named
    text = (docs_site / "reference" / "extensions.html").read_text()
    assert [name for name in sorted(named) if f'id="{name}"' not in text] == []
