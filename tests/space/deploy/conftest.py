"""A Hub with a published dataset, and a deployment of a few small files."""

from pathlib import Path

import pytest

from space.deploy.deployer import Deployment
from tests.support.hub_server.answers import Account
from tests.support.hub_server.server import running_hub

SPACE, DATA = "maintainer/leaderboard", "maintainer/trajectories"
RECORDS, BOARD = "maintainer/records", "maintainer/board"
TOKEN = "hf_maintainer"


@pytest.fixture
def hub(monkeypatch):
    with running_hub(monkeypatch) as server:
        server.commit(DATA, {"manifest.json": b"{}"})
        server.api.accounts["hf_reader"] = Account("reader", may_write=False)
        yield server


@pytest.fixture
def deployment() -> Deployment:
    return Deployment(SPACE, DATA, RECORDS, BOARD, "agent-reward-bench", "wheel", ("ada", "bob"))


@pytest.fixture
def files(tmp_path) -> dict[str, Path]:
    """Return two files in the form of `space_files`."""
    texts = {"space/app.py": "x = 1\n", "requirements.txt": "gradio\n"}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in texts}


def space_of(hub):
    """Return the Space on the Hub."""
    return hub.api.repositories[f"spaces/{SPACE}"]


def content(repository) -> dict[str, bytes]:
    """Return the files of the head, without the file that every new repository has."""
    return {
        path: file.data if isinstance(file.data, bytes) else file.data.read_bytes()
        for path, file in repository.head.files.items()
        if path != ".gitattributes"
    }
