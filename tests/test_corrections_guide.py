"""docs/corrections.md: its commands as they stand there, and the figures of its example."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import arb.core.suites
from arb.core.console import percent
from arb.core.settings import Settings
from leaderboard.__main__ import app as leaderboard_app
from leaderboard.labels.labels import load_annotations
from submissions.__main__ import app as submissions_app
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.labels.corrections import next_labels, outdated_dev_labels
from submissions.moderation.reader_actions import ReaderActions
from submissions.scoring.rescore import label_effects
from tests.support.annotations import success_of
from tests.support.clocks import one_a_day
from tests.support.running_space import ANNOTATIONS
from tests.support.submissions import again, send

REPOSITORY = Path(__file__).parents[1]
GUIDE = (REPOSITORY / "docs" / "corrections.md").read_text(encoding="utf-8")
APPS = {"submissions": submissions_app, "leaderboard": leaderboard_app}
MIA = Actor("mia", is_maintainer=True)
AGENT = "webarena/GenericAgent-Qwen_Qwen2.5-VL-72B-Instruct"


def correct(service: SubmissionsApp, trajectory_id: str, answer: str) -> None:
    acts = ReaderActions(service)
    number = acts.dispute(trajectory_id, "success", "see the last step", Actor("ada")).body["dispute_id"]
    acts.decide(number, "corrected", "looked again", MIA, answer)


def commands() -> list[list[str]]:
    blocks = re.findall(r"^```bash\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


def test_every_command_of_the_guide_works_in_its_order(tmp_path, monkeypatch):
    suite, checkout = tmp_path / "sample", tmp_path / "checkout"
    shutil.copytree(Path(arb.core.suites.__file__).parent / "sample", suite)
    checkout.mkdir()
    monkeypatch.chdir(checkout)
    settings = Settings(suite=str(suite), labels=f"csv:{ANNOTATIONS}", state_dir=tmp_path / "state")
    for name, value in (("SUITE", suite), ("LABELS", settings.labels), ("STATE_DIR", settings.state_dir)):
        monkeypatch.setenv(f"ARB_{name}", str(value))
    service = SubmissionsApp(settings)
    before = service.label_version
    for split in ("test", "dev"):
        trajectory = service.suite.split(split)[0]
        primary = {a.trajectory_id: success_of(a) for a in reversed(service.labels.annotations())}
        correct(
            service, trajectory.trajectory_id, "no" if primary[trajectory.trajectory_id] == "yes" else "yes"
        )
    assert len(outdated_dev_labels(service)) == 1
    said = []
    for program, package, *arguments in commands():
        assert program == "arb"
        done = CliRunner().invoke(APPS[package], arguments, catch_exceptions=False)
        assert done.exit_code == 0, (arguments, done.output)
        said.append(done.output)
    assert "applied: dispute 1" in said[0] and "Two runs ended on the wrong page" in said[2]
    assert again(service).label_version not in (before, None)
    assert outdated_dev_labels(again(service)) == [] and next_labels(again(service)).applied == ()


@pytest.mark.labels
@pytest.mark.shared
def test_the_example_has_the_labels_and_the_figures_of_its_tables(official_settings, shared, tmp_path):
    service = SubmissionsApp(official_settings.model_copy(update={"state_dir": tmp_path}), clock=one_a_day())
    found = [
        a for a in load_annotations(service.suite, service.settings) if a.trajectory_id.startswith("webarena")
    ]
    of_task = {
        task: [
            (a.trajectory_id.split("/")[1], a.answers["success"])
            for a in found
            if a.trajectory_id.endswith(f".{task}")
        ]
        for task in ("24", "295", "740")
    }
    qwen = {task: [said for agent, said in rows if "Qwen" in agent] for task, rows in of_task.items()}
    assert qwen == {"24": ["no", "yes"], "295": ["no"], "740": ["yes"]}
    others = {task: {said for agent, said in rows if "Qwen" not in agent} for task, rows in of_task.items()}
    assert others == {"24": {"yes", "no"}, "295": {"yes", "no"}, "740": {"yes"}}

    judges = {"AER-C": "aer-c", "NNetNav": "nnetnav", "Rule-based": "rule-based"}
    folder = shared / "data" / "agent-reward-bench" / "verdicts"
    ids = {
        send(service, (folder / f"{file}.jsonl").read_bytes(), judge=judge).submission_id: judge
        for judge, file in judges.items()
    }
    for task in ("24", "295"):
        correct(service, f"{AGENT}/webarena.{task}", "yes")
    changed = next_labels(service)
    for effect in label_effects(service, changed.served, changed.test)["success"]:
        figures = (f"{percent(old)} → {percent(effect.after[name])}" for name, old in effect.before.items())
        assert f"| {ids[effect.id]} | {' | '.join(figures)} | {effect.to_right}, {effect.to_wrong} |" in GUIDE
