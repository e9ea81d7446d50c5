"""The wheel, installed in a fresh environment outside of the checkout, and its command `arb`."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

import httpx
import pytest
import typer
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from typer.testing import CliRunner

from arb.__main__ import PACKAGES
from arb.core import __version__, files
from arb.core.cli import new_command
from tests.space.deploy.conftest import BOARD, DATA, RECORDS, SPACE, TOKEN
from tests.space.deploy.fresh_environment import make_environment
from tests.support.hub_server.server import running_hub
from tests.support.llm_server.server import LLMServer
from tests.support.own_suite import follow_own_suite
from tests.support.pages import FOLLOWED, OF_A_CLUSTER, Reader, follow_and_check
from tests.support.ports import hold_port, port_of

REPOSITORY = Path(__file__).parents[1]
SAMPLE = REPOSITORY / "dataset_script" / "sample" / "data"
MOST_BYTES = 8_000_000


def test_help_names_every_package_and_imports_the_commands_of_none():
    code = "import sys; from arb.__main__ import app\ntry: app(['--help'])\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True)
    *_, modules = done.stdout.splitlines()
    assert all(re.search(rf"^  {name} ", done.stdout, re.MULTILINE) for name in (*PACKAGES, "metric"))
    assert not {f"{package}.__main__" for package, _ in PACKAGES.values()} & set(modules.split())


def test_the_command_says_its_version():
    command = [sys.executable, "-m", "arb", "--version"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert done.stdout == f"AgentRewardBench {__version__}\n"


def test_a_command_that_does_not_exist_is_a_usage_error():
    done = subprocess.run([sys.executable, "-m", "arb", "no"], cwd=REPOSITORY, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command 'no'" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("arb da", ["data"]),
        ("arb judges run simplified-ax", ["simplified-axtree", "simplified-axtree-inverted"]),
        ("arb judges run aer --split ", ["dev", "test"]),
        ("arb score verdicts.csv --suite sa", ["sample"]),
    ],
)
def test_bash_and_zsh_complete_commands_judges_splits_and_suites(typed, completed):
    bash = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_ARB_COMPLETE": "complete_bash"}
    zsh = {"_TYPER_COMPLETE_ARGS": typed, "_ARB_COMPLETE": "complete_zsh"}
    shown = [
        subprocess.run(
            [sys.executable, "-m", "arb"],
            cwd=REPOSITORY,
            env=os.environ | each,
            capture_output=True,
            text=True,
        ).stdout
        for each in (bash, zsh)
    ]
    assert shown[0].split() == completed
    assert shown[1].startswith("_arguments") and re.findall(r'"([^"]*?)(?:"|:)', shown[1])[0] == completed[0]


def test_the_completion_that_is_installed_completes_in_bash(tmp_path):
    program = tmp_path / "arb"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={REPOSITORY} exec {sys.executable} -m arb "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"HOME": str(tmp_path), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    (tmp_path / ".bashrc").touch()
    script = (
        "arb --install-completion bash && source ~/.bash_completions/arb.sh && complete -p arb\n"
        "COMP_WORDS=(arb judges run nnet) COMP_CWORD=3; _arb_completion arb; echo ${COMPREPLY[@]}"
    )
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "nnetnav", done.stderr
    assert "arb.sh" in (tmp_path / ".bashrc").read_text()


def test_an_extra_is_installed_from_the_checkout_or_into_what_was_installed(tmp_path, monkeypatch):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = {"all", "annotate", "inspect", "providers", "ray", "record", "scout", "space", "transformers"}
    assert (project["name"], {*project["optional-dependencies"]}) == (files.PROJECT, extras)
    assert files.install_command("ray") == "pip install '.[ray]'"
    monkeypatch.setattr(files, "__file__", str(tmp_path / "arb" / "core" / "files.py"))
    assert files.install_command("ray") == "pip install 'agent-reward-bench-space[ray]'"
    guide = (REPOSITORY / "docs" / "index.md").read_text()
    assert all(f"`{extra}`" in guide for extra in extras)


def project() -> dict:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def bounds(lines: Iterable[str]) -> dict[str, SpecifierSet]:
    """The bounds of each requirement by its name; of several with one name the last."""
    return {wanted.name: wanted.specifier for wanted in map(Requirement, lines)}


def test_requirements_txt_has_the_bounds_of_the_base_and_the_space_and_the_clients_of_models():
    extras = project()["optional-dependencies"]
    clients = [
        line for line in extras["providers"] + extras["transformers"] if line.startswith(("openai", "trans"))
    ]
    lines = (REPOSITORY / "requirements.txt").read_text().splitlines()[1:]
    assert bounds(lines) == bounds([*project()["dependencies"], *extras["space"], *clients])


def test_a_library_that_only_the_space_needs_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    told = CliRunner().invoke(group_that_imports("sqlalchemy"), ["run"])
    assert told.exit_code == 2
    assert "this command needs sqlalchemy, which is not installed; run pip install '.[space]'" in told.output
    monkeypatch.setitem(sys.modules, "their_module", None)
    told = CliRunner().invoke(group_that_imports("their_module"), ["run"])
    assert isinstance(told.exception, ModuleNotFoundError)  # of a judge of the user's own, say


def group_that_imports(module: str) -> typer.Typer:
    group = new_command()
    group.callback()(lambda: None)
    group.command("run")(lambda: import_module(module) and None)
    return group


@pytest.mark.parametrize("module", ["arb", *(package for package, _ in PACKAGES.values()), "space.app"])
def test_an_old_python_is_refused_in_one_line(module):
    """Also in a checkout where nothing is installed (``-S``): no library that is missing is named instead."""
    code = (
        "import runpy, sys; sys.version_info = (3, 10, 13); "
        "runpy.run_module(sys.argv[1], run_name='__main__', alter_sys=True)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, module], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert re.fullmatch(r"AgentRewardBench needs Python 3\.11 or newer; .* is Python \S+\.\n", done.stderr), (
        done.stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize("gradio", ["6.28.0", "6.31.0"])
def test_the_space_can_be_installed_next_to_what_the_hub_installs_for_gradio(tmp_path, gradio):
    wanted = [f"gradio[oauth,mcp]=={gradio}", "uvicorn>=0.14.0", "websockets>=10.4"]
    install = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    report = tmp_path / "report.json"
    done = subprocess.run(
        [*install, "--report", str(report), *wanted, "-r", str(REPOSITORY / "requirements.txt")],
        capture_output=True, text=True, timeout=540,
    )  # fmt: skip
    if done.returncode and re.search(r"connection|Temporary failure|from versions: none", done.stderr):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr[-2000:]
    found = {
        each["metadata"]["name"]: each["metadata"]["version"]
        for each in json.loads(report.read_text())["install"]
    }
    assert found["gradio"] == gradio and found["mcp"].startswith("1.")


def dockerfile(instruction: str) -> list[str]:
    """What follows an instruction of the Dockerfile, each time."""
    lines = (REPOSITORY / "Dockerfile").read_text().splitlines()
    return [line.removeprefix(f"{instruction} ") for line in lines if line.startswith(f"{instruction} ")]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory, docs_site) -> Path:
    """Made of what gets into the image's build, in a fresh folder, with what `make docs` builds."""
    folder = tmp_path_factory.mktemp("wheel")
    ignored = (REPOSITORY / ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*" and dockerfile("COPY") == [". /source"]
    for name in (line[1:] for line in ignored if line.startswith("!") and line != "!site"):
        path = REPOSITORY / name
        if path.is_dir():
            shutil.copytree(path, folder / "source" / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (folder / "source").mkdir(exist_ok=True)
            shutil.copy(path, folder / "source")
    shutil.copytree(docs_site, folder / "source" / "site")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), "."]
    subprocess.run(build, cwd=folder / "source", check=True, timeout=300)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def home(wheel, tmp_path_factory) -> Path:
    """A folder of its own, with an environment of the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("home")
    python = make_environment(folder / "environment", REPOSITORY / "requirements.txt", OF_A_CLUSTER)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*install, str(wheel)], check=True, timeout=300)
    return folder


@pytest.fixture(scope="module")
def base(wheel, tmp_path_factory) -> Path:
    """Like ``home``, with what `pip install .` installs."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "base.txt").write_text("\n".join(project()["dependencies"]))
    python = make_environment(folder / "environment", folder / "base.txt")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*install, str(wheel)], check=True, timeout=300)
    return folder


