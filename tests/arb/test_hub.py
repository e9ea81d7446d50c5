"""Everything of an owner on the Hub at once: published to a Hub on this machine, then loaded back from it."""

import json
import os
import subprocess
import sys

import pytest
import typer
import yaml
from typer.testing import CliRunner

from arb.__main__ import app
from arb.core.suite import load_suite
from dataset_script.build.build import BuildOptions, build
from space.pages.trajectories.dataset import SAMPLE_DATA
from tests.support.hub_server.server import running_hub
from tests.support.released_layout import SourceFolder

OWNER, DATASET, METRIC = "maintainer", "maintainer/agent-reward-bench", "maintainer/judge_precision"
LEADERBOARD = f"{DATASET}-leaderboard"
TOKEN = "hf_maintainer"


@pytest.fixture(scope="module")
def benchmark(tmp_path_factory):
    """The official suite's first two trajectories of each split, built, and the options that allow so few."""
    folder, suite = tmp_path_factory.mktemp("official"), load_suite()
    few = [run.trajectory_id for split in ("dev", "test") for run in suite.split(split)[:2]]
    source = SourceFolder(folder / "trajectories")
    for trajectory_id in few:
        source.put(trajectory_id)
    missing = tuple(t.trajectory_id for t in suite.trajectories if t.trajectory_id not in few)
    out = folder / "agent-reward-bench"
    build(folder / "trajectories", out, suite, BuildOptions(workers=1, allow_missing=missing))
    return out, [word for each in missing for word in ("--allow-missing", each)]


@pytest.fixture
def hub(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with running_hub(monkeypatch) as server:
        yield server


@pytest.fixture
def publish_all(hub, benchmark):
    folder, allowed = benchmark

    def run(*options: str):
        return CliRunner().invoke(
            app, ["hub", "publish-all", OWNER, "--data", str(folder), *allowed, "--json", *options]
        )

    return run


def states(done) -> dict[str, str]:
    return {target["what"]: target["state"] for target in json.loads(done.stdout)}


def written(hub) -> int:
    """How many commits there are on the Hub."""
    return sum(len(repository.commits) for repository in hub.api.repositories.values())


LOAD = """
import json, os, runpy, sys
sys.modules["transformers"] = None  # else evaluate imports it, and torch
import datasets, evaluate, huggingface_hub
del sys.modules["transformers"]
data = datasets.load_dataset(sys.argv[1])
metric = evaluate.load(sys.argv[2])
figures = metric.compute(predictions=[1, 1, 0, -1], references=[1, 0, 0, 1])
rows = {split: len(found) for split, found in data.items()}
os.chdir(huggingface_hub.snapshot_download(sys.argv[2], repo_type="space", local_dir="metric"))
page = runpy.run_path("app.py")["build_page"](evaluate.load("judge_precision.py"))
on_page = dict(next(iter(page.fns.values())).fn("1, 1\\n1, 0"))
print(json.dumps([rows, figures["precision"], figures["coverage"], metric.inputs_description, on_page]))
"""


@pytest.mark.slow
def test_all_is_published_and_loads_back_from_the_hub(hub, publish_all, tmp_path):
    done = publish_all()
    assert done.exit_code == 0, done.output
    assert states(done) == {
        "dataset": "published", "metric": "published", "leaderboard": "published",
        "records": "there", "board": "there",
    }  # fmt: skip
    repositories = hub.api.repositories
    assert {name for name, each in repositories.items() if each.private} == {f"{DATASET}-records"}
    assert repositories[f"spaces/{LEADERBOARD}"].variables["ARB_RECORDS_REPO"] == f"{DATASET}-records"
    assert "ARB_SECRET" in done.stderr and TOKEN not in done.output
    variables = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "HF_ENDPOINT": hub.url, "NO_PROXY": "127.0.0.1",
        "HF_HUB_DISABLE_XET": "1",
    }  # fmt: skip
    command = [sys.executable, "-c", LOAD, DATASET, METRIC]
    loaded = subprocess.run(command, env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert loaded.returncode == 0, loaded.stderr
    rows, precision, coverage, description, on_page = json.loads(loaded.stdout.splitlines()[-1])
    assert rows == {"dev": 2, "test": 2}
    assert (precision, coverage) == (0.5, 0.75)  # one of two called successful is; three verdicts of four
    assert f'evaluate.load("{METRIC}")' in description
    assert (on_page["precision"], on_page["n"]) == (0.5, 2)  # its page, from the files of the Space alone


@pytest.mark.slow
def test_published_again_nothing_is_sent(hub, publish_all):
    publish_all()
    before = written(hub)
    again = publish_all()
    assert again.exit_code == 0 and written(hub) == before
    assert {states(again)[what] for what in ("dataset", "metric", "leaderboard")} == {"was there already"}


def test_what_failed_is_named_and_the_same_command_goes_on(hub, publish_all):
    fault = hub.fail("POST", f"/api/spaces/{METRIC}/commit/main", status=403)
    first = publish_all()
    assert fault and first.exit_code == 3
    assert states(first) | {"metric": "failed, see above"} == states(first)
    assert f"error: {METRIC}: the Hub answered 403" in first.stderr
    second = publish_all()
    assert second.exit_code == 0
    assert {what: states(second)[what] for what in ("dataset", "metric", "leaderboard")} == {
        "dataset": "was there already", "metric": "published", "leaderboard": "was there already",
    }  # fmt: skip


def test_interrupted_it_says_so_and_leaves_the_rest(hub, publish_all, monkeypatch):
    def interrupted(*_arguments):
        raise typer.Exit(130)

    monkeypatch.setattr("dataset_script.hub.publish", interrupted)
    done = publish_all()
    assert done.exit_code == 130 and hub.seen == []
    assert {what: states(done)[what] for what in ("dataset", "metric", "leaderboard")} == {
        "dataset": "interrupted", "metric": "planned", "leaderboard": "planned",
    }  # fmt: skip


def test_where_nothing_can_be_published_the_code_is_2(hub, publish_all, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_unknown")
    done = publish_all()
    assert done.exit_code == 2 and set(states(done).values()) == {"failed, see above"}
    assert "hf_unknown" not in done.output and not hub.api.repositories


def test_a_dry_run_says_what_goes_where_and_asks_no_hub(hub, benchmark):
    done = CliRunner().invoke(app, ["hub", "publish-all", "ada", "--dry-run", "--data", str(benchmark[0])])
    assert done.exit_code == 0, done.output
    assert hub.seen == []
    lines = [line.split() for line in done.stdout.splitlines()]
    repositories = {cells[0]: (cells[1], cells[2]) for cells in lines if len(cells) > 3 and "/" in cells[1]}
    assert repositories == {
        "dataset": ("ada/agent-reward-bench", "public"), "metric": ("ada/judge_precision", "Space"),
        "leaderboard": ("ada/agent-reward-bench-leaderboard", "Space"),
        "records": ("ada/agent-reward-bench-records", "private"),
        "board": ("ada/agent-reward-bench-board", "public"),
    }  # fmt: skip


def test_hidden_labels_of_a_suite_go_to_a_private_repository_that_its_space_reads(tmp_path, monkeypatch):
    from arb.hub import PublishPlan

    (tmp_path / "labels.csv").write_text("trajectory_id,success\n")
    options = ["--suite", "sample", "--data", str(SAMPLE_DATA), "--labels", str(tmp_path / "labels.csv")]
    done = CliRunner().invoke(app, ["hub", "publish-all", "ada", "--dry-run", "--json", *options])
    labels, *_ = json.loads(done.stdout)
    expected = ("labels", "ada/sample-labels", "private dataset")
    assert (labels["what"], labels["repo"], labels["kind"]) == expected
    plan = PublishPlan("ada", "sample", load_suite("sample"), SAMPLE_DATA, tmp_path / "labels.csv")
    assert plan.space_labels == "hub:ada/sample-labels"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((OWNER, "--data", str(SAMPLE_DATA)), "contains the suite sample, not agent-reward-bench"),
        ((OWNER, "--data", "absent"), "does not exist"),
        (("not an owner", "--data", str(SAMPLE_DATA)), "does not accept this owner's name"),
    ],
)
def test_what_cannot_be_is_refused_before_the_hub_is_asked(hub, options, message):
    done = CliRunner().invoke(app, ["hub", "publish-all", *options])
    assert done.exit_code == 2 and message in done.stderr
    assert hub.seen == []


