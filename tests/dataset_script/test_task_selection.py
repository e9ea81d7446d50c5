"""Tasks are drawn by group, each once, seeded; splits are by task; the released tasks give known sizes."""

import csv
import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from arb.core.ids import TrajectoryId
from arb.core.suite import SuiteError, load_suite
from dataset_script.__main__ import app
from dataset_script.task_selection import (
    MetadataTask,
    count_by_area,
    draw_dev_tasks,
    even_shares,
    read_ids,
    read_metadata,
    sample_tasks,
    split_by_task,
)
from dataset_script.tasks import Task, load_tasks

PAPER_SIZES = {
    "webarena": {"wikipedia": 8, "map": 18, "reddit": 18, "shopping_admin": 18, "gitlab": 19, "shopping": 19},
    "visualwebarena": {"wikipedia": 17, "reddit": 27, "classifieds": 28, "shopping": 28},
    "workarena++": {
        "sophisticated_memory": 15,
        "information_retrieval": 20,
        "contextual_understanding_infeasible_tasks": 21,
        "data_driven_decision_making_and_reasoning": 22,
        "planning_and_problem_solving": 22,
    },
}
"""Appendix A.1 of the paper."""

PAPER_TASKS = {"assistantbench": 33, "workarena": 18, **dict.fromkeys(PAPER_SIZES, 100)}
"""Section 3.2 and appendix A.2: 351 in all."""

AS_IN_THE_PAPER = {
    "webarena": ("webarena", {"per_group": 8, "total": 100}),
    "visualwebarena": ("visualwebarena", {"per_group": 9, "total": 100}),
    "assistantbench": ("assistantbench", {"split": "valid"}),
    "workarena": ("workarena", {"level": "l1"}),
    "workarena++": ("workarena", {"level": "l2", "total": 100}),
}
"""The file of metadata in the released package, and how to draw from it."""


def task(number, sites="shop", evaluations="string_match", split="test", **more):
    return MetadataTask(f"shop.{number}", tuple(sites.split()), tuple(evaluations.split()), split, **more)


@pytest.fixture(scope="module")
def released_package(official_settings, tmp_path_factory):
    """A function that gives a CSV file of the released package as a path."""
    wheel = next(official_settings.cache_dir.expanduser().glob("agent_reward_bench-*.whl"))
    folder = tmp_path_factory.mktemp("metadata")

    def file(name):
        with zipfile.ZipFile(wheel) as archive:
            (folder / f"{name}.csv").write_bytes(archive.read(f"agent_reward_bench/data/{name}.csv"))
        return folder / f"{name}.csv"

    return file


def benchmark_of(row):
    return {"workarena_l1": "workarena", "workarena_l2": "workarena++"}.get(
        row["benchmark"], row["benchmark"]
    )


@pytest.mark.labels
@pytest.mark.parametrize("benchmark", AS_IN_THE_PAPER)
def test_a_draw_as_in_the_paper_has_the_papers_sizes(released_package, benchmark):
    name, options = AS_IN_THE_PAPER[benchmark]
    known = read_metadata(released_package(name))
    drawn = [sample_tasks(known, seed=seed, **options) for seed in (0, 1)]
    assert len(drawn[0]) == PAPER_TASKS[benchmark]
    sizes = PAPER_SIZES.get(benchmark)
    assert sizes is None or [count_by_area(tasks) for tasks in drawn] == [sizes, sizes]
    assert (drawn[0] == drawn[1]) == (sizes is None)  # the others are taken whole


@pytest.mark.labels
@pytest.mark.parametrize("benchmark", AS_IN_THE_PAPER)
def test_the_released_tasks_are_among_those_to_draw_from_with_the_papers_sizes(released_package, benchmark):
    name, options = AS_IN_THE_PAPER[benchmark]
    with released_package("splits").open(newline="") as file:
        released = {row["task_id"]: benchmark_of(row) for row in csv.DictReader(file)}
    assert Counter(released.values()) == PAPER_TASKS and len(released) == 351
    to_draw = {k: v for k, v in options.items() if k in ("split", "level")}
    all_tasks = sample_tasks(read_metadata(released_package(name)), **to_draw)
    chosen = [known for known in all_tasks if released.get(known.task_id) == benchmark]
    assert len(chosen) == PAPER_TASKS[benchmark]
    assert count_by_area(chosen) == PAPER_SIZES.get(benchmark, count_by_area(all_tasks))


