from dataclasses import replace

import pytest
import yaml

from arb.core.suite import load_suite
from arb.core.suites.profile import SuiteProfile
from dataset_script.build.output import MARKER
from dataset_script.card import CardFacts, card_for, render_card, render_eval_yaml
from dataset_script.schema import CONFIGURATIONS
from leaderboard.paper.published_files import LABELS


def test_there_is_a_task_for_each_label_on_the_split_that_ranks_judges():
    said = yaml.safe_load(render_eval_yaml("agent-reward-bench", "AgentRewardBench", ["dev", "test"]))
    assert list(said) == ["name", "description", "evaluation_framework", "tasks"]
    assert said["name"] == "AgentRewardBench"
    assert said["tasks"] == [{"id": label, "config": "trajectories", "split": "test"} for label in LABELS]


def test_a_suite_of_ones_own_does_not_take_the_benchmarks_name_and_may_have_dev_only():
    said = yaml.safe_load(render_eval_yaml("our-suite", "Ours", ["dev"], config="steps"))
    assert (said["name"], said["evaluation_framework"]) == ("Ours", "our-suite")
    assert {(task["config"], task["split"]) for task in said["tasks"]} == {("steps", "dev")}


def test_no_trajectories_are_nothing_to_evaluate_on():
    with pytest.raises(ValueError, match="judges cannot be evaluated"):
        render_eval_yaml("empty", "Empty", [])


def test_the_same_suite_gives_the_same_text():
    assert render_eval_yaml("x", "X", {"dev", "test"}) == render_eval_yaml("x", "X", ("test", "dev"))


COUNTS = {"dev": {"webarena": 88, "workarena++": 52}, "test": {"webarena": 310, "own": 3}}
ROWS = {name: dict.fromkeys(found.splits, 140) for name, found in CONFIGURATIONS.items()}
ROWS["trajectories"] = {"dev": 140, "test": 313}  # 88 + 52, 310 + 3
OWN = CardFacts("own", COUNTS, ROWS)
OFFICIAL = replace(OWN, suite="agent-reward-bench", profile=load_suite().profile)


def front_matter(facts: CardFacts) -> dict:
    return yaml.safe_load(render_card(facts).split("---\n")[1])


def test_the_front_matter_lists_every_configuration_with_its_splits_and_the_default_one():
    meta = front_matter(OFFICIAL)
    configs = {config["config_name"]: config for config in meta["configs"]}
    assert list(configs) == list(CONFIGURATIONS)
    assert [name for name, config in configs.items() if config.get("default")] == ["trajectories"]
    assert configs["steps"]["data_files"] == [
        {"split": "dev", "path": "data/steps/dev-*.parquet"},
        {"split": "test", "path": "data/steps/test-*.parquet"},
    ]
    assert [part["split"] for part in configs["annotations"]["data_files"]] == ["dev"]


def test_the_front_matter_claims_no_licence():
    assert (front_matter(OFFICIAL)["license"], front_matter(OFFICIAL)["pretty_name"]) == (
        "unknown",
        "AgentRewardBench",
    )


@pytest.mark.parametrize(
    ("trajectories", "size"),
    [
        (0, "n<1K"),
        (999, "n<1K"),
        (1000, "1K<n<10K"),
        (10_000, "10K<n<100K"),
        (999_999, "100K<n<1M"),
        (1_300_000, "1M<n<10M"),
        (2 * 10**12, "n>1T"),
    ],
)
def test_the_size_category_follows_the_count_of_trajectories(trajectories, size):
    rows = {"trajectories": {"test": trajectories}, "steps": {"test": 100_000}}
    facts = CardFacts("own", {"dev": {}, "test": {"webarena": trajectories}}, rows)
    assert front_matter(facts)["size_categories"] == [size]


