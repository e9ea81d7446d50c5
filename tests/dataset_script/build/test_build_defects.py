"""What a build does with bad files, and with what stands at its place already."""

import json
import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from dataset_script.build import build as module
from dataset_script.build.build import BuildOptions
from dataset_script.build.build import build as build_dataset
from dataset_script.build.output import OutputError
from dataset_script.build.report import lines
from dataset_script.schema import LABEL_COLUMNS
from dataset_script.sources.problems import SourceError
from dataset_script.verify.check import verify
from tests.support.released_layout import cleaned, png
from tests.support.released_layout import step as make_step

DEV_1, DEV_2 = "shop/GenericAgent-a/shop.1", "shop/GenericAgent-b/shop.resized.1"
TEST_1, TEST_2 = "shop/GenericAgent-a/shop.2", "shop/GenericAgent-b/shop.resized.2"
TEST_3 = "workarena/GenericAgent-a/workarena.servicenow.sort-l2"
REPOSITORY = Path(__file__).parents[3]

build = partial(build_dataset, options=BuildOptions(workers=1))
strictly = partial(build_dataset, options=BuildOptions(workers=1, strict=True))


def names(findings, code):
    return [finding.file for finding in findings if finding.code == code]


def test_one_bad_file_of_each_kind_is_named_and_the_rest_is_built(full_source, out, suite, table):
    whole = json.dumps(cleaned()).encode()
    cut = full_source.put(DEV_1, whole[:-20])
    full_source.put(DEV_2, valid=False)
    full_source.put(TEST_1, steps=[])
    full_source.put(TEST_2, steps=[{"num": "one"}])
    full_source.put("shop/GenericAgent-z/shop.1")
    full_source.judge(TEST_3, "aer", b"{")
    full_source.judge("shop/GenericAgent-z/shop.1", "aer", "Status: success")
    (full_source.path / "cleaned" / "stray.json").write_text("{}")
    (full_source.path / "cleaned" / "notes.txt").write_text("")
    report = build(full_source.path, out, suite)
    assert sorted((finding.code, finding.file) for finding in report.left_out) == sorted(
        [
            ("misplaced", "cleaned/stray.json"),
            ("not_in_suite", "cleaned/shop/GenericAgent-z/run-1/shop.1.json"),
            ("not_json", cut.relative_to(full_source.path).as_posix()),
            ("no_steps", "cleaned/shop/GenericAgent-a/run-1/shop.2.json"),
            ("invalid", "cleaned/shop/GenericAgent-b/run-1/shop.resized.1.json"),
            ("not_a_trajectory", "cleaned/shop/GenericAgent-b/run-1/shop.resized.2.json"),
            ("not_in_suite", "judgments/shop/GenericAgent-z/aer/shop.1.json"),
            ("not_json", "judgments/workarena/GenericAgent-a/aer/workarena.servicenow.sort-l2.json"),
        ]
    )
    assert report.damaged() == 4  # cut, without steps, with a wrong type, a cut judgment
    assert names(report.notes, "not_json_file") == ["cleaned/notes.txt"]
    assert report.published
    # Ten files, of which only the run of TEST_3 is read.
    assert report.files.to_json() == {"found": 10, "read": 1, "named": 9}
    for name in ("trajectories", "steps", "rewards"):
        assert {row["trajectory_id"] for row in table(out, "test", name)} == {TEST_3}


