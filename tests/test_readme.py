"""Every command and every Python block of the README and of the documentation works as it stands there.

`tests/support/pages.py` follows the pages: here in a clone, in `test_package.py` with the wheel alone. Those
that need people and a Hub are in `own_suite.py` next to it; `test_docs.py` names one with a test of its own.
"""

import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.space.deploy.fresh_environment import make_environment
from tests.support.own_suite import follow_own_suite
from tests.support.pages import FOLLOWED, OF_A_CLUSTER, Reader, blocks, commands_of, follow_and_check, text_of

REPOSITORY = Path(__file__).parents[1]
TEXT = "\n".join([*map(text_of, (*FOLLOWED, "docs/speed.md"))])
PACKAGES = ("arb", "dataset_script", "leaderboard", "submissions", "space")


def command_lines() -> list[str]:
    """Every command line of the pages."""
    found = (block for _, language, block in blocks(TEXT) if language == "bash")
    return [line.partition(" #")[0].strip() for block in found for line in commands_of(block)]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A clone with an environment in which `arb` is installed.

    Changes that are not committed yet are in it, too. No folder is next to it.
    """
    folder = tmp_path_factory.mktemp("clone") / "agent-reward-bench"
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, folder], check=True, timeout=300)
    changes = subprocess.run(["git", "diff", "HEAD", "--binary"], cwd=REPOSITORY, capture_output=True).stdout
    if changes:
        subprocess.run(["git", "apply"], cwd=folder, input=changes, check=True)
    python = make_environment(folder / ".venv", folder / "requirements.txt", OF_A_CLUSTER)
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "-e", "."], cwd=folder, check=True, timeout=300)
    return folder


@pytest.fixture
def reader(checkout, tmp_path) -> Reader:
    """A reader in the clone, without what the reader of another page wrote."""
    kept = [word for name in (".venv", "__pycache__") for word in ("--exclude", name)]
    subprocess.run(["git", "clean", "-fdxq", *kept], cwd=checkout, check=True)
    return Reader(checkout, checkout / ".venv" / "bin", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", FOLLOWED)
def test_every_page_can_be_followed_in_a_clone(reader, page):
    follow_and_check(reader, page)


@pytest.mark.slow
def test_the_guide_to_a_suite_ends_with_a_corrected_leaderboard_of_ones_own_in_a_clone(reader):
    follow_own_suite(reader)


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
    assert set(re.findall(r"(?:`|^)make ([a-z]+(?:-[a-z]+)*)", TEXT, flags=re.MULTILINE)) <= targets


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/score.md"])
def test_every_path_that_is_named_exists(name):
    text = re.sub(r"^```.*?^```", "", (REPOSITORY / name).read_text(), flags=re.MULTILINE | re.DOTALL)
    folders = "|".join((*PACKAGES, "tools", "bench", "docs", "tests"))
    named = set(re.findall(rf"[`(]((?:{folders})/[\w./-]*)[`)]", text))
    assert named
    assert [path for path in sorted(named) if not (REPOSITORY / path).exists()] == []
