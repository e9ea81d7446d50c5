import json

import pytest

from dataset_script.build.report import listing_findings
from dataset_script.sources import open_source
from dataset_script.sources.problems import Note, SourceError
from dataset_script.sources.published import PublishedSource
from dataset_script.sources.released import ReleasedSource
from tests.support.released_layout import SourceFolder, cleaned
from tests.support.released_layout import step as make_step

DEV_1 = "shop/GenericAgent-a/shop.1"


def read(source, trajectory_id=DEV_1):
    released = ReleasedSource(source.path)
    (file,) = (file for file in released.list_runs().files if file.trajectory_id == trajectory_id)
    return released.read(file)


def test_a_folder_without_files_in_the_layout_is_refused(tmp_path, source):
    (source.path / "cleaned").mkdir(parents=True)
    with pytest.raises(SourceError, match=r"contains no <benchmark>/<agent>/<experiment>/<task_id>\.json"):
        ReleasedSource(source.path).list_runs()
    with pytest.raises(SourceError, match="contains neither cleaned/"):
        ReleasedSource(tmp_path).list_runs()


def test_a_screenshot_at_another_place_is_taken_from_the_path_in_the_file(source):
    source.put(DEV_1, steps=[make_step(0, screenshot_path="trajectories/screenshots/shop/b/odd/x.png")])
    place = source.path / "screenshots" / "shop" / "b" / "odd" / "x.png"
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    assert read(source)[0].steps[0].screenshot == place


@pytest.mark.parametrize(
    "path",
    ["screenshots/../../secret.png", "/etc/passwd", "screenshots/" + "x" * 5000, "screenshots/a\0b", "x.png"],
)
def test_a_path_that_leads_out_of_the_source_or_nowhere_gives_no_screenshot(source, path):
    (source.path.parent / "secret.png").write_bytes(b"secret")
    (source.path / "screenshots").mkdir(parents=True)
    source.put(DEV_1, steps=[make_step(0, screenshot_path=path)])
    assert read(source)[0].steps[0].screenshot is None


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
def test_a_box_is_four_numbers_of_the_element_or_null_and_a_broken_one_is_told(source, boxes, expected, told):
    source.put(DEV_1, steps=[make_step(0, action="click('7')", bounding_boxes=boxes)])
    recording, notes = read(source)
    assert recording.steps[0].box == expected
    assert ["bad_box" in note.code for note in notes] == ([True] if told else [])


def test_boxes_that_are_no_utf8_are_reported_and_the_run_is_kept(source):
    whole = json.dumps(cleaned()).encode()
    source.put(DEV_1, whole.replace(b'"bounding_boxes": {"', b'"bounding_boxes": {"\xff', 1))
    assert [note.code for note in read(source)[1]] == ["bad_box"]


def test_without_bounding_boxes_the_other_copy_of_them_counts(source):
    step = make_step(0, action="click('7')", extra_element_properties={"7": {"bbox": [1, 2, 3, 4]}})
    del step["bounding_boxes"]
    source.put(DEV_1, steps=[step])
    assert read(source)[0].steps[0].box == (1.0, 2.0, 3.0, 4.0)


def test_boxes_of_pages_without_an_action_on_an_element_are_not_decoded(source, monkeypatch):
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


def test_a_very_large_file_is_reported(source, monkeypatch):
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


def test_what_fetch_noted_is_the_origin(source):
    source.put(DEV_1)
    assert ReleasedSource(source.path).origin() == {}
    (source.path / "fetched.json").write_text('{"repo": "owner/name", "commit": "abc", "more": 1}')
    assert ReleasedSource(source.path).origin() == {"repo": "owner/name", "commit": "abc"}


def test_a_folder_is_recognised_by_what_is_in_it(full_source, tmp_path):
    assert isinstance(open_source(full_source.path), ReleasedSource)
    (tmp_path / "manifest.json").write_text("{}")
    assert isinstance(open_source(tmp_path), PublishedSource)
    with pytest.raises(SourceError, match=r"cleaned/ .*manifest.json.*exp_args.pkl"):
        open_source(full_source.path / "cleaned")
    with pytest.raises(SourceError, match="absent: this path does not exist; check its spelling"):
        open_source(tmp_path / "absent")


def test_names_in_a_source_with_its_layout_in_trajectories_lead_to_their_files(tmp_path):
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    source = SourceFolder(tmp_path / "source", "trajectories/cleaned")
    run = source.put(DEV_1)
    run.with_name("shop.2.json").symlink_to(outside)
    (source.path / "trajectories" / "cleaned" / "cut.json").write_text("[1,")
    opened = ReleasedSource(source.path)
    listing = opened.list_all()
    assert [(each.code, each.file, each.message) for each in listing_findings(opened, listing)[0]] == [
        ("link_out", "trajectories/cleaned/shop/GenericAgent-a/run-1/shop.2.json", ""),
        ("misplaced", "trajectories/cleaned/cut.json",
         "is not valid JSON: Expecting value: line 1 column 4 (char 3)"),
    ]  # fmt: skip
    counts = opened.count_files(listing, ())
    assert (counts.found, counts.read) == (3, 1)  # the run; the link and the cut file are not read
