"""Folders with runs of several formats: each is read, and every other file is named."""

import json
import os
import pickle
import shutil
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.core.suite import load_suite
from dataset_script.__main__ import app
from dataset_script.build.blind import Blinding
from dataset_script.build.build import BuildOptions, build
from dataset_script.new_suite import build_source
from dataset_script.sources import open_source
from dataset_script.sources.mixed import MixedSource
from dataset_script.sources.problems import UnusableFileError
from dataset_script.sources.published import PublishedDataset
from tests.dataset_script.sources.test_atif import agent, trajectory, user, write_trial
from tests.dataset_script.sources.test_inspect_log import assistant, log_of, sample
from tests.support.sources import write_json

HERE = Path(__file__).parent
RECORDED = (
    *("recorded_by_browsergym", "recorded_by_browser_use", "online_mind2web_by_hand"),
    *("inspect_logs", "atif_by_harbor"),
)


@pytest.fixture
def everything(tmp_path):
    """One folder with the recordings of every format."""
    for name in RECORDED:
        shutil.copytree(HERE / name, tmp_path / "runs" / name)
    return tmp_path / "runs"


def counted(folder):
    """Return the listing, the names that cannot be read, and the counts of the files."""
    source = open_source(folder)
    listing = source.list_all()
    refused = {}
    for file in listing.files:
        try:
            source.read(file)
        except UnusableFileError as error:
            refused[file.name] = error.code
    counts = source.count_files(listing, refused.keys())
    assert counts.read + counts.named == counts.found
    return listing, refused, counts


def test_every_format_of_a_folder_is_read_with_the_ids_that_it_has_alone(everything):
    source = open_source(everything)
    assert isinstance(source, MixedSource)
    listing = source.list_all()
    alone = Counter[str]()
    for name in RECORDED:
        alone.update(file.trajectory_id for file in open_source(everything / name).list_all().files)
    assert Counter(file.trajectory_id for file in listing.files) == alone
    assert Counter(source.kind_of(file) for file in listing.files) == {
        # 11 trials and steps of trials, and 3 other files, are in ATIF
        **{"agentlab": 1, "browser-use": 10, "online-mind2web": 5, "inspect": 45, "atif": 11 + 3},
    }
    assert pickle.loads(pickle.dumps(source)) == source


def test_every_file_of_a_mixed_folder_belongs_to_a_run_that_is_read_or_is_named(everything):
    listing, refused, counts = counted(everything)
    assert counts.found == sum(path.is_file() for path in everything.rglob("*"))
    assert refused == {
        "online_mind2web_by_hand/second-agent/broken/result.json": "not_json",
        "atif_by_harbor/jobs/2026-11-02__10-00-00/fix-build__GGGGGGG/agent/trajectory.json": "crashed",
    }
    assert {*listing.others} == {
        *(f"{name}/README.md" for name in ("atif_by_harbor", "inspect_logs", "recorded_by_browser_use")),
        *(f"inspect_logs/{version}/conversations.json" for version in ("0.3.60", "0.3.150", "0.3.285")),
        "online_mind2web_by_hand/harbor/some-trial__x1/result.json",
    }
    broken = everything / "online_mind2web_by_hand" / "second-agent" / "broken"
    crashed = everything / "atif_by_harbor" / "jobs" / "2026-11-02__10-00-00" / "fix-build__GGGGGGG"
    of_refused = sum(path.is_file() for folder in (broken, crashed) for path in folder.rglob("*"))
    assert counts.named == len(listing.others) + of_refused


@pytest.mark.slow
def test_the_report_and_the_manifest_of_a_build_name_every_file_that_was_not_read(everything, tmp_path):
    made = build_source(everything, tmp_path / "cache")
    assert made.facts.files.named == made.facts.files.found - made.facts.files.read
    assert [each.split("/")[0] for each in made.facts.crashed] == ["small-bench"]
    report = build(everything, tmp_path / "out", load_suite(made.suite_folder))
    source = PublishedDataset(tmp_path / "out").manifest.source
    assert (source["kind"], source["formats"]) == (
        "mixed",
        "agentlab, online-mind2web, browser-use, inspect, atif",
    )
    assert source["files"] == {
        "found": made.facts.files.found,
        "read": made.facts.files.read,
        "named": made.facts.files.named,
    }
    assert source["not_read"] == report.named_files()
    assert {code: len(names) for code, names in source["not_read"].items()} == {
        # The suite has only the runs that can be read, so the broken run and the crashed one are not in it.
        **{"misplaced": 4, "not_json_file": 3, "not_in_suite": 2},
    }


