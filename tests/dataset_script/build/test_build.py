import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from arb.core.suite import SuiteError, load_suite
from dataset_script import sample
from dataset_script.build import shards
from dataset_script.build.build import BuildOptions
from dataset_script.build.build import build as build_dataset
from dataset_script.build.parts import choose_suite
from dataset_script.schema import CONFIGURATIONS, LABEL_COLUMNS, features
from dataset_script.sources.base import SourceFile
from dataset_script.sources.problems import SourceError
from dataset_script.verify.check import verify
from tests.support.released_layout import cleaned, png
from tests.support.released_layout import step as make_step

DEV_1, DEV_2 = "shop/GenericAgent-a/shop.1", "shop/GenericAgent-b/shop.resized.1"
TEST_1, TEST_2 = "shop/GenericAgent-a/shop.2", "shop/GenericAgent-b/shop.resized.2"
TEST_3 = "workarena/GenericAgent-a/workarena.servicenow.sort-l2"

build = partial(build_dataset, options=BuildOptions(workers=1))


def test_a_whole_source_gives_every_row_in_order_in_the_released_spelling(full_source, out, suite, load):
    report = build(full_source.path, out, suite)
    assert report.published
    assert report.counts == {"dev": {"shop": 2}, "test": {"shop": 2, "workarena++": 1}}
    assert report.left_out == []
    assert [note.code for note in report.notes] == ["no_screenshots"]
    dataset = load(out)
    assert list(dataset["dev"]["trajectory_id"]) == [DEV_1, DEV_2]
    assert list(dataset["test"]["trajectory_id"]) == [TEST_1, TEST_2, TEST_3]
    # only primary annotations (1) count: those of conftest, with unsure as null
    assert [list(dataset["dev"][name]) for name in LABEL_COLUMNS] == [[1, 0], [0, 1], [None, 1], [4, None]]


def test_each_configuration_has_its_rows_and_features(full_source, out, suite, load):
    full_source.judge(DEV_1, "aer", "Status: success")
    full_source.judge(TEST_2, "aer", "Status: failure")
    report = build(full_source.path, out, suite)
    expected = {
        "trajectories": {"dev": 2, "test": 3},
        "trajectories_with_screenshot": {"dev": 2, "test": 3},
        "steps": {"dev": 6, "test": 9},  # three steps each
        "annotations": {"dev": 3},  # DEV_1 was annotated twice
        "judgments": {"dev": 1, "test": 1},
        "rewards": {"dev": 2, "test": 3},
        "tasks": {"dev": 1, "test": 2},  # shop.1; shop.2 and the one of WorkArena
        "usage": {"dev": 2, "test": 3},
    }
    assert report.rows == expected
    for name, splits in expected.items():
        dataset = load(out, name)
        assert {split: dataset[split].num_rows for split in dataset} == splits
        assert all(dataset[split].features == features(name) for split in dataset)


def test_annotations_have_the_second_annotators_and_only_opaque_ids(full_source, out, suite, table):
    build(full_source.path, out, suite)
    rows = table(out, "dev", "annotations")
    assert [(row["trajectory_id"], row["annotation"], row["annotator"], row["success"]) for row in rows] == [
        (DEV_1, 1, "annotator-2", 1),
        (DEV_1, 2, "annotator-1", 0),
        (DEV_2, 1, None, 0),
    ]
    assert not list((out / "data" / "annotations").glob("test-*"))


def test_files_in_the_other_spelling_and_under_trajectories_are_taken(source, out, suite, tmp_path, table):
    source.put("shop/GenericAgent-b/shop.1")
    source.put("shop/GenericAgent-a/shop.resized.2")
    source.judge("shop/GenericAgent-b/shop.1", "aer", "Status: success")
    (tmp_path / "download").mkdir()
    source.path.rename(tmp_path / "download" / "trajectories")
    report = build(tmp_path / "download", out, suite)
    assert [note.message for note in report.notes if note.code == "other_spelling"] == [TEST_1, DEV_2]
    for name in ("trajectories", "rewards", "trajectories_with_screenshot"):
        rows = table(out, "dev", name) + table(out, "test", name)
        assert [row["trajectory_id"] for row in rows] == [DEV_2, TEST_1]
    assert [row["trajectory_id"] for row in table(out, "dev", "judgments")] == [DEV_2]


