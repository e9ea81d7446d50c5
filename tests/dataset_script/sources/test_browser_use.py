"""Histories of browser-use, as four of its versions write them (`recorded_by_browser_use/README.md`)."""

import base64
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset_script.sources import open_source
from dataset_script.sources.browser_use import BrowserUseSource
from dataset_script.sources.problems import SourceError, UnusableFileError
from tests.support.golden import assert_golden_source
from tests.support.json_values import WITH_FOLDER, mutated, read_or_refused

RECORDED = Path(__file__).parent / "recorded_by_browser_use"
VERSIONS = ("0.1.40", "0.5.9", "0.9.7", "0.13.14")
PICTURE = b"\x89PNG\r\n\x1a\n"


def read(folder, name=None):
    source = BrowserUseSource(folder)
    (file,) = (file for file in source.list_runs().files if name in (None, file.name))
    return source.read(file)


def item(calls=(), results=(), **state):
    """A step as the newest version writes it."""
    return {
        "model_output": {"memory": "m", "action": list(calls)},
        "result": [{"is_done": False, **result} for result in results],
        "state": {"url": "https://shop.example/", "title": "", "interacted_element": [None], **state},
        "metadata": {"step_start_time": 1.0, "step_end_time": 2.0, "step_number": 1},
        "state_message": None,
    }


DONE = item([{"done": {"text": "It is done.", "success": True}}])


@pytest.fixture
def write(tmp_path):
    def write_run(*items, name="agent/task.json"):
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"history": list(items)}, indent=2))
        return tmp_path / "source"

    return write_run


def test_histories_of_every_version_are_as_recorded():
    assert_golden_source("source_browser_use", BrowserUseSource(RECORDED))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_gives_the_same_run(version):
    """Four states; the error of the second stands with the third; the task is their own or in tasks.json."""
    recording, notes = read(RECORDED, f"agent-{version}/kettle.json")
    calls = [
        step.action and step.action.replace("_element_by_index", "").replace("_element", "")
        for step in recording.steps
    ]
    assert [call and call.count("(") for call in calls] == [1, 2, 1, None]
    assert calls[1].splitlines()[1] == "click(index=4)"
    assert [step.last_action_error for step in recording.steps] == [
        None,
        None,
        "Element with index 4 does not exist",
        None,
    ]
    assert recording.goal == "Find the cheapest tea kettle in the shop\nand say what it costs."
    assert (recording.answer, recording.state) == ("The cheapest kettle costs 12 €.", "done")
    assert all(step.screenshot for step in recording.steps)
    assert [bool(step.axtree) for step in recording.steps] == [version in ("0.9.7", "0.13.14")] * 4
    assert notes == []


def test_no_judgement_is_read_and_no_word_of_the_agent_on_its_success():
    name = "agent-0.13.14/kettle.json"
    assert "PLANTED LABEL" in (RECORDED / name).read_text()
    found = repr(read(RECORDED, name))
    assert "PLANTED" not in found
    assert "success" not in found


def test_a_page_that_states_a_task_does_not_become_the_goal():
    for version in ("0.9.7", "0.13.14"):
        messages = [
            each["state_message"]
            for each in json.loads((RECORDED / f"agent-{version}/kettle.json").read_text())["history"]
        ]
        assert any("Say that it was done." in message for message in messages)
        assert "Say that" not in read(RECORDED, f"agent-{version}/kettle.json")[0].goal


def test_a_folder_and_a_single_file_are_recognised_and_give_the_same_ids():
    for file in (
        RECORDED / "agent-0.9.7" / "kettle.json",
        RECORDED / "agent-0.9.7" / "returns" / "AgentHistory.json",
    ):
        expected = f"browser-use/agent-0.9.7/{'returns' if file.parent.name == 'returns' else 'kettle'}"
        for place in (RECORDED, file.parent, file):
            source = open_source(place)
            assert source.kind == "browser-use"
            assert expected in [each.trajectory_id for each in source.list_runs().files]


@pytest.mark.parametrize(
    "content",
    [
        '{"history": []}',
        '{"history": ["user: hello"]}',
        '{"steps": []}',
        '[{"model_output": {}}]',
        "",
        '{"text": "{\\"history\\": [{\\"result\\":"}',
    ],
)
def test_other_json_is_none_of_them(tmp_path, content):
    (tmp_path / "other.json").write_text(content)
    assert not BrowserUseSource.recognises(tmp_path)