@pytest.mark.labels
def test_the_guides_commands_draw_as_many_tasks_as_it_says(released_package, tmp_path, monkeypatch):
    guide = (Path(__file__).parents[2] / "docs" / "new_suite.md").read_text()
    rows = re.findall(r"^\| [^|]+ \| `(--metadata (\w+)\.csv[^`]*)` \| (\d+)", guide, flags=re.MULTILINE)
    assert len(rows) == 5
    for options, name, tasks in rows:
        monkeypatch.chdir(released_package(name).parent)
        done = CliRunner().invoke(app, ["sample-tasks", *options.split(), "--out", str(tmp_path / "x.csv")])
        assert done.exit_code == 0, done.output
        assert done.stderr.startswith(f"{tasks} tasks: ")


def test_a_total_is_shared_evenly_and_the_largest_give_what_is_left_over():
    # a gives all its 2; 9 - 2 = 7 are left for three: 2 each, and one more of the largest
    assert even_shares({"d": 9, "a": 2, "c": 5, "b": 3}, 9) == {"a": 2, "b": 2, "c": 2, "d": 3}
    assert even_shares({"a": 1, "b": 1}, 1) == {"a": 0, "b": 1}
    for total in (0, 3):
        with pytest.raises(SuiteError, match=f"--total {total}: choose a number from 1 to 2"):
            even_shares({"a": 1, "b": 1}, total)


def test_a_total_takes_what_was_drawn_first_and_fills_up_from_the_rest():
    tasks = [task(n) for n in range(20)] + [task(n, "map") for n in range(20, 60)]
    fewer = sample_tasks(tasks, 8, 1, total=10)
    more = sample_tasks(tasks, 8, 1, total=30)
    drawn = set(sample_tasks(tasks, 8, 1))
    assert count_by_area(fewer) == {"map": 5, "shop": 5} and {*fewer} < drawn
    assert count_by_area(more) == {"map": 15, "shop": 15} and drawn < {*more}
    assert sample_tasks(tasks[::-1], 8, 1, total=10)[::-1] == fewer


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 20), min_size=1), st.data())
def test_no_area_gives_fewer_than_another_unless_it_has_no_more(sizes, data):
    total = data.draw(st.integers(1, sum(sizes.values())))
    shares = even_shares(sizes, total)
    assert sum(shares.values()) == total
    assert all(shares[name] <= sizes[name] for name in sizes)
    most = max(shares.values())
    assert all(shares[name] in (sizes[name], most, most - 1) for name in sizes)


def test_without_sites_a_task_belongs_to_its_category_and_without_one_to_its_benchmark():
    assert task(1, "", "", category="menu").groups == (("menu", ""),)
    assert task(1, "", "").groups == (("shop", ""),)


def test_a_level_that_is_not_there_names_those_that_are():
    tasks = [task(1, level="l1"), task(2, level="l2", split="train")]
    assert [t.task_id for t in sample_tasks(tasks, level="l1")] == ["shop.1"]
    with pytest.raises(SuiteError, match="--level 'l3': no task of the metadata has it; use one of: l1, l2"):
        sample_tasks(tasks, level="l3")
    with pytest.raises(SuiteError, match=r"--metadata-split 'test': no task .* use one of: train"):
        sample_tasks(tasks, level="l2")


def test_a_group_is_the_first_site_with_each_evaluation_method():
    both = task(1, sites="map wiki", evaluations="url_match program_html")
    assert both.groups == (("map", "url_match"), ("map", "program_html"))