def test_screenshots_are_the_bytes_of_the_files(full_source, out, suite, table):
    steps = [make_step(num, screenshot_path=f"screenshots/{DEV_1}/x{num}.png") for num in range(2)]
    full_source.put(DEV_1, steps=steps)
    full_source.picture(DEV_1, 0)
    full_source.picture(DEV_1, 1, png(77))
    build(full_source.path, out, suite)
    pictures = [row["screenshot"] for row in table(out, "dev", "steps") if row["trajectory_id"] == DEV_1]
    assert pictures == [{"bytes": png(0), "path": None}, {"bytes": png(77), "path": None}]
    finals = [row["final_screenshot"] for row in table(out, "dev", "trajectories_with_screenshot")]
    assert finals == [{"bytes": png(77), "path": None}, None]


def everything(path):
    file = pq.ParquetFile(path)
    return (
        json.dumps(file.read().to_pylist(), default=str)
        + repr(file.metadata.metadata)
        + str(file.schema_arrow)
    )


def test_nothing_private_reaches_the_dataset(source, out, suite, suite_folder):
    content = cleaned() | {
        "summary_info": {
            "cum_reward": 0.735190001,
            "cum_raw_reward": 0.735190002,
            "err_msg": "CANARY err_msg",
            "stack_trace": "CANARY /home/recorder/run.py",
        },
        "experiment": "CANARY experiment",
        "package_version": "CANARY package",
        "model_args": {"path": "CANARY model_args"},
        "flags": {"x": "CANARY flags"},
        "seed": 735190003,
        "trajectory_dir": "CANARY /home/recorder",
        "logs": "CANARY logs",
        "annotator_name": "CANARY annotator",
        "success": "CANARY success",
        "goal": "Buy FOUND goal",
        "steps": [
            make_step(
                0,
                action="FOUND action",
                screenshot_path="CANARY /home/recorder/0.png",
                chat_messages=[{"role": "system", "content": "CANARY prompt"}],
                stats={"x": "CANARY stats"},
                axtree_obj={"nodes": ["CANARY axtree_obj"]},
                extra_element_properties={"7": "CANARY properties"},
                open_pages_urls=["CANARY tab"],
            ),
            make_step(1, axtree="FOUND tree"),
        ],
    }
    for trajectory_id in (DEV_1, TEST_1):
        source.put(trajectory_id, content, experiment="CANARY-folder")
        source.judge(trajectory_id, "aer", "FOUND reply\nStatus: success")
    labels = suite_folder / "dev_labels.csv"
    rows = labels.read_text().splitlines()
    labels.write_text(
        "\n".join([f"{rows[0]},annotator_name", *(f"{row},CANARY annotator" for row in rows[1:])])
    )
    build(source.path, out, suite)
    found = {
        path.relative_to(out).as_posix().removeprefix("data/"): everything(path)
        for path in out.rglob("*.parquet")
    }
    assert {name.split("/")[0] for name in found} == {*CONFIGURATIONS, "index.parquet"}
    # what is published is found by this search, so it would find what is not
    for split in ("dev", "test"):
        text = found[f"trajectories/{split}-00000-of-00001.parquet"]
        assert all(f"FOUND {word}" in text for word in ("action", "tree", "goal"))
        assert "FOUND reply" in found[f"judgments/{split}-00000-of-00001.parquet"]
        assert "0.735190001" in found[f"rewards/{split}-00000-of-00001.parquet"]
    for name, text in found.items():
        for secret in (
            "CANARY",
            "/home",
            "735190002",
            "735190003",
            *(["73519", "cum_reward"] * ("rewards" not in name)),
        ):
            assert secret not in text, name
    for name in ("README.md", "eval.yaml", "manifest.json"):
        assert "CANARY" not in (out / name).read_text()


