"""Every command and every Python block of the README and of the documentation works as it stands there.

The guides have tests of their own: `test_new_suite_guide`, `test_own_agent_guide`, and the own judge's in
`tests/arb/judges/cli/test_certify.py`.
"""

import itertools
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from bench.space import free_port, serving
from tests.space.deploy.fresh_environment import make_environment
from tests.support.llm_server.process import LLMProcess
from tests.test_own_agent_guide import log

REPOSITORY = Path(__file__).parents[1]
PAGES = (
    "README.md",
    *(f"docs/{page}.md" for page in ("validate", "score", "run_judges", "data", "operate", "speed")),
)


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


OWN_AGENT = text_of("docs/own_agent.md").partition("\n## More\n")[2]
"""What follows its five commands."""
TEXT = "\n".join([*map(text_of, PAGES), OWN_AGENT])
ENDPOINT = "http://127.0.0.1:8000/v1"
SPACE = "http://127.0.0.1:7860"
"""What the README calls the reader's endpoint and Space; the test has its own."""
PACKAGES = ("arb", "dataset_script", "leaderboard", "submissions", "space")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, from the top."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def command_lines() -> list[str]:
    """Every command line without its comment, but those of `make`, which CI runs itself, and of `docker`.

    `tests/space/test_docker.py` runs what the image would run.
    """
    lines = [line.partition(" #")[0].strip() for block in blocks("bash") for line in block.splitlines()]
    return list(dict.fromkeys(line for line in lines if line and not line.startswith(("make ", "docker "))))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A clone with an environment in which `arb` is installed, and the logs of the guide to your own agent.

    Changes that are not committed yet are in it, too. No folder is next to it.
    """
    folder = tmp_path_factory.mktemp("clone") / "agent-reward-bench"
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, folder], check=True, timeout=300)
    changes = subprocess.run(["git", "diff", "HEAD", "--binary"], cwd=REPOSITORY, capture_output=True).stdout
    if changes:
        subprocess.run(["git", "apply"], cwd=folder, input=changes, check=True)
    python = make_environment(folder / ".venv", folder / "requirements.txt")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "-e", "."], cwd=folder, check=True, timeout=300)
    (folder / "logs").mkdir()
    (folder / "logs" / "first.json").write_text(json.dumps(log("lab/first", ["Bergen", "I give up."] * 20)))
    return folder


def reader(folder: Path) -> dict[str, str]:
    """The variables of a reader who has activated the environment; none is the product's."""
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    path = os.pathsep.join((str(folder / ".venv" / "bin"), "/usr/bin", "/bin"))
    return {**kept, "PATH": path, "HOME": str(folder.parent), "NO_PROXY": "127.0.0.1"}


def run_command(command: str, folder: Path) -> None:
    """Type a line in the folder."""
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=reader(folder), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert "python -m" not in done.stderr, done.stderr  # the next step is typed as `arb`


def run_python(block: str, folder: Path) -> None:
    environment = {**reader(folder), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        ["python", "-c", block], cwd=folder, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"


@pytest.mark.slow
def test_every_command_and_python_block_works_in_the_order_of_the_pages(checkout, tmp_path):
    found = command_lines()
    assert len(found) >= 5
    with LLMProcess() as endpoint:
        for command in found:
            run_command(command.replace(ENDPOINT, endpoint.base_url), checkout)
    environment = {"ARB_LABELS": "none", "ARB_STATE_DIR": str(tmp_path / "state"), "HF_HUB_OFFLINE": "1"}
    log = tmp_path / "space.log"
    with (
        free_port() as port,
        serving(log, ["space", "serve"], port, ARB_PORT=str(port), **environment) as url,
    ):
        for block in blocks("python"):
            run_python(block.replace(SPACE, url), checkout)


def test_the_readme_is_read_in_a_few_minutes_and_shows_the_top_of_the_board():
    from typer.testing import CliRunner

    from leaderboard.__main__ import app

    readme = text_of("README.md")
    assert len(readme.splitlines()) <= 120
    (shown,) = re.findall(r"^```text\n(.*?)^```", readme, flags=re.MULTILINE | re.DOTALL)
    board = [line.rstrip() for line in CliRunner().invoke(app, ["board"]).stdout.splitlines()]
    assert shown.splitlines() == board[2 : 2 + len(shown.splitlines())]


def test_every_setting_that_is_named_is_one_of_the_class():
    from arb.core.settings import Settings, variable_of

    settings = {variable_of(field) for field in Settings.model_fields}
    named = set(
        re.findall(r"`((?:ARB_|HF_TOKEN|DATABASE_URL|SPACE_|OAUTH_|OPENID_)\w*)", text_of("docs/operate.md"))
    )
    assert len(named) >= 5 and named <= settings


def test_what_the_commands_write_into_a_checkout_cannot_be_committed_by_accident(tmp_path):
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text((REPOSITORY / ".gitignore").read_text())
    words = [shlex.split(line) for line in command_lines()]
    pairs = [pair for line in words for pair in itertools.pairwise(line)]
    written = {name for option, name in pairs if option in ("--out", "--labels", "--draw", "--report", ">")}
    inside = {
        name for name in written if not name.startswith(("../", "$", "/", "FOLDER")) and ":" not in name
    }
    inside |= {"agent-reward-bench/manifest.json", "test.jsonl", "published-labels.csv", "labels.draw.json"}
    inside = {name if "." in name else f"{name}/file" for name in inside}
    assert inside >= {"runs/always/file", "to-label.csv", "to-label.draw.json"}
    command = ["git", "-C", str(tmp_path), "check-ignore", *inside]
    ignored = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert inside - {*ignored} == set()


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"`?make ([a-z]+(?:-[a-z]+)*)", TEXT)) <= targets


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/score.md"])
def test_every_path_that_is_named_exists(name):
    text = re.sub(r"^```.*?^```", "", (REPOSITORY / name).read_text(), flags=re.MULTILINE | re.DOTALL)
    folders = "|".join((*PACKAGES, "tools", "bench", "docs", "tests"))
    named = set(re.findall(rf"[`(]((?:{folders})/[\w./-]*)[`)]", text))
    assert named
    assert [path for path in sorted(named) if not (REPOSITORY / path).exists()] == []
