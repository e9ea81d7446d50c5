"""`new-suite`: a folder of its own from recorded runs, whole or not at all, never over anything."""

import csv
import json
import pickle
import shutil
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from arb.core.suite import SuiteRules, load_suite, read_rules
from arb.core.suites.privacy import fewer_files, noisy_precision, privacy_lines
from arb.core.suites.profile import OPTIONAL_PAGES, SuiteProfile, read_profile, render_suite_toml
from dataset_script.__main__ import app
from dataset_script.new_suite import build_source, source_facts, suggested_rules
from dataset_script.sources.problems import SourceError
from dataset_script.sources.published import PublishedDataset
from dataset_script.tasks import load_tasks
from tests.support.small_suite import SUITE_IDS
from tests.support.text_runs import ASKING, IDS, READING, RUNS

GENUINE = Path(__file__).parent / "sources" / "recorded_by_browsergym"
METADATA = "task_name,sites,eval_types,browsergym_split\nshop.1,shop wiki,url_match,test\n"


@pytest.fixture
def make(full_source, tmp_path):
    """A function that runs the command on a source with five runs of three tasks."""

    def run(*more, name="ours", share=0.5):
        out = tmp_path / "made" / name
        options = ["--source", full_source.path, "--out", out, "--dev-share", share, "--workers", 1, *more]
        return CliRunner().invoke(app, ["new-suite", *(str(option) for option in options)]), out

    return run


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_folder_is_a_suite_with_hidden_labels_and_every_run(make):
    done, out = make()
    assert done.exit_code == 0, done.output
    suite = load_suite(out)
    assert {t.trajectory_id for t in suite.trajectories} == set(SUITE_IDS)
    # half of three tasks, rounded up: one of the shop's two, and one more
    assert len({t.task for t in suite.split("dev")}) == 2
    assert (suite.labels_are_public, suite.rules) == (False, SuiteRules(fewest_positives=1))
    assert names_in(out) == ["suite.toml", "tasks.csv", "trajectories.csv"]
    assert "left out: nothing" in done.stdout


def test_the_title_is_the_one_that_was_given(make):
    _, out = make("--title", "Our Bench")
    assert load_suite(out).profile.title == "Our Bench"


def test_a_title_that_cannot_be_is_refused_before_anything_is_read(make):
    done, out = make("--title", "two\nlines")
    assert done.exit_code == 2 and "title: write it on one line" in done.output and not out.exists()


def test_tasks_have_their_goals_and_what_the_metadata_says(make, tmp_path):
    (tmp_path / "meta.csv").write_text(METADATA)
    done, out = make("--metadata", tmp_path / "meta.csv")
    assert done.exit_code == 0, done.output
    with (out / "tasks.csv").open(newline="") as file:
        goals = {row["task"]: row["goal"] for row in csv.DictReader(file)}
    assert goals == dict.fromkeys(("shop.1", "shop.2", "workarena.servicenow.sort-l2"), "Buy a teapot.")
    first, second, _ = load_tasks(load_suite(out))
    assert (first.sites, first.evaluation_types) == (("shop", "wiki"), ("url_match",))
    assert second.sites == ()


def test_the_same_command_makes_the_same_files(make):
    _, first = make("--title", "Ours", name="one")
    _, second = make("--title", "Ours", name="two")
    for name in names_in(first):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_what_was_made_is_never_written_over(make):
    _, out = make()
    before = (out / "trajectories.csv").read_bytes()
    done, _ = make("--seed", 1)
    assert (done.exit_code, done.stderr) == (
        2, f"error: {out}: exists already and will not be overwritten; name another folder\n"
    )  # fmt: skip
    assert (out / "trajectories.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sample", "a shipped suite has this name"),
        ("our suite", "has letters, digits"),
        ("-x", "has letters"),
    ],
)
def test_a_name_that_no_suite_can_have_is_refused_before_anything_is_read(make, name, said):
    done, out = make(name=name)
    assert done.exit_code == 2 and said in done.stderr
    assert not out.exists()