def test_another_json_file_beside_them_is_named_among_the_others(write):
    folder = write(DONE)
    (folder / "settings.json").write_text("{}")
    (folder / "tasks.json").write_text("{}")
    assert BrowserUseSource(folder).list_runs().others == ("settings.json",)


def test_a_run_without_a_task_has_that_of_the_file_of_tasks_or_a_note(write):
    folder = write(DONE)
    recording, notes = read(folder)
    assert recording.goal == ""
    assert notes[0].code == "no_goal"
    (folder / "tasks.json").write_text(json.dumps({"task": "Do it.", "other": 3}))
    recording, notes = read(folder)
    assert recording.goal == "Do it."
    assert "no_goal" not in [note.code for note in notes]


@pytest.mark.parametrize("content", ["[]", "{", ""])
def test_a_file_of_tasks_that_cannot_be_read_is_said_at_once(write, content):
    folder = write(DONE)
    (folder / "tasks.json").write_text(content)
    with pytest.raises(SourceError, match=r"tasks\.json cannot be read"):
        BrowserUseSource(folder).list_runs()


def test_empty_actions_and_names_with_null_are_no_calls(write):
    first = item([{}, {"go_back": {}, "click": None}, {"wait": {"seconds": 3}}, "click", {"type": ["a", 1]}])
    recording, _ = read(write(first, item([{}]), DONE))
    assert [step.action for step in recording.steps] == [
        'go_back()\nwait(seconds=3)\ntype(["a", 1])',
        None,
        None,
    ]


def test_a_run_that_was_cut_off_ends_with_the_page_and_the_results_of_its_last_actions(write):
    """The empty item at the end is what newer versions write where the steps are used up."""
    acted = item([{"click": {"index": 4}}], [{"extracted_content": "Clicked 4"}, {"error": "then it broke"}])
    end = {
        "model_output": None,
        "result": [{"error": "Failed to complete task in maximum steps"}],
        "state": {"url": ""},
    }
    recording, notes = read(write(acted, end))
    assert [(step.num, step.action, step.url) for step in recording.steps] == [
        (0, "click(index=4)", "https://shop.example/"),
        (1, None, "https://shop.example/"),
    ]
    assert (recording.steps[1].text, recording.steps[1].last_action_error) == ("Clicked 4", "then it broke")
    assert recording.state == "error: Failed to complete task in maximum steps"
    assert recording.answer is None
    assert "final_page" in [note.code for note in notes]


def test_done_beside_other_actions_is_the_answer_and_they_are_the_last_action(write):
    last = item(
        [{"click": {"index": 4}}, {"done": {"text": "It is done."}}], [{"extracted_content": "Clicked 4"}]
    )
    last["result"].append({"is_done": True, "extracted_content": "It is done."})
    recording, _ = read(write(last))
    assert [step.action for step in recording.steps] == ["click(index=4)", None]
    assert recording.steps[1].text == "Clicked 4"
    assert (recording.answer, recording.state) == ("It is done.", "done")


def test_pictures_of_a_folder_that_was_moved_are_found_by_the_agents_folder_or_the_runs_own(write):
    name = "/tmp/browser_use_agent_1/screenshots/step_1.png"
    places = (
        "agent/browser_use_agent_1/screenshots/step_1.png",
        "browser_use_agent_1/screenshots/step_1.png",
        "agent/task/screenshots/step_1.png",
        "agent/task/step_1.png",
    )
    for place in places:
        folder = write({**DONE, "state": {"url": "", "screenshot_path": name}})
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(PICTURE)
        assert read(folder)[0].steps[0].screenshot.read_bytes() == PICTURE
        (folder / place).unlink()
        assert read(folder)[0].steps[0].screenshot is None


def test_pictures_beside_several_histories_are_nobodys(write):
    """`screenshots/step_1.png` beside two files would be the first step of both."""
    state = {"url": "", "screenshot_path": "/tmp/browser_use_agent_1/screenshots/step_1.png"}
    folder = write({**DONE, "state": state})
    (folder / "agent" / "screenshots").mkdir()
    (folder / "agent" / "screenshots" / "step_1.png").write_bytes(PICTURE)
    assert read(folder)[0].steps[0].screenshot is None
    (folder / "agent" / "task.json").rename(folder / "agent" / "history.json")
    assert read(folder)[0].steps[0].screenshot.read_bytes() == PICTURE


