"""The application on a port of its own, as gradio_client and an MCP client reach it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import uvicorn

from arb.core.settings import Settings
from arb.core.suite import load_suite
from space.app import create_app
from tests.support.hub_server.answers import Account
from tests.support.hub_server.server import running_hub
from tests.support.submissions import settings_for, verdicts

HOST = "ada-board.hf.space"
DECLARED = {"judge": "My judge", "kind": "LLM judge", "inputs": "caption", "test_labels_used": "no"}


@dataclass(frozen=True)
class Running:
    """A Space that serves, and a folder to write files to."""

    url: str
    folder: Path
    settings: Settings

    def file(self, content: bytes, name: str = "verdicts.jsonl") -> str:
        """The path of a file with this content."""
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def valid(self, split: str = "test", **options) -> bytes:
        """A valid prediction file."""
        return verdicts(load_suite(self.settings.suite), split, **options)


@contextmanager
def running(settings: Settings, folder: Path) -> Iterator[Running]:
    """Serve the application on a free port of this machine, in a thread."""
    folder.mkdir(parents=True, exist_ok=True)
    config = uvicorn.Config(create_app(settings), port=0, log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 180
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Running(f"http://127.0.0.1:{port}", folder, settings)
    server.should_exit = True
    server.force_exit = True
    thread.join(120)


@pytest.fixture(scope="module")
def space(suite_folder, tmp_path_factory) -> Iterator[Running]:
    """A Space on one's own machine."""
    folder = tmp_path_factory.mktemp("gradio")
    settings = settings_for(suite_folder, folder / "state", max_upload_bytes=100_000)
    with running(settings, folder / "files") as found:
        yield found


@pytest.fixture
def space_on_the_hub(suite_folder, tmp_path) -> Iterator[Running]:
    """A running Space whose readers have accounts on the Hub; Ada has a token."""
    settings = settings_for(
        suite_folder, tmp_path / "state", secret="eab69819ef1c1cd52f14e04168d8698e", space_id="ada/board",
        space_host=HOST, state_lasts=True,
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patched, running_hub(patched) as hub:
        hub.api.accounts["hf_token_of_ada"] = Account("ada")
        with running(settings, tmp_path / "files") as found:
            yield found