def test_a_share_that_leaves_a_split_empty_writes_nothing(make):
    done, out = make(share=0.1)
    assert done.exit_code == 2
    assert "dev would have 0 of the 3 tasks" in done.stderr
    assert not out.parent.exists() or names_in(out.parent) == []


def test_a_broken_run_is_named_and_left_out_and_an_invalid_one_too(make, full_source):
    full_source.put(SUITE_IDS[0], b"{")
    full_source.put(SUITE_IDS[1], valid=False)
    done, out = make()
    assert done.exit_code == 3
    assert "not a complete JSON document" in done.stdout and "shop.1.json" in done.stdout
    assert "marked as invalid" in done.stdout
    assert {t.trajectory_id for t in load_suite(out).trajectories} == set(SUITE_IDS[2:])


def test_a_link_out_of_the_source_is_named_and_its_run_left_out(make, full_source, tmp_path):
    place = full_source.put(SUITE_IDS[0])
    place.rename(tmp_path / "elsewhere.json")
    place.symlink_to(tmp_path / "elsewhere.json")
    done, out = make()
    assert done.exit_code == 3
    assert f"  {place.relative_to(full_source.path)}\n" in done.stdout
    assert len(load_suite(out).trajectories) == len(SUITE_IDS) - 1


def test_two_files_of_one_trajectory_are_one_and_a_broken_one_gives_way(make, full_source):
    full_source.put(SUITE_IDS[0], b"{", experiment="run-0")
    full_source.put(SUITE_IDS[2], experiment="run-2")
    done, out = make()
    assert len(load_suite(out).trajectories) == 5
    assert "another file gives the same trajectory" in done.stdout


def test_tasks_whose_dev_labels_are_published_stay_dev(make):
    _, first = make(name="first")
    dev = {t.trajectory_id for t in load_suite(first).split("dev")}
    done, second = make("--dev-of", first, "--seed", 1, name="second")
    assert done.exit_code == 0, done.output
    assert {t.trajectory_id for t in load_suite(second).split("dev")} == dev


def test_ones_own_agents_are_read_with_their_repeats_and_functions_are_allowed_by_name(tmp_path):
    for number in (1, 2, 3):
        shutil.copytree(GENUINE, tmp_path / "study" / f"run-{number}")
    # The third run is of another task, and its arguments name a function.
    environment = {"task_name": "tinyshop.2"}
    arguments = {"agent_args": {"agent_name": "Scripted-both", "hook": json.dumps}, "env_args": environment}
    (path,) = (tmp_path / "study" / "run-3").rglob("exp_args.pkl")
    path.write_bytes(pickle.dumps(arguments))
    data, out = tmp_path / "data", tmp_path / "tiny-suite"
    new = ["new-suite", "--source", str(tmp_path / "study"), "--out", str(out), "--dev-share", "0.5"]
    build = ["build", "--source", str(tmp_path / "study"), "--out", str(data), "--suite", str(out)]
    refused = CliRunner().invoke(app, [*new, "--workers", "1"])
    assert refused.exit_code == 2 and not out.exists()
    assert "json.dumps" in refused.stdout and "--allow-class" in refused.stdout
    for command in (new, build):
        done = CliRunner().invoke(app, [*command, "--allow-class", "json.dumps", "--workers", "1"])
        assert done.exit_code == 0, done.output
    ids = {trajectory.trajectory_id: trajectory.task for trajectory in load_suite(out).trajectories}
    assert ids == {
        "tinyshop/Scripted-both/tinyshop.1": "tinyshop.1",
        "tinyshop/Scripted-both/tinyshop.1~2": "tinyshop.1",
        "tinyshop/Scripted-both/tinyshop.2": "tinyshop.2",
    }


