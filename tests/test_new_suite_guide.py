"""docs/new_suite.md, line by line on the sample's recordings: it ends with a leaderboard of one's own."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from arb.core.suites.profile import OPTIONAL_PAGES
from tests.space.test_another_suite import NAME, cut_citation
from tests.support.commands import path_with_arb
from tests.support.hub_server.answers import Account
from tests.support.hub_server.server import HubServer
from tests.support.pages import blocks, commands_of
from tests.support.ports import hold_port, port_of

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[1]
GUIDE = (REPOSITORY / "docs" / "new_suite.md").read_text(encoding="utf-8")
IN_A_CHECKOUT = ("arb", "dataset_script", "leaderboard", "submissions", "space")
BESIDE = ("CHANGELOG.md", "LICENSE", "requirements.txt")
SERVE = "arb space serve"
SECONDS = 300


class Follower:
    """Types the commands of the guide in a fresh checkout, letter by letter. Environment variables alone say
    that the Hub is the local one, and the Space at a free port."""

    def __init__(self, folder: Path, hub: HubServer) -> None:
        self.checkout, self.ours = folder / "checkout", folder / "ours"
        self.home, self.hub = folder / "home", hub
        for each in (self.checkout, self.home):
            each.mkdir()
        for name in IN_A_CHECKOUT:
            shutil.copytree(
                REPOSITORY / name, self.checkout / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in BESIDE:
            shutil.copy(REPOSITORY / name, self.checkout)
        self._held = hold_port()
        self.port = port_of(self._held)
        self.address = f"http://127.0.0.1:{self.port}"
        self.exports: list[str] = []
        self.said: dict[str, str] = {}

    def type(self, line: str) -> None:
        """One line of the guide; an export holds for the lines after it."""
        if line.startswith("export "):
            self.exports.append(line)
            return
        done = subprocess.run(
            self._shell(line), cwd=self.checkout, env=self._environment(), capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
        self.said[line] = done.stdout

    @contextmanager
    def serving(self) -> Iterator[httpx.Client]:
        """The Space, in the terminal of its own that the guide speaks of."""
        with (self.home / "space.log").open("wb") as log:
            command, environment = self._shell(f"exec {SERVE}"), self._environment()
            process = subprocess.Popen(command, cwd=self.checkout, env=environment, stdout=log, stderr=log)
        try:
            with httpx.Client(base_url=self.address, timeout=300, trust_env=False) as client:
                self._wait_for(client, process)
                yield client
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=300)

    def _wait_for(self, client: httpx.Client, process: subprocess.Popen) -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and process.poll() is None:
            try:
                client.get("/healthz")
                return
            except httpx.TransportError:
                time.sleep(0.2)
        raise AssertionError(f"the Space does not answer:\n{(self.home / 'space.log').read_text()}")

    def _shell(self, line: str) -> list[str]:
        return ["bash", "-c", "\n".join(["set -eu -o pipefail", *self.exports, line])]

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        return {
            **kept,
            "PATH": path_with_arb(self.home / "bin"),
            "HOME": str(self.home),
            "ARB_PORT": str(self.port),
            "HF_ENDPOINT": self.hub.url,
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "GRADIO_ANALYTICS_ENABLED": "False",
            "NO_PROXY": "127.0.0.1",
        }


def test_the_guide_line_by_line_ends_with_a_leaderboard_of_ones_own(tmp_path):
    lines = [line for _, _, block in blocks(GUIDE) for line in commands_of(block)]
    assert lines.count(SERVE) == 1
    before, after = lines[: lines.index(SERVE)], lines[lines.index(SERVE) + 1 :]
    with HubServer() as hub:
        hub.api.accounts["hf_your_token"] = Account("you")
        follower = Follower(tmp_path, hub)
        for line in before:
            follower.type(line)
        with follower.serving() as space:
            for line in after:
                follower.type(line)
            check_leaderboard(space, follower)
            check_name(space)
        check_hub(hub, follower)
        check_dry_run(follower.said[lines[-1]])
        assert not NAME.search((follower.home / "space.log").read_text())


def check_leaderboard(space: httpx.Client, follower: Follower) -> None:
    """The Space serves the new suite, and its submitter finds the receipt."""
    health = space.get("/readyz").json()
    assert (health["status"], health["suite"], health["submissions"]) == ("ok", "our-bench", "open")
    versions = follower.said["arb submissions label-versions"]
    assert versions.startswith(health["label_version"])
    assert space.get("/api/board.json").json()["suite"] == "our-bench"
    (said,) = (said for line, said in follower.said.items() if "submissions submit" in line)
    submission = re.search(r"^predictions.jsonl submitted: (\S+), SHA-256 ", said, re.MULTILINE)[1]
    assert space.get(f"/mine/{submission}").status_code != 200  # not for everybody
    space.post("/sign-in", data={"name": "ada"}, headers={"Sec-Fetch-Site": "same-origin"})
    for page in ("/annotate", "/discuss", f"/mine/{submission}"):
        assert space.get(page).status_code == 200, page
    receipt = space.get(f"/api/submissions/{submission}").json()
    assert (receipt["judge"], receipt["account"], receipt["suite"]) == (
        "Our rules",
        "ada",
        "our-bench",
    )
    assert receipt["label_version"] == health["label_version"] and receipt["signature"]
    assert receipt["report"]["labels"]["success"]["overall"]["n"] == 52


def check_hub(hub: HubServer, follower: Follower) -> None:
    """The data and the Space are public without a label of test; the labels lie in the private repository."""
    repositories = hub.api.repositories
    private = {name for name, repository in repositories.items() if repository.private}
    assert private == {"you/our-bench-labels", "you/our-bench-records"}
    labels = (follower.ours / "labels.csv").read_bytes()
    kept = repositories["you/our-bench-labels"].head.files["data/annotations.csv"]
    assert bytes_of(kept.data) == labels
    data, space = repositories["you/our-bench"], repositories["spaces/you/our-leaderboard"]
    for public in (data, space):
        assert labels not in [bytes_of(file.data) for file in public.head.files.values()]
    card = bytes_of(data.head.files["README.md"].data).decode()
    for text in (card.partition("## Citation")[0], bytes_of(space.head.files["README.md"].data).decode()):
        assert "# Our Bench\n" in text and not NAME.search(text)
    assert "72 runs of four agents. Licence: CC BY 4.0." in card
    published = bytes_of(space.head.files["arb/core/suites/our-bench/dev_labels.csv"].data).decode()
    # A header; 20 dev trajectories, six of them annotated twice, and one decision.
    assert published.count("\n") == 1 + 27
    assert published.splitlines()[0].endswith(",annotator,report,care")
    for decided in ("careful/sample-forum.4,1,true,", "hasty/sample-map.3,1,false,"):
        assert f"/ScriptedAgent-{decided}" in published
    assert space.variables["ARB_LABELS"] == "hub:you/our-bench-labels"
    assert json.loads(bytes_of(data.head.files["manifest.json"].data))["suite"] == "our-bench"


def check_name(space: httpx.Client) -> None:
    """Every page of the menu is that of Our Bench, and annotators answer its own questions."""
    paths = set(re.findall(r'<li><a href="(/[a-z-]*)"', space.get("/").text))
    assert paths == {"/", "/compare", "/my-agent", "/trajectories", "/labels", "/about"}
    below = {f"/{name}" for name in OPTIONAL_PAGES} - paths - {"/paper"}
    others = (*below, "/annotate", "/discuss", "/mine", "/maintain", "/api", "/api/openapi.json")
    for path in (*sorted(paths), *others):
        text = space.get(path).text
        text = cut_citation(text)[0] if path == "/about" else text
        assert "Our Bench" in text and not NAME.search(text), path
    space.post("/sign-in", data={"name": "cleo"}, headers={"Sec-Fetch-Site": "same-origin"})
    item = space.get("/annotate", params={"item": space.get("/api/annotate").json()["next"]}).text
    assert "Did it check its work before it stopped?" in item and not NAME.search(item)


def check_dry_run(said: str) -> None:
    """It says how much goes where, and no file by its name."""
    assert re.search(r"^  arb/core/suites/our-bench/ +5 files", said, re.MULTILINE), said
    assert len(said.splitlines()) < 35 and ".py" not in said.replace("app.py", "")


def bytes_of(data: bytes | Path) -> bytes:
    return data if isinstance(data, bytes) else data.read_bytes()
