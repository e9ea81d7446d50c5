"""Ids of runs and values of logs that any program may have written."""

import json
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.ids import TrajectoryId
from dataset_script.sources import open_source
from dataset_script.sources.agentlab import AgentLabSource
from dataset_script.sources.atif.source import AtifSource
from dataset_script.sources.base import numbered_ids
from dataset_script.sources.browser_use import BrowserUseSource
from dataset_script.sources.files import (
    file_inside,
    find_links_out,
    is_behind,
    is_inside,
    link_names,
    read_json_object,
)
from dataset_script.sources.inspect_log import InspectSource
from dataset_script.sources.online_mind2web import OnlineMind2WebSource
from dataset_script.sources.problems import SourceError, UnusableFileError
from dataset_script.sources.published import PublishedSource
from dataset_script.sources.released import ReleasedSource
from dataset_script.sources.values import call_text, id_part, valid_text

RUNS = st.lists(st.tuples(st.sampled_from(["web/a/1", "web/a/2", "web/b/1"]), st.integers(0, 5)), max_size=12)


@given(RUNS)
def test_ids_are_unique_and_the_first_of_a_task_has_no_number(runs):
    ids = numbered_ids(runs)
    assert len(set(ids)) == len(runs)
    assert {each for each in ids if "~" not in each} == {task for task, _ in runs}


def test_repeats_are_numbered_by_their_sort_key_and_stand_where_the_runs_stood():
    assert numbered_ids([("w/a/1", 9), ("w/a/1", 3), ("w/a/2", 1), ("w/a/1", 5)]) == [
        "w/a/1~3",
        "w/a/1",
        "w/a/2",
        "w/a/1~2",
    ]


@given(st.text(), st.text(), st.text())
def test_any_names_make_an_id_of_three_parts(benchmark, agent, task):
    parts = [id_part(name) for name in (benchmark, agent, task)]
    assert str(TrajectoryId.parse("/".join(parts))) == "/".join(parts)


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"[1]", "not_a_trajectory"), (b"{", "not_json"), (b"\xff", "not_json"), (b"[" * 100_000, "not_json")],
)
def test_a_file_that_holds_no_json_object_is_refused_by_code(tmp_path, content, code):
    (tmp_path / "log.json").write_bytes(content)
    with pytest.raises(UnusableFileError) as refused:
        read_json_object(tmp_path / "log.json")
    assert refused.value.code == code


@pytest.mark.parametrize("name", ["log.json", "log.eval", "result.json", "agent/task.json"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, name):
    (tmp_path / "agent").mkdir()
    os.mkfifo(tmp_path / name)
    with pytest.raises(UnusableFileError, match="not a regular file"):
        read_json_object(tmp_path / name)
    with pytest.raises(SourceError, match="contains no runs in a known format"):
        open_source(tmp_path)


def test_half_a_character_becomes_the_replacement_character():
    assert valid_text(json.loads('"a\\ud800b"')) == "a\ufffdb"
    assert valid_text(7) is None


@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        ({"index": 3, "text": 'a "b"\n', "ok": None}, r'act(index=3, text="a \"b\"\n", ok=null)'),
        ({}, "act()"),
        (None, "act()"),
        ([1, {"é": True}], 'act([1, {"é": true}])'),
        ({"key": "a\ud800"}, 'act(key="a\ufffd")'),
    ],
)
def test_a_call_is_written_with_its_arguments_in_json(arguments, written):
    assert call_text("act", arguments) == written