def test_the_column_tables_come_from_the_schema():
    card = render_card(OWN)
    for name, configuration in CONFIGURATIONS.items():
        assert f"### {name}\n" in card
        for column in configuration.columns:
            for told in (column, *column.fields):
                assert f"| `{told.name}` | {told.type_description} | {told.sentence} |" in card


def test_the_columns_of_the_default_configuration_are_reported_once():
    assert render_card(OWN).count("| `final_axtree_pruned` |") == 1


def test_configurations_are_reported_with_their_rows_and_rewards_are_not_for_judges():
    lines = render_card(OWN).splitlines()
    (rewards,) = [line for line in lines if line.startswith("| [`rewards`]")]
    assert "not for judges" in rewards and rewards.endswith("| 140 | 140 |")
    (annotations,) = [line for line in lines if line.startswith("| [`annotations`]")]
    assert annotations.endswith("| 140 | 0 |")


def test_counts_stand_in_the_order_of_the_benchmarks_with_totals():
    table = [
        line for line in render_card(OWN).splitlines() if line.endswith(("| 310 |", "| 52 | 0 |", "| 3 |"))
    ]
    assert table == ["| webarena | 88 | 310 |", "| workarena++ | 52 | 0 |", "| own | 0 | 3 |"]
    assert "| **all** | 140 | 313 |" in render_card(OWN)


def test_the_card_carries_the_marker_the_citation_and_why_test_has_no_labels():
    for facts in (OFFICIAL, OWN):
        card = render_card(facts)
        assert card.count(MARKER) == 1
        assert "arxiv.org/abs/2504.08942" in card
        assert "On **test** every label is null" in card


def test_only_the_official_suite_is_called_the_release():
    assert "McGill-NLP/agent-reward-bench" in render_card(OFFICIAL)
    assert "McGill-NLP" not in render_card(OWN)
    own, _, citation = render_card(OWN).partition("## Citation")
    assert "agentrewardbench" not in own.lower() and "# Own\n" in own
    assert "Made with the software of AgentRewardBench" in citation


def test_a_suites_title_description_links_and_citation_are_in_its_card():
    links = (("code", "https://example.org/code"), ("contact", "mailto:ada@example.org"))
    card = render_card(replace(OWN, profile=SuiteProfile("Our Bench", "Four agents.", "@misc{ours}", links)))
    assert "pretty_name: Our Bench\n" in card and "\n# Our Bench\n\nFour agents.\n" in card
    assert "\n- code: <https://example.org/code>\n- contact: <mailto:ada@example.org>\n" in card
    assert card.index("@misc{ours}") < card.index("Made with") < card.index("@article{lu2025")


def test_a_card_names_its_licence_task_source_limits_and_contact():
    links = (("contact", "mailto:ada@example.org"),)
    own = replace(OWN, profile=SuiteProfile("Our Bench", links=links, license="cc-by-4.0"))
    meta = front_matter(own)
    assert (meta["license"], meta["source_datasets"]) == ("cc-by-4.0", ["original"])
    assert meta["task_categories"] == ["text-classification", "image-text-to-text"]
    assert "## Limits" in render_card(own) and 'the tab "Community"' in render_card(own)
    assert "or to ada@example.org." in render_card(own)
    elsewhere = front_matter(replace(OWN, profile=SuiteProfile(license="https://example.org/terms")))
    assert (elsewhere["license"], elsewhere["license_link"]) == ("other", "https://example.org/terms")
    assert front_matter(OFFICIAL)["source_datasets"] == ["extended|McGill-NLP/agent-reward-bench"]


def test_a_card_for_a_repository_loads_the_dataset_by_its_name():
    card = card_for(render_card(OWN), "ada/judged")
    assert card.count('load_dataset("ada/judged"') == 2 and 'load_dataset("own"' not in card


def test_a_blind_dataset_says_what_it_hides_and_what_not():
    assert "**Blind**" not in render_card(OWN)
    card = render_card(replace(OWN, is_blind=True))
    assert "**Blind**" in card and "What agents wrote" in card