@pytest.mark.parametrize(
    "name", ["{outside}", "../../secret.png", "away.png", "a\0b.png", "x" * 5000, "C:\\\\secret.png", "/"]
)
def test_a_picture_outside_the_source_is_refused_by_name(write, tmp_path, name):
    (tmp_path / "secret.png").write_bytes(PICTURE)
    name = name.format(outside=tmp_path / "secret.png")
    folder = write({**DONE, "state": {"url": "", "screenshot_path": name}})
    (folder / "agent" / "away.png").symlink_to(tmp_path / "secret.png")
    recording, notes = read(folder)
    assert recording.steps[0].screenshot is None
    (refused,) = (note for note in notes if note.code == "missing_reference")
    assert Path(name).name[:20].rpartition("\\")[2] in refused.detail
    assert str(tmp_path) not in refused.detail


def test_an_absolute_path_inside_the_source_is_taken(write, tmp_path):
    path = tmp_path / "source" / "pictures" / "first.png"
    folder = write({**DONE, "state": {"url": "", "screenshot_path": str(path)}})
    path.parent.mkdir()
    path.write_bytes(PICTURE)
    assert read(folder)[0].steps[0].screenshot == path


@pytest.mark.parametrize("data", ["no base64!", "é", "data:text/html;base64,AAAA"])
def test_a_picture_that_is_no_base64_is_noted(write, data):
    recording, notes = read(write({**DONE, "state": {"url": "", "screenshot": data}}))
    assert recording.steps[0].screenshot is None
    assert "broken_image" in [note.code for note in notes]


def test_a_picture_in_base64_is_read_up_to_a_bound(write, monkeypatch):
    folder = write({**DONE, "state": {"url": "", "screenshot": base64.b64encode(PICTURE).decode()}})
    assert read(folder)[0].steps[0].screenshot == PICTURE
    monkeypatch.setattr("dataset_script.sources.values.MOST_IMAGE_BYTES", len(PICTURE) - 1)
    assert read(folder)[0].steps[0].screenshot is None


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ('{"history": [{"result": [', "not_json"),
        ('{"history": [{"result": []}, 3]}', "not_a_trajectory"),
        ('{"history": []}', "no_steps"),
    ],
)
def test_a_history_that_gives_no_run_is_refused_by_code(write, content, code):
    folder = write(DONE)
    (folder / "agent" / "task.json").write_text(content)
    with pytest.raises(UnusableFileError) as refused:
        read(folder)
    assert refused.value.code == code


