"""Records for the benchmark of the Space: made-up judges, submitted through the service itself.

Each judge answers like the experts, except for its own share of errors. Some judge all three labels, and some
give their costs. One process per core scores them, and all processes share one database.
"""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from unittest.mock import patch

import numpy as np

ACCOUNTS = 40
FIRST, APART = datetime(2026, 1, 1, tzinfo=UTC), timedelta(hours=13)
"""An account may send two files in 24 hours and twenty in a year, so five hundred take nine months."""

INPUTS = ("tree", "screenshot", "tree and screenshot", "steps only")
MODELS = ("gpt-4o-2024-11-20", "Llama-3.3-70B-Instruct", "Qwen2.5-VL-72B-Instruct", "claude-3-7-sonnet")


def make_records(state: Path, n_submissions: int, workers: int | None = None) -> None:
    """Bring a state folder to ``n_submissions`` scored submissions. Existing ones stay.

    Raises:
        CalledProcessError: A worker fails. Its output is on the terminal.
    """
    workers = workers or os.cpu_count() or 1
    sizes = (str(n_submissions), str(workers))
    command = [sys.executable, "-m", "bench.support.space_records", str(state), *sizes]
    one_thread = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    running = [subprocess.Popen([*command, str(part)], env=one_thread) for part in range(workers)]
    for process in running:
        if process.wait():
            raise subprocess.CalledProcessError(process.returncode, command)


def submit_part(state: Path, n_submissions: int, workers: int, part: int) -> None:
    """Submit the judges of every ``workers``-th group of ten in order, beginning with ``part``."""
    from arb.core.settings import Settings
    from submissions.app import SubmissionsApp

    moment = [FIRST]
    service = SubmissionsApp(Settings(state_dir=state), clock=lambda: moment[0])
    labels = service.labels_for_public_figures()
    if labels is None:
        sys.exit(f"Records cannot be made without labels: {service.intake.read_only_reason}")
    for number in range(n_submissions):
        if number // 10 % workers != part:
            continue
        moment[0] = FIRST + number * APART
        _submit(service, labels, number)


SAVED_AT_ONCE = 100
DISTINCT = 400
"""The number of different files of `fill_records`; of 10,000 judges, 25 share each file."""


def fill_records(state: Path, n_submissions: int) -> None:
    """Bring a state folder to ``n_submissions`` scored submissions in one process (10,000 take minutes).

    Each of `DISTINCT` files is checked and scored once, and resamples are drawn once. A transaction records a
    hundred submissions, without the limits per account. Each account submits the files of ten judges.
    """
    from arb.core.judge_info import declare
    from arb.core.settings import Settings
    from leaderboard.judge_precision import intervals
    from submissions.app import SubmissionsApp
    from submissions.records.database import snapshot, transaction
    from submissions.records.event_log import add_event, number_of_events
    from submissions.scoring.scorer import score_of, submission_body

    service = SubmissionsApp(Settings(state_dir=state))
    labels = service.labels_for_public_figures()
    if labels is None:
        sys.exit(f"Records cannot be made without labels: {service.intake.read_only_reason}")
    service.secret  # noqa: B018 - is recorded before the first submission
    with snapshot(service.engine) as session:
        there = number_of_events(session) // 2
    draw = intervals.resampling_weights
    drawn = lru_cache(lambda *arguments: list(draw(*arguments)))

    @lru_cache(DISTINCT)
    def scored(number: int) -> tuple:
        upload = service.intake.check(verdict_file(labels, number), f"judge-{number}.csv", "test")
        service.files.keep(upload.content)
        return upload, score_of(upload.check.aligned, labels)

    with patch.object(intervals, "resampling_weights", drawn):
        drawing = [range(at, min(at + SAVED_AT_ONCE, n_submissions)) for at in
                   range(there, n_submissions, SAVED_AT_ONCE)]  # fmt: skip
        for numbers in drawing:
            with transaction(service.engine) as session:
                for number in numbers:
                    upload, score = scored(number % DISTINCT)
                    declared = declare(
                        account=f"Group {number // 10}", judge=f"Made-up judge {number}", kind="LLM judge",
                        inputs=INPUTS[number % len(INPUTS)], model=MODELS[number % len(MODELS)],
                        test_labels_used=False,
                    )  # fmt: skip
                    at = FIRST + number * timedelta(minutes=30)
                    body = submission_body(service.suite, upload, declared, declared.judge, labels.version)
                    add_event(session, "submitted", declared.account, at, body)
                    scored_body = {"submission_id": body["submission_id"], **score}
                    add_event(session, "scored", declared.account, at, scored_body)


def _submit(service, labels, number: int) -> None:
    from arb.core.judge_info import declare

    upload = service.intake.check(verdict_file(labels, number), f"judge-{number}.csv", "test")
    # A tenth of the judges submits a second file.
    name = f"Made-up judge {number if number % 10 else number + 1}"
    declared = declare(
        account=f"Group {number // 10 % ACCOUNTS}", judge=name, kind="LLM judge",
        inputs=INPUTS[number % len(INPUTS)], model=MODELS[number % len(MODELS)], test_labels_used=False,
    )  # fmt: skip
    service.intake.submit(upload, declared)


def verdict_file(labels, number: int) -> bytes:
    """Return a CSV of one judge's verdicts. The same number gives the same file."""
    generator = np.random.default_rng(number)
    names = ["success", "side_effect", "repetition"] if number % 5 == 0 else ["success"]
    errors = generator.uniform(0.08, 0.35)
    columns = [
        np.where(generator.random(len(labels.trajectories)) < errors, labels.primary[name] != 1,
                 labels.primary[name] == 1)
        for name in names
    ]  # fmt: skip
    has_cost = number % 3 == 0
    costs = generator.uniform(0.001, 0.03, len(labels.trajectories))
    lines = [",".join(["trajectory_id", *names, *(["cost_usd"] if has_cost else [])])]
    for place, trajectory in enumerate(labels.trajectories):
        cells = ["true" if column[place] else "false" for column in columns]
        cells += [f"{costs[place]:.4f}"] if has_cost else []
        lines.append(",".join([trajectory.trajectory_id, *cells]))
    return "\n".join(lines).encode()


if __name__ == "__main__":
    folder, *numbers = sys.argv[1:]
    submit_part(Path(folder), *map(int, numbers))