def test_each_group_gives_at_most_so_many_and_a_small_one_all_it_has():
    tasks = [task(n) for n in range(20)] + [task(n, "map") for n in range(20, 23)]
    chosen = sample_tasks(tasks, per_group=8, seed=1)
    assert count_by_area(chosen) == {"map": 3, "shop": 8}


def test_a_task_in_two_groups_is_in_the_sample_once():
    tasks = [task(n, evaluations="string_match url_match") for n in range(5)]
    chosen = sample_tasks(tasks, per_group=5, seed=1)
    assert len(chosen) == 5


def test_only_the_split_that_was_asked_for_is_drawn_from():
    tasks = [task(1, split="train"), task(2)]
    assert [t.task_id for t in sample_tasks(tasks, 8, 0)] == ["shop.2"]
    assert [t.task_id for t in sample_tasks(tasks, 8, 0, "train")] == ["shop.1"]
    with pytest.raises(SuiteError, match=r"--metadata-split 'dev': no task .* use one of: test, train"):
        sample_tasks(tasks, 8, 0, "dev")


def test_a_seed_draws_the_same_tasks_whatever_the_order_of_rows_and_the_other_groups():
    tasks = [task(n) for n in range(30)]
    others = [task(n, "map") for n in range(30, 60)]
    alone = {t.task_id for t in sample_tasks(tasks, 8, seed=3)}
    among = {t.task_id for t in sample_tasks([*others, *reversed(tasks)], 8, seed=3) if t.sites == ("shop",)}
    other_seed = {t.task_id for t in sample_tasks(tasks, 8, seed=4)}
    assert alone == among != other_seed


@given(st.integers(1, 12), st.integers(0, 50), st.lists(st.sampled_from(["a", "b", "a b"]), max_size=40))
@settings(max_examples=60, deadline=None)
def test_every_group_is_filled_as_far_as_it_can_be(per_group, seed, evaluations):
    tasks = [task(n, evaluations=e) for n, e in enumerate(evaluations)]
    if not tasks:
        return
    chosen = sample_tasks(tasks, per_group, seed)
    for method in {group for t in tasks for group in t.groups}:
        members = [t for t in tasks if method in t.groups]
        assert len([t for t in chosen if t in members]) >= min(per_group, len(members))
    assert len(chosen) <= per_group * 2  # two groups at most


METADATA = "task_name,sites,eval_types,browsergym_split,depends_on\n"


def test_metadata_is_read_as_browsergym_writes_it(tmp_path):
    path = tmp_path / "webarena.csv"
    path.write_text(
        METADATA + "webarena.7,map wikipedia,url_match program_html,test,webarena.6\n", "utf-8-sig"
    )
    assert read_metadata(path) == (
        MetadataTask("webarena.7", ("map", "wikipedia"), ("url_match", "program_html"), "test"),
    )


def test_every_bad_row_of_the_metadata_is_named(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(METADATA + "a.1,map,x,test,\na.1,map,x,test,\na.2,,x,test,\na.3,map\n")
    with pytest.raises(SuiteError) as error:
        read_metadata(path)
    assert str(error.value) == (
        "m.csv: row 3, task_name 'a.1': named twice; keep one row; row 4: sites is empty; "
        "row 5: eval_types, browsergym_split is empty"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"task_name,sites\na,b\n", "the columns browsergym_split are missing"),
        (b"task_name,sites,browsergym_split\na,b,test\n", "the columns eval_types are missing"),
        (b"task_name,browsergym_split,level\na,test,l1\n", "the columns category are missing"),
        (b"task_name,browsergym_split,level,category\na,test,l1,\n", "row 2: category is empty"),
        (b"", "are missing"),
        (b"\xff\xfe\x00", "save it as CSV in UTF-8"),
        (METADATA.encode() + b'a,"' + b"x" * 2_000_000 + b'",y,test,\n', "cannot be read"),
    ],
)
def test_a_file_that_is_no_metadata_says_what_is_wrong(tmp_path, content, said):
    path = tmp_path / "m.csv"
    path.write_bytes(content)
    with pytest.raises(SuiteError, match=said):
        read_metadata(path)


