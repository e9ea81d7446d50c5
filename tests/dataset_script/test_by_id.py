"""One trajectory by its id: what is read of the rest, near and on the Hub."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi
from typer.testing import CliRunner

from arb.core.suite import load_suite
from dataset_script.__main__ import app
from dataset_script.by_id import reader_of_folder
from dataset_script.repository import reader_of_repository
from dataset_script.sources.published import PublishedDataset
from dataset_script.verify.check import verify
from tests.support.hub_server.server import running_hub
from tests.support.synthetic_dataset import Shape, make_dataset

REPO = "the-lab/agent-reward-bench"


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Sixteen trajectories, as `build` writes them."""
    suite = load_suite()
    shape = Shape(pages=3, tree_characters=300, mean_steps=4)
    return make_dataset(tmp_path_factory.mktemp("dataset"), suite, shape, suite.split("test")[:16])


@pytest.mark.parametrize("configuration", ["trajectories", "steps", "judgments", "rewards"])
def test_the_rows_of_a_trajectory_are_found_near_and_on_the_hub(dataset, configuration, monkeypatch):
    table = PublishedDataset(dataset).table(configuration)
    ids = table["trajectory_id"].to_pylist()
    wanted = ids[len(ids) // 2]
    expected = [row for row in table.to_pylist() if row["trajectory_id"] == wanted]
    with running_hub(monkeypatch) as hub:
        hub.add_folder(REPO, dataset)
        far = reader_of_repository(HfApi(endpoint=hub.url, token=False), REPO)
        for reader in (reader_of_folder(dataset), far):
            assert reader.rows(configuration, wanted) == expected
            assert reader.rows(configuration, "shop/agent/shop.1") == []


def test_what_the_repository_holds_later_is_not_mixed_in(dataset, monkeypatch):
    with running_hub(monkeypatch) as hub:
        hub.add_folder(REPO, dataset)
        reader = reader_of_repository(HfApi(endpoint=hub.url, token=False), REPO)
        (name, *_) = [entry.file for entry in reader.entries if entry.configuration == "rewards"]
        trajectory_id = pq.read_table(dataset / name)["trajectory_id"][0].as_py()
        hub.commit(REPO, {name: b"another build's"})
        assert len(reader.rows("rewards", trajectory_id)) == 1


@pytest.mark.slow
def test_an_index_that_says_something_else_is_a_finding(dataset, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in dataset.iterdir():
        (copy / path.name).symlink_to(path)

    def codes():
        return {finding.code for finding in verify(copy).findings}

    before = codes()
    assert "index" not in before
    table = pq.read_table(copy / "index.parquet")
    for other in (
        table.slice(1),
        table.append_column("note", pa.array(["x"] * table.num_rows)),
        table.replace_schema_metadata({"note": "planted"}),
    ):
        (copy / "index.parquet").unlink()
        pq.write_table(other, copy / "index.parquet")
        assert codes() - before == {"index"}
    (copy / "index.parquet").write_bytes(b"no index")
    assert codes() - before == {"index"}
    (copy / "index.parquet").unlink()
    assert codes() - before == {"index"}


def test_the_command_shows_a_trajectory_of_a_folder_and_of_a_repository(dataset, tmp_path, monkeypatch):
    row = PublishedDataset(dataset).table("trajectories").to_pylist()[5]
    trajectory_id = row["trajectory_id"]

    def show(*arguments: str):
        return CliRunner().invoke(app, ["show", *arguments])

    near = show(str(dataset), trajectory_id)
    assert near.exit_code == 0, near.output
    lines = near.output.splitlines()
    assert lines[0] == f"{trajectory_id}: {row['goal']}"
    assert [line.split()[0] for line in lines[1:]] == [str(step["num"]) for step in row["steps"]]
    with running_hub(monkeypatch) as hub:
        hub.add_folder(REPO, dataset)
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        far = show(REPO, trajectory_id, "--json", "--pictures", str(tmp_path / "pictures"))
        absent = show(REPO, "shop/agent/shop.1")
        no_repository = show("the-lab/absent", trajectory_id)
    shown = json.loads(far.output)
    assert shown["trajectory"]["goal"] == row["goal"] and len(shown["steps"]) == row["n_steps"]
    assert shown["steps"][-1]["axtree"] == row["final_axtree"] and len(shown["judgments"]) == 13
    assert "cum_reward" not in far.output
    assert len(list((tmp_path / "pictures").iterdir())) == row["n_steps"]
    assert (absent.exit_code, no_repository.exit_code) == (2, 2)
    assert "there is no such trajectory in the-lab/agent-reward-bench" in absent.stderr
    assert "the-lab/absent: the Hub answered 401" in no_repository.stderr