@pytest.mark.parametrize(("built", "kept", "empty"), [(DEV_1, "dev", "test"), (TEST_1, "test", "dev")])
def test_a_dataset_with_an_empty_split_still_loads(source, out, suite, load, built, kept, empty):
    source.put(built)
    report = build(source.path, out, suite)
    assert [note.file for note in report.notes if note.code == "empty_split"] == [empty]
    dataset = load(out)
    assert {split: dataset[split].num_rows for split in dataset} == {kept: 1}
    assert [row["trajectory_id"] for row in load(out, streaming=True)[kept]] == [built]
    assert not list((out / "data" / "trajectories").glob(f"{empty}-*"))


def test_several_shards_load_as_one_split_in_order(full_source, out, suite, load, monkeypatch):
    monkeypatch.setattr(shards, "TEXT_SHARD_BYTES", 1)  # so every trajectory stands alone
    build(full_source.path, out, suite)
    assert sorted(path.name for path in (out / "data" / "trajectories").glob("test-*")) == [
        f"test-0000{index}-of-00003.parquet" for index in range(3)
    ]
    assert list(load(out)["test"]["trajectory_id"]) == [TEST_1, TEST_2, TEST_3]
    assert [row["trajectory_id"] for row in load(out, streaming=True)["dev"]] == [DEV_1, DEV_2]


def test_builds_give_the_same_bytes_with_any_number_of_workers(full_source, suite, tmp_path, contents):
    full_source.picture(DEV_1, 0)
    full_source.judge(TEST_1, "aer", "Status: success")
    made = {}
    for name, workers in (("one", 1), ("again", 1), ("three", 3)):
        report = build_dataset(full_source.path, tmp_path / name, suite, BuildOptions(workers=workers))
        made[name] = (contents(tmp_path / name), report.as_json())
    assert made["one"] == made["again"] == made["three"]
    assert (
        len(made["one"][0]) == 5 + 14
    )  # texts; files of six configurations by split, judgments and annotations


def test_what_is_appended_leaves_earlier_files_as_they_are(source, suite_ids, out, suite, contents, table):
    first, *later = sorted(name for name in suite_ids if suite.find(name).split == "test")
    for name in later:
        source.put(name)
    build(source.path, out, suite)
    before = contents(out)
    source.put(first)
    build_dataset(source.path, out, suite, BuildOptions(append=True))
    data = [content for name, content in contents(out).items() if name.startswith("data/")]
    assert all(content in data for name, content in before.items() if name.startswith("data/"))
    for configuration in ("trajectories", "steps", "rewards"):
        ids = [row["trajectory_id"] for row in table(out, "test", configuration)]
        assert list(dict.fromkeys(ids)) == [*later, first]
        assert len(list((out / "data" / configuration).glob("test-*"))) == 2
    assert verify(out, suite=suite, allow_missing=_absent(suite, [first, *later])).ok


def _absent(suite, there):
    return [t.trajectory_id for t in suite.trajectories if t.trajectory_id not in there]


def test_a_dataset_of_another_suite_is_not_appended_to(full_source, out, suite):
    build(full_source.path, out, suite)
    with pytest.raises(SourceError, match="so --append cannot add runs of another"):
        build(full_source.path, out, replace(suite, name="another"), options=BuildOptions(append=True))