def test_every_rule_is_written_out_with_what_it_does():
    rules = SuiteRules(age_exempt=("ada", "bob"), ranking_half=True)
    text = render_suite_toml("Made by a test.", "Ours", rules)
    content = tomllib.loads(text)
    assert (content["format"], content["labels"]) == (1, "private")
    assert list(content["rules"]) == [field.name for field in fields(SuiteRules)]
    assert read_rules(content["rules"]) == rules
    lines = text.splitlines()
    assert lines[0] == "# Made by a test."
    for name in (*content["rules"], *OPTIONAL_PAGES):
        places = [number for number, line in enumerate(lines) if line.startswith(f"{name} = ")]
        assert places and all(lines[place - 1].startswith("# ") for place in places)


@pytest.mark.parametrize("title", ["Our Bench", 'A "quoted" \\ title', "Größe, 大きさ"])
def test_title_links_and_pages_are_written_out_as_they_are_by_default(title):
    profile = read_profile(tomllib.loads(render_suite_toml("Made.", title, SuiteRules())), "our-bench")
    assert profile == SuiteProfile(title)


def test_the_examples_in_a_new_suites_file_hold_when_they_are_uncommented():
    text = render_suite_toml("Made.", "Ours", SuiteRules())
    examples = ("description", "citation", "@misc", "'''", "data", "code", "contact")
    for each in examples:
        assert f"\n# {each}" in text
        text = text.replace(f"\n# {each}", f"\n{each}")
    profile = read_profile(tomllib.loads(text), "ours")
    assert [name for name, _ in profile.links] == ["data", "code", "contact"]
    assert profile.citation.startswith("@misc{ours2026") and profile.description.startswith("Runs of four")


def test_a_small_test_split_asks_for_fewer_positive_verdicts_and_keeps_every_other_default():
    # a tenth of 52 is 5; 30 is the default, a tenth of 300; and one is the least
    assert [suggested_rules(n).fewest_positives for n in (3, 52, 299, 300, 1106)] == [1, 5, 29, 30, 30]
    assert suggested_rules(300) == SuiteRules()


def test_a_source_becomes_a_suite_in_one_split_and_a_dataset_without_rewards(text_runs, tmp_path):
    made = build_source(text_runs, tmp_path / "cache")
    assert [(t.trajectory_id, t.split) for t in made.suite.trajectories] == [(name, "test") for name in IDS]
    assert load_suite(made.suite_folder) == made.suite
    dataset = PublishedDataset(made.folder)
    usual = ("trajectories", "trajectories_with_screenshot", "steps", "tasks", "usage")
    assert dataset.configurations == usual
    assert b"reward" not in (made.folder / "data/trajectories/test-00000-of-00001.parquet").read_bytes()
    rows = {row["trajectory_id"]: row for row in dataset.table("trajectories").to_pylist()}
    assert {name: row["answer"] for name, row in rows.items()} == {n: r["answer"] for n, r in RUNS.items()}
    texts = [step["text"] for step in rows[READING]["steps"]]
    assert (
        texts
        == [step["text"] for step in dataset.rows_of("steps", READING)]
        == [None, "1 failed: <empty> line", "12 passed in 0.1s"]
    )
    assert (made.facts.name, made.facts.kind, made.facts.left_out) == ("logs", "text", ())
    assert source_facts(made.folder) == made.facts


def test_a_source_is_built_once_until_it_changes(text_runs, tmp_path, monkeypatch):
    first = build_source(text_runs, tmp_path / "cache")
    with monkeypatch.context() as patched:
        patched.setattr("dataset_script.new_suite.build", None)  # calling it would fail
        assert build_source(text_runs, tmp_path / "cache") == first
    (path,) = (path for path in text_runs.iterdir() if ASKING in path.read_text())
    path.write_text(path.read_text().replace("7860", "8000"))
    second = build_source(text_runs, tmp_path / "cache")
    assert second.folder != first.folder and second.facts.sha256 != first.facts.sha256
    assert "8000" in PublishedDataset(second.folder).rows_of("trajectories", ASKING)[0]["answer"]


