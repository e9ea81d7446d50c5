"""A suite with questions of its own: their answers on dev are columns of `annotations`, and nowhere else."""

import dataclasses

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arb.core.suite import load_suite
from dataset_script.agent_reward_bench import AgentRewardBench
from dataset_script.build.build import BuildOptions, build
from dataset_script.card import CardFacts, render_card
from dataset_script.schema import CONFIGURATIONS, arrow_schema, features
from dataset_script.verify.check import verify
from tests.support.annotations import OWN_QUESTIONS, OWN_TOML

SUITE_TOML = 'labels = "private"\n' + OWN_TOML.replace("Was it polite", "Was it polite | kind")
DEV_1, DEV_2 = "shop/GenericAgent-a/shop.1", "shop/GenericAgent-b/shop.resized.1"
DEV_LABELS = f"""trajectory_id,annotation,success,side_effect,repetition,annotator,tone,safe
{DEV_1},1,true,false,false,annotator-2,polite,no
{DEV_1},2,false,false,false,annotator-1,rude,
{DEV_2},1,false,true,,,,yes
"""


@pytest.fixture
def own(suite_folder):
    (suite_folder / "suite.toml").write_text(SUITE_TOML)
    (suite_folder / "dev_labels.csv").write_text(DEV_LABELS)
    return load_suite(suite_folder)


@pytest.fixture
def built(full_source, out, own):
    assert build(full_source.path, out, own, BuildOptions(workers=1)).published
    return out


def file_of(folder, configuration: str, split: str = "dev"):
    return next((folder / "data" / configuration).glob(f"{split}-*.parquet"))


def test_own_answers_are_columns_of_annotations_alone(built, own, table):
    answers = [
        [row[name] for name in ("success", "tone", "safe")] for row in table(built, "dev", "annotations")
    ]
    assert answers == [[1, "polite", "no"], [0, "rude", None], [0, None, "yes"]]
    assert pq.read_schema(file_of(built, "annotations")) == arrow_schema("annotations", questions=own.targets)
    for name in ("trajectories", "judgments"):
        assert arrow_schema(name, questions=own.targets) == arrow_schema(name)
    assert pq.read_schema(file_of(built, "trajectories")) == arrow_schema("trajectories")
    assert features("annotations", own.targets)["tone"].dtype == "string"


def test_the_card_says_what_an_own_column_holds(own):
    rows = {"trajectories": {"dev": 2}, "annotations": {"dev": 3}}
    card = render_card(CardFacts("ours", {"dev": {"shop": 2}, "test": {}}, rows, questions=own.targets))
    (line,) = [line for line in card.splitlines() if line.startswith("| `tone`")]
    assert line.count("|") - line.count(r"\|") == 4  # a cell's own bar is no cell
    assert "polite (Very polite), cold (Cold), rude (Rude)" in line
    assert "`tone`" not in render_card(CardFacts("ours", {"dev": {"shop": 2}, "test": {}}, rows))


def test_the_loading_script_gives_the_same_columns_from_runs_and_from_the_build(
    built, full_source, suite_folder, tmp_path
):
    found = []
    for number, how in enumerate(
        ({"data_dir": str(full_source.path), "suite": str(suite_folder)}, {"data_dir": str(built)})
    ):
        builder = AgentRewardBench(
            cache_dir=str(tmp_path / f"cache-{number}"), config_name="annotations", **how
        )
        builder.download_and_prepare()
        found.append(builder.as_dataset(split="dev"))
    assert found[0].features == found[1].features and found[0].to_list() == found[1].to_list()
    assert found[0]["tone"][:] == ["polite", "rude", None]


def codes(folder, suite=None) -> set[str]:
    return {finding.code for finding in verify(folder, suite=suite).findings}


def changed(path, **columns) -> None:
    table = pq.read_table(path)
    for name, values in columns.items():
        values = pa.array(values, pa.string())
        place = table.schema.get_field_index(name)
        table = table.append_column(name, values) if place < 0 else table.set_column(place, name, values)
    pq.write_table(table, path)


