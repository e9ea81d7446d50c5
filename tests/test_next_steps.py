"""What commands have in common: the next step that they name, `--json`, exit codes, and how they are called.

That every next step which any test sees can be typed is checked in `conftest.py`.
"""

import ast
import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from arb.__main__ import PACKAGES, app
from arb.core.cli import EXIT_CODES
from arb.core.suite import load_suite
from dataset_script.build.output import MARKER
from tests.support import next_steps

REPOSITORY = Path(__file__).parents[1]
CODE = [
    path
    for package, _ in PACKAGES.values()
    for path in REPOSITORY.joinpath(*package.split(".")).rglob("*.py")
]
TOP = ("validate", "score", "compare")
TEXTS = (".py", ".md", ".html", ".j2", ".toml", ".js", ".txt")
WITHOUT_JSON = {
    "serve",  # it goes on until it is stopped
    "unblind", "sample-tasks", "split", "template", "annotation-template", "export-labels", "dev-labels",
    "annotations", "get", "import", "rewards",  # a file or a folder is what they give
    "new-secret",  # one value, to be set as it is
}  # fmt: skip


def commands():
    """Every command by package and words, groups of groups included."""

    def of(command, words):
        if hasattr(command, "commands"):
            for name, each in command.commands.items():
                yield from of(each, (*words, name))
        else:
            yield words, command

    for group, (package, _) in PACKAGES.items():
        yield from of(get_command(import_module(f"{package}.__main__").app), (group,))
    yield from ((("arb", name), each) for name, each in get_command(app).commands.items() if name in TOP)


def test_every_command_prints_json_but_those_that_write_a_file():
    without = {
        words for words, each in commands() if "--json" not in [o for p in each.params for o in p.opts]
    }
    assert {words[-1] for words in without} - WITHOUT_JSON == {"export"}
    assert {words for words in without if words[-1] == "export"} == {("leaderboard", "export")}


@pytest.mark.parametrize("program", ["/bin/arb", "/site-packages/arb/__main__.py"])
def test_the_step_after_a_step_leads_from_a_run_to_its_scores(program, tmp_path, monkeypatch):
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    out, seen = tmp_path / "a run", []
    line = "Next, run it: arb judges run always-successful --suite sample --split dev --out "
    line += shlex.quote(str(out))
    monkeypatch.setattr(sys, "argv", [program])
    while "submissions template" not in line:
        next_steps.parse(line)
        package, *words = next_steps.words_of(line)
        done = CliRunner().invoke(import_module(f"{package}.__main__").app, words)
        assert done.exit_code == 0, done.output
        (line,) = re.findall(r"^Next, .*$", done.stderr, re.MULTILINE)
        seen.append(words[0])
    assert seen == ["run", "score"]


def test_with_json_nothing_else_is_said_of_what_comes_next(tmp_path, monkeypatch):
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    app = import_module("arb.judges.__main__").app
    call = ["run", "always-successful", "--suite", "sample", "--split", "dev", "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, [*call, "--json"])
    found = json.loads(done.stdout)
    assert (found["ended"], found["judged"], "Next," in done.stderr) == ("finished", 20, False)
    assert Path(found["predictions"]).is_file()


@pytest.mark.parametrize(
    ("beside", "judge"),
    [('{"judge": {"name": "My judge"}}', "'My judge'"), ('{"judge": "x"}', "JUDGE"), ("x", "JUDGE")],
)
def test_what_is_submitted_bears_the_name_of_its_run_and_says_nothing_of_test_labels(tmp_path, beside, judge):
    app, file = import_module("submissions.__main__").app, tmp_path / "predictions.csv"
    chosen = ["--suite", "sample", "--split", "test"]
    ids = [each.trajectory_id for each in load_suite("sample").split("test")]
    file.write_text("trajectory_id,success\n" + "".join(f"{each},true\n" for each in ids))
    (tmp_path / "run.json").write_text(beside)
    done = CliRunner().invoke(app, ["check", str(file), *chosen])
    assert done.exit_code == 0, done.output
    (line,) = re.findall(r"^Next, .*?: (.*)$", done.stderr, re.MULTILINE)
    assert f" --judge {judge} " in line and "test-labels" not in line


def _steps(tree):
    """What each function gives to `next_step`, or returns for `then`: its words and its options."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        assigned = [each for each in ast.walk(function) if isinstance(each, ast.Assign)]
        for node in ast.walk(function):
            parts = []
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "next_step":
                parts = node.args[1:]
            elif isinstance(node, ast.Return) and function.name.startswith("_after_"):
                parts = node.value.elts[1:] if isinstance(node.value, ast.Tuple) else []
            parts = [each for part in parts for each in _flat(part)]
            if words := [part.value for part in parts if isinstance(part, ast.Constant)]:
                yield words, [name for part in parts for name in _options(part, assigned)]


def _flat(part):
    """The parts of a tuple that is unpacked where it stands; any other argument itself."""
    is_unpacked = isinstance(part, ast.Starred) and isinstance(part.value, ast.Tuple)
    return part.value.elts if is_unpacked else [part]


def _options(part, assigned):
    """The options in an argument, or in what was last assigned to the variable that it unpacks."""
    if isinstance(part, ast.Starred) and isinstance(part.value, ast.Name):
        before = (
            a for a in assigned if ast.unparse(a.targets[0]) == part.value.id and a.lineno < part.lineno
        )
        part = max(before, key=lambda each: each.lineno, default=part)
    for call in (each for each in ast.walk(part) if isinstance(each, ast.Call)):
        if ast.unparse(call.func) in ("flags", "typed"):
            yield from (each.arg for each in call.keywords if each.arg not in (None, "judge"))


@pytest.mark.slow
def test_every_next_step_in_the_code_is_a_command_with_options_that_it_has():
    """Also those that no other test comes by."""
    known = {
        words: {option for p in each.params for option in (*p.opts, *p.secondary_opts)}
        for words, each in commands()
    }
    steps = [step for path in CODE for step in _steps(ast.parse(path.read_text(encoding="utf-8")))]
    assert len(steps) >= 30
    for words, options in steps:
        named = words if words[0] in PACKAGES else ["arb", *words]
        (command,) = (each for each in known if each == tuple(named[: len(each)]))
        assert {f"--{name.replace('_', '-')}" for name in options} <= known[command], (command, options)


def test_no_text_names_a_command_as_python_m_but_the_mark_of_built_datasets():
    names = re.compile(r"python -m (?:arb |arb\.)?(?:dataset_script|leaderboard|judges|submissions|space)\b")
    texts = [each for package in ("arb", "dataset_script", "leaderboard", "submissions", "space")
             for each in REPOSITORY.joinpath(package).rglob("*") if each.suffix in TEXTS]  # fmt: skip
    lines = [line for each in texts for line in each.read_text(encoding="utf-8").splitlines()]
    assert {line for line in lines if names.search(line) and MARKER not in line} == set()


def test_every_exit_code_of_a_command_is_one_that_is_explained():
    """`stop(message, 3)`, `code=3`, `typer.Exit(3)`, and the codes that constants hold."""
    from arb.judges.cli.run import EXIT_CODES as OF_RUNS
    from dataset_script.commands import DAMAGED_FILES

    found = {DAMAGED_FILES, *OF_RUNS.values()}
    for path in CODE:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("stop", "_fail", "typer.Exit"):
                codes = [*node.args, *(each.value for each in node.keywords if each.arg == "code")]
                found |= {each.value for each in codes if isinstance(each, ast.Constant)} - {None}
    assert {code for code in found if isinstance(code, int)} == {*EXIT_CODES}
