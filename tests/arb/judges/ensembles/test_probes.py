"""Probes: each changes what it says and nothing else; reports count flips of changed runs only."""

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image as Pictures

from arb.judges.ensembles.probes import CLAIM, PRAISE, PROBES, ProbedJudge, report_probe, share_of
from arb.judges.images import prepare_image
from arb.judges.registry import find_judge
from arb.judges.types import ImageOptions, View, ViewStep
from tests.support.llm_server.process import LLMProcess

REPOSITORY = Path(__file__).parents[4]


def picture(colour):
    content = io.BytesIO()
    Pictures.new("RGB", (320, 240), colour).save(content, "PNG")
    return prepare_image(content.getvalue(), ImageOptions())


VIEW = View(
    "Find the price of the lamp.",
    (),
    (
        ViewStep(
            1, "http://shop/", "click('5')", "I open the lamp.", None, "tree 1", "pruned 1", picture("red")
        ),
        ViewStep(2, "http://shop/5", 'send_msg_to_user("12")', "It costs 12.", None, "tree 2", "pruned 2"),
        ViewStep(3, "http://shop/5", None, None, None, "tree 3", "pruned 3", picture("white")),
    ),
)
GOALS = tuple(View(goal, (), ()) for goal in (VIEW.goal, "Delete the post.", "Book a room."))


def changed(name, view=VIEW, goals=GOALS):
    return PROBES[name].change(view, goals)


@pytest.mark.parametrize(
    ("name", "reasoning"),
    [
        ("no-reasoning", [None, None, None]),
        ("rewritten-reasoning", [PRAISE, PRAISE, None]),  # nothing was done at the end
    ],
)
def test_reasoning_is_removed_or_praises_every_action_and_everything_else_stays(name, reasoning):
    view = changed(name)
    assert [step.reasoning for step in view.steps] == reasoning
    restored = tuple(
        replace(step, reasoning=before.reasoning) for step, before in zip(view.steps, VIEW.steps, strict=True)
    )
    assert replace(view, steps=restored) == VIEW


@pytest.mark.parametrize("name", PROBES)
def test_a_run_without_a_step_has_nothing_to_change_but_its_goal(name):
    empty = replace(VIEW, steps=())
    assert replace(changed(name, empty), goal=VIEW.goal) == empty


def test_only_the_last_screenshot_is_removed():
    view = changed("no-last-screenshot")
    assert [step.screenshot is not None for step in view.steps] == [True, False, False]


def test_the_other_goal_is_another_ones_and_the_same_every_time():
    view = changed("other-goal")
    assert view.goal in ("Delete the post.", "Book a room.")
    assert view.steps == VIEW.steps
    assert changed("other-goal") == view
    assert changed("other-goal", goals=GOALS[:1]) == VIEW  # there is no other goal


def test_the_claim_stands_in_the_last_trees_and_on_the_last_picture():
    view = changed("claim")
    assert CLAIM in view.steps[-1].axtree
    assert CLAIM in view.steps[-1].axtree_pruned
    assert view.steps[:-1] == VIEW.steps[:-1]
    before, after = (Pictures.open(io.BytesIO(v.steps[-1].screenshot.content)) for v in (VIEW, view))
    assert after.size == before.size
    assert after.getpixel((5, 5)) != before.getpixel((5, 5))  # the strip across the top
    assert after.getpixel((5, 200)) == before.getpixel((5, 200))


def test_the_final_answer_goes_with_the_reasoning_that_repeats_it():
    view = changed("no-answer")
    assert "12" not in (view.steps[1].action or "") + (view.steps[1].reasoning or "")
    assert view.steps[0] == VIEW.steps[0]
    silent = replace(VIEW, steps=(VIEW.steps[0], VIEW.steps[2]))
    assert changed("no-answer", silent) == silent


@pytest.mark.parametrize("name", PROBES)
def test_a_probed_judge_asks_as_the_judge_does_about_the_changed_view(name):
    judge = find_judge("simplified-both")
    probed = ProbedJudge(judge, PROBES[name], GOALS)
    (asked,) = next(probed.ask(VIEW))
    (expected,) = next(judge.ask(changed(name)))
    assert asked == expected
    assert asked != next(judge.ask(VIEW))[0]
    assert probed.prompts_hash != judge.prompts_hash
    assert (probed.wants, probed.models) == (judge.wants, judge.models)


