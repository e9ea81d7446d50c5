"""Tests of a deployed Space in a new environment, started as the Hub starts a Gradio Space."""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml
from gradio_client import Client
from huggingface_hub import HfApi, snapshot_download

from arb.core.settings import Settings
from arb.core.suite import load_suite
from space.deploy.commands import checked_files
from space.deploy.deployer import MOUNTED_AT, Deployer, Deployment
from space.pages.trajectories.dataset import SAMPLE_DATA
from tests.space.deploy.conftest import BOARD, DATA, RECORDS, SPACE, TOKEN, space_of
from tests.space.deploy.fresh_environment import make_environment
from tests.support.hub_server.server import HubServer
from tests.support.ports import hold_port, port_of
from tests.support.submissions import FORM, TASKS, verdicts, write_suite
from tests.support.waiting import START_SECONDS, eventually, until_served

pytestmark = pytest.mark.slow
LABELS = "maintainer/labels"
SECRETS = {"HF_TOKEN": TOKEN, "ARB_SECRET": "8af452d2ec9a11e12d03ba5faad701fe"}


@pytest.fixture
def deployed(hub: HubServer, tmp_path) -> Path:
    """Deploy a suite with its own labels, and return a folder with the files that the Hub has."""
    write_suite(tmp_path / "made")
    labels = (tmp_path / "made" / "labels.csv").read_bytes()
    hub.repository(LABELS, private=True)
    hub.commit(LABELS, {"data/annotations.csv": labels})
    hub.add_folder(DATA, SAMPLE_DATA)
    folder = tmp_path / "made" / "small"
    deployment = Deployment(SPACE, DATA, RECORDS, BOARD, "small", f"hub:{LABELS}", ("ada",))
    files = checked_files({str(folder): load_suite(folder)}, Settings())
    Deployer(HfApi(endpoint=hub.url, token=TOKEN)).deploy(deployment, files)
    snapshot_download(SPACE, repo_type="space", local_dir=tmp_path / "app", endpoint=hub.url, token=TOKEN)
    return tmp_path / "app"


@contextmanager
def started(folder: Path, python: Path, hub: HubServer) -> Iterator[httpx.Client]:
    """Start the Space in a process without access to this checkout. Its log is ``space.log``."""
    home = folder.parent
    held = hold_port()
    port = port_of(held)
    mounted = home / "mounted"  # a container would have it at MOUNTED_AT
    if not mounted.exists():
        snapshot_download(DATA, repo_type="dataset", local_dir=mounted, endpoint=hub.url, token=TOKEN)
    variables = space_of(hub).variables
    assert variables["ARB_DATA_DIR"] == MOUNTED_AT
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "PYTHONUNBUFFERED": "1",
        **variables, **SECRETS, "ARB_DATA_DIR": str(mounted), "ARB_PORT": str(port),
        "SYSTEM": "spaces", "GRADIO_SERVER_NAME": "0.0.0.0", "GRADIO_NUM_PORTS": "1", "SPACE_ID": SPACE,
        "SPACE_HOST": f"127.0.0.1:{port}",
        "HF_ENDPOINT": hub.url, "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1",
    }  # fmt: skip
    card = yaml.safe_load((folder / "README.md").read_text().split("---")[1])
    assert card["sdk"] == "gradio"
    with (home / "space.log").open("ab") as log:
        process = subprocess.Popen(
            [python, card["app_file"]], cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=300, trust_env=False) as client:
            until_served(str(client.base_url), lambda: process.poll() is not None, home / "space.log")
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=300)
        held.close()


def test_what_was_deployed_takes_a_submission_loses_its_disk_and_restores_it_from_the_hub(
    hub, deployed, tmp_path
):
    python = make_environment(tmp_path / "environment", deployed / "requirements.txt")
    suite = load_suite(tmp_path / "made" / "small")
    declared = {name: value for name, value in FORM.items() if name != "account"}
    sent = {
        "data": {**declared, "test_labels_used": "false"},
        "files": {"file": ("verdicts.jsonl", verdicts(suite, misses=2))},
        "headers": {"Authorization": f"Bearer {TOKEN}"},
    }
    with started(deployed, python, hub) as space:
        go_on = threading.Event()
        hub.fail("POST", "/commit/", first=lambda: go_on.wait(START_SECONDS))
        answer = space.post("/api/submissions", **sent)
        go_on.set()
        assert (answer.status_code, answer.json()["status"]) == (202, "waiting"), answer.text
        receipt, location, headers = answer.json(), answer.headers["location"], sent["headers"]
        eventually(lambda: space.get(location, headers=headers).json()["status"] == "accepted")
        board = space.get("/api/board.json").json()
        assert [row["id"] for row in board["rows"]] == [receipt["submission_id"]]
    shutil.rmtree(deployed / "state")
    with started(deployed, python, hub) as space:
        eventually(lambda: space.get("/api/board.json").json()["rows"])
        assert space.get("/api/board.json").json()["digest"] == board["digest"]
        again = space.post("/api/submissions", **sent).json()
        assert (again["is_new"], again["signature"]) == (False, receipt["signature"])


def test_what_was_deployed_serves_by_itself_in_a_fresh_environment(hub, deployed, tmp_path):
    python = make_environment(tmp_path / "environment", deployed / "requirements.txt")
    with started(deployed, python, hub) as space:
        health = space.get("/readyz").json()
        assert (health["status"], health["suite"], health["submissions"]) == ("ok", "small", "open")
        assert health["label_version"]
        page = space.get("/")
        assert page.status_code == 200 and "<title>Leaderboard · Small</title>" in page.text
        assert page.headers["content-security-policy"].endswith("frame-ancestors *")
        assert space.get("/api/board.json").json()["suite"] == "small"
        assert space.get("/api/judges").json()["judges"] == []
        client = Client(str(space.base_url), verbose=False)
        assert client.predict(api_name="/board")["suite"] == "small"
        assert space.get("/api").status_code == 200
        sample = load_suite("sample").split("dev")[0].trajectory_id  # of the dataset that is mounted
        assert (
            space.get("/api/screenshot", params={"trajectory_id": sample, "num": "last"}).status_code == 200
        )
        assert space.post("/api/submissions", files={"file": ("a.jsonl", b"{}")}).status_code == 401
        assert space.get("/metrics").status_code == 404
    log = (tmp_path / "space.log").read_text()
    requests = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert {"/healthz", "/", "/api/board.json"} <= {line.get("path") for line in requests}
    for hidden in (*SECRETS.values(), "Unsuccessful", *(task for _, task in TASKS)):
        assert hidden not in log
