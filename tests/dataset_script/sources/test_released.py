import json

import pytest

from dataset_script.sources import open_source
from dataset_script.sources.base import Note, SourceError, UnusableFileError
from dataset_script.sources.published import PublishedSource
from dataset_script.sources.released import ReleasedSource

DEV_1 = "shop/GenericAgent-a/shop.1"


def read(source, trajectory_id=DEV_1):
    released = ReleasedSource(source.path)
    (file,) = (file for file in released.list_runs().files if file.trajectory_id == trajectory_id)
    return released.read(file)


def test_a_source_lists_its_files_with_the_ids_of_their_places(full_source, suite_ids):
    listed = ReleasedSource(full_source.path).list_runs()
    assert sorted(file.trajectory_id for file in listed.files) == sorted(suite_ids)
    assert next(iter(listed.files)).name == "cleaned/shop/GenericAgent-a/run-1/shop.1.json"
    assert listed.others == ()


def test_the_layout_is_found_under_trajectories_too(full_source, tmp_path, suite_ids):
    download = tmp_path / "download"
    download.mkdir()
    full_source.path.rename(download / "trajectories")
    listed = ReleasedSource(download).list_runs()
    assert {file.trajectory_id for file in listed.files} == set(suite_ids)
    assert next(iter(listed.files)).name.startswith("trajectories/cleaned/")


def test_what_is_not_in_its_place_is_listed_apart(full_source):
    for name in ("stray.json", "shop/notes.txt", "shop/a/b/c/deep.json"):
        path = full_source.path / "cleaned" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    listed = ReleasedSource(full_source.path).list_runs()
    assert listed.others == ("cleaned/shop/a/b/c/deep.json", "cleaned/shop/notes.txt", "cleaned/stray.json")
    assert len(listed.files) == 5


def test_a_folder_without_files_in_the_layout_is_refused(tmp_path, source):
    (source.path / "cleaned").mkdir(parents=True)
    with pytest.raises(SourceError, match=r"holds no <benchmark>/<agent>/<experiment>/<task_id>\.json"):
        ReleasedSource(source.path).list_runs()
    with pytest.raises(SourceError, match="no folder cleaned/"):
        ReleasedSource(tmp_path).list_runs()


@pytest.mark.shared
def test_a_recorded_run_is_read_with_the_box_of_each_element_acted_on(shared):
    released = ReleasedSource(shared / "data" / "released_layout")
    recording, notes = released.read(next(iter(released.list_runs().files)))
    assert notes == []
    assert recording.trajectory_id == "localshop/GenericAgent-scripted-careful/localshop.1"
    # fill('15', …) on the search box; its bbox in the file is [393.21875, 12.0, 206.0, 33.0]
    assert (recording.steps[0].action, recording.steps[0].box) == (
        "fill('15', 'teapot')",
        (393.21875, 12.0, 206.0, 33.0),
    )
    assert recording.steps[0].screenshot.name == "screenshot_step_0.png"
    assert recording.steps[-1].box is None  # no action


def test_screenshots_are_found_at_their_place_and_missing_ones_are_reported_by_number(source, make_step):
    where = "trajectories/screenshots/shop/GenericAgent-a/shop.1/screenshot_step_{}.png"
    steps = [
        make_step(0, screenshot_path=where.format(0)),
        make_step(1, screenshot_path=where.format(1)),
        make_step(2),
    ]
    source.put(DEV_1, steps=steps)
    source.picture(DEV_1, 0)
    recording, notes = read(source)
    assert [step.screenshot is not None for step in recording.steps] == [True, False, False]
    # step 1's file is gone, step 2 reads "None" as its path
    assert notes == [Note("missing_screenshot", "steps 1, 2 of 3")]


def test_a_screenshot_at_another_place_is_taken_from_the_path_in_the_file(source, make_step):
    source.put(DEV_1, steps=[make_step(0, screenshot_path="trajectories/screenshots/shop/b/odd/x.png")])
    place = source.path / "screenshots" / "shop" / "b" / "odd" / "x.png"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    assert read(source)[0].steps[0].screenshot == place


@pytest.mark.parametrize(
    "path",
    ["screenshots/../../secret.png", "/etc/passwd", "screenshots/" + "x" * 5000, "screenshots/a\0b", "x.png"],
)
def test_a_path_that_leads_out_of_the_source_or_nowhere_gives_no_screenshot(source, make_step, path):
    (source.path.parent / "secret.png").write_bytes(b"secret")
    (source.path / "screenshots").mkdir(parents=True)
    source.put(DEV_1, steps=[make_step(0, screenshot_path=path)])
    assert read(source)[0].steps[0].screenshot is None


def test_a_source_without_screenshots_is_reported_once_not_for_every_run(full_source):
    released = ReleasedSource(full_source.path)
    assert [note.code for note in released.list_runs().notes] == ["no_screenshots"]
    assert read(full_source)[1] == []


