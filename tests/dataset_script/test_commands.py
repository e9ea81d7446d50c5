"""`verify`, `sample-tasks` and `split` as commands: exit codes, what is printed, what is written."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from arb.core.suite import load_suite
from dataset_script.__main__ import app
from tests.support.hub_server.server import running_hub

METADATA = "task_name,sites,eval_types,browsergym_split\n"


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def built(shared, tmp_path_factory):
    """The six recordings, built by the real builder."""
    out = tmp_path_factory.mktemp("built") / "localshop"
    done = run("build", "--source", shared / "data" / "released_layout", "--out", out, "--workers", 1)
    assert done.exit_code == 0, done.output
    return out


@pytest.mark.shared
def test_what_the_builder_makes_passes(built):
    done = run("verify", built)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-1].endswith("files: ok")
    assert "trajectories: dev 2, test 4" in done.stdout


@pytest.mark.shared
def test_json_is_one_object_with_the_findings(built):
    report = json.loads(run("verify", built, "--json").stdout)
    assert report["ok"] is True
    assert report["findings"] == []
    assert report["rows"]["steps"] == {"dev": 20, "test": 19}


@pytest.fixture
def page_about_rewards(shared, tmp_path):
    """The six recordings, but a page of one says cum_reward, and another run is not there."""
    source = shutil.copytree(shared / "data" / "released_layout", tmp_path / "source")
    path, *_, other = sorted((source / "cleaned").rglob("*.json"))
    run = json.loads(path.read_bytes())
    run["steps"][1]["axtree"] += "\n\tStaticText 'cum_reward += reward'"
    path.write_text(json.dumps(run))
    other.unlink()
    name = "/".join((*other.parts[-4:-2], other.stem))
    return source, "/".join((*path.parts[-4:-2], path.stem)), name


@pytest.mark.slow
@pytest.mark.shared
def test_words_on_a_page_and_a_missing_run_are_published_when_both_are_allowed_by_name(
    page_about_rewards, tmp_path, monkeypatch
):
    source, page, missing = page_about_rewards
    out, words = tmp_path / "localshop", f"reward_words:{page}"
    build = ["build", "--source", source, "--out", out, "--workers", 1, "--strict"]
    assert run(*build).exit_code == 1  # strict: something is missing
    unknown = run(*build, "--allow-missing", "a/b/c")
    assert unknown.exit_code == 2
    assert unknown.stderr.endswith("error: a/b/c: not in the suite localshop; correct or remove them\n")
    built = run(*build, "--allow-missing", missing)
    assert built.exit_code == 0, built.output
    assert f"as --allow-missing permits:\n  {missing}\n" in built.stdout
    assert run("verify", out).exit_code == 1
    checked = run("verify", out, "--allow-missing", missing)
    assert checked.exit_code == 0, checked.output
    assert f"warning: {page}: text of a page or a model contains" in checked.stdout
    assert "    steps, step 1: axtree" in checked.stdout
    assert f"add: --accept {words}" in checked.stdout
    report = json.loads(run("verify", out, "--allow-missing", missing, "--accept", words, "--json").stdout)
    assert (report["ok"], report["accepted"], report["to_accept"]) == (True, [words], [])
    publish = ["publish", out, "--repo", "maintainer/localshop", "--allow-missing", missing]
    monkeypatch.setenv("HF_TOKEN", "hf_maintainer")
    with running_hub(monkeypatch) as hub:
        refused = run(*publish)
        assert hub.seen == []
        published = run(*publish, "--accept", words)
    assert refused.exit_code == 2
    assert refused.stderr.endswith(f"then add: --accept {words}\n")
    assert published.exit_code == 0, published.output


@pytest.mark.parametrize("command", [["verify", "."], ["publish", ".", "--repo", "a/b"]])
def test_an_error_cannot_be_accepted(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*command, "--accept", "reward:a/b/c")
    assert (done.exit_code, len(done.stderr.strip().splitlines())) == (2, 1)
    assert "fix errors instead" in done.stderr


@pytest.mark.shared
def test_a_blind_build_passes_and_a_canary_ends_with_1(shared, tmp_path):
    source, out = shared / "data" / "released_layout", tmp_path / "blind"
    assert run("build", "--source", source, "--out", out, "--blind", "--workers", 1).exit_code == 0
    assert run("verify", out).exit_code == 0
    planted = run("verify", out, "--canary", "Ada Lovelace")  # in a goal of the recordings
    assert planted.exit_code == 1
    assert "contains a planted text" in planted.stdout
    assert "Ada" not in planted.stdout


@pytest.mark.shared
def test_a_repository_is_fetched_and_checked(built, monkeypatch, tmp_path):
    with running_hub(monkeypatch) as hub:
        hub.add_folder("maintainer/localshop", built)
        passed = run("verify", "maintainer/localshop", "--keep", tmp_path / "kept")
        hub.commit("maintainer/localshop", {"data/tasks/dev-00000-of-00001.parquet": b"PAR1"})
        failed = run("verify", "maintainer/localshop")
        absent = run("verify", "maintainer/absent")
    assert passed.exit_code == 0, passed.output
    assert failed.exit_code == 1
    assert "data/tasks/dev-00000-of-00001.parquet: cannot be read as Parquet" in failed.stdout
    assert absent.exit_code == 2
    assert absent.stderr.startswith("error: maintainer/absent: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["absent"], "is neither a folder nor a repository's name"),
        ([".", "--suite", "absent"], "no suite 'absent'"),
        ([".", "--canary", "abc"], "use at least 6"),
        ([".", "--revision", "main"], "need a repository"),
    ],
)
def test_a_command_that_cannot_run_says_why_in_a_line(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("verify", *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_sample_tasks_then_split_then_a_suite(tmp_path):
    metadata, tasks, splits = (tmp_path / name for name in ("metadata.csv", "tasks.csv", "splits.csv"))
    rows = [f"shop.{n},shop wiki,string_match url_match,test" for n in range(12)]
    metadata.write_text(METADATA + "\n".join(rows) + "\n")
    sampled = run("sample-tasks", "--metadata", metadata, "--per-group", 4, "--out", tasks)
    divided = run("split", "--ids", tasks, "--dev-tasks", 1, "--out", splits)
    count = len(tasks.read_text().splitlines()) - 1
    assert sampled.exit_code == divided.exit_code == 0
    assert sampled.stderr.splitlines()[0] == f"{count} tasks: shop {count}"
    assert 4 <= count <= 8  # two groups of the same tasks, 4 drawn from each
    assert tasks.read_text().splitlines()[1].endswith(",shop wiki,string_match url_match,")
    assert splits.read_text().count(",dev\n") == 1


def test_split_writes_what_a_suite_reads(tmp_path):
    (tmp_path / "ids.csv").write_text("trajectory_id\n" + "".join(f"a/b/a.{n}\n" for n in range(5)))
    (tmp_path / "suite").mkdir()
    out = tmp_path / "suite" / "trajectories.csv"
    done = run("split", "--ids", tmp_path / "ids.csv", "--dev-tasks", 2, "--out", out)
    assert done.stderr == "dev 2, test 3\n"
    assert len(load_suite(tmp_path / "suite").split("dev")) == 2


def test_without_out_the_csv_goes_to_standard_output(tmp_path):
    (tmp_path / "ids.csv").write_text("task_id\na.1\na.2\n")
    done = run("split", "--ids", tmp_path / "ids.csv", "--dev-tasks", 1)
    assert done.stdout.splitlines()[0] == "task_id,split"
    assert sorted(line[-4:].lstrip(",") for line in done.stdout.splitlines()[1:]) == ["dev", "test"]


def test_bad_metadata_is_one_line_and_exit_code_2(tmp_path):
    (tmp_path / "m.csv").write_text("x\n")
    done = run("sample-tasks", "--metadata", tmp_path / "m.csv", "--per-group", 8)
    assert done.exit_code == 2
    assert done.stderr == ("error: m.csv: the columns task_name, browsergym_split are missing; add them\n")
