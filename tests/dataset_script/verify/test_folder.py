"""The folder against its manifest, the schema, the card and the limits on files."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataset_script.schema import arrow_schema
from dataset_script.verify.check import verify
from tests.support.verify_reports import codes, found


def test_a_file_that_no_build_wrote_is_caught(published, own_suite):
    folder = published.write()
    (folder / "data" / "annotations.csv").write_text("annotator_name")
    assert codes(verify(folder, suite=own_suite)) == {"unlisted_file"}


def test_a_missing_file_is_caught(published, own_suite):
    folder = published.write()
    (folder / "data" / "rewards" / "dev-00000-of-00001.parquet").unlink()
    assert "missing_file" in codes(verify(folder, suite=own_suite))


@pytest.mark.parametrize(("key", "value"), [("sha256", "7"), ("bytes", 7), ("rows", 7)])
def test_a_manifest_that_says_otherwise_is_caught(published, own_suite, key, value):
    folder = published.write()
    name = "data/tasks/dev-00000-of-00001.parquet"
    published.manifest["files"][name][key] = value
    published.write_manifest()
    assert ("other_bytes", name) in found(verify(folder, suite=own_suite))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 2}',
        '{"format": 1, "suite": 1, "files": {}}',
        '{"format": 1, "suite": "x", "files": []}',
    ],
)
def test_a_manifest_that_cannot_be_read_is_one_finding(published, text):
    folder = published.write()
    (folder / "manifest.json").write_text(text)
    report = verify(folder)
    assert codes(report) == {"no_manifest"}
    assert not report.ok


@pytest.mark.parametrize(
    "name",
    ["../outside.parquet", "/etc/passwd", "data/steps/dev.parquet", "data/other/dev-00000-of-00001.parquet"],
)
def test_a_manifest_cannot_name_a_file_elsewhere(published, own_suite, name):
    folder = published.write()
    published.manifest["files"][name] = {
        "configuration": "other",
        "split": "dev",
        "sha256": "",
        "bytes": 0,
        "rows": 0,
    }
    published.write_manifest()
    assert ("bad_name", name) in found(verify(folder, suite=own_suite))


def test_shards_with_a_gap_are_caught(published, own_suite):
    folder = published.write()
    old, new = (f"data/tasks/dev-0000{i}-of-0000{n}.parquet" for i, n in ((0, 1), (1, 2)))
    (folder / old).rename(folder / new)
    published.manifest["files"][new] = published.manifest["files"].pop(old)
    published.write_manifest()
    assert ("missing_file", "data/tasks/dev") in found(verify(folder, suite=own_suite))


def test_what_is_no_parquet_is_caught(published, own_suite):
    folder = published.write()
    name = "data/tasks/dev-00000-of-00001.parquet"
    (folder / name).write_bytes(b"PAR1 no more")
    published.describe(name, "tasks", "dev", 1)
    published.write_manifest()
    assert ("not_parquet", name) in found(verify(folder, suite=own_suite))


def test_a_column_more_is_caught_by_the_schema(published, own_suite):
    def schema_of(configuration):
        schema = arrow_schema(configuration)
        return (
            schema.append(pa.field("cum_reward", pa.float64())) if configuration == "trajectories" else schema
        )

    report = verify(published.write(schema_of), suite=own_suite)
    assert found(report)["other_schema", "data/trajectories/dev-00000-of-00001.parquet"] == (
        "unexpected: cum_reward",
    )


def test_two_trajectories_in_a_row_group_of_steps_are_caught(published, own_suite):
    folder = published.write()
    name = "data/steps/dev-00000-of-00001.parquet"
    pq.write_table(pq.read_table(folder / name), folder / name)
    published.describe(name, "steps", "dev", 6)
    published.write_manifest()
    assert found(verify(folder, suite=own_suite)) == {("row_groups", name): ("row group 0",)}


def test_a_large_shard_of_text_is_caught(published, own_suite, monkeypatch):
    monkeypatch.setattr("dataset_script.verify.rows.TEXT_SHARD_BYTES", 100)
    folder = published.write()
    name = "data/judgments/dev-00000-of-00001.parquet"
    pq.write_table(pq.read_table(folder / name), folder / name, row_group_size=1)
    published.describe(name, "judgments", "dev", 2)
    published.write_manifest()
    assert codes(verify(folder, suite=own_suite)) == {"large_shard"}


def test_a_missing_configuration_is_caught(published, own_suite):
    for split in ("dev", "test"):
        del published.rows["rewards", split]
    assert found(verify(published.write(), suite=own_suite)) == {
        ("missing_configuration", "manifest.json"): ("rewards",)
    }


def test_a_card_that_lists_an_empty_split_or_forgets_one_is_caught(published, own_suite):
    parts = [{"split": "dev", "path": "data/none-*"}]
    published.card = f"---\nconfigs: {json.dumps([{'config_name': 'tasks', 'data_files': parts}])}\n---\n"
    names = found(verify(published.write(), suite=own_suite))["card", "README.md"]
    assert "lists tasks/dev, which has no rows" in names or len(names) == 10
    assert any("does not list data/annotations/dev" in name for name in names)


@pytest.mark.parametrize("card", ["", "# No front matter", "---\n: [\n---\n", "---\nconfigs: 3\n---\n"])
def test_a_card_without_configurations_is_caught(published, own_suite, card):
    published.card = card or " "
    assert "card" in codes(verify(published.write(), suite=own_suite))