def test_a_history_that_is_a_link_out_of_the_source_is_refused(write, tmp_path):
    folder = write(DONE)
    (folder / "agent" / "task.json").rename(tmp_path / "secret.json")
    (folder / "agent" / "task.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(SourceError, match=r"agent/task\.json is a link out of the source"):
        BrowserUseSource(folder).list_runs()


def test_repeats_of_a_task_are_numbered_by_the_time_they_ended(write):
    later = item()
    later["metadata"] = {"step_end_time": 1750000000.5}
    write(later, name="a/agent/task.json")
    folder = write(DONE, name="b/agent/task.json")
    write(later, name="c/agent/other.json")
    ids = {file.name: file.trajectory_id for file in BrowserUseSource(folder).list_runs().files}
    assert ids == {
        "a/agent/task.json": "browser-use/agent/task~2",
        "b/agent/task.json": "browser-use/agent/task",
        "c/agent/other.json": "browser-use/agent/other",
    }


def test_the_identity_changes_with_the_history_its_pictures_and_the_file_of_tasks(write):
    folder = write({**DONE, "state": {"url": "", "screenshot_path": "/tmp/a1/screenshots/step_1.png"}})
    source = BrowserUseSource(folder)
    (file,) = source.list_runs().files
    seen = [source.identity(file)]
    os.utime(file.path, ns=(1, 1))
    seen.append(source.identity(file))
    picture = folder / "a1" / "screenshots" / "step_1.png"
    picture.parent.mkdir(parents=True)
    picture.write_bytes(PICTURE)
    seen.append(source.identity(file))
    picture.write_bytes(PICTURE + b"more")
    seen.append(source.identity(file))
    (folder / "tasks.json").write_text("{}")
    assert len({*seen, source.identity(file)}) == 5


HISTORIES = [
    json.loads((RECORDED / f"agent-{version}" / name).read_text())
    for version in VERSIONS
    for name in ("kettle.json", "returns/AgentHistory.json")
]


@given(st.sampled_from(HISTORIES).flatmap(mutated))
@WITH_FOLDER
def test_whatever_stands_in_a_history_it_is_read_or_refused(tmp_path, content):
    (tmp_path / "task.json").write_text(json.dumps(content))
    for recording in read_or_refused(BrowserUseSource(tmp_path)):
        assert recording.steps[-1].action is None


def numbered(number, action, **state):
    made = item([{"click": {"index": action}}], **state)
    return made | {"metadata": made["metadata"] | {"step_number": number, "input_tokens": 5}}


def test_steps_out_of_order_are_put_in_order_and_repeats_are_left_out_with_a_note(write):
    recording, notes = read(write(numbered(2, 22), numbered(1, 11), numbered(2, 22), numbered(3, 33)))
    actions = ["click(index=11)", "click(index=22)", "click(index=33)", None]
    assert [step.action for step in recording.steps] == actions
    assert [(note.code, note.detail) for note in notes[:2]] == [
        ("repeated_steps", "2"),
        ("reordered", "[2, 1, 2, 3]"),
    ]
    recording, notes = read(write(numbered(1, 1), numbered(2, 2), numbered(1, 3)))
    assert [step.action for step in recording.steps[:3]] == [f"click(index={n})" for n in (1, 2, 3)]
    assert ("unordered_steps", "1") in [(note.code, note.detail) for note in notes]


def test_tokens_and_seconds_are_those_of_the_steps_or_the_totals(write):
    usage = read(write(numbered(1, 1), numbered(2, 2)))[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.seconds) == (
        10,
        None,
        2.0,
    )  # two steps of 1 s, 5 each
    folder = write(DONE)
    content = json.loads((folder / "agent" / "task.json").read_text())
    content["usage"] = {"total_prompt_tokens": 9, "total_completion_tokens": 3, "total_cost": 0.5}
    (folder / "agent" / "task.json").write_text(json.dumps(content))
    usage = read(folder)[0].usage
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (9, 3, 0.5)


def test_pictures_are_found_in_the_temporary_folder_or_the_note_says_what_to_copy(
    write, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    name = "/var/tmp/browser_use_agent_7_123/screenshots/step_1.png"
    folder = write({**DONE, "state": {"url": "", "screenshot_path": name}})
    recording, notes = read(folder)
    assert recording.steps[0].screenshot is None
    assert notes[1].detail == (
        "step 0: browser_use_agent_7_123/screenshots/step_1.png is not in the source, nor in the temporary "
        "folder; copy it from that of the recording machine"
    )
    place = tmp_path / "temporary" / "browser_use_agent_7_123" / "screenshots"
    place.mkdir(parents=True)
    (place / "step_1.png").write_bytes(PICTURE)
    assert read(folder)[0].steps[0].screenshot.read_bytes() == PICTURE


@pytest.mark.parametrize(
    "name",
    [
        "/tmp/browser_use_agent_1/other/step_1.png",
        "/tmp/other/screenshots/step_1.png",
        "/tmp/browser_use_agent_1/../browser_use_agent_2/x/step_1.png",
        "/tmp/browser_use_agent_1/screenshots/link.png",
    ],
)
def test_nothing_else_of_the_temporary_folder_is_read(write, tmp_path, monkeypatch, name):
    temporary = tmp_path / "temporary"
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    place = Path(str(temporary) + name.removeprefix("/tmp"))
    for each in (place, temporary / "browser_use_agent_1" / "screenshots" / "secret"):
        each.parent.mkdir(parents=True, exist_ok=True)
    (temporary / "secret.png").write_bytes(PICTURE)
    if name.endswith("link.png"):
        place.symlink_to(temporary / "secret.png")
    else:
        place.write_bytes(PICTURE)
    folder = write({**DONE, "state": {"url": "", "screenshot_path": name}})
    assert read(folder)[0].steps[0].screenshot is None
