"""Tests with thousands of hostile files: the real application answers each of them and takes no harm."""

import gc
import json
import logging
import os
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arb.core.settings import Settings
from space.app import create_app
from space.gradio_app.endpoints import Endpoints
from space.gradio_app.submit_page import check_html
from space.services import Services
from submissions.app import SubmissionsApp
from tests.conftest import REPOSITORY
from tests.space.conftest import tags_and_attributes
from tests.support.hostile import BOMBS, HostileFile, Kind, Row, hostile_files, name_as_sent, one_file_form

REAL = REPOSITORY.parent / "shared" / "data" / "agent-reward-bench" / "verdicts"
MB = 1 << 20
OWN_PROCESS = "HOSTILE_FILES_IN_OWN_PROCESS"
"""Set in the process that counts its memory."""
SHARES: dict[Kind, float] = {"jsonl": 0.45, "csv": 0.35, "foreign": 0.16, "parquet": 0.04}
"""Of all files; Parquet is read in a process of its own, half a second each."""


class Heard(logging.Handler):
    """Stores every log record: its line, and its other fields."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []
        self.failures: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = f"{self.format(record)} {vars(record)}"
        self.lines.append(line)
        if record.levelno >= logging.ERROR or record.exc_info or "Traceback" in line:
            self.failures.append(line)


@dataclass
class Served:
    """The running application, its log, and its responses so far."""

    client: TestClient
    service: SubmissionsApp
    heard: Heard
    codes: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    most_memory: int = 0
    """The most bytes that the process grew by while it answered one file."""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    state = tmp_path_factory.mktemp("state")
    given = Settings(labels="none", state_dir=state, checks_a_minute=1_000_000)
    heard = Heard()
    with TestClient(create_app(given), raise_server_exceptions=False) as client:
        logging.getLogger().addHandler(heard)
        yield Served(client, SubmissionsApp(given), heard)
        logging.getLogger().removeHandler(heard)


@pytest.fixture(scope="module")
def seeds(served) -> list[list[Row]]:
    """Return the rows of real verdict files if they are available, and of a file with every column."""
    ids = [trajectory.trajectory_id for trajectory in served.service.suite.split("test")]
    made = [
        {"trajectory_id": spelled, "success": place % 3 == 0, "score": place / len(ids), "state": "ok"}
        | {"side_effect": None, "optimality": 1 + place % 4, "cost_usd": 0.01, "reasoning": "it says so"}
        for place, spelled in enumerate(ids)
    ]
    real = [list(map(json.loads, path.read_text().splitlines())) for path in sorted(REAL.glob("*.jsonl"))]
    return [made, *real]


@pytest.fixture(scope="module")
def harmless_html(served) -> set[tuple[str, str]]:
    """Return every tag and attribute in the findings of harmless files."""
    (trajectory, *_) = served.service.suite.split("test")
    files = (
        b'{"trajectory_id": "nowhere", "success": "perhaps", "extra": 1}\n' * 9,
        b'{"trajectory_id": "a/b/c", "success": true}\n',
        b"",
        b"%PDF",
        "".join(
            f'{{"trajectory_id": "{trajectory.trajectory_id}", "success": true}}\n'
            for trajectory in served.service.suite.split("test")
        ).encode(),
        f'{{"trajectory_id": "{trajectory.trajectory_id}"}}\n'.encode(),
    )
    return set().union(*(tags_and_attributes(page_of(served, content)) for content in files))


def page_of(served: Served, content: bytes, name: str = "verdicts.jsonl", split: str = "test") -> str:
    """Return what the submit page shows for a file that was uploaded with its form."""
    body, headers = one_file_form(HostileFile(name, content), "files")
    answer = served.client.post("/gradio_api/upload", content=body, headers=headers)
    if answer.status_code != 200:
        assert answer.status_code == 413 or answer.json()["detail"].startswith("there is no file"), (
            answer.text
        )
        return ""
    (path,) = answer.json()
    html = check_html(Endpoints(Services(served.service, None)), path, split, None)
    Path(path).unlink()
    return html


def is_answered(served: Served, file: HostileFile, split: str) -> None:
    """Check a file over HTTP: the response must have findings, or say acceptable or too large."""
    body, headers = one_file_form(file, "file")
    answer = served.client.post(f"/api/check?split={split}", content=body, headers=headers)
    assert "Traceback" not in answer.text
    if answer.status_code == 413:
        assert len(file.content) > served.service.settings.max_upload_bytes
        assert "send a smaller file" in answer.json()["detail"]
        served.answers["too large"] += 1
        return
    if answer.status_code == 422:  # what a browser sends if no file is chosen
        assert (name_as_sent(file.name), file.content) == (b"", b"")
        assert answer.json()["detail"].startswith("there is no file")
        return
    assert answer.status_code == 200, answer.text
    report = answer.json()
    errors = [finding for finding in report["findings"] if finding["level"] == "error"]
    assert report["acceptable"] is not bool(errors)
    assert report["file"].isprintable()
    assert not set(report["file"]) & set("/\\")
    for finding in report["findings"]:
        assert finding["message"].isprintable()
        assert len(finding["message"]) < 3_000
    served.codes.update(finding["code"] for finding in report["findings"])
    served.answers["acceptable" if report["acceptable"] else "refused"] += 1


def send_all(served: Served, seeds: Sequence[Sequence[Row]], harmless_html, uploads: int) -> None:
    """Check many files over HTTP, and one in eight on the page too."""
    for kind, share in SHARES.items():
        sent = 0

        @settings(
            max_examples=round(share * uploads),
            derandomize=True,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(hostile_files(kind, seeds), st.sampled_from(("test", "test", "test", "dev")))
        def each(file: HostileFile, split: str) -> None:
            nonlocal sent
            sent += 1
            before = reset_peak()  # making a file takes hundreds of MB, which are not used by the server
            is_answered(served, file, split)
            if sent % 8 == 0:
                html = page_of(served, file.content, file.name, split)
                assert tags_and_attributes(html) <= harmless_html
            served.most_memory = max(served.most_memory, peak() - before)
            assert served.heard.failures == []

        each()
        assert sent >= round(share * uploads)
    assert not [line for line in served.heard.lines if "alert(1)" in line or "HYPERLINK" in line]


@pytest.fixture
def garbage_collected_as_in_the_server():
    """Freeze existing objects, as `space.__main__` does, so that only new garbage is collected.

    Otherwise Python runs a full collection only after objects have grown by a quarter of those that other
    tests left behind.
    """
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


@pytest.mark.slow
def test_five_thousand_hostile_files_are_answered_within_bounded_memory(request):
    """Runs in a separate process, because memory of other tests is not memory of the server."""
    if OWN_PROCESS in os.environ:
        fixtures = ("garbage_collected_as_in_the_server", "served", "seeds", "harmless_html")
        _, *given = map(request.getfixturevalue, fixtures)
        send_five_thousand(*given)
        return
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "PYTEST_"))
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", request.node.nodeid]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**environment, OWN_PROCESS: "1"},
        capture_output=True,
        text=True,
        timeout=3_000,
    )
    assert done.returncode == 0, done.stdout[-10_000:]
    assert "1 passed" in done.stdout


def send_five_thousand(served: Served, seeds: list[list[Row]], harmless_html: set[tuple[str, str]]) -> None:
    send_all(served, seeds, harmless_html, 250)
    assert served.answers["acceptable"] > 0
    assert served.answers["refused"] > 150
    for made in BOMBS:  # now everything exists that is made only once
        made()
    before = resident()
    served.codes.clear()
    send_all(served, seeds, harmless_html, 5_000)
    assert set(served.codes) >= {
        "invalid_json", "not_an_object", "duplicate_key", "json_array", "nan", "infinite", "out_of_range",
        "nul_bytes", "wrong_encoding", "line_ends", "empty_file", "no_rows", "compressed", "not_text",
        "encrypted", "broken_quotes", "field_count", "blank_rows", "missing_column", "duplicate_column",
        "unknown_columns", "too_many_columns", "too_many_rows", "too_large", "cell_too_long", "unknown_word",
        "wrong_type", "invalid_parquet", "malformed_id", "unknown_id", "wrong_split", "duplicate_id",
        "missing_id", "empty_id",
    }  # fmt: skip
    assert set(served.answers) == {"acceptable", "refused", "too large"}
    # Reading a file of 5 MB takes at most 120 MB. The process that reads Parquet has a separate limit.
    assert served.most_memory < 250 * MB
    assert resident() - before < 150 * MB


def reset_peak() -> int:
    """Reset `peak`, and return the memory of this process in bytes."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return resident()


def peak() -> int:
    """Return the most memory of this process since `reset_peak` in bytes, or 0 if the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1_024 for line in lines if line.startswith("VmHWM:")), 0)


def resident() -> int:
    """Return the memory of this process in bytes, or 0 if the system does not say."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * resource.getpagesize() if statm.exists() else 0
