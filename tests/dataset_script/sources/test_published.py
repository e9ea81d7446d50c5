import json

import pyarrow.parquet as pq
import pytest

from dataset_script.build.build import build
from dataset_script.sources.problems import SourceError
from dataset_script.sources.published import PublishedDataset, PublishedSource
from tests.support.released_layout import step as make_step

DEV_1, TEST_1 = "shop/GenericAgent-a/shop.1", "shop/GenericAgent-a/shop.2"


@pytest.fixture
def built(full_source, out, suite):
    steps = [
        make_step(0, action="click('7')", bounding_boxes={"7": {"bbox": [1, 2, 3, 4]}}, screenshot_path="x"),
        make_step(1),
    ]
    full_source.put(DEV_1, steps=steps)
    full_source.picture(DEV_1, 0)
    full_source.judge(DEV_1, "aer", "Status: success")
    full_source.judge(TEST_1, "nnetnav", "Reward: 9")
    build(full_source.path, out, suite)
    return out


def test_a_folder_tells_its_configurations_splits_files_and_rows(built):
    dataset = PublishedDataset(built)
    assert (dataset.suite, dataset.configurations[0]) == ("own-suite", "trajectories")
    assert (dataset.splits("steps"), dataset.splits("annotations")) == (("dev", "test"), ("dev",))
    assert dataset.files("steps", "dev") == (built / "data/steps/dev-00000-of-00001.parquet",)
    assert (dataset.rows("trajectories"), dataset.rows("trajectories", "dev"), dataset.rows("absent")) == (
        5,
        2,
        0,
    )


def test_a_table_has_the_rows_of_one_split_or_of_all_and_the_columns_asked_for(built):
    dataset = PublishedDataset(built)
    assert dataset.table("rewards").num_rows == 5
    assert dataset.table("steps", "dev", ["num"]).column_names == ["num"]
    with pytest.raises(SourceError, match="has no configuration annotations for test"):
        dataset.table("annotations", "test")


def test_the_steps_of_one_trajectory_are_read_from_its_row_group_alone(built, monkeypatch):
    read, real = [], pq.ParquetFile.read_row_group

    def noted(self, number, **options):
        read.append(number)
        return real(self, number, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    monkeypatch.setattr(pq, "read_table", None)
    dataset = PublishedDataset(built)
    rows = dataset.rows_of("steps", "shop/GenericAgent-b/shop.resized.1")
    assert [row["num"] for row in rows] == [0, 1, 2]
    assert read == [1]  # the second trajectory of dev
    first = dataset.rows_of("steps", DEV_1, ["num", "box", "screenshot"])
    assert [row["box"] for row in first] == [[1.0, 2.0, 3.0, 4.0], None]
    assert first[0]["screenshot"]["bytes"].startswith(b"\x89PNG")


def test_an_id_without_steps_has_no_rows(built):
    assert PublishedDataset(built).rows_of("steps", "shop/a/absent") == []


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"format": 2, "files": {}}', '{"format": 1, "files": {"x": {}}}']
)
def test_a_folder_without_a_manifest_of_this_format_is_refused(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(SourceError):
        PublishedDataset(tmp_path)
    with pytest.raises(SourceError):
        PublishedDataset(tmp_path / "absent")


def test_a_manifest_of_a_newer_format_is_refused_with_what_to_do(built):
    manifest = json.loads((built / "manifest.json").read_text())
    assert manifest["format"] == 1
    (built / "manifest.json").write_text(json.dumps({"format": 2, "shards": manifest["files"]}))
    with pytest.raises(SourceError, match=r"manifest\.json: has format 2, .* upgrade it"):
        PublishedDataset(built)


def test_a_folder_of_text_alone_still_gives_runs(built):
    manifest = json.loads((built / "manifest.json").read_text())
    manifest["files"] = {n: e for n, e in manifest["files"].items() if e["configuration"] == "trajectories"}
    (built / "manifest.json").write_text(json.dumps(manifest))
    published = PublishedSource(built)
    listed = published.list_runs()
    assert [note.code for note in listed.notes] == ["no_screenshots"]
    recording, _ = published.read(next(file for file in listed.files if file.trajectory_id == DEV_1))
    assert [step.axtree for step in recording.steps] == [None, "tree 1 in full"]
    assert recording.cum_reward is None