def test_repeated_and_unordered_steps_are_put_in_order_so_that_verify_finds_nothing(
    full_source, out, suite, table
):
    first, second, third = cleaned()["steps"]
    full_source.put(TEST_1, steps=[second, first, second, third])
    full_source.put(TEST_2, steps=[first, second | {"num": 0}, third])
    report = build(full_source.path, out, suite)
    codes = ("repeated_steps", "reordered", "unordered_steps", "renumbered")
    notes = [(each.code, each.file.rpartition("/")[2], each.message) for each in report.notes]
    assert [note for note in notes if note[0] in codes] == [
        ("repeated_steps", "shop.2.json", "1"),
        ("reordered", "shop.2.json", "[1, 0, 1, 2]"),
        ("unordered_steps", "shop.resized.2.json", "0"),
        ("renumbered", "shop.resized.2.json", "written: [0, 0, 2]"),
    ]
    steps = table(out, "test", "steps")
    assert [row["num"] for row in steps if row["trajectory_id"] == TEST_1] == [0, 1, 2]
    urls = [row["url"] for row in steps if row["trajectory_id"] == TEST_1]
    assert urls == ["http://shop/0", "http://shop/1", "http://shop/2"]
    assert [row["num"] for row in steps if row["trajectory_id"] == TEST_2] == [0, 1, 2]
    assert "duplicate_id" not in {finding.code for finding in verify(out, suite=suite).findings}


def test_links_out_of_the_source_are_named_and_not_followed(full_source, out, suite, tmp_path, table):
    outside = tmp_path / "outside"
    outside.mkdir()
    run = full_source.put(DEV_1)
    run.rename(outside / "run.json")
    run.symlink_to(outside / "run.json")
    agent = full_source.put(TEST_3).parents[1]
    agent.rename(outside / "agent")
    agent.symlink_to(outside / "agent")
    picture = full_source.picture(TEST_1, 0, png(7))
    full_source.put(TEST_1, steps=[make_step(0), make_step(1)])
    picture.rename(outside / "picture.png")
    picture.symlink_to(outside / "picture.png")
    report = build(full_source.path, out, suite)
    assert names(report.left_out, "link_out") == [
        "cleaned/shop/GenericAgent-a/run-1/shop.1.json",
        "cleaned/workarena/GenericAgent-a",
        f"screenshots/{TEST_1}/screenshot_step_0.png",
    ]
    assert names(report.left_out, "missing") == [DEV_1, TEST_3]
    assert report.damaged() == 3
    assert table(out, "test", "steps")[0]["screenshot"] is None
    assert {row["trajectory_id"] for row in table(out, "test")} == {TEST_1, TEST_2}


def test_a_source_that_is_all_behind_a_link_names_the_link(full_source, out, suite, tmp_path):
    (full_source.path / "cleaned").rename(tmp_path / "elsewhere")
    (full_source.path / "cleaned").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="cleaned is a link out of the source"):
        build(full_source.path, out, suite)


def test_a_folder_of_nothing_but_links_names_them(tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "study").symlink_to(Path(__file__).parents[1] / "sources" / "recorded_by_browsergym")
    with pytest.raises(SourceError, match=r"; study is a link out of the source$"):
        build(tmp_path / "runs", tmp_path / "out")


def test_a_built_folder_with_a_link_out_of_it_is_no_source(full_source, out, suite, tmp_path):
    assert build(full_source.path, out, suite).published
    (out / "data" / "steps").rename(tmp_path / "steps")
    (out / "data" / "steps").symlink_to(tmp_path / "steps")
    with pytest.raises(SourceError, match="data/steps: links out of the folder"):
        build(out, tmp_path / "second" / "dataset", suite)


def test_of_two_files_for_one_trajectory_one_is_taken_and_the_other_named(source, out, suite, table):
    source.put("shop/GenericAgent-b/shop.1", goal="other spelling")
    source.put(DEV_2, goal="second run", experiment="run-2")
    source.put(DEV_2, goal="first run", experiment="run-1")
    report = build(source.path, out, suite)
    assert [row["goal"] for row in table(out, "dev")] == ["first run"]
    duplicates = [finding for finding in report.left_out if finding.code == "duplicate"]
    assert [finding.file for finding in duplicates] == [
        "cleaned/shop/GenericAgent-b/run-2/shop.resized.1.json",
        "cleaned/shop/GenericAgent-b/run-1/shop.1.json",
    ]
    assert duplicates[0].message == "cleaned/shop/GenericAgent-b/run-1/shop.resized.1.json is used"


