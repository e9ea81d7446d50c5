"""Online-Mind2Web's result folders.

The fixtures were written by hand after its documents: version 2 after the README of data/schema_v2 and
what src/run.py reads, version 1 after the examples of its README and of section 1 of that schema.
"""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataset_script.sources import open_source
from dataset_script.sources.online_mind2web import OnlineMind2WebSource
from dataset_script.sources.problems import SourceError, UnusableFileError
from tests.support.golden import assert_golden_source
from tests.support.json_values import WITH_FOLDER, mutated, read_or_refused

BY_HAND = Path(__file__).parent / "online_mind2web_by_hand"


def read(folder, number=0):
    source = OnlineMind2WebSource(folder)
    return source.read(source.list_runs().files[number])


@pytest.fixture
def write(tmp_path):
    """Writes a result beside a picture for each name."""

    def write_run(content, pictures=(), run="agent/task"):
        folder = tmp_path / "source" / run
        (folder / "trajectory").mkdir(parents=True)
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "result.json").write_text(text)
        for name in pictures:
            (folder / "trajectory" / name).write_bytes(b"picture")
        return tmp_path / "source"

    return write_run


def version_1(actions, **more):
    return {"task_id": "task", "task": "Do it.", "action_history": actions, **more}


def pictures_of(recording):
    return [step.screenshot and step.screenshot.name for step in recording.steps]


def test_the_runs_of_both_versions_are_as_recorded():
    assert_golden_source("source_online_mind2web", OnlineMind2WebSource(BY_HAND))


def test_a_folder_and_a_single_result_are_recognised_and_give_the_same_ids():
    file = BY_HAND / "second-agent" / "0a1b2c" / "result.json"
    for place in (BY_HAND, file.parents[1], file.parent, file):
        source = open_source(place)
        assert source.kind == "online-mind2web"
        assert "online-mind2web/second-agent/0a1b2c" in [
            each.trajectory_id for each in source.list_runs().files
        ]


def test_a_harbor_trial_is_none_of_them():
    trial = BY_HAND / "harbor"
    assert not OnlineMind2WebSource.recognises(trial)
    with pytest.raises(SourceError, match=r"contains no result\.json of Online-Mind2Web"):
        OnlineMind2WebSource(trial).list_runs()
    assert OnlineMind2WebSource(BY_HAND).list_runs().others == ("harbor/some-trial__x1/result.json",)


def test_a_key_quoted_in_a_text_makes_no_result(tmp_path):
    (tmp_path / "result.json").write_text(json.dumps({"task_name": 'says "action_history": here'}))
    assert not OnlineMind2WebSource.recognises(tmp_path)


def test_no_score_judgement_or_reference_is_read():
    texts = [(BY_HAND / "first-agent" / "0a1b2c" / "result.json").read_text()]
    assert all("PLANTED LABEL" in text for text in texts)
    found = repr([read(BY_HAND, number)[0] for number in range(4)])
    assert "PLANTED" not in found
    assert "'success'" not in found


@pytest.mark.parametrize(
    ("pictures", "placed"),
    [
        # as many as actions: by place, and the last is the final observation's too
        (["0.png", "1.png"], ["0.png", "1.png", "1.png"]),
        # one more: the final observation has its own
        (["8.png", "9.png", "10.png"], ["8.png", "9.png", "10.png"]),
        # one is missing: by number, from the first one's 0 or 1 on
        (["1.png"], ["1.png", None, "1.png"]),
        (["0.png", "2.png"], ["0.png", "2.png", "2.png"]),
        # too many for their numbers: by place, and the last one for the end
        (["1.png", "2.png", "3.png", "7.png"], ["1.png", "2.png", "7.png"]),
        (["a.png"], ["a.png", None, "a.png"]),
        ([], [None, None, None]),
    ],
)
def test_pictures_of_version_1_go_with_actions_by_place_or_number(write, pictures, placed):
    recording, _ = read(write(version_1(["click", "type"]), pictures))
    assert pictures_of(recording) == placed
    assert [step.action for step in recording.steps] == ["click", "type", None]


def test_lists_that_disagree_are_noted_with_their_lengths(write):
    content = version_1(["click", "type", "scroll"], thoughts=["first"])
    recording, notes = read(write(content, ["0.png", "1.png"]))
    assert [step.reasoning for step in recording.steps] == ["first", None, None, None]
    assert ("unequal_lists", "3 actions, 1 thoughts, 2 pictures") in [(n.code, n.detail) for n in notes]


def test_one_thought_more_than_actions_is_that_of_the_final_observation(write):
    recording, notes = read(write(version_1(["click"], thoughts=["press it", "done"]), ["0.png", "1.png"]))
    assert [step.reasoning for step in recording.steps] == ["press it", "done"]
    assert notes == []


