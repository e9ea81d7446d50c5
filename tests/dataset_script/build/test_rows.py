import io
import struct
import zlib
from dataclasses import replace

import pytest
from PIL import Image

from arb.core.trajectory import Recording, RunUsage, Step
from dataset_script.build.pictures import BrokenImageError, check_picture
from dataset_script.build.rows import (
    Run,
    notes_on,
    reward_row,
    screenshot_row,
    step_rows,
    trajectory_row,
    usage_rows,
    with_images,
)
from dataset_script.sources.problems import Note
from tests.support.annotations import by
from tests.support.released_layout import png

DEV, TEST = "shop/GenericAgent-b/shop.resized.1", "shop/GenericAgent-a/shop.2"
LABELS = by(DEV, None, "yes", "no", None, "3")


def recorded_step(num, **changes):
    trees = {"axtree": f"tree {num} in full", "axtree_pruned": f"tree {num}"}
    return Step(num=num, url=f"http://shop/{num}", focused_element="7", **trees, **changes)


@pytest.fixture
def recording() -> Recording:
    return Recording(
        trajectory_id=DEV,
        model="model-x",
        goal="Buy a teapot.\n",
        goal_images=(),
        cum_reward=0.75,
        steps=(
            recorded_step(0, action="click('7')", reasoning="Open it.", box=(1.0, 2.0, 3.0, 4.0)),
            recorded_step(
                1, action="send_msg_to_user('Done.')", reasoning="Tell.", last_action_error="TimeoutError"
            ),
            recorded_step(2),
        ),
    )


@pytest.fixture
def run(suite, recording):
    return Run(suite.find(DEV), recording, LABELS)


def test_a_dev_row_has_its_labels_as_indexes_and_the_released_spelling(run):
    built = trajectory_row(run)
    del built["steps"]
    assert built == {
        "trajectory_id": DEV,
        "benchmark": "shop",
        "agent": "GenericAgent-b",
        "model": "model-x",
        "task_id": "shop.resized.1",
        "goal": "Buy a teapot.",  # without the line end it is released with
        "n_steps": 3,
        "final_axtree": "tree 2 in full",  # of the last step, number 2
        "final_axtree_pruned": "tree 2",
        "answer": None,
        "success": 1,
        "side_effect": 0,
        "repetition": None,
        "optimality": 3,
    }
    assert trajectory_row(run)["steps"][1] == {
        "num": 1,
        "url": "http://shop/1",
        "action": "send_msg_to_user('Done.')",
        "reasoning": "Tell.",
        "last_action_error": "TimeoutError",
        "focused_element": "7",
        "text": None,
    }


def test_what_was_observed_in_words_and_the_answer_are_in_the_row_and_need_no_tree(run):
    steps = tuple(
        replace(step, axtree=None, axtree_pruned=None, text="2 files") for step in run.recording.steps
    )
    told = replace(run, recording=replace(run.recording, steps=steps, answer="There are 2."))
    row = trajectory_row(told)
    assert (row["answer"], row["steps"][2]["text"], row["final_axtree"]) == ("There are 2.", "2 files", None)
    assert next(step_rows(told))["text"] == "2 files"
    assert [note.code for note in notes_on(told)] == []


def test_a_test_row_has_null_labels_and_labels_for_it_are_refused(suite, recording):
    built = trajectory_row(Run(suite.find(TEST), recording, None))
    assert [built[name] for name in ("success", "side_effect", "repetition", "optimality")] == [None] * 4
    with pytest.raises(ValueError, match="labels of a test trajectory"):
        Run(suite.find(TEST), recording, by(TEST, None, "yes", "yes", "yes", "4"))


def test_only_line_ends_are_taken_off_the_goal(run):
    changed = replace(run, recording=replace(run.recording, goal="  Say 'a\n b' \n\n"))
    assert trajectory_row(changed)["goal"] == "  Say 'a\n b' "


def test_the_final_screenshot_is_the_last_steps_and_goal_images_are_kept(run):
    steps = (*run.recording.steps[:2], replace(run.recording.steps[2], screenshot=png(9)))
    built = screenshot_row(replace(run, recording=replace(run.recording, steps=steps, goal_images=(png(1),))))
    assert built["final_screenshot"]["bytes"] == png(9)
    assert [image["bytes"] for image in built["goal_images"]] == [png(1)]


@pytest.mark.parametrize(("reward", "verdict"), [(0.75, 1), (0.5, 0), (0.0, 0), (None, None)])
def test_the_rule_based_verdict_is_a_reward_above_one_half(run, reward, verdict):
    row = reward_row(replace(run, recording=replace(run.recording, cum_reward=reward)))
    assert row == {"trajectory_id": DEV, "cum_reward": reward, "rule_based": verdict}