def test_a_second_file_stands_in_for_a_broken_first_one(source, out, suite, table):
    source.put(DEV_1, b"{", experiment="run-1")
    source.put(DEV_1, goal="second run", experiment="run-2")
    report = build(source.path, out, suite)
    assert [row["goal"] for row in table(out, "dev")] == ["second run"]
    assert names(report.left_out, "not_json") == ["cleaned/shop/GenericAgent-a/run-1/shop.1.json"]
    assert not names(report.left_out, "duplicate")


def test_what_is_odd_but_kept_is_noted(full_source, out, suite, suite_folder, table):
    full_source.picture(DEV_1, 0, b"no picture")
    last_acts = cleaned()["steps"]
    last_acts[0]["screenshot_path"] = "x"
    last_acts[-1]["action"] = "noop()"
    full_source.put(DEV_1, steps=last_acts)
    full_source.put(TEST_1, summary_info={"x": float("nan")})
    labels = suite_folder / "dev_labels.csv"
    labels.write_text(
        "\n".join(line for line in labels.read_text().splitlines() if "GenericAgent-b" not in line)
    )
    report = build(full_source.path, out, suite)
    assert report.left_out == []
    file = "cleaned/shop/GenericAgent-a/run-1/shop.1.json"
    # (every file of this source reads "None" as the path of most of its screenshots)
    told = [
        (n.code, n.file, n.message) for n in report.notes if n.code != "missing_screenshot" or n.file == file
    ]
    assert told == [
        ("missing_screenshot", file, "steps 1, 2 of 3"),
        ("broken_image", file, "the screenshot of step 0 is neither PNG, JPEG nor WebP"),
        ("action_on_last_step", DEV_1, ""),
        ("not_strict_json", "cleaned/shop/GenericAgent-a/run-1/shop.2.json", ""),
        ("no_dev_labels", DEV_2, ""),
    ]
    assert table(out, "dev")[0]["steps"][-1]["action"] == "noop()"
    assert [table(out, "dev")[1][name] for name in LABEL_COLUMNS] == [None] * 4
    assert table(out, "dev", "steps")[0]["screenshot"] is None


def fuzzed(whole: bytes, chance: random.Random) -> bytes:
    """The file, damaged in one of the ways that files are."""
    place = chance.randrange(len(whole))
    damages = (
        lambda: whole[:place],
        lambda: whole[:place] + b"\xff\xfe" + whole[place:],
        lambda: whole[:place] + b"NaN" + whole[place:],
        lambda: whole.replace(b'"num": 1', b'"num": "one"'),
        lambda: whole.replace(b'"url": "', b'"url": ["', 1),
        lambda: whole.replace(b'"goal": ', b'"goal": ' + b"[" * 50_000 + b"]" * 50_000 + b', "other": ', 1),
        lambda: whole.replace(b'"Buy a teapot.\\n"', json.dumps("tea " * 500_000).encode() + b" x"),
        lambda: b"\0" * place,
        lambda: chance.randbytes(place),
    )
    return chance.choice(damages)()


@pytest.mark.parametrize("seed", range(12))
def test_damaged_files_are_a_clear_line_each_and_the_build_goes_on(full_source, out, suite, seed, table):
    chance = random.Random(seed)
    whole = json.dumps(cleaned()).encode()
    for trajectory_id in (DEV_1, TEST_1, TEST_2):
        full_source.put(trajectory_id, fuzzed(whole, chance))
    report = build(full_source.path, out, suite)
    assert report.published
    built = {row["trajectory_id"] for split in ("dev", "test") for row in table(out, split)}
    assert {DEV_2, TEST_3} <= built
    assert len(built) + report.damaged() == 5  # each of the three is either built or named
    text = list(lines(report))
    for finding in report.left_out:
        (line,) = (line for line in text if finding.file in line)
        assert len(line) < 450 and line.isprintable() and finding.message[:20] in line


def test_every_damaged_file_is_reported_however_many_there_are(source, out, tmp_path):
    from arb.core.suite import load_suite

    ids = [f"shop/a/shop.{number}" for number in range(30)]
    (tmp_path / "many").mkdir()
    (tmp_path / "many" / "trajectories.csv").write_text(
        "trajectory_id,split\n" + "\n".join(f"{i},test" for i in ids)
    )
    for trajectory_id in ids[:-1]:
        source.put(trajectory_id, b"{")
    source.put(ids[-1])
    text = "\n".join(lines(build(source.path, out, load_suite(tmp_path / "many"))))
    assert text.count("shop.json") == 0 and text.count(".json: Input data was truncated") == 29


