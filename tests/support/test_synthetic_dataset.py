"""The made-up dataset has the shape that `build` gives, so that what holds of it holds of a real one."""

import pyarrow.parquet as pq

from arb.core.suite import load_suite
from dataset_script.schema import arrow_schema
from dataset_script.sources.published import PublishedDataset
from tests.support.synthetic_dataset import Shape, make_dataset

SHAPE = Shape(pages=3, tree_characters=600, mean_steps=4)


def test_its_files_have_the_schema_of_the_published_ones_and_the_rows_of_the_manifest(tmp_path):
    chosen = [t for t in load_suite().trajectories if t.benchmark == "workarena++"][:12]
    dataset = PublishedDataset(make_dataset(tmp_path / "data", shape=SHAPE, only=chosen))
    for configuration in dataset.configurations:
        for path in dataset.files(configuration):
            assert pq.read_schema(path).equals(arrow_schema(configuration)), path
        rows = sum(pq.read_metadata(path).num_rows for path in dataset.files(configuration))
        assert rows == dataset.rows(configuration)
    assert dataset.steps_at.keys() == {t.trajectory_id for t in chosen}


def test_the_same_seed_gives_the_same_files(tmp_path):
    chosen = load_suite().trajectories[:3]
    manifests = [
        make_dataset(tmp_path / name, shape=SHAPE, only=chosen, seed=seed) / "manifest.json"
        for name, seed in (("one", 0), ("two", 0), ("three", 1))
    ]
    one, two, three = (path.read_bytes() for path in manifests)
    assert one == two != three


def test_no_label_of_a_test_trajectory_is_in_it(tmp_path):
    chosen = load_suite().split("test")[:5]
    dataset = PublishedDataset(make_dataset(tmp_path / "data", shape=SHAPE, only=chosen))
    for name in ("success", "side_effect", "repetition", "optimality"):
        assert set(dataset.table("trajectories", "test", [name])[name].to_pylist()) == {None}
