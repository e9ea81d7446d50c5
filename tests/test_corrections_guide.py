"""docs/corrections.md: the figures of its example. `support/own_suite.py` types its commands."""

from pathlib import Path

import pytest

from arb.core.console import percent
from leaderboard.labels.labels import load_annotations
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.labels.corrections import next_labels
from submissions.moderation.reader_actions import ReaderActions
from submissions.scoring.rescore import label_effects
from tests.support.clocks import one_a_day
from tests.support.submissions import send

REPOSITORY = Path(__file__).parents[1]
GUIDE = (REPOSITORY / "docs" / "corrections.md").read_text(encoding="utf-8")
MIA = Actor("mia", is_maintainer=True)
AGENT = "webarena/GenericAgent-Qwen_Qwen2.5-VL-72B-Instruct"


def correct(service: SubmissionsApp, trajectory_id: str, answer: str) -> None:
    acts = ReaderActions(service)
    number = acts.dispute(trajectory_id, "success", "see the last step", Actor("ada")).body["dispute_id"]
    acts.decide(number, "corrected", "looked again", MIA, answer)


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