def test_a_name_that_is_not_utf_8_does_not_spoil_the_manifest(tmp_path):
    runs = tmp_path / "runs"
    write_json(runs, ATIF)
    Path(os.fsdecode(os.fsencode(runs) + b"/odd-\xff.txt")).write_text("n")
    made = build_source(runs, tmp_path / "cache")
    assert made.facts.files.to_json() == {"found": 2, "read": 1, "named": 1}
    source = PublishedDataset(made.folder).manifest.source
    assert source["not_read"] == {"not_json_file": ["odd-\ufffd.txt"]}


@pytest.mark.slow
def test_a_blind_manifest_has_the_counts_but_no_names(everything, tmp_path):
    made = build_source(everything, tmp_path / "cache")
    options = BuildOptions(blinding=Blinding(b"k" * 32))
    build(everything, tmp_path / "out", load_suite(made.suite_folder), options)
    dataset = PublishedDataset(tmp_path / "out")
    assert dataset.manifest.source["files"]["found"] == made.facts.files.found
    assert "not_read" not in dataset.manifest.source
    assert "usage" not in dataset.configurations


@pytest.mark.slow
def test_the_command_prints_that_read_and_named_files_add_up(everything):
    done = CliRunner().invoke(app, ["inspect-source", str(everything)])
    found = sum(path.is_file() for path in everything.rglob("*"))
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("files: "))
    numbers = [int(word) for word in line.replace(",", "").split() if word.isdecimal()]
    assert numbers[0] == found == numbers[1] + numbers[2]
    assert "recorded_by_browser_use/README.md" in done.stdout


ATIF = trajectory(user("Do it."), agent("I look.", ("look", {"at": "it"}), model_name="m"), agent("Done."))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_atif_next_to_a_log_is_read_in_any_encoding_of_json(tmp_path, encoding):
    write_json(tmp_path, log_of(sample(assistant("x"))), "log.json")
    (tmp_path / "atif.json").write_bytes(json.dumps(ATIF).encode(encoding))
    listing, refused, counts = counted(tmp_path)
    assert [file.trajectory_id for file in listing.files] == ["chores/m_x/one", "atif/coder/atif"]
    assert (refused, counts.found, counts.read) == ({}, 2, 2)


def test_atif_whose_version_comes_after_its_steps_is_read(tmp_path):
    late = {key: value for key, value in ATIF.items() if key != "schema_version"}
    late["steps"] = [user("Do it. " + "x" * 300_000), *late["steps"][1:]]
    late["schema_version"] = ATIF["schema_version"]
    write_json(tmp_path, late, "late.json")
    write_json(tmp_path, {"steps": ["x" * 300_000], "version": 3}, "other.json")
    listing, refused, _ = counted(tmp_path)
    assert [file.trajectory_id for file in listing.files] == ["atif/coder/late"]
    assert (refused, listing.others) == ({}, ("other.json",))


def test_a_log_of_inspect_with_a_byte_order_mark_is_read(tmp_path):
    text = json.dumps(log_of(sample(assistant("Grüße")), sample(assistant("x"), name="two")))
    (tmp_path / "log.json").write_bytes(text.encode("utf-8-sig"))
    source = open_source(tmp_path)
    first, second = source.list_all().files
    assert (first.trajectory_id, second.trajectory_id) == ("chores/m_x/one", "chores/m_x/two")
    assert source.read(first)[0].answer == "Grüße"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"steps": {"a": 1}}, "steps is not a list"),
        ({"steps": [*ATIF["steps"], "text", 7]}, "steps[3] is not an object, steps[4] is not an object"),
        ({"steps": [*ATIF["steps"], agent("x") | {"tool_calls": {"a": 1}}]}, "steps[3].tool_calls"),
        ({"steps": [*ATIF["steps"], agent("x") | {"tool_calls": [3]}]}, "a member of steps[3].tool_calls"),
        ({"steps": [*ATIF["steps"], agent("x") | {"observation": "seen"}]}, "steps[3].observation"),
        ({"steps": [*ATIF["steps"], agent("x") | {"observation": {"results": 1}}]}, "steps[3].results"),
        ({"steps": [*ATIF["steps"], {"source": "robot", "message": "x"}]}, "steps[3].source"),
        ({"steps": [*ATIF["steps"], agent(3)]}, "steps[3].message"),
    ],
)
def test_malformed_members_of_atif_are_named_with_their_place(tmp_path, change, said):
    source = open_source(write_json(tmp_path, ATIF | change).parent)
    (file,) = source.list_all().files
    if said.startswith("steps is"):
        with pytest.raises(UnusableFileError, match=said):
            source.read(file)
    else:
        assert [note.detail for note in source.read(file)[1] if note.code == "malformed"] == [
            f"{said.count('steps[')}: {said}"
        ]