def test_the_row_of_usage_has_what_was_recorded_without_paths_of_the_machine(run):
    assert list(usage_rows(replace(run, recording=replace(run.recording, state=None, usage=None)))) == []
    state = "error: in /home/ada/run.py at C:\\Users\\ada\\x.py of https://shop/a/b: 3/4 and/or"
    changed = replace(run.recording, state=state, usage=RunUsage(input_tokens=7, seconds=1.5))
    (row,) = usage_rows(replace(run, recording=changed))
    assert row == {
        "trajectory_id": run.trajectory.trajectory_id,
        "state": "error: in [path] at [path] of https://shop/a/b: 3/4 and/or",
        "input_tokens": 7,
        "output_tokens": None,
        "cost_usd": None,
        "seconds": 1.5,
    }


def codes(run):
    return [note.code for note in notes_on(run)]


def test_what_is_odd_is_noted_and_kept(run):
    steps = run.recording.steps
    last_acts = replace(steps[2], action="noop()", axtree=None)
    odd = replace(run.recording, goal="\n", steps=(steps[0], replace(steps[1], num=5), last_acts))
    changed = replace(run, recording=odd, labels=None)
    assert codes(changed) == [
        "action_on_last_step",
        "step_numbers",
        "no_goal",
        "no_final_tree",
        "no_dev_labels",
    ]
    assert trajectory_row(changed)["steps"][-1]["action"] == "noop()"


def test_pictures_are_checked_and_broken_ones_are_named_and_left_out(run, tmp_path):
    (tmp_path / "whole.png").write_bytes(png(1))
    pictures = [tmp_path / "whole.png", png(2)[:-5], tmp_path / "absent.png"]
    steps = tuple(replace(s, screenshot=p) for s, p in zip(run.recording.steps, pictures, strict=True))
    read, notes = with_images(replace(run.recording, steps=steps, goal_images=(b"GIF89a", png(3))))
    assert [step.screenshot for step in read.steps] == [png(1), None, None]
    assert read.goal_images == (png(3),)
    assert notes == [
        Note("broken_image", "the screenshot of step 1 is cut off"),
        Note("broken_image", "the screenshot of step 2 cannot be read (No such file or directory)"),
        Note("broken_image", "goal image 0 is neither PNG, JPEG nor WebP"),
    ]


@pytest.mark.parametrize("size", [(20_000, 5_001), (60_000, 60_000)])  # 100,020,000 pixels; 3.6 billion
def test_a_picture_that_is_too_large_by_its_header_is_refused_by_name(run, size):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    whole = png(1)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", *size, 8, 0, 0, 0, 0))
    large = whole[:8] + header + whole[33:]  # the signature has 8 bytes, the header 25
    steps = (replace(run.recording.steps[0], screenshot=large), *run.recording.steps[1:])
    read, (note,) = with_images(replace(run.recording, steps=steps, goal_images=(whole,)))
    assert (read.steps[0].screenshot, read.goal_images) == (None, (whole,))
    assert note.code == "large_image"
    assert note.detail.startswith("the screenshot of step 0 ")
    assert note.detail.endswith("according to its header; at most 100,000,000 can be shown")


def test_a_picture_without_a_header_is_refused():
    whole = png(1)
    with pytest.raises(BrokenImageError, match="has no readable header") as refused:
        check_picture(whole[:8] + whole[-12:])  # the signature and the end alone
    assert refused.value.code == "broken_image"


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_the_header_of_every_kind_of_picture_is_looked_at(monkeypatch, kind):
    monkeypatch.setattr("dataset_script.build.pictures.MOST_PIXELS", 40 * 30 - 1)
    file = io.BytesIO()
    Image.new("RGB", (40, 30), "teal").save(file, kind)
    with pytest.raises(BrokenImageError, match="has 40 x 30 pixels according to its header") as refused:
        check_picture(file.getvalue())
    assert refused.value.code == "large_image"


def test_whole_pictures_of_each_kind_are_taken_and_cut_ones_refused():
    for kind in ("PNG", "JPEG", "WEBP"):
        file = io.BytesIO()
        Image.new("RGB", (40, 30), "teal").save(file, kind)
        assert check_picture(file.getvalue()) == file.getvalue()
        with pytest.raises(BrokenImageError, match="is cut off"):
            check_picture(file.getvalue()[: len(file.getvalue()) // 2])