def test_a_build_is_verified_by_the_questions_of_its_suite(built, own):
    assert codes(built, own) == set()
    assert "other_schema" in codes(built)  # whoever does not know the suite does not know its columns
    asks_less = dataclasses.replace(own, targets=own.targets[:1])
    assert "other_schema" in codes(built, asks_less)


def test_an_own_column_holds_answers_and_nothing_else(built, own):
    changed(file_of(built, "annotations"), tone=["polite", "shop/GenericAgent-a/shop.2: rude", None])
    assert "other_schema" in codes(built, own)


@pytest.mark.parametrize("configuration", ["trajectories", "rewards"])
def test_own_answers_of_test_are_labels_that_nothing_publishes(built, own, configuration):
    changed(file_of(built, configuration, "test"), tone=["rude"] * 3)
    assert "test_label" in codes(built, own)


def test_the_paper_s_suite_has_no_own_column():
    for name in CONFIGURATIONS:
        assert arrow_schema(name, questions=OWN_QUESTIONS[:3]) == arrow_schema(name)


TARGETS = """labels = "private"
[[targets]]
name = "success"
text = "Did the agent reach the goal?"
answers = [{ value = "yes" }, { value = "no" }]
metrics = ["accuracy"]

[[targets]]
name = "wrong"
text = "Was this step wrong?"
level = "step"
answers = [{ value = "yes" }, { value = "no" }]
metrics = []

[[targets]]
name = "met"
text = "Was this requirement met?"
level = "part"
answers = [{ value = "yes" }, { value = "no" }]
metrics = []
"""
ITEM_LABELS = f"""trajectory_id,step,part,annotation,success,wrong,met
{DEV_1},,,1,true,,
{DEV_1},1,,1,,no,
{DEV_1},1,,2,,yes,
{DEV_1},,price,1,,,yes
{DEV_2},,price,1,,,no
"""


@pytest.fixture
def of_items(suite_folder):
    (suite_folder / "suite.toml").write_text(TARGETS)
    (suite_folder / "dev_labels.csv").write_text(ITEM_LABELS)
    (suite_folder / "items.csv").write_text(
        f"trajectory_id,step,part\n{DEV_1},1,\n{DEV_1},,price\n{DEV_2},,price\n"
    )
    return load_suite(suite_folder)


def test_annotations_of_steps_and_parts_name_the_item(full_source, out, of_items, table):
    assert build(full_source.path, out, of_items, BuildOptions(workers=1)).published
    rows = table(out, "dev", "annotations")
    names = ("trajectory_id", "step", "part", "annotation", "success", "wrong", "met")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (DEV_1, None, None, 1, 1, None, None),
        (DEV_1, None, "price", 1, None, None, "yes"),
        (DEV_1, "1", None, 1, None, "no", None),
        (DEV_1, "1", None, 2, None, "yes", None),
        (DEV_2, None, "price", 1, None, None, "no"),
    ]
    of_runs = {row["trajectory_id"]: row["success"] for row in table(out, "dev", "trajectories")}
    assert (of_runs[DEV_1], of_runs[DEV_2]) == (1, None)  # never the label of a step or part
    assert codes(out, of_items) == set()
    assert "`step`" in (out / "README.md").read_text()


def test_a_suite_without_targets_about_parts_has_no_column_for_them(of_items):
    no_parts = arrow_schema("annotations", questions=of_items.targets[:2])
    assert "step" in no_parts.names and "part" not in no_parts.names
    assert "step" not in arrow_schema("annotations", questions=of_items.targets[:1]).names


def test_the_loading_script_names_the_item_too(full_source, out, of_items, suite_folder, tmp_path):
    build(full_source.path, out, of_items, BuildOptions(workers=1))
    rows = []
    for number, how in enumerate(
        ({"data_dir": str(full_source.path), "suite": str(suite_folder)}, {"data_dir": str(out)})
    ):
        cache = str(tmp_path / f"cache-{number}")
        builder = AgentRewardBench(cache_dir=cache, config_name="annotations", **how)
        builder.download_and_prepare()
        rows.append(builder.as_dataset(split="dev").to_list())
    assert rows[0] == rows[1] and [row["step"] for row in rows[0]] == [None, None, "1", "1", None]
