"""Stress test: several processes submit at the same time, are killed and restarted, and submit again."""

import hashlib
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import func, select

from submissions.app import SubmissionsApp
from submissions.records.database import Account, JudgeRow, ScoreRow, Submission, snapshot
from tests.support.storm_process import JOBS, MOMENTS
from tests.support.submissions import send, settings_for, verdicts

REPOSITORY = Path(__file__).parents[2]
SECONDS = 180
FOR_EVER = 1_000_000
"""So many times a process sends its files that is killed while it does."""


def start(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.storm_process", *map(str, arguments)],
        cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def end(process: subprocess.Popen) -> None:
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors.decode()


def go_together(*processes: subprocess.Popen) -> None:
    for process in processes:
        assert process.stdout.readline() == b"ready\n", process.stderr.read().decode()
    for process in processes:
        process.stdin.write(b"go\n")
        process.stdin.flush()


def kill_after(process: subprocess.Popen, acknowledged: Path, n: int) -> None:
    """Kill the process with SIGKILL once it has acknowledged n submissions."""
    deadline = time.monotonic() + SECONDS
    while len(receipts(acknowledged)) < n:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=SECONDS)


def receipts(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def fresh_board(folder: Path, state: Path, out: Path) -> bytes:
    end(start("board", folder, state, out))
    return out.read_bytes()


def assert_records_are_whole(service: SubmissionsApp, acknowledged: list[dict]) -> None:
    """Check that each acknowledged submission exists once, with one score and an intact file."""
    with snapshot(service.engine) as session:
        submissions = session.scalars(select(Submission)).all()
        names = {(judge.account_id, judge.name) for judge in session.scalars(select(JudgeRow))}
        assert session.scalar(select(func.count()).select_from(Account)) == 1
        assert session.scalar(select(func.count()).select_from(JudgeRow)) == len(names)
        scores = Counter(session.execute(select(ScoreRow.submission_id, ScoreRow.label_version)).all())
    kept = {submission.id: submission.file_sha256 for submission in submissions}
    assert {receipt["id"]: receipt["sha256"] for receipt in acknowledged}.items() <= kept.items()
    assert Counter(s.id for s in submissions) == Counter(set(kept))
    assert len({(s.judge_id, s.file_sha256) for s in submissions}) == len(submissions)
    assert scores == Counter({(submission_id, service.label_version): 1 for submission_id in kept})
    for sha256 in kept.values():
        assert hashlib.sha256(service.files.path(sha256).read_bytes()).hexdigest() == sha256
    whole = [p for p in (service.settings.state_dir / "files").glob("*/*") if not p.name.startswith(".part-")]
    assert {path.name for path in whole} == set(kept.values())


@pytest.mark.slow
def test_processes_killed_in_a_storm_lose_no_record_and_double_none(suite_folder, tmp_path):
    state = tmp_path / "state"
    steady = start("send", suite_folder, state, tmp_path / "steady", 3)
    killed = start("send", suite_folder, state, tmp_path / "killed-2", 3, FOR_EVER)
    go_together(steady, killed)
    kill_after(killed, tmp_path / "killed-2", 2)
    again = start("send", suite_folder, state, tmp_path / "killed-20", 3, FOR_EVER)
    go_together(again)
    kill_after(again, tmp_path / "killed-20", 20)
    end(steady)

    before = fresh_board(suite_folder, state, tmp_path / "before")
    acknowledged = [r for name in ("steady", "killed-2", "killed-20") for r in receipts(tmp_path / name)]
    assert len(acknowledged) >= 3 * len(JOBS) + 2 + 20
    service = SubmissionsApp(settings_for(suite_folder, state))
    assert_records_are_whole(service, acknowledged)

    # Submitted again after the restart, they give the same receipts, no new records and the same board.
    for judge, misses in JOBS:
        receipt = send(service, verdicts(service.suite, misses=misses), judge=judge)
        assert not receipt.is_new
        assert {receipt.submission_id} == {
            r["id"] for r in acknowledged if (r["judge"], r["sha256"]) == (judge, receipt.file_sha256)
        }
    assert sum(r["new"] for r in acknowledged) <= len(JOBS)  # a killed process may have recorded more
    assert_records_are_whole(service, acknowledged)
    assert len({r["id"] for r in acknowledged}) == len(JOBS)
    assert service.records.board().to_bytes() == before


@pytest.mark.slow
def test_two_processes_that_send_the_same_file_at_the_same_instant_agree(suite_folder, tmp_path):
    state = tmp_path / "state"
    both = [start("send", suite_folder, state, tmp_path / name, 1) for name in ("one", "two")]
    go_together(*both)
    for process in both:
        end(process)
    one, two = receipts(tmp_path / "one"), receipts(tmp_path / "two")
    assert [r["id"] for r in one] == [r["id"] for r in two]
    # Exactly one of the two responses says that the record is new.
    assert [a["new"] + b["new"] for a, b in zip(one, two, strict=True)] == [1] * len(JOBS)
    assert_records_are_whole(SubmissionsApp(settings_for(suite_folder, state)), one + two)


@pytest.fixture(scope="module")
def killed_at(suite_folder, tmp_path_factory) -> Path:
    """Return a folder with one state folder per moment at which a process was killed."""
    states = tmp_path_factory.mktemp("killed")
    end(start("die", suite_folder, states, *MOMENTS))
    return states


@pytest.mark.parametrize(
    ("moment", "recorded", "scored"),
    [
        ("the file is kept", 0, 0),
        ("the record is written", 0, 0),
        ("it is recorded", 1, 0),
        ("the score is written", 1, 0),
        ("it is scored", 1, 1),
    ],
)
def test_whenever_a_process_is_killed_the_records_are_whole(
    killed_at, suite_folder, moment, recorded, scored
):
    service = SubmissionsApp(settings_for(suite_folder, killed_at / moment))
    with snapshot(service.engine) as session:
        found = [session.scalar(select(func.count()).select_from(table)) for table in (Submission, ScoreRow)]
    assert found == [recorded, scored]
    assert service.intake.finish_scoring() == recorded - scored
    assert len(service.records.board().rows) == recorded
    receipt = send(service, verdicts(service.suite))
    assert receipt.is_new == (recorded == 0)
    acknowledged = [{"id": receipt.submission_id, "sha256": receipt.file_sha256}]
    assert_records_are_whole(service, acknowledged)
    restarted = SubmissionsApp(service.settings)
    assert restarted.records.board().to_bytes() == service.records.board().to_bytes()


@pytest.mark.slow
def test_a_killed_server_serves_the_same_board_when_it_is_started_again(suite_folder, tmp_path):
    from tests.support.running_space import RunningSpace

    state = tmp_path / "state"
    environment = {
        "ARB_SUITE": str(suite_folder / "small"),
        "ARB_LABELS": f"csv:{suite_folder / 'labels.csv'}",
        "ARB_SECRET": settings_for(suite_folder, state).secret.get_secret_value(),  # the sender's
    }
    space = RunningSpace(state, **environment)
    try:
        sender = start("send", suite_folder, state, tmp_path / "acknowledged", 3)
        go_together(sender)
        while sender.poll() is None:  # the pages are read while submissions come in
            space.get("/api/board.json")
        end(sender)
        before = space.get("/api/board.json")
        assert len(json.loads(before)["rows"]) == len(JOBS)
        space.kill()
        space.start()
        assert space.get("/api/board.json") == before
    finally:
        space.kill()
    assert fresh_board(suite_folder, state, tmp_path / "board") == before
    service = SubmissionsApp(settings_for(suite_folder, state))
    assert_records_are_whole(service, receipts(tmp_path / "acknowledged"))