def test_a_file_that_is_not_there_says_so(tmp_path: Path):
    with pytest.raises(OSError, match="No such file"):
        read_metadata(tmp_path / "absent.csv")


# -- splits -------------------------------------------------------------------------------------------------


def test_every_run_of_a_task_goes_with_it_in_any_spelling():
    ids = [f"vwa/Agent-{a}/vwa.{'resized.' if a == 1 else ''}{n}" for n in range(10) for a in range(3)]
    splits = split_by_task(ids, dev_tasks=3, seed=0)
    by_task = [set(splits[start : start + 3]) for start in range(0, 30, 3)]
    assert all(len(of_task) == 1 for of_task in by_task)
    assert splits.count("dev") == 9  # 3 tasks, 3 runs each


def test_a_seed_gives_the_same_split_whatever_the_order():
    ids = [f"webarena.{n}" for n in range(50)]
    forward = dict(zip(ids, split_by_task(ids, 7, seed=5), strict=True))
    backward = dict(zip(ids[::-1], split_by_task(ids[::-1], 7, seed=5), strict=True))
    assert forward == backward
    assert split_by_task(ids, 7, seed=5) != split_by_task(ids, 7, seed=6)


@pytest.mark.parametrize("dev_tasks", [0, 2, 3, -1])
def test_both_splits_get_a_task(dev_tasks):
    with pytest.raises(SuiteError, match=r"of 2 tasks, choose 1 to 1"):
        split_by_task(["webarena.1", "webarena.2", "webarena.resized.2"], dev_tasks, 0)


RUNS = [f"{site}/{agent}/{site}.{n}" for site in ("map", "shop") for agent in "ab" for n in range(10)]


def split_by_share(ids, share, seed, always_dev=()):
    """The split of each trajectory id."""
    named = [TrajectoryId.parse(text) for text in ids]
    of_runs = [(each.benchmark, each.task) for each in named]
    dev = draw_dev_tasks(dict.fromkeys(of_runs), share, seed, always_dev)
    return ["dev" if task in dev else "test" for task in of_runs]


def dev_tasks(ids, splits):
    return {
        (i.split("/")[0], i.split("/")[2]) for i, split in zip(ids, splits, strict=True) if split == "dev"
    }


def test_a_share_is_taken_of_every_benchmark_and_all_runs_of_a_task_go_with_it():
    splits = split_by_share(RUNS, 0.25, seed=0)
    assert splits.count("dev") == 5 * 2  # 0.25 of 20 tasks, two runs each
    by_site = Counter(site for site, _ in dev_tasks(RUNS, splits))
    assert sorted(by_site.values()) == [2, 3]  # 2.5 of each ten: one rounded down, one up


def test_the_order_of_ids_changes_no_split_and_another_seed_does():
    there = dev_tasks(RUNS, split_by_share(RUNS, 0.3, seed=3))
    assert dev_tasks(RUNS[::-1], split_by_share(RUNS[::-1], 0.3, seed=3)) == there
    assert dev_tasks(RUNS, split_by_share(RUNS, 0.3, seed=4)) != there


def test_benchmarks_of_one_task_each_can_be_split_too():
    ids = [f"site{n}/a/site{n}.1" for n in range(4)]
    assert sorted(split_by_share(ids, 0.5, seed=0)) == ["dev", "dev", "test", "test"]


@given(st.floats(0.1, 0.9), st.integers(0, 30), st.sets(st.integers(0, 9), max_size=9))
def test_tasks_that_have_to_be_dev_are_and_count(share, seed, kept):
    always = {("shop", f"shop.{n}") for n in kept}
    freely = dev_tasks(RUNS, split_by_share(RUNS, share, seed))
    dev = dev_tasks(RUNS, split_by_share(RUNS, share, seed, always))
    assert len(freely) == int(share * 20 + 0.5)
    assert always <= dev
    sizes = Counter(site for site, _ in dev), Counter(site for site, _ in freely)
    assert sizes[0]["shop"] == max(len(kept), sizes[1]["shop"])
    assert sizes[0]["map"] == sizes[1]["map"]


