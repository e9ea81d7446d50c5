"""`get`: the benchmark fetched, built and verified put in place whole or not at all."""

from pathlib import Path

import pytest
from datasets import load_dataset
from typer.testing import CliRunner

from arb.core.cli import stop
from arb.core.suite import load_suite
from dataset_script import commands
from dataset_script.__main__ import app
from dataset_script.sources.published import PublishedDataset
from tests.support.hub_server.server import running_hub

REPO = "the-lab/released"


@pytest.fixture
def hub(monkeypatch, shared, tmp_path):
    """A Hub with six real trajectories in the released layout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    layout = shared / "data" / "released_layout"
    with running_hub(monkeypatch) as server:
        files = [path for path in layout.rglob("*") if path.is_file()]
        server.commit(REPO, {path.relative_to(layout).as_posix(): path.read_bytes() for path in files})
        yield server


def get(hub, *options: str):
    revision = hub.repository(REPO).head.oid
    command = ["get", "--repo", REPO, "--revision", revision, "--suite", "localshop", *options]
    return CliRunner().invoke(app, command)


def ids(folder: str = "agent-reward-bench") -> set[str]:
    dataset = PublishedDataset(Path(folder))
    return {
        run
        for split in dataset.splits("trajectories")
        for run in dataset.table("trajectories", split, ["trajectory_id"])["trajectory_id"].to_pylist()
    }


def test_the_sample_is_put_where_nothing_is_and_loads_as_the_card_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = CliRunner().invoke(app, ["get", "--sample"])
    assert done.exit_code == 0 and "not benchmark data" in done.output
    assert len(load_dataset("agent-reward-bench", cache_dir=str(tmp_path / "hf"))["dev"]) == 20
    card = (tmp_path / "agent-reward-bench" / "README.md").read_text()
    assert 'load_dataset("agent-reward-bench")' in card and 'load_dataset("sample"' not in card
    assert "# Sample of web agents' runs\n\n> **This is the sample that ships with the code" in card
    (tmp_path / "agent-reward-bench" / "mine.txt").write_text("x")
    assert "was not changed" in CliRunner().invoke(app, ["get", "--sample"]).output
    assert (tmp_path / "agent-reward-bench" / "mine.txt").exists()
    assert not list(tmp_path.glob(".agent-reward-bench*"))


def test_the_sample_gets_nothing_of_a_benchmark_that_is_being_built_and_leaves_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    begun = tmp_path / ".agent-reward-bench.get"
    (begun / "data").mkdir(parents=True)
    (begun / "data" / "steps.parquet").write_text("half")
    assert CliRunner().invoke(app, ["get", "--sample"]).exit_code == 0
    assert (begun / "data" / "steps.parquet").exists()
    assert not (tmp_path / "agent-reward-bench" / "data" / "steps.parquet").exists()


@pytest.mark.slow
@pytest.mark.shared
def test_the_benchmark_takes_the_samples_place_whole(hub):
    CliRunner().invoke(app, ["get", "--sample"])
    done = get(hub)
    assert done.exit_code == 0, done.output[-2000:]
    assert ids() == {each.trajectory_id for each in load_suite("localshop").trajectories}
    assert [line[:7] for line in done.output.splitlines() if " of 3: " in line] == [
        "1 of 3:",
        "2 of 3:",
        "3 of 3:",
    ]
    fetched = sum(hub.served.values())
    assert get(hub).exit_code == 0
    assert sum(hub.served.values()) == fetched  # nothing is fetched twice
    assert "was not changed" in CliRunner().invoke(app, ["get", "--sample"]).output


@pytest.mark.slow
@pytest.mark.shared
def test_killed_while_it_verifies_it_does_not_build_again_and_no_sample_gets_between(hub, monkeypatch):
    def killed(*_arguments, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(commands, "verify", killed)
        assert get(hub).exit_code != 0
    monkeypatch.setattr(commands, "build", killed)  # is not called
    CliRunner().invoke(app, ["get", "--sample"])
    assert len(ids()) == 72
    done = get(hub)
    assert done.exit_code == 0, done.output[-2000:]
    assert ids() == {each.trajectory_id for each in load_suite("localshop").trajectories}
    assert [path.name for path in Path().iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("is_whole", [True, False])
def test_what_a_killed_process_had_moved_aside_comes_back_if_it_is_whole(is_whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, ["get", "--sample"])
    (tmp_path / "agent-reward-bench").rename(aside := tmp_path / ".agent-reward-bench.replaced-00aa")
    (aside / "README.md").write_text("the benchmark")
    if not is_whole:
        next(aside.rglob("data/*/*.parquet")).unlink()
    said = CliRunner().invoke(app, ["get", "--sample"]).output
    card = (tmp_path / "agent-reward-bench" / "README.md").read_text()
    assert ("was not changed" in said, card == "the benchmark") == (is_whole, is_whole)


@pytest.mark.slow
@pytest.mark.shared
def test_one_agents_runs_are_a_dataset_too(hub):
    agent = "GenericAgent-scripted-hasty"
    done = get(hub, "--agent", agent)
    assert done.exit_code == 0, done.output[-2000:]
    assert ids() and all(f"/{agent}/" in run for run in ids())


@pytest.mark.slow
@pytest.mark.shared
def test_what_does_not_pass_verify_or_cannot_be_had_leaves_what_was_there(hub, monkeypatch):
    CliRunner().invoke(app, ["get", "--sample"])
    before = ids()
    with monkeypatch.context() as patched:
        patched.setattr(commands, "verify", lambda *_a, **_o: stop("something is wrong", 1))
        assert get(hub).exit_code == 1
    assert ids() == before
    absent = CliRunner().invoke(app, ["get", "--repo", "the-lab/absent", "--suite", "localshop"])
    assert absent.exit_code != 0 and "Traceback" not in absent.output
    assert ids() == before


def test_a_folder_of_something_else_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    done = CliRunner().invoke(app, ["get", "--out", str(tmp_path / "mine")])
    assert done.exit_code == 2 and "was not written by `build`" in done.output