def test_the_last_task_complete_is_the_answer_and_an_earlier_one_an_action(write):
    content = version_1(["TASK_COMPLETE -> ANSWER: too early", "click", "TASK_COMPLETE -> ANSWER: a\nb"])
    recording, _ = read(write(content))
    assert [step.action for step in recording.steps] == ["TASK_COMPLETE -> ANSWER: too early", "click", None]
    assert (recording.answer, recording.state) == ("a\nb", "TASK_COMPLETE")


def test_a_run_that_was_cut_off_has_no_state_and_a_final_observation(write):
    recording, _ = read(write(version_1(["click"])))
    assert (recording.answer, recording.state) == (None, None)
    assert recording.steps[-1].action is None


def test_steps_of_version_2_are_numbered_in_the_order_that_they_stand_in(write):
    steps = [{"step": number, "action": f"click {number}"} for number in (0, 2, 5)]
    recording, notes = read(write(version_1(steps)))
    assert [step.num for step in recording.steps] == [0, 1, 2, 3]
    assert ("renumbered", "written: [0, 2, 5]") in [(note.code, note.detail) for note in notes]


@pytest.mark.parametrize(
    "name", ["../../secret.png", "/etc/hostname", "away.png", "https://a.example/b.png", "x" * 5000, "a\0b"]
)
def test_a_picture_outside_the_source_is_refused_by_name(write, tmp_path, name):
    (tmp_path / "secret.png").write_bytes(b"secret")
    folder = write({**version_1([{"step": 0, "action": "click", "screenshot": name}])})
    (folder / "agent" / "secret.png").write_bytes(b"of another run")
    (folder / "agent/task/trajectory/away.png").symlink_to(tmp_path / "secret.png")
    recording, notes = read(folder)
    assert pictures_of(recording) == [None, None]
    assert [note.code for note in notes] == ["missing_reference", "missing_screenshot"]
    assert name[:20] in notes[0].detail


def test_links_of_version_1_that_leave_the_source_are_refused(write, tmp_path):
    (tmp_path / "secret.png").write_bytes(b"secret")
    folder = write(version_1(["click"]))
    (folder / "agent/task/trajectory/0.png").symlink_to(tmp_path / "secret.png")
    recording, notes = read(folder)
    assert pictures_of(recording) == [None, None]
    assert notes[0].detail == "0.png is a link that leaves the source"


def test_a_result_that_is_a_link_out_of_the_source_is_refused(write, tmp_path):
    folder = write(version_1(["click"]))
    secret = tmp_path / "secret.json"
    (folder / "agent/task/result.json").rename(secret)
    (folder / "agent/task/result.json").symlink_to(secret)
    with pytest.raises(SourceError, match=r"agent/task/result\.json is a link out of the source"):
        OnlineMind2WebSource(folder).list_runs()
    single = OnlineMind2WebSource(folder / "agent/task/result.json")
    with pytest.raises(UnusableFileError, match="link that leaves the source"):
        single.read(single.list_runs().files[0])


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "not_json"),
        ('{"action_history": [', "not_json"),
        ("[]", "not_a_trajectory"),
        ({"action_history": {"0": "click"}}, "not_a_trajectory"),
        ({"task": "Do it."}, "not_a_trajectory"),
        ({"action_history": [{"action": "click"}, "type"]}, "not_a_trajectory"),
        ({"action_history": []}, "no_steps"),
    ],
)
def test_a_result_that_gives_no_run_is_refused_by_code(write, content, code):
    with pytest.raises(UnusableFileError) as refused:
        read(write(content))
    assert refused.value.code == code


def test_repeats_of_a_task_are_numbered_by_the_place_of_their_folders(write):
    for name in ("seed-10", "seed-9"):
        folder = write(version_1(["click"]), run=f"{name}/agent/task")
    ids = {
        file.name.split("/")[0]: file.trajectory_id for file in OnlineMind2WebSource(folder).list_runs().files
    }
    assert ids == {"seed-9": "online-mind2web/agent/task", "seed-10": "online-mind2web/agent/task~2"}


def test_the_identity_changes_with_the_result_and_with_each_picture(write):
    folder = write(version_1(["click"]), ["0.png"])
    source = OnlineMind2WebSource(folder)
    (file,) = source.list_runs().files
    seen = {source.identity(file)}
    for path in (file.path, file.path.parent / "trajectory" / "0.png"):
        os.utime(path, ns=(1, 1))
        seen.add(source.identity(file))
    (file.path.parent / "trajectory" / "1.png").write_bytes(b"new")
    assert len(seen | {source.identity(file)}) == 4


RESULTS = [
    json.loads(path.read_text())
    for path in sorted(BY_HAND.glob("*-agent/*/result.json"))
    if path.parent.name != "broken"
]


@given(st.sampled_from(RESULTS).flatmap(mutated))
@WITH_FOLDER
def test_whatever_stands_in_a_result_it_is_read_or_refused(tmp_path, content):
    (tmp_path / "trajectory").mkdir(exist_ok=True)
    (tmp_path / "result.json").write_text(json.dumps(content))
    for recording in read_or_refused(OnlineMind2WebSource(tmp_path)):
        assert recording.steps[-1].action is None