def test_a_file_that_begins_like_atif_but_is_cut_off_is_named_as_broken(tmp_path):
    write_json(tmp_path, log_of(sample(assistant("x"))), "log.json")
    (tmp_path / "cut.json").write_text(json.dumps(ATIF)[:-9])
    (tmp_path / "half.json").write_text('{"steps": [')
    listing, refused, counts = counted(tmp_path)
    assert refused == {"cut.json": "not_json"}
    assert listing.others == ("half.json",)
    assert (counts.found, counts.read, counts.named) == (3, 1, 2)


def test_a_result_of_online_mind2web_without_a_task_is_read_and_noted(tmp_path):
    runs = tmp_path / "runs"
    write_json(runs, log_of(sample(assistant("x"))), "log.json")
    result = {"task": None, "task_id": None, "action_history": ["click", "TASK_COMPLETE -> ANSWER: 4"]}
    write_json(runs, result, "agent/7/result.json")
    made = build_source(runs, tmp_path / "cache")
    report = build(runs, tmp_path / "out", load_suite(made.suite_folder))
    assert ("online-mind2web/agent/7", "no_goal") in [(each.file, each.code) for each in report.notes]
    assert (report.left_out, report.built()) == ([], 2)


def test_a_log_that_an_agent_left_inside_its_trial_is_no_run_of_its_own(tmp_path):
    write_trial(tmp_path / "job" / "t__1", {"task_name": "t", "agent_info": {"name": "x"}}, ATIF)
    history = {"history": [{"model_output": None, "result": [], "state": {"url": "", "title": ""}}]}
    write_json(tmp_path, history, "job/t__1/agent/AgentHistory.json")
    write_json(tmp_path, history, "own/AgentHistory.json")
    for name in ("config.json", "result.json"):
        write_json(tmp_path, {"job": 1}, f"job/{name}")
    listing, refused, counts = counted(tmp_path)
    assert [file.name for file in listing.files] == [
        "own/AgentHistory.json",
        "job/t__1/agent/trajectory.json",
    ]
    assert (refused, listing.others, counts.found, counts.read) == ({}, (), 6, 6)


def test_the_same_id_from_two_formats_makes_a_repeat(tmp_path):
    write_json(tmp_path, log_of(sample(assistant("x"), name="t"), task="atif", model="coder"), "log.json")
    write_json(tmp_path, ATIF, "t.json")
    listing = open_source(tmp_path).list_all()
    assert [file.trajectory_id for file in listing.files] == ["atif/coder/t", "atif/coder/t~2"]


def test_hidden_folders_are_named_once_and_links_out_by_their_reason(tmp_path):
    source = tmp_path / "source"
    write_json(source, ATIF)
    for name in ("a", "b"):
        write_json(source, {}, f".git/objects/{name}")
    (source / "away.json").symlink_to("/absent")
    listing, _, counts = counted(source)
    assert (listing.others, listing.links_out) == ((".git",), ("away.json",))
    assert (counts.found, counts.read) == (4, 1)


@pytest.mark.shared
def test_files_next_to_the_released_layout_are_named_and_other_formats_are_read(shared_layout):
    write_json(shared_layout, ATIF, "more/atif.json")
    write_json(shared_layout, {"a": 1}, "more/other.json")
    source = open_source(shared_layout)
    listing, refused, counts = counted(shared_layout)
    assert {source.kind_of(file) for file in listing.files} == {"released", "atif"}
    assert (refused, listing.others) == ({}, ("more/other.json",))
    assert counts.found == sum(path.is_file() for path in shared_layout.rglob("*")) == counts.read + 1


@pytest.fixture
def shared_layout(shared, tmp_path):
    folder = tmp_path / "released"
    shutil.copytree(shared / "data" / "released_layout", folder)
    return folder
