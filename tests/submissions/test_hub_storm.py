"""Stress test over HTTP: Spaces are killed repeatedly, and a third of the calls to the Hub fail."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from queue import Empty, SimpleQueue

import httpx
import pytest
from pydantic import SecretStr

from arb.core.settings import Settings
from arb.core.suite import Suite, load_suite
from submissions.records.database import snapshot
from submissions.records.event_log import events_after
from submissions.records.integrity import verify
from submissions.startup import open_service
from tests.support.hub_server.server import HubServer, running_hub
from tests.support.ports import hold_port, port_of
from tests.support.submissions import FORM, settings_for, verdicts, write_suite

REPOSITORY = Path(__file__).parents[2]
RECORDS, BOARD = "maintainer/records", "maintainer/board"
RULES = 'labels = "public"\ntrivial_judges = false\n[rules]\nfiles_a_day = 2\nfiles_a_year = 20\n'
ACCOUNTS, KILLS, CLIENTS, SECONDS = 40, 20, 16, 1_200
PACE = 0.02
"""Clients wait as long as they are told to by Retry-After, in a time that goes fifty times as fast: pauses of
the Space are as much shorter (`hub_storm_process`)."""
NO_ANSWER_SECONDS = 10.0
"""How long a client waits where nothing answers: a Space is started in some seconds."""


@dataclass(frozen=True)
class Job:
    """A file to submit for an account."""

    account: str
    file: int

    def content(self, suite: Suite) -> bytes:
        """Return a file that no other account has."""
        return verdicts(suite, misses=self.file, reasoning=f"as {self.account} sees it")


def jobs() -> list[Job]:
    """Return 200 jobs in random order: half of the accounts send five files each, the rest two files
    repeatedly.
    """
    drawn = random.Random(20)
    sent = [
        Job(f"Account {n}", file)
        for n in range(ACCOUNTS)
        for file in (range(5) if n % 2 else (0, 1, 0, 1, 0))
    ]
    drawn.shuffle(sent)
    return sent


class Starter:
    """The process that starts Spaces."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hub_storm_process"],
            cwd=REPOSITORY, env={**os.environ, **environment}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self._log, text=True,
        )  # fmt: skip
        assert self._process.stdout.readline() == "ready\n", log.read_text()

    def start(self, port: int, state: Path) -> int:
        """Start a Space and return its process id."""
        self._process.stdin.write(f"{port} {state}\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate("end\n", timeout=120)
        self._log.close()


class StormSpace:
    """A Space that can be killed and started again on the same port, with the same state folder."""

    def __init__(self, starter: Starter, state: Path) -> None:
        self._starter, self.state = starter, state
        self._held = hold_port()
        self.url = f"http://127.0.0.1:{port_of(self._held)}"
        self._process: int | None = None

    def start(self) -> None:
        self._process = self._starter.start(port_of(self._held), self.state)

    def kill(self) -> None:
        """Kill the Space, and wait until it is gone."""
        if self._process is None:
            return
        os.kill(self._process, signal.SIGKILL)
        deadline = time.monotonic() + 120
        while _is_alive(self._process):
            assert time.monotonic() < deadline
            time.sleep(0.005)
        self._process = None

    def close(self) -> None:
        self.kill()
        self._held.close()


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@dataclass
class Answers:
    """The final response to each job, and every receipt with the status ``accepted``."""

    waiting: SimpleQueue = field(default_factory=SimpleQueue)
    definite: list[tuple[Job, str]] = field(default_factory=list)
    accepted: dict[Job, set[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    statuses: Counter = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, job: Job, answer: httpx.Response | None) -> float:
        """Store a response; return the seconds until the job is sent again, or 0 if the response is final."""
        with self.lock:
            status = answer.status_code if answer is not None else "no answer"
            self.statuses[status] += 1
            if answer is None:
                return NO_ANSWER_SECONDS
            found = answer.json() if status in (200, 201, 202) else {}
            if found.get("status") == "accepted":
                self.accepted.setdefault(job, set()).add(found["submission_id"])
                self.definite.append((job, "accepted"))
            elif status == 429 and "next_at" in answer.json():
                self.definite.append((job, "limit"))
            elif found.get("status") == "waiting" or status == 503:
                return float(answer.headers["Retry-After"])
            else:
                self.problems.append(f"{job}: {status} {answer.text[:500]}")
        return 0.0


def send_until_definite(urls: Sequence[str], suite: Suite, answers: Answers, stop: threading.Event) -> None:
    """Send jobs, each repeatedly as the responses ask, until the response is final."""
    addresses = cycle(urls)
    with httpx.Client(timeout=60, trust_env=False) as client:
        while not stop.is_set():
            try:
                job = answers.waiting.get(timeout=0.1)
            except Empty:
                continue
            form = {**FORM, "account": job.account, "test_labels_used": "false"}
            content, pause = job.content(suite), 1.0
            while pause and not stop.is_set():
                file = {"file": ("verdicts.jsonl", content)}
                try:
                    answer = client.post(f"{next(addresses)}/api/submissions", data=form, files=file)
                except httpx.TransportError:
                    answer = None
                pause = answers.take(job, answer)
                time.sleep(PACE * pause)


def read_until_stopped(urls: Sequence[str], answers: Answers, stop: threading.Event) -> None:
    """Read the board repeatedly and check that no judge is on it twice."""
    addresses = cycle(urls)
    with httpx.Client(timeout=60, trust_env=False) as client:
        while not stop.wait(PACE * 20):
            url = next(addresses)
            try:
                page, board = client.get(url), client.get(f"{url}/api/board.json")
            except httpx.TransportError:
                continue
            ids = Counter(row["id"] for row in board.json()["rows"]) if board.status_code == 200 else None
            if page.status_code != 200 or ids is None or (ids and max(ids.values()) > 1):
                answers.problems.append(f"read: {page.status_code} {board.status_code} {board.text[:500]}")


@pytest.fixture(scope="module")
def limited_suite(tmp_path_factory) -> Path:
    """Return the synthetic suite with a limit of two files per account and day."""
    folder = tmp_path_factory.mktemp("limited")
    write_suite(folder)
    (folder / "small" / "suite.toml").write_text(RULES)
    return folder


@pytest.fixture
def failing_hub(monkeypatch) -> Iterator[HubServer]:
    """Yield a Hub that fails a third of all calls, half of them after doing what was asked."""
    draw = random.Random(3)
    with running_hub(monkeypatch) as hub:
        for method in ("GET", "HEAD", "POST", "PUT"):
            hub.fail(method, ".*", times=10**9, status=503, chance=lambda: draw.random() < 1 / 6)
            # 1/6 / (5/6) = 1/5 of the other calls, so a third of all calls fail.
            hub.fail(method, ".*", times=10**9, status=500, after=True, chance=lambda: draw.random() < 1 / 5)
        yield hub


VARIANTS = {
    "a lasting disk": {"ARB_STATE_LASTS": "true"},
    "a disk that is wiped": {"ARB_STATE_LASTS": "false"},
    "two replicas over PostgreSQL": {"ARB_STATE_LASTS": "false"},
}


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_in_a_storm_every_acknowledged_submission_is_kept_once_and_limits_are_exact(
    variant, limited_suite, failing_hub, tmp_path, request
):
    has_replicas, is_wiped = variant == "two replicas over PostgreSQL", variant == "a disk that is wiped"
    states = [tmp_path / name for name in ("one", "two")[: 1 + has_replicas]]
    database_url = request.getfixturevalue("postgres_url") if has_replicas else None
    environment = {
        "ARB_SUITE": str(limited_suite / "small"),
        "ARB_LABELS": f"csv:{limited_suite / 'labels.csv'}",
        "ARB_RECORDS_REPO": RECORDS,
        "ARB_BOARD_REPO": BOARD,
        "ARB_SECRET": "4f6f7adf61dd3b34cf532eae18d05771",
        "ARB_CHECKS_A_MINUTE": "1000000",
        "HF_TOKEN": "hf_maintainer",
        "HF_ENDPOINT": failing_hub.url,
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
        **VARIANTS[variant],
        **({"DATABASE_URL": database_url} if database_url else {}),
    }
    settings = settings_for(
        limited_suite, states[0], database_url=database_url, secret="4f6f7adf61dd3b34cf532eae18d05771"
    )
    answers, log = Answers(), tmp_path / "server.log"
    with ExitStack() as opened:
        starter = Starter(environment, log)
        opened.callback(starter.close)
        spaces = [StormSpace(starter, state) for state in states]
        for space in spaces:
            opened.callback(space.close)
        kills = rage(spaces, answers, load_suite(settings.suite), is_wiped)
    assert answers.problems == []
    assert kills == KILLS
    failing_hub.faults.clear()
    check(answers, settings, tmp_path)
    assert "Traceback" not in log.read_text()


def rage(spaces: Sequence[StormSpace], answers: Answers, suite: Suite, is_wiped: bool) -> int:
    """Run clients until all jobs are final, killing Spaces meanwhile; return the number of kills."""
    for job in jobs():
        answers.waiting.put(job)
    stop, urls = threading.Event(), [space.url for space in spaces]
    clients = [
        threading.Thread(
            target=send_until_definite, args=(urls[n % 2 :] + urls[: n % 2], suite, answers, stop)
        )
        for n in range(CLIENTS)
    ]
    clients.append(threading.Thread(target=read_until_stopped, args=(urls, answers, stop)))
    for space in spaces:
        space.start()
    for client in clients:
        client.start()
    deadline, kills = time.monotonic() + SECONDS, 0
    try:
        while len(answers.definite) < len(jobs()):
            assert time.monotonic() < deadline, f"only {len(answers.definite)} definite: {answers.statuses}"
            assert answers.problems == []
            # The last kill comes well before the last answer.
            if kills < KILLS and len(answers.definite) >= 9 * kills + 1:
                time.sleep(random.Random(kills).uniform(0.0, 0.3))
                space = spaces[kills % len(spaces)]
                space.kill()
                if is_wiped and kills % 3 == 2:
                    shutil.rmtree(space.state)
                space.start()
                kills += 1
            time.sleep(0.01)
    finally:
        stop.set()
        for client in clients:
            client.join(timeout=300)
    return kills


def check(answers: Answers, settings: Settings, tmp_path: Path) -> None:
    """Check that the database and the Hub have everything that was acknowledged, once, and nothing else."""
    final = settings.model_copy(
        update={"records_repo": RECORDS, "hf_token": SecretStr("hf_maintainer"), "state_lasts": False}
    )
    service = open_service(final)
    try:
        deadline = time.monotonic() + 120
        while service.durability.waiting():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        found = verify(service)
        assert found.problems == ()
        board = service.records.board()
        with snapshot(service.engine) as session:
            records = events_after(session)
    finally:
        service.close()

    rows = Counter(row.id for row in board.rows)
    acknowledged = {receipt for receipts in answers.accepted.values() for receipt in receipts}
    assert rows == Counter(acknowledged)
    assert all(len(receipts) == 1 for receipts in answers.accepted.values())
    # 40 accounts, two files each; those that sent five were refused three of them.
    assert Counter(row.account for row in board.rows) == {f"Account {n}": 2 for n in range(ACCOUNTS)}
    outcomes = Counter(outcome for _, outcome in answers.definite)
    assert outcomes == {"accepted": 20 * 5 + 20 * 2, "limit": 20 * 3}
    assert Counter(r.kind for r in records) == {"submitted": 80, "scored": 80}

    # A restore from the Hub into an empty folder gives the same records and board.
    restored = open_service(
        final.model_copy(update={"state_dir": tmp_path / "from-nothing", "database_url": None})
    )
    try:
        with snapshot(restored.engine) as session:
            assert events_after(session) == records
        assert restored.records.board().to_bytes() == board.to_bytes()
        assert verify(restored).problems == ()
    finally:
        restored.close()
