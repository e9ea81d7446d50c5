"""What the storm's processes do; `test_storm.py` runs this as a module."""

import json
import os
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.orm import Session

from submissions.app import SubmissionsApp
from submissions.intake import receipts
from submissions.scoring import scorer
from tests.support.submissions import send, settings_for, verdicts

JOBS = tuple((f"Judge {judge}", misses) for judge in range(4) for misses in range(3))
"""Judges and their files: 12 submissions of 3 different files."""


def send_all(folder: str, state: str, acknowledged: str, threads: str, times: str = "1") -> None:
    """Each thread sends every job so many times, beginning with another one; every receipt is written down at
    once.
    """
    service = SubmissionsApp(settings_for(Path(folder), Path(state)))
    contents = [verdicts(service.suite, misses=n) for n in range(3)]
    print("ready", flush=True)
    sys.stdin.readline()
    service.intake.finish_scoring()
    handle = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    barrier = threading.Barrier(int(threads))

    def work(first: int) -> None:
        barrier.wait()
        for place in range(int(times) * len(JOBS)):
            judge, misses = JOBS[(first + place) % len(JOBS)]
            receipt = send(service, contents[misses], judge=judge)
            line = {
                "id": receipt.submission_id,
                "sha256": receipt.file_sha256,
                "judge": judge,
                "new": receipt.is_new,
            }
            os.write(handle, (json.dumps(line) + "\n").encode())

    workers = [threading.Thread(target=work, args=(n,)) for n in range(int(threads))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def board(folder: str, state: str, out: str) -> None:
    """Start on what is there, and write the board's bytes."""
    service = SubmissionsApp(settings_for(Path(folder), Path(state)))
    service.intake.finish_scoring()
    Path(out).write_bytes(service.records.board().to_bytes())


def die(folder: str, state: str, *moments: str) -> None:
    """For each moment, a child with a state folder of its own that is killed in it while submitting."""
    for moment in moments:
        child = os.fork()
        if child == 0:
            MOMENTS[moment]()
            service = SubmissionsApp(settings_for(Path(folder), Path(state) / moment))
            send(service, verdicts(service.suite))
            os._exit(0)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL, moment


def _kill(*_arguments, **_options) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _when_the_file_is_kept() -> None:
    scorer.record_submission = _kill


def _before_the_record_is_committed() -> None:
    real = scorer.add_event
    scorer.add_event = lambda *arguments: (real(*arguments), _kill())


def _when_it_is_recorded() -> None:
    scorer.score_report = _kill


def _before_the_score_is_committed() -> None:
    @contextmanager
    def recording(engine):
        with Session(engine) as session, session.begin():
            yield session
            session.flush()
            _kill()

    real = scorer.score_of

    def score_of(*arguments):
        scorer.recording = recording
        return real(*arguments)

    scorer.score_of = score_of


def _when_it_is_scored() -> None:
    receipts.Signer.receipt_of = _kill


MOMENTS = {
    "the file is kept": _when_the_file_is_kept,
    "the record is written": _before_the_record_is_committed,
    "it is recorded": _when_it_is_recorded,
    "the score is written": _before_the_score_is_committed,
    "it is scored": _when_it_is_scored,
}

if __name__ == "__main__":
    {"send": send_all, "board": board, "die": die}[sys.argv[1]](*sys.argv[2:])
