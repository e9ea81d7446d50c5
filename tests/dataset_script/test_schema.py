import json

import pytest
from datasets import ClassLabel, Features, Image, List, Value

from dataset_script.schema import CONFIGURATIONS, DEFAULT, STEP_FIELDS, arrow_schema, features

ANSWERS = {
    "success": ClassLabel(names=["unsuccessful", "successful"]),
    "side_effect": ClassLabel(names=["no", "yes"]),
    "repetition": ClassLabel(names=["no", "yes"]),
    "optimality": Value("int8"),
}
STEP = {"num": Value("int32")} | {
    name: Value("string")
    for name in ("url", "action", "reasoning", "last_action_error", "focused_element", "text")
}
TEXTS = ("trajectory_id", "benchmark", "agent", "model", "task_id", "goal")
TRAJECTORY = (
    {name: Value("string") for name in TEXTS}
    | {"n_steps": Value("int32"), "steps": List(STEP)}
    | {name: Value("string") for name in ("final_axtree", "final_axtree_pruned", "answer")}
    | ANSWERS
)


def test_the_configurations_are_those_of_the_contract_the_text_one_first():
    assert list(CONFIGURATIONS) == [
        "trajectories",
        "trajectories_with_screenshot",
        "steps",
        "annotations",
        "judgments",
        "rewards",
        "tasks",
        "usage",
    ]
    assert DEFAULT == "trajectories"
    assert {name for name, found in CONFIGURATIONS.items() if found.splits == ("dev",)} == {"annotations"}
    assert {name for name, found in CONFIGURATIONS.items() if found.has_images} == {
        "trajectories_with_screenshot",
        "steps",
    }


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        ("trajectories", TRAJECTORY),
        (
            "trajectories_with_screenshot",
            TRAJECTORY | {"final_screenshot": Image(), "goal_images": List(Image())},
        ),
        (
            "steps",
            {"trajectory_id": Value("string")}
            | STEP
            | {"axtree": Value("string"), "axtree_pruned": Value("string"), "screenshot": Image()}
            | {"box": List(Value("float64"))},
        ),
        (
            "annotations",
            {"trajectory_id": Value("string"), "annotation": Value("int8"), "annotator": Value("string")}
            | ANSWERS,
        ),
        (
            "judgments",
            {name: Value("string") for name in ("trajectory_id", "judge", "judge_model")}
            | {"has_screenshot": Value("bool"), "has_axtree": Value("bool"), "state": Value("string")}
            | ANSWERS
            | {"reply": Value("string")},
        ),
        (
            "rewards",
            {
                "trajectory_id": Value("string"),
                "cum_reward": Value("float64"),
                "rule_based": ANSWERS["success"],
            },
        ),
        (
            "tasks",
            {name: Value("string") for name in ("task", "benchmark", "split")}
            | {"sites": List(Value("string")), "evaluation_types": List(Value("string"))}
            | {"difficulty": Value("string"), "category": Value("string")},
        ),
        (
            "usage",
            {"trajectory_id": Value("string"), "state": Value("string")}
            | {name: Value("int64") for name in ("input_tokens", "output_tokens")}
            | {name: Value("float64") for name in ("cost_usd", "seconds")},
        ),
    ],
)
def test_the_features_are_the_contracts_columns_with_their_types(configuration, expected):
    assert features(configuration) == Features(expected)
    assert list(features(configuration)) == list(expected)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_the_parquet_schema_is_that_of_the_features_and_carries_them(configuration):
    schema = arrow_schema(configuration)
    assert schema.equals(features(configuration).arrow_schema, check_metadata=False)
    carried = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
    assert Features.from_dict(carried) == features(configuration)
    assert '"_type": "List"' not in json.dumps(carried)  # a word that datasets 2 and 3 do not know


def test_no_column_but_those_of_rewards_speaks_of_a_reward():
    for name, configuration in CONFIGURATIONS.items():
        columns = [field.name for column in configuration.columns for field in (column, *column.fields)]
        assert any("reward" in column for column in columns) == (name == "rewards")


def test_every_column_has_one_sentence_that_ends():
    for configuration in CONFIGURATIONS.values():
        for column in (*configuration.columns, *STEP_FIELDS):
            assert column.sentence.endswith(".")
            assert "|" not in column.sentence + column.type_description  # it would break the card's table