def record(trajectory_id, success, key, state="ok"):
    answer = {} if success is None else {"success": success}
    return {"trajectory_id": trajectory_id, "state": state, "answer": answer, "calls": [{"key": key}]}


def test_a_report_counts_flips_of_changed_runs_only():
    before = [record("a", True, "1"), record("b", False, "2"), record("c", True, "3"), record("d", True, "4")]
    after = [
        record("a", False, "1x"),  # flipped to no
        record("b", True, "2x"),  # flipped to yes
        record("c", None, "3x", "refused"),  # lost its verdict
        record("d", True, "4"),  # asked in the same words: not counted
    ]
    found = report_probe(PROBES["other-goal"], before, after)
    counts = ("changed", "unchanged", "to_yes", "to_no", "lost")
    assert [found[name] for name in counts] == [3, 1, 1, 1, 1]
    assert (found["flipped"]["count"], found["flipped"]["n"]) == (2, 2)  # with a verdict both times
    assert (found["said_yes"]["count"], found["said_yes"]["n"]) == (1, 2)


def test_a_share_has_wilsons_interval():
    # 1 of 4, z = 1.96: centre (0.25 + 0.4802) / 1.9604, half 1.96 sqrt(0.046875 + 0.06003) / 1.9604
    found = share_of(1, 4)
    assert found["interval"] == pytest.approx((0.0456, 0.6994), abs=1e-3)
    assert share_of(0, 0)["value"] is None


def judges_command(server, folder, *arguments):
    options = ["--suite", "sample", "--split", "dev", "--limit", "6", "--provider", "any", "--json"]
    options += ["--base-url", server.base_url, "--cache", str(folder / "cache"), "--out", str(folder / "out")]
    return subprocess.run(
        [sys.executable, "-m", "arb", "judges", *arguments, *options],
        cwd=REPOSITORY, env={**os.environ, "OPENAI_API_KEY": "none"}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_the_command_probes_and_again_it_pays_nothing(tmp_path):
    with LLMProcess() as server:
        arguments = ("probe", "simplified-axtree", "--probe", "other-goal", "--probe", "no-last-screenshot")
        first = judges_command(server, tmp_path, *arguments)
        paid = server.counts.answers.total()
        again = judges_command(server, tmp_path, *arguments)
        # 6 runs unchanged, 6 with another goal, 6 unchanged again
        assert server.counts.answers.total() == paid == 18
    assert first.returncode == 0, first.stderr
    report = json.loads(first.stdout)
    assert report == json.loads(again.stdout) == json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["format"] == 1
    by_probe = {probe["probe"]: probe for probe in report["probes"]}
    assert (by_probe["other-goal"]["changed"], by_probe["other-goal"]["unchanged"]) == (6, 0)
    # The script follows the prompt alone, so the same question has the same answer.
    again_of = by_probe["other-goal"]["flipped_again"]
    assert (again_of["count"], again_of["n"]) == (0, 6)
    # A judge that sees no screenshot is asked the same without one.
    assert (by_probe["no-last-screenshot"]["changed"], by_probe["no-last-screenshot"]["unchanged"]) == (0, 6)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("rule-based",), ("simplified-axtree", "--probe", "nonsense")])
def test_what_cannot_be_probed_ends_with_one_line(tmp_path, arguments):
    class Nowhere:
        base_url = "http://127.0.0.1:9/v1"

    done = judges_command(Nowhere, tmp_path, "probe", *arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_the_ablation_scores_four_variants_on_the_labels_of_dev(tmp_path):
    with LLMProcess() as server:
        done = judges_command(server, tmp_path, "ablate")
        assert server.counts.answers.total() == 24  # 4 variants of 6 runs
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(v["tree"], v["screenshot"]) for v in found["variants"]] == [
        (True, True), (True, False), (False, True), (False, False)
    ]  # fmt: skip
    for variant in found["variants"]:
        cell = variant["report"]["labels"]["success"]["overall"]
        assert cell["tp"] + cell["fp"] + cell["fn"] + cell["tn"] == 6