def test_runs_of_a_source_that_cannot_be_used_are_named_and_the_others_are_built(text_runs, tmp_path):
    (text_runs / "run-1.json").write_text('{"trajectory_id": "coding/solver/broken", "goal": "…"}')
    made = build_source(text_runs, tmp_path / "cache")
    assert [t.trajectory_id for t in made.suite.trajectories] == [ASKING, READING]
    (line,) = made.facts.left_out
    assert line.startswith("run-1.json: KeyError")
    for path in text_runs.iterdir():
        path.write_text('{"trajectory_id": "coding/solver/broken"}')
    with pytest.raises(SourceError, match=r"none of its runs can be used:\nrun-0.json: KeyError"):
        build_source(text_runs, tmp_path / "cache")


def test_the_output_says_how_much_noise_hides_and_what_to_choose_instead(make):
    done, _ = make("--json")
    # One test task with two runs: one ranks, and noise of 6 hides everything about the other one.
    found = json.loads(done.stdout)["privacy"]
    assert (found["n_visible"], found["n_ranking"], found["noise"]) == (1, 1, 1.0)
    done, _ = make(name="again")
    assert "what submitters see: figures of" in done.stdout and 'labels = "public"' in done.stdout


def test_noise_on_84_runs_hides_what_a_thousand_runs_show():
    # 84 runs: 42 are shown, 21 of them called positive; 1.96 * 6 / 21 = 56 %.
    # The sample: 1.96 * sqrt(0.8 * 0.2 / 21) = 17.1 %; the root of 0.56^2 + 0.171^2 is 58.6 %.
    found = noisy_precision(suggested_rules(84), 84)
    assert (found.n_visible, found.n_ranking) == (42, 42)
    assert (round(found.noise, 3), round(found.margin, 3)) == (0.56, 0.586)
    lines = privacy_lines(suggested_rules(84), 84)
    assert lines[0].startswith("what submitters see: figures of 42 of 84 test runs; the other 42 rank.")
    # 20 files with noise of 6 reveal as much as one with 6 / sqrt(20) = 1.342; 1.96 * 1.35 / 21 = 12.6 %.
    assert fewer_files(SuiteRules()).private_noise == 1.35
    assert "files_a_year = 1 and private_noise = 1.35" in lines[3] and lines[3].endswith("± 13 points")
    assert lines[4].endswith("± 6 points")  # 1.96 * 1.35 / 42
    # 1,106 runs: 1.96 * 6 / 276.5 = 4.3 %
    assert privacy_lines(SuiteRules(), 1106) == [
        "what submitters see: figures of 553 of 1,106 test runs; the other 553 rank. A precision of 80% on "
        "half of them has noise of ± 4 points, and an interval of ± 6 points."
    ]


def test_examples_of_targets_are_read_when_they_are_uncommented(make):
    _, out = make("--steps")
    text = (out / "suite.toml").read_text().replace('labels = "private"', 'labels = "public"')
    before, first, after = text.partition("# [[targets]]")
    kept = [
        line.removeprefix("# ")
        for line in (first + after).splitlines()
        if line.startswith("# [[") or " = " in line
    ]
    (out / "suite.toml").write_text(before + "\n" + "\n".join(kept))
    suite = load_suite(out)
    kinds = [(target.type, target.level, target.aggregate) for target in suite.targets]
    assert kinds == [
        ("binary", "run", "first"), ("ordinal", "run", "median"), ("classes", "run", "majority"),
        ("score", "run", "median"), ("classes", "step", "majority"),
    ]  # fmt: skip
    runs = {part.trajectory_id for part in suite.parts}
    assert runs == set(SUITE_IDS) and all(part.level == "step" for part in suite.parts)
    assert suite.parts[0].step == "1"  # as on the page of the run
