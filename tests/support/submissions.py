"""A small suite with labels made by rule, and prediction files for it: no wheel, no network.

What the records of a service hold, for tests to look at.
"""

import csv
import json
import time
from dataclasses import replace
from pathlib import Path

from sqlalchemy import func, select

from arb.core.judge_info import JudgeInfo, declare
from arb.core.settings import Settings
from arb.core.suite import Suite, SuiteRules
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.moderation.log_view import read_log
from submissions.records.database import Account, JudgeRow, ScoreRow, Submission, snapshot
from submissions.records.event_log import number_of_events
from tests.support.canary import CANARIES

AGENTS = ("agent-a", "agent-b")
TASKS = (
    *(("assistantbench", f"assistantbench.improved.validation.{n}") for n in range(3)),
    *(("webarena", f"webarena.{n}") for n in range(6)),
    *(("workarena", f"workarena.servicenow.list-{n}") for n in range(3)),
    *(("workarena", f"workarena.servicenow.order-{n}-l2") for n in range(3)),
)
DEV_TASKS = tuple(("webarena", f"webarena.{n}") for n in range(100, 104))
"""Test: 15 tasks x 2 agents = 30 trajectories. Dev: 4 x 2 = 8."""

RELEASED_HEADER = (
    "annotator_name", "benchmark", "task_id", "model_name", "exp_name", "trajectory_success",
    "trajectory_side_effect", "trajectory_optimality", "trajectory_looping",
)  # fmt: skip
SECRET_ANNOTATOR, SECRET_EXPERIMENT = CANARIES
"""Planted in every label file: wherever else one of them turns up in a test run, labels leaked (`canary`)."""

PLAIN_RULES = """labels = "public"
trivial_judges = false
[rules]
files_a_day = 1000
files_a_year = 100000
"""
"""Figures as they are, no rows but those of a test, and as many files as it sends."""

FORM = {
    "account": "Ada",
    "judge": "First judge",
    "kind": "LLM judge",
    "inputs": "tree",
    "model": "some-model",
    "authors": "Ada, Bob",
    "link": "https://example.org/judge",
    "test_labels_used": False,
}


def is_success(place: int) -> bool:
    """The success label of the test trajectory at this place of the split: 10 of 30 are."""
    return place % 3 == 0


def write_suite(folder: Path) -> Path:
    """``folder/small`` with its trajectories, and ``folder/labels.csv`` in the released format.

    Its labels are public, so that figures are exact, and an account may send what it likes (`PLAIN_RULES`).
    """
    suite = folder / "small"
    suite.mkdir(parents=True)
    (suite / "suite.toml").write_text(PLAIN_RULES)
    ids = {
        split: sorted(f"{benchmark}/{agent}/{task}" for benchmark, task in tasks for agent in AGENTS)
        for split, tasks in (("test", TASKS), ("dev", DEV_TASKS))
    }
    with (suite / "trajectories.csv").open("w", newline="") as file:
        rows = [(trajectory_id, split) for split, found in ids.items() for trajectory_id in found]
        csv.writer(file).writerows([("trajectory_id", "split"), *rows])
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(RELEASED_HEADER)
        for found in ids.values():
            for place, trajectory_id in enumerate(found):
                benchmark, agent, task = trajectory_id.split("/")
                answers = (
                    "Successful" if is_success(place) else "Unsuccessful",
                    "Yes" if place % 5 == 0 else "No",
                    "2. Suboptimal",
                    "Yes" if place % 2 == 0 else "No",
                )
                writer.writerow((SECRET_ANNOTATOR, benchmark, task, agent, SECRET_EXPERIMENT, *answers))
    return suite


def settings_for(folder: Path, state: Path, **changes) -> Settings:
    """Settings of the suite that ``write_suite`` wrote into ``folder``.

    The secret is the same in every run: it draws the noise, and of a suite so small some draws hide a label.
    """
    return Settings(
        **{
            "suite": str(folder / "small"),
            "labels": f"csv:{folder / 'labels.csv'}",
            "state_dir": state,
            "cache_dir": folder / "cache",
            "database_url": None,
            "secret": "863bf41c30eb455c968d136c2c02861a",
            **changes,
        }
    )


def verdicts(suite: Suite, split: str = "test", misses: int = 0, false_alarms: int = 0, **columns) -> bytes:
    """A prediction file that is right but for the first ``misses`` positives and ``false_alarms`` negatives.

    On test with 10 positives: TP = 10 - misses, FP = false_alarms, FN = misses, TN = 20 - false_alarms.
    ``columns`` gives further columns as a value for all rows.
    """
    lines = []
    for place, trajectory in enumerate(suite.split(split)):
        answer = is_success(place)
        if answer and misses:
            answer, misses = False, misses - 1
        elif not answer and false_alarms:
            answer, false_alarms = True, false_alarms - 1
        lines.append(json.dumps({"trajectory_id": trajectory.trajectory_id, "success": answer, **columns}))
    return ("\n".join(lines) + "\n").encode()


def with_rules(service: SubmissionsApp, is_public: bool = True, **rules) -> SubmissionsApp:
    """The same service under other rules of its suite; nothing may have been asked of it yet."""
    suite = service.suite
    changed = replace(suite, labels_are_public=is_public, rules=SuiteRules(**rules))
    service.__dict__["suite"] = changed
    return service


def declaration(**changes) -> JudgeInfo:
    """A declaration with every field filled in."""
    return declare(**{**FORM, **changes})


def send(service: SubmissionsApp, content: bytes, **changes):
    """Submit a file as the form does, and ask again once the Hub has it or never will; gives the receipt."""
    declared = declaration(**changes)
    receipt = service.intake.submit(service.intake.check(content, "verdicts.jsonl", "test"), declared).receipt
    if receipt.status != "waiting":
        return receipt
    with snapshot(service.engine) as session:
        last = number_of_events(session)
    ends = time.monotonic() + 120
    while not service.durability.wait(last, 20.0) and not service.durability.ended:
        assert time.monotonic() < ends, "the Hub does not have it"
    now = service.records.submission(receipt.submission_id, Actor(declared.account)).receipt
    return replace(now, is_new=receipt.is_new)


TABLES = (Account, JudgeRow, Submission, ScoreRow)


def counts(service: SubmissionsApp) -> dict[str, int]:
    """How many entries each table has."""
    with snapshot(service.engine) as session:
        return {
            table.__tablename__: session.scalar(select(func.count()).select_from(table)) for table in TABLES
        }


def stored_files(service: SubmissionsApp) -> list[Path]:
    """The files in the store, half-written ones too."""
    return [path for path in (service.settings.state_dir / "files").rglob("*") if path.is_file()]


def again(service: SubmissionsApp, **changes) -> SubmissionsApp:
    """The same records after a restart."""
    return SubmissionsApp(service.settings.model_copy(update=changes))


def assert_nothing_was_written(service: SubmissionsApp) -> None:
    """No entry and no file."""
    assert counts(service) == {"accounts": 0, "judges": 0, "submissions": 0, "scores": 0}
    assert stored_files(service) == []


def log_of(service: SubmissionsApp, **choice) -> list[dict]:
    """The event log as maintainers read it, newest first."""
    with service.snapshot() as session:
        return read_log(session, **choice)