@pytest.mark.slow
def test_the_base_runs_scores_and_lists_judges_and_names_the_extra_of_other_commands(base):
    for line in (
        "judges run always-successful --split dev --out run", "judges list",
        "judges plan gpt-4o-mini-noscreen --split dev", "leaderboard board",
        "submissions check run/predictions.jsonl --split dev",
        "score run/predictions.jsonl --split dev",
    ):  # fmt: skip
        done = arb(base, *line.split())
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    load = f"from datasets import load_dataset; print(len(load_dataset({str(SAMPLE)!r})['dev']) > 0)"
    done = subprocess.run(
        [base / "environment" / "bin" / "python", "-c", load],
        env=variables(base),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "True\n", done.stderr
    for line in ("space serve", "submissions verify", "submissions annotate status", "space token ada"):
        done = arb(base, *line.split())
        assert done.returncode == 2, f"{line}\n{done.stderr}"
        (said,) = done.stderr.splitlines()
        assert said.endswith("which is not installed; run pip install 'agent-reward-bench-space[space]'")


def arb(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """`arb` in that folder; nothing of the checkout is on its path."""
    program = home / "environment" / "bin" / "arb"
    return subprocess.run(
        [program, *arguments], cwd=home, env=variables(home) | environment, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip


def variables(home: Path) -> dict[str, str]:
    shared = {name: os.environ[name] for name in ("PATH", "LANG", "XDG_CACHE_HOME") if name in os.environ}
    return {**shared, "HOME": str(home), "NO_PROXY": "127.0.0.1", "ARB_SUITE": "sample"}


@pytest.mark.slow
def test_the_wheel_has_the_data_and_no_tests_and_is_small(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.stat().st_size <= MOST_BYTES
    assert {"arb/CHANGELOG.md", "arb/requirements.txt", "space/static/style.css"} <= {*names}
    assert {"arb/site/index.html", "arb/site/search/search_index.json"} <= {*names}
    assert not [name for name in names if name.endswith(".map")]
    assert "dataset_script/sample/data/manifest.json" in names
    assert not [name for name in names if name.split("/")[0] in ("tests", "bench", "tools", "docs")]


@pytest.mark.slow
def test_a_judge_is_run_checked_and_scored(home):
    run = arb(home, "judges", "run", "always-successful", "--split", "dev", "--out", "run")
    assert run.returncode == 0, run.stderr
    checked = arb(home, "submissions", "check", "run/predictions.jsonl", "--split", "dev")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    scored = arb(home, "score", "run/predictions.jsonl", "--split", "dev", "--json")
    overall = json.loads(scored.stdout)["labels"]["success"]["overall"]
    assert overall["recall"] == 1  # it calls every trajectory successful
    board = arb(home, "leaderboard", "board", "--json")
    assert board.returncode == 0 and json.loads(board.stdout)["rows"]


@pytest.fixture
def reader(home, tmp_path) -> Reader:
    for each in ("work", "home"):
        (tmp_path / each).mkdir()
    return Reader(tmp_path / "work", home / "environment" / "bin", tmp_path / "home")


@pytest.mark.slow
@pytest.mark.parametrize("page", FOLLOWED)
def test_every_page_can_be_followed_with_the_wheel_alone(reader, page):
    follow_and_check(reader, page)


@pytest.mark.slow
def test_the_guide_to_a_suite_ends_with_a_corrected_leaderboard_of_ones_own_with_the_wheel(reader):
    recorded = Path("dataset_script") / "sample"  # the guide reads the sample's recordings in a checkout
    shutil.copytree(REPOSITORY / recorded, reader.folder / recorded)
    follow_own_suite(reader)


@pytest.fixture(scope="module")
def extended(home, tmp_path_factory) -> Path:
    """The same environment with the packages of ``examples/``, installed as their guide says."""
    python = home / "environment" / "bin" / "python"
    shutil.copytree(REPOSITORY / "examples", home / "examples")
    packages = [f"./examples/{name}" for name in ("judge", "source", "provider")]
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*install, *packages], cwd=home, check=True, timeout=300)
    return home


@pytest.mark.slow
def test_a_judge_and_a_provider_of_packages_judge_together(extended):
    with LLMServer(script=lambda request: "Status: success") as server:
        address = server.base_url.removeprefix("http://").removesuffix("/v1")
        run = arb(
            extended, "judges", "run", "No failed action", "--split", "dev", "--provider", "our-server",
            "--model", "some-model", "--out", "plug-in-run",
            OUR_SERVER_KEY="none", OUR_SERVER_HOST=address,
        )  # fmt: skip
    assert run.returncode == 0, run.stderr
    scored = arb(extended, "score", "plug-in-run/predictions.jsonl", "--split", "dev", "--json")
    assert json.loads(scored.stdout)["labels"]["success"]["overall"]["recall"] > 0


@pytest.mark.slow
def test_the_metric_is_loaded_from_the_path_that_is_printed(home):
    path = arb(home, "metric", "path").stdout.strip()
    assert Path(path).is_relative_to(home)
    code = (
        "import sys, evaluate\n"
        "print(evaluate.load(sys.argv[1]).compute(predictions=[1, 1, 0], references=[1, 0, 0])['precision'])"
    )
    python = home / "environment" / "bin" / "python"
    command = [python, "-c", code, path]
    done = subprocess.run(command, cwd=home, env=variables(home), capture_output=True, text=True, timeout=300)
    assert done.stdout.split() == ["0.5"], done.stderr  # one of two called successful is


@pytest.mark.slow
def test_the_images_command_serves_space_and_documentation_and_its_health_check_passes(home):
    held = hold_port()
    environment = variables(home) | {"ARB_PORT": str(port_of(held)), "ARB_STATE_DIR": str(home / "state")}
    environment |= {"ARB_SUITE": "agent-reward-bench", "ARB_LABELS": "none"}
    environment["PATH"] = f"{home / 'environment' / 'bin'}{os.pathsep}{environment['PATH']}"
    (command,), (health,) = map(json.loads, dockerfile("CMD")), dockerfile("HEALTHCHECK")
    with (home / "space.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=home, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 300
        while True:
            try:
                page = httpx.get(f"http://127.0.0.1:{port_of(held)}/about", trust_env=False, timeout=60)
                break
            except httpx.TransportError:
                assert process.poll() is None and time.monotonic() < deadline, log_of(home)
                time.sleep(0.2)
        assert page.status_code == 200
        documentation = httpx.get(f"{page.url.join('/docs/')}", trust_env=False, timeout=60)
        assert "mkdocs" in documentation.text and documentation.status_code == 200
        changes = httpx.get(f"{page.url.join('/docs/reference/changes.html')}", trust_env=False, timeout=60)
        assert f"{__version__} · " in changes.text and "/docs/reference/changes.html" in page.text
        check = health.partition("CMD ")[2]
        assert subprocess.run(check, shell=True, env=environment, timeout=180).returncode == 0
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=180)
        held.close()
    assert "Traceback" not in log_of(home)


def log_of(home: Path) -> str:
    return (home / "space.log").read_text()


@pytest.mark.slow
def test_it_is_deployed_without_a_checkout(home, monkeypatch):
    with running_hub(monkeypatch) as hub:
        hub.commit(DATA, {"manifest.json": b"{}"})
        names = ("--space", SPACE, "--data", DATA, "--private", RECORDS, "--board", BOARD)
        done = arb(
            home, "space", "deploy", *names, "--maintainer", "ada", ARB_SUITE="agent-reward-bench",
            HF_ENDPOINT=hub.url, HF_TOKEN=TOKEN, HF_HUB_DISABLE_XET="1",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        sent = hub.api.repositories[f"spaces/{SPACE}"].head.files
    assert {"app.py", "requirements.txt", "CHANGELOG.md", "space/app.py", "arb/core/suite.py"} <= {*sent}
    assert {"site/index.html", "site/reference/commands.html"} <= {*sent}
    assert not [name for name in sent if name.startswith(("arb/site", "arb/CHANGELOG", "tests/"))]


@pytest.mark.slow
def test_dataset_metric_and_leaderboard_are_published_without_a_checkout(home, monkeypatch):
    (sample,) = home.glob("environment/lib/python*/site-packages/dataset_script/sample/data")
    with running_hub(monkeypatch) as hub:
        done = arb(
            home, "hub", "publish-all", "maintainer", "--data", str(sample), "--json",
            HF_ENDPOINT=hub.url, HF_TOKEN=TOKEN, HF_HUB_DISABLE_XET="1",
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        repositories = {*hub.api.repositories}
    assert all(target["state"] in ("published", "there") for target in json.loads(done.stdout))
    assert {"maintainer/sample", "spaces/maintainer/judge_precision"} < repositories
