"""Results of OSWorld and AndroidWorld, written by hand in the form of those in OS-Copilot/OSReward."""

import json

import pytest
from hypothesis import given

from dataset_script.sources import open_source
from dataset_script.sources.androidworld import AndroidWorldSource
from dataset_script.sources.osworld import OSWorldSource
from dataset_script.sources.problems import UnusableFileError
from tests.support.json_values import WITH_FOLDER, mutated, read_or_refused
from tests.support.sources import ids, read_one

PNG = b"\x89PNG\r\n\x1a\n"


def action(num, code, response=None, **more):
    line = {"step_num": num, "action": code, "response": response, "reward": 0, "done": False}
    return {**line, "screenshot_file": f"step_{num}_20260101@00000{num}.png", **more}


def write_task(root, *lines, task="3f1c", score="1.0\n", pictures=(), log=None):
    folder = root / "results" / "solver" / "chrome" / task
    folder.mkdir(parents=True)
    (folder / "traj.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    for number in pictures:
        (folder / f"step_{number}_20260101@00000{number}.png").write_bytes(PNG)
    if score is not None:
        (folder / "result.txt").write_text(score)
    if log is not None:
        (folder / "runtime.log").write_text(log)
    return folder


def test_a_picture_shows_the_screen_that_the_next_action_starts_from(tmp_path):
    response = {"role": "assistant", "content": "I click.", "reasoning_content": "It must be there."}
    log = "=== model ===\nInstruction: \nTurn it on.\nModel Output: \n{}\nInstruction: \nTurn it on.\n"
    lines = action(1, "pyautogui.click(3, 4)", response), action(2, "DONE", "It is on.")
    folder = write_task(tmp_path, *lines, pictures=(1, 2), log=log)
    recording, notes = read_one(tmp_path)
    assert recording.trajectory_id == "osworld/solver/3f1c"
    assert (recording.goal, recording.cum_reward, recording.state) == ("Turn it on.", 1.0, "DONE")
    first, last = recording.steps
    assert (first.action, first.reasoning) == ("pyautogui.click(3, 4)", "It must be there.\n\nI click.")
    assert (first.screenshot, last.screenshot) == (None, folder / "step_1_20260101@000001.png")
    assert (last.action, last.reasoning) == (None, "It is on.")
    assert notes == []


def test_a_run_that_does_not_end_has_a_final_step_with_the_last_picture(tmp_path):
    write_task(
        tmp_path, action(1, "WAIT", instruction="Go."), {"Error": "Time limit"}, pictures=(0, 1), score=None
    )
    recording, notes = read_one(tmp_path)
    assert [step.action for step in recording.steps] == ["WAIT", None]
    assert [step.screenshot.name[:6] for step in recording.steps] == ["step_0", "step_1"]
    assert (recording.goal, recording.cum_reward, recording.state) == ("Go.", None, "error: Time limit")
    assert notes == []


def test_tool_calls_repeated_responses_and_goals_in_tasks_json(tmp_path):
    call = {"name": "computer", "input": {"action": "type", "text": "it's"}, "command": "pyautogui.write(…)"}
    lines = action(1, repr(call), "Both."), action(1, call, "Both."), action(2, "FAIL")
    write_task(tmp_path, *lines, score="broken")
    (tmp_path / "tasks.json").write_text(json.dumps({"3f1c": "Write it."}))
    recording, notes = read_one(tmp_path)
    assert [step.action for step in recording.steps] == ['computer(action="type", text="it\'s")'] * 2 + [None]
    assert [step.reasoning for step in recording.steps] == ["Both.", None, None]
    assert (recording.goal, recording.cum_reward) == ("Write it.", None)
    assert [note.code for note in notes] == ["missing_screenshot"]


def test_a_run_of_errors_only_and_a_cut_line_are_refused_with_the_reason(tmp_path):
    write_task(tmp_path, action(1, "WAIT"), task="good")
    write_task(tmp_path, {"Error": "the machine stopped", "step_num": 1}, task="none")
    with (write_task(tmp_path, action(1, "WAIT"), task="cut") / "traj.jsonl").open("a") as file:
        file.write('{"step_num": 2, "act')
    source = open_source(tmp_path)
    codes = {}
    for file in source.list_runs().files:
        try:
            codes[file.trajectory_id] = source.read(file)[0].state
        except UnusableFileError as error:
            codes[file.trajectory_id] = error.code, error.detail[:19]
    assert codes["osworld/solver/none"] == ("no_steps", "the machine stopped")
    assert codes["osworld/solver/cut"][0] == "not_json"
    assert codes["osworld/solver/good"] is None


def step(num, *call, thought="I see."):
    name, arguments = call
    return {
        "step": num,
        "screenshot_path": f"solver/Events/screenshot_step{num}.png",
        "thought": thought,
        "action": '"I did it."',
        "tool_call": json.dumps({"name": name, "arguments": arguments}),
    }


def episode(*steps, **more):
    known = {"task_name": "Events", "goal": "Which events?", "save_dir": "solver/Events", "task_success": 0}
    return {**known, "trajectory": list(steps), **more}


def test_a_line_of_androidworld_is_a_run_with_the_pictures_next_to_the_results(tmp_path):
    pictures = tmp_path / "solver" / "Events"
    pictures.mkdir(parents=True)
    (tmp_path / "results").mkdir()
    for num in range(2):
        (pictures / f"screenshot_step{num}.png").write_bytes(PNG)
    swipe = step(0, "mobile_use", {"action": "swipe", "coordinate": [1, 2]})
    first = episode(swipe, step(1, "mobile_use", {"action": "answer", "text": "None"}))
    second = episode(swipe, task_success=1)
    lines = [json.dumps(first), "{", json.dumps(second), '{"task_name": "x"}']
    (tmp_path / "results" / "all.jsonl").write_text("\n".join(lines))
    source = open_source(tmp_path)
    assert ids(source) == [
        "androidworld/solver/Events",
        "androidworld/all/2",
        "androidworld/solver/Events~2",
        "androidworld/all/x",
    ]
    one, broken, two, empty = source.list_runs().files
    recording, notes = source.read(one)
    assert (recording.goal, recording.answer, recording.cum_reward, notes) == (
        "Which events?",
        "None",
        0.0,
        [],
    )
    assert [each.action for each in recording.steps] == [
        'mobile_use(action="swipe", coordinate=[1, 2])',
        None,
    ]
    assert [each.reasoning for each in recording.steps] == ['I see.\n\n"I did it."'] * 2
    assert [each.screenshot.name for each in recording.steps] == [
        "screenshot_step0.png",
        "screenshot_step1.png",
    ]
    recording, notes = source.read(two)
    assert (len(recording.steps), recording.cum_reward, [note.code for note in notes]) == (
        2,
        1.0,
        ["final_page"],
    )
    for file, code in ((broken, "not_json"), (empty, "not_a_trajectory")):
        with pytest.raises(UnusableFileError) as refused:
            source.read(file)
        assert refused.value.code == code


@WITH_FOLDER
@given(
    mutated([episode(step(0, "click", {"x": 1}), step(1, "answer", {"text": "x"})), action(1, "DONE", "x")])
)
def test_results_of_any_form_are_read_or_refused(tmp_path, records):
    android, osworld = tmp_path / "android", tmp_path / "results" / "solver" / "os" / "x"
    for folder in (android, osworld):
        folder.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(map(json.dumps, records))
    (android / "a.jsonl").write_text(lines)
    (osworld / "traj.jsonl").write_text(lines)
    read_or_refused(AndroidWorldSource(android))
    read_or_refused(OSWorldSource(tmp_path))