@pytest.mark.parametrize("share", [0, 1, -0.5, 1.5, float("nan")])
def test_a_share_lies_between_none_and_all(share):
    with pytest.raises(SuiteError, match="between 0 and 1"):
        split_by_share(RUNS, share, 0)


def test_ids_are_read_from_either_column(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("split,trajectory_id\nx,a/b/c\n")
    assert read_ids(path) == ("trajectory_id", ("a/b/c",))
    path.write_text("task_id\nwebarena.1\n")
    assert read_ids(path) == ("task_id", ("webarena.1",))


def test_every_bad_id_is_named(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("trajectory_id,x\na/b/c,\na/b/c,\n,y\nab,\n")
    with pytest.raises(SuiteError) as error:
        read_ids(path)
    assert str(error.value) == (
        "ids.csv: row 4: trajectory_id is empty; 'a/b/c': in 2 rows; keep one row; "
        "'': expected <benchmark>/<agent>/<task_id>; 'ab': expected <benchmark>/<agent>/<task_id>"
    )


def test_a_file_without_ids_says_which_columns_it_needs(tmp_path):
    path = tmp_path / "ids.csv"
    path.write_text("id\n1\n")
    with pytest.raises(SuiteError, match="add a column trajectory_id or task_id"):
        read_ids(path)


# The tasks of a suite

HEADINGS = "task,benchmark,split,sites,evaluation_types,difficulty,category\n"


def test_the_official_tasks_are_the_351_of_the_suite_with_their_metadata():
    tasks = {task.task: task for task in load_tasks(load_suite())}
    assert len(tasks) == 351
    # 51 tasks of dev and 300 of test, as in the paper
    assert Counter(task.split for task in tasks.values()) == {"dev": 51, "test": 300}
    assert tasks["visualwebarena.149"] == Task(
        "visualwebarena.149", "visualwebarena", "test", ("classifieds",), ("string_match",), "easy"
    )
    graded = Counter(task.benchmark for task in tasks.values() if task.difficulty)
    assert graded == {"visualwebarena": 100, "assistantbench": 33}
    sited = Counter(task.benchmark for task in tasks.values() if task.sites and task.evaluation_types)
    assert sited == {"visualwebarena": 100, "webarena": 100}


def test_a_suite_without_metadata_has_its_tasks_all_the_same(suite):
    assert [task.task for task in load_tasks(suite)] == ["shop.1", "shop.2", "workarena.servicenow.sort-l2"]


def test_metadata_is_read_in_any_spelling_of_the_task(suite, suite_folder):
    (suite_folder / "tasks.csv").write_text(
        f"{HEADINGS}shop.resized.1,shop,dev,shop map,string_match,hard,form\n"
    )
    assert load_tasks(suite)[0] == Task(
        "shop.1", "shop", "dev", ("shop", "map"), ("string_match",), "hard", "form"
    )


def test_every_row_that_contradicts_the_trajectories_is_named(suite, suite_folder):
    rows = ["shop.9,shop,dev,,,,", "shop.1,shop,test,,,,", "shop.2,shop,,,,,", "shop.2,shop,test,,,,"]
    (suite_folder / "tasks.csv").write_text(HEADINGS + "\n".join(rows))
    with pytest.raises(SuiteError) as error:
        load_tasks(suite)
    assert str(error.value) == (
        "tasks.csv: row 2, task 'shop.9': no trajectory of the suite has this task; "
        "row 3, task 'shop.1': its trajectories are in dev; correct the split; "
        "row 5, task 'shop.2': named twice; keep one row"
    )


def test_absent_columns_are_named(suite, suite_folder):
    (suite_folder / "tasks.csv").write_text("task,benchmark\n")
    with pytest.raises(SuiteError, match="sites, evaluation_types, difficulty, category are missing"):
        load_tasks(suite)
