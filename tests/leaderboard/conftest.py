"""What the leaderboard's tests share: small suites, label files, real verdicts, a Hub on this machine."""

import csv
import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import numpy as np
import pytest

from arb.core.judge_info import JudgeInfo
from arb.core.suite import load_suite
from leaderboard.board.board import ScoredRecord
from leaderboard.judge_precision.scores import judge_scores
from leaderboard.labels.labels import LabelSet, load_labels
from leaderboard.labels.source import LabelsUnavailable, locate_labels

RELEASED_HEADER = (
    "annotator_name", "benchmark", "task_id", "model_name", "exp_name", "trajectory_success",
    "trajectory_side_effect", "trajectory_optimality", "trajectory_looping",
)  # fmt: skip


@pytest.fixture
def small_suite(tmp_path):
    """Two agents on three tasks: four trajectories of test, two of dev; no published dev labels."""
    rows = [
        ("visualwebarena/agent-a/visualwebarena.resized.7", "test"),
        ("visualwebarena/agent-b/visualwebarena.7", "test"),
        ("workarena/agent-a/workarena.servicenow.order-l2", "test"),
        ("workarena/agent-b/workarena.servicenow.order-l2", "test"),
        ("webarena/agent-a/webarena.1", "dev"),
        ("webarena/agent-b/webarena.1", "dev"),
    ]
    folder = tmp_path / "small"
    folder.mkdir()
    with (folder / "trajectories.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("trajectory_id", "split"), *rows])
    return load_suite(folder)


@pytest.fixture
def write_annotations(tmp_path):
    """A function that writes a CSV in the released format.

    Each row is (trajectory id, success, side effect, optimality, looping), then the annotator if it matters.
    """

    def write(rows, name="annotations.csv", newline="\n", encoding="utf-8") -> Path:
        path = tmp_path / name
        with path.open("w", newline="", encoding=encoding) as file:
            writer = csv.writer(file, lineterminator=newline)
            writer.writerow(RELEASED_HEADER)
            for trajectory_id, success, side_effect, optimality, looping, *annotator in rows:
                benchmark, agent, task = trajectory_id.split("/")
                who = annotator[0] if annotator else "A"
                writer.writerow(
                    [who, benchmark, task, agent, "exp", success, side_effect, optimality, looping]
                )
        return path

    return write


@pytest.fixture(scope="session")
def official_test_labels(official_settings) -> LabelSet:
    return load_labels(load_suite(), "test", official_settings)


@pytest.fixture(scope="session")
def real_verdicts(shared, official_test_labels):
    """A function that gives the verdicts of ``aer-c``, ``nnetnav`` or ``rule-based`` in the split's order."""
    suite = load_suite()

    def read(name: str) -> SimpleNamespace:
        lines = (shared / f"data/agent-reward-bench/verdicts/{name}.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        success = {suite.find(row["trajectory_id"]).trajectory_id: int(row["success"]) for row in rows}
        ordered = [success[t.trajectory_id] for t in official_test_labels.trajectories]
        return SimpleNamespace(success=np.array(ordered, dtype=np.int8), side_effect=None, repetition=None)

    return read


@pytest.fixture
def cache(tmp_path) -> Path:
    """The folder for fetched labels, not made yet."""
    return tmp_path / "cache"


@pytest.fixture
def unavailable():
    """A function that expects no labels from a source and gives the message."""

    def refuse(settings, fetch=True) -> str:
        with pytest.raises(LabelsUnavailable) as reason:
            locate_labels(settings, fetch)
        return str(reason.value)

    return refuse


@dataclass
class Hub:
    """A private dataset repository behind a token, served as the Hub serves it."""

    repo: str = "maintainer/labels"
    token: str = "hf_reader"
    revisions: dict[str, dict[str, bytes]] = field(default_factory=lambda: {"main": {}})
    requests: list[tuple[str, str, str | None]] = field(default_factory=list)

    def answer(self, path: str, bearer: str | None) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body; the error codes are those that the Hub sends."""
        prefix = f"/datasets/{self.repo}/resolve/"
        if bearer is None:
            return 401, {"X-Error-Message": "Invalid username or password."}, b""
        if bearer == "hf_of_another_user":  # valid, but it may not see the repository
            return 404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b""
        if bearer != self.token:
            return 401, {"X-Error-Message": "Invalid credentials in Authorization header"}, b""
        if not path.startswith(prefix):
            return 404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}, b""
        revision, _, name = path.removeprefix(prefix).partition("/")
        if revision not in self.revisions:
            return 404, {"X-Error-Code": "RevisionNotFound", "X-Error-Message": "Invalid rev id"}, b""
        commit = hashlib.sha1(repr(sorted(self.revisions[revision].items())).encode()).hexdigest()
        if name not in self.revisions[revision]:
            return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
        body = self.revisions[revision][name]
        return 200, {"X-Repo-Commit": commit, "ETag": f'"{hashlib.sha1(body).hexdigest()}"'}, body


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self):
            scheme, _, bearer = (self.headers["Authorization"] or "").partition(" ")
            path = unquote(self.path)
            hub.requests.append((self.command, path, bearer or None))
            status, headers, body = hub.answer(path, bearer if scheme == "Bearer" else None)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_GET = do_HEAD

        def log_message(self, *_):
            pass

    return Handler


@pytest.fixture
def hub(monkeypatch):
    """A running Hub that huggingface_hub's own client is pointed to; ``hub.stop()`` takes it down."""
    from huggingface_hub import constants
    from huggingface_hub.utils import close_session

    found = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(found))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()

    def stop():
        server.shutdown()
        server.server_close()
        thread.join()

    found.stop = stop
    endpoint = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    close_session()
    yield found
    close_session()
    if thread.is_alive():
        stop()


class Judged:
    """Judges of 120 runs on 60 tasks, two runs each, with labels drawn at random, and their records."""

    def __init__(self):
        self.labels = np.random.default_rng(0).integers(0, 2, 120)
        self.tasks = [f"task-{number // 2:02}" for number in range(120)]

    def verdicts(self, errors, misses=0, seed=1) -> np.ndarray:
        """Right verdicts but for so many false positives and misses, at random places."""
        generator = np.random.default_rng(seed)
        verdicts = self.labels.copy()
        verdicts[generator.permutation(np.flatnonzero(self.labels == 0))[:errors]] = 1
        verdicts[generator.permutation(np.flatnonzero(self.labels == 1))[:misses]] = 0
        return verdicts

    def record(
        self, name, verdicts, *, judge=None, account="alice", at="2026-01-01T00:00:00+00:00",
        version="0123456789ab", **other_labels,
    ) -> ScoredRecord:  # fmt: skip
        """A record as the submissions keep it; verdicts on other labels by their names."""
        labels = dict.fromkeys(("success", "side_effect", "repetition"))
        counts = {}
        for label, column in {"success": verdicts, **other_labels}.items():
            scores = judge_scores(column, self.labels, self.tasks, clusters=self.tasks, n_resamples=100)
            counts[label] = [[cell["tp"], cell["fp"]] for cell in scores.pop("by_benchmark").values()]
            labels[label] = {"overall": scores, "by_benchmark": {}, "by_agent": {}}
        return ScoredRecord(
            id=name, submitted_at=at,
            info=JudgeInfo(judge=judge or name, account=account, kind="Custom", inputs="tree", model="m",
                           authors="A", test_labels_used=False),
            file_sha256=hashlib.sha256(name.encode()).hexdigest(),
            report={"label_version": version, "labels": labels}, counts_by_task=counts,
        )  # fmt: skip


@pytest.fixture(scope="session")
def judged() -> Judged:
    return Judged()