def test_a_path_is_inside_where_its_links_lead(tmp_path):
    source = tmp_path / "source"
    (source / "run").mkdir(parents=True)
    (source / "within").symlink_to(source / "run")
    (source / "away").symlink_to(tmp_path)
    inside = ["run/a.png", "within/a.png", "run/../run/a.png"]
    outside = ["away/a.png", "../a.png", "run/../../a.png", "run\0", "/etc/passwd"]
    assert [name for name in inside + outside if is_inside(source / name, source)] == inside


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/etc/hostname", "is outside the source"),
        ("../secret.png", "is outside the source"),
        ("..\\secret.png", "is outside the source"),
        ("C:\\secret.png", "is outside the source"),
        ("https://example.org/a.png", "is an address, not a file of the source"),
        ("data:image/png;base64,AAAA", "is an address, not a file of the source"),
        *((name, "is missing") for name in ("absent.png", "run", "", "a\0b", "a" * 5000, "circle.png")),
        ("away.png", "is a link that leaves the source"),
    ],
)
def test_a_file_that_a_log_names_outside_of_the_source_is_refused(tmp_path, name, reason):
    source = tmp_path / "source"
    (source / "run").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(b"secret")
    (source / "away.png").symlink_to(tmp_path / "secret.png")
    (source / "circle.png").symlink_to(source / "circle.png")
    with pytest.raises(UnusableFileError, match=reason):
        file_inside(name, source, source)


def test_a_file_and_a_link_inside_the_source_are_found(tmp_path):
    (tmp_path / "run" / "images").mkdir(parents=True)
    picture = tmp_path / "run" / "images" / "1.png"
    picture.write_bytes(b"png")
    (tmp_path / "run" / "link.png").symlink_to(picture)
    assert file_inside("images/1.png", tmp_path / "run", tmp_path) == picture
    assert file_inside("link.png", tmp_path / "run", tmp_path).read_bytes() == b"png"


def test_links_out_of_a_folder_are_found_and_those_that_stay_inside_are_not(tmp_path):
    source, outside = tmp_path / "source", tmp_path / "outside"
    (source / "runs").mkdir(parents=True)
    outside.mkdir()
    (source / "runs" / "a.json").write_text("{}")
    (source / "b.json").symlink_to("runs/a.json")
    (source / "here").symlink_to(source / "runs")
    (source / "runs" / "c.json").symlink_to("../../outside")
    (source / "away").symlink_to(outside)
    (source / "loop").symlink_to("loop")
    (source / "dangling").symlink_to("/absent/file")
    (tmp_path / "named").symlink_to(source)  # the folder that is named may be a link itself
    links = find_links_out(tmp_path / "named")
    assert link_names(links, tmp_path / "named") == ("away", "dangling", "runs/c.json")
    assert is_behind(tmp_path / "named" / "away" / "x" / "y.json", links)
    assert not is_behind(tmp_path / "named" / "here" / "a.json", links)
    assert is_inside(source / "here" / "a.json", source)
    assert not is_inside(source / "away" / "a.json", source)


def test_a_snapshot_of_the_hubs_cache_is_inside_its_repository(tmp_path):
    snapshot = tmp_path / "datasets--ada--runs" / "snapshots" / "b6d17e6"
    blobs = tmp_path / "datasets--ada--runs" / "blobs"
    for folder in (snapshot, blobs):
        folder.mkdir(parents=True)
    (blobs / "1f").write_text("{}")
    (snapshot / "a.json").symlink_to("../../blobs/1f")
    (snapshot / "b.json").symlink_to("../../../elsewhere")
    assert link_names(find_links_out(snapshot), snapshot) == ("b.json",)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("recorded_by_browsergym", AgentLabSource),
        ("online_mind2web_by_hand", OnlineMind2WebSource),
        ("recorded_by_browser_use", BrowserUseSource),
        ("inspect_logs", InspectSource),
        ("atif_by_harbor/jobs", AtifSource),
        ("atif_by_harbor/files", AtifSource),
    ],
)
def test_logs_are_recognised_by_their_own_kind_alone(folder, kind):
    kinds = (ReleasedSource, PublishedSource, AgentLabSource)
    kinds += (OnlineMind2WebSource, BrowserUseSource, InspectSource, AtifSource)
    assert [each for each in kinds if each.recognises(Path(__file__).parent / folder)] == [kind]
    source = open_source(Path(__file__).parent / folder)
    assert type(source) is kind
    assert pickle.loads(pickle.dumps(source)) == source  # worker processes get a copy