@pytest.mark.parametrize(
    ("boxes", "expected", "told"),
    [
        ({"7": {"bbox": [1, 2.5, 3, 4], "clickable": True}}, (1.0, 2.5, 3.0, 4.0), False),
        ({"7": {"bbox": None}}, None, False),
        ({"8": {"bbox": [1, 2, 3, 4]}}, None, False),
        (None, None, False),
        ({"7": {"bbox": [1, 2, 3]}}, None, True),
        ({"7": {"bbox": [1, 2, -3, 4]}}, None, True),
        ({"7": {"bbox": "1 2 3 4"}}, None, True),
        ({"7": [1, 2, 3, 4]}, None, True),
        ([1, 2], None, True),
    ],
)
def test_a_box_is_four_numbers_of_the_element_or_null_and_a_broken_one_is_reported(
    source, make_step, boxes, expected, told
):
    source.put(DEV_1, steps=[make_step(0, action="click('7')", bounding_boxes=boxes)])
    recording, notes = read(source)
    assert recording.steps[0].box == expected
    assert ["bad_box" in note.code for note in notes] == ([True] if told else [])


def test_boxes_that_are_no_utf8_are_reported_and_the_run_is_kept(source, make_cleaned):
    whole = json.dumps(make_cleaned()).encode()
    source.put(DEV_1, whole.replace(b'"bounding_boxes": {"', b'"bounding_boxes": {"\xff', 1))
    assert [note.code for note in read(source)[1]] == ["bad_box"]


def test_without_bounding_boxes_the_other_copy_of_them_counts(source, make_step):
    step = make_step(0, action="click('7')", extra_element_properties={"7": {"bbox": [1, 2, 3, 4]}})
    del step["bounding_boxes"]
    source.put(DEV_1, steps=[step])
    assert read(source)[0].steps[0].box == (1.0, 2.0, 3.0, 4.0)


def test_boxes_of_pages_without_an_action_on_an_element_are_not_decoded(source, make_step, monkeypatch):
    def refuse(*_arguments):
        raise AssertionError("decoded")

    monkeypatch.setattr("dataset_script.sources.released_files.CleanedStep.sides_of", refuse)
    source.put(
        DEV_1, steps=[make_step(0, action="scroll(0, 200)", bounding_boxes={"7": {"bbox": [1, 2, 3, 4]}})]
    )
    assert read(source)[0].steps[0].box is None


def test_other_names_inside_the_file_are_reported_and_the_folder_counts(source):
    source.put(DEV_1, agent="GenericAgent-z", benchmark="market")
    recording, notes = read(source)
    assert recording.trajectory_id == DEV_1
    assert notes == [Note("other_names", "benchmark 'market'"), Note("other_names", "agent 'GenericAgent-z'")]


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"valid": False}, "invalid"), ({"steps": []}, "no_steps"), ({"steps": None}, "no_steps")],
)
def test_runs_that_give_no_trajectory_have_their_code(source, changes, code):
    source.put(DEV_1, **changes)
    with pytest.raises(UnusableFileError) as error:
        read(source)
    assert error.value.code == code


def test_a_very_large_file_is_reported(source, monkeypatch, make_step):
    monkeypatch.setattr("dataset_script.sources.released.LARGE_FILE_BYTES", 2_000_000)
    source.put(DEV_1, steps=[make_step(0, axtree_obj="x" * 2_400_000)])
    assert read(source)[1] == [Note("large_file", "2 MB")]


def test_the_reward_may_be_absent_or_null(source):
    for summary, reward in (
        (None, None),
        ({}, None),
        ({"cum_reward": 0.25}, 0.25),
        ({"cum_reward": float("nan")}, None),
    ):
        source.put(DEV_1, summary_info=summary)
        assert read(source)[0].cum_reward == reward


def test_the_identity_changes_with_the_file_and_with_its_pictures(source):
    source.put(DEV_1)
    released = ReleasedSource(source.path)
    (file,) = released.list_runs().files
    seen = {released.identity(file)}
    source.picture(DEV_1, 0)
    seen.add(released.identity(file))
    source.put(DEV_1, goal="another, longer goal")
    seen.add(released.identity(file))
    assert len(seen) == 3


def test_what_fetch_noted_is_the_origin(source):
    source.put(DEV_1)
    assert ReleasedSource(source.path).origin() == {}
    (source.path / "fetched.json").write_text('{"repo": "owner/name", "commit": "abc", "more": 1}')
    assert ReleasedSource(source.path).origin() == {"repo": "owner/name", "commit": "abc"}


def test_a_folder_is_recognised_by_what_is_in_it(full_source, tmp_path):
    assert isinstance(open_source(full_source.path), ReleasedSource)
    (tmp_path / "manifest.json").write_text("{}")
    assert isinstance(open_source(tmp_path), PublishedSource)
    for empty in (tmp_path / "absent", full_source.path / "cleaned"):
        with pytest.raises(SourceError, match=r"cleaned/ .*manifest.json.*exp_args.pkl"):
            open_source(empty)


def test_a_folder_of_agentlab_is_recognised(tmp_path):
    (tmp_path / "study" / "run").mkdir(parents=True)
    (tmp_path / "study" / "run" / "exp_args.pkl").write_bytes(b"")
    assert open_source(tmp_path).kind == "agentlab"