def test_the_manifest_tells_every_file_with_its_hash(full_source, out, suite):
    from hashlib import sha256

    build(full_source.path, out, suite)
    manifest = json.loads((out / "manifest.json").read_text())
    files = {p.relative_to(out).as_posix(): p.read_bytes() for p in (out / "data").rglob("*.parquet")}
    assert {name: entry["sha256"] for name, entry in manifest["files"].items()} == {
        name: sha256(data).hexdigest() for name, data in files.items()
    }
    counts = {"found": 5, "read": 5, "named": 0}  # five runs without pictures
    source = {"kind": "released", "blind": False, "files": counts, "not_read": {}}
    assert (manifest["suite"], manifest["source"]) == ("own-suite", source)
    assert str(full_source.path) not in (out / "manifest.json").read_text()


def test_the_card_carries_what_the_suite_says_of_itself(full_source, out, suite_folder):
    (suite_folder / "about.md").write_text("Labelled by two shopkeepers.\n")
    build(full_source.path, out, load_suite(suite_folder))
    assert "Labelled by two shopkeepers." in (out / "README.md").read_text()


def test_a_dataset_that_was_built_again_is_not_loaded_from_the_cache_of_the_first_build(
    full_source, out, suite, load
):
    build(full_source.path, out, suite)
    first = load(out)["dev"]["goal"]
    full_source.put(DEV_1, goal="Buy two lamps.")
    build(full_source.path, out, suite)
    assert "Buy two lamps." not in first and "Buy two lamps." in load(out)["dev"]["goal"]


def test_the_card_has_the_sizes_that_load_dataset_finds(full_source, out, suite, load):
    build(full_source.path, out, suite)
    card = yaml.safe_load((out / "README.md").read_text().split("---\n")[1])
    infos = {info["config_name"]: info for info in card["dataset_info"]}
    assert [config["config_name"] for config in card["configs"]] == list(infos)
    for name, info in infos.items():
        files = list((out / "data" / name).iterdir())
        assert info["download_size"] == sum(file.stat().st_size for file in files)
        assert info["dataset_size"] == sum(split["num_bytes"] for split in info["splits"]) > 0
        loaded = {split: table.num_rows for split, table in load(out, name).items()}
        assert {split["name"]: split["num_examples"] for split in info["splits"]} == loaded


def test_the_shipped_sample_is_what_the_code_builds_from_it(tmp_path, contents):
    shipped = Path(sample.__file__).parent / "data"
    build(shipped, tmp_path / "again", load_suite("sample"))
    files, again = contents(shipped), contents(tmp_path / "again")
    assert files.keys() == again.keys()
    for name in files.keys() - {"manifest.json", "index.parquet"}:  # they hold hashes and places of the files
        if name.endswith(".parquet"):
            assert pq.read_table(shipped / name).equals(pq.read_table(tmp_path / "again" / name)), name
        else:  # but for hashes and sizes, which depend on the version of pyarrow
            texts = (re.sub(rb"\b[0-9a-f]{12}\b|\d+", b"", each[name]) for each in (files, again))
            assert len(set(texts)) == 1, name


def test_a_dataset_built_from_a_published_one_has_the_same_bytes(full_source, out, suite, tmp_path, contents):
    full_source.picture(DEV_1, 0)
    full_source.judge(DEV_1, "aer", "Status: success")
    full_source.judge(TEST_1, "functional", {"trajectory_info": {"summary_info": {"cum_reward": 0.0}}})
    build(full_source.path, out, suite)
    report = build(out, tmp_path / "again", suite)
    assert report.left_out == []
    first, again = contents(out), contents(tmp_path / "again")
    for files in (first, again):
        del files["manifest.json"]  # it names the kind of the source
    assert first == again


def test_ids_of_two_suites_are_refused():
    ids = [load_suite(name).trajectories[0].trajectory_id for name in ("localshop", "agent-reward-bench")]
    files = [SourceFile(Path("run.json"), "run.json", trajectory_id) for trajectory_id in ids]
    with pytest.raises(SuiteError, match=r"several suites \(agent-reward-bench, localshop\)"):
        choose_suite(files)