def test_strict_leaves_the_old_one_when_anything_is_left_out(full_source, out, suite, contents):
    assert strictly(full_source.path, out, suite).published
    before = contents(out)
    full_source.put(DEV_1, b"{")
    report = strictly(full_source.path, out, suite)
    assert (report.published, report.built()) == (False, 4)
    assert contents(out) == before


def test_notes_alone_do_not_trouble_strict(full_source, out, suite):
    full_source.put(DEV_1, goal="")
    report = strictly(full_source.path, out, suite)
    assert (report.published, names(report.notes, "no_goal")) == (True, [DEV_1])


def test_a_build_replaces_the_one_before_whole(full_source, out, suite, table):
    build(full_source.path, out, suite)
    for name in ("shop.1.json", "shop.2.json"):
        (full_source.path / "cleaned" / "shop" / "GenericAgent-a" / "run-1" / name).unlink()
    build(full_source.path, out, suite)
    assert [row["trajectory_id"] for row in table(out, "dev")] == [DEV_2]
    assert [path.name for path in out.parent.iterdir()] == [out.name]


def test_something_else_at_the_place_is_refused_before_reading(
    full_source, out, suite, monkeypatch, contents
):
    out.mkdir()
    (out / "thesis.tex").write_text("mine")
    monkeypatch.setattr(module, "open_source", None)
    with pytest.raises(OutputError, match="was not written by `build`"):
        build(full_source.path, out, suite)
    assert contents(out) == {"thesis.tex": b"mine"}


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError("disk full")])
def test_a_build_that_is_stopped_leaves_the_old_one_and_the_next_goes_on_from_there(
    full_source, out, suite, stop, contents, tmp_path, read_files
):
    build(full_source.path, out, suite)
    before = contents(out)
    full_source.put(DEV_1, goal="changed")
    read_files.clear()

    def stop_at_the_third(done, total, name):
        if done == 3:
            raise stop

    with pytest.raises(type(stop) if isinstance(stop, OSError) else stop):
        build(full_source.path, out, suite, progress=stop_at_the_third)
    assert contents(out) == before
    assert len(read_files) == 3
    build(full_source.path, out, suite)
    assert len(read_files) == 5  # the other two, each once
    assert [path.name for path in out.parent.iterdir()] == [out.name]
    build(full_source.path, tmp_path / "at-once", suite)
    assert contents(out) == contents(tmp_path / "at-once")


def test_a_build_killed_outright_is_gone_on_with_and_gives_the_same_bytes(
    full_source, suite_folder, suite, tmp_path, contents, read_files
):
    slow = f"""
import sys, time
sys.path.insert(0, {str(REPOSITORY)!r})
from pathlib import Path
from dataset_script.build.build import BuildOptions, build
from arb.core.suite import load_suite
def report(done, total, name):
    print(done, flush=True)
    time.sleep(60 if done == 3 else 0)
build(Path(sys.argv[1]), Path(sys.argv[2]), load_suite(sys.argv[3]), BuildOptions(workers=1), report)
"""
    out = tmp_path / "killed" / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", slow, str(full_source.path), str(out), str(suite_folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert [process.stdout.readline().strip() for _ in range(3)] == ["1", "2", "3"]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not out.exists()
    build(full_source.path, out, suite)
    assert len(read_files) == 2
    build(full_source.path, tmp_path / "at-once", suite)
    assert contents(out) == contents(tmp_path / "at-once")


def test_two_builds_of_one_place_do_not_meet(full_source, out, suite):
    def begin_another(done, total, name):
        with pytest.raises(OutputError, match="another build is writing to it"):
            build(full_source.path, out, suite)

    assert build(full_source.path, out, suite, progress=begin_another).published