# the metric alone


def test_the_metric_is_a_space_of_its_module_page_and_card(hub):
    done = CliRunner().invoke(app, ["metric", "publish", OWNER])
    assert done.exit_code == 0, done.output
    files = hub.api.repositories[f"spaces/{METRIC}"].head.files
    modules = {"app.py", "confusion.py", "intervals.py", "judge_precision.py", "scores.py"}
    assert files.keys() - {".gitattributes"} == {*modules, "README.md", "requirements.txt"}
    card = files["README.md"].data.decode()
    block = yaml.safe_load(card.split("---")[1])
    assert (block["sdk"], block["app_file"], block["python_version"]) == ("gradio", "app.py", "3.11")
    assert "metric" in block["tags"] and len(block["short_description"]) <= 60
    assert f'evaluate.load("{METRIC}")' in card and "leaderboard/judge_precision" not in card


def test_a_space_of_something_else_stays_as_it_is(hub):
    from tests.support.hub_server.spaces import SpaceRepository

    hub.api.repositories[f"spaces/{METRIC}"] = SpaceRepository(f"spaces/{METRIC}")
    hub.commit(f"spaces/{METRIC}", {"app.py": b"mine"})
    done = CliRunner().invoke(app, ["metric", "publish", OWNER])
    assert done.exit_code == 2 and "this Space is not the metric" in done.stderr
    assert hub.api.repositories[f"spaces/{METRIC}"].head.files["app.py"].data == b"mine"


def test_without_a_token_it_says_what_to_set(hub, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    done = CliRunner().invoke(app, ["metric", "publish", OWNER])
    assert done.exit_code == 2 and "set HF_TOKEN" in done.stderr
