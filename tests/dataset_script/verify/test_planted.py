"""What must not be published is caught wherever it is planted, and not repeated."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dataset_script.schema import CONFIGURATIONS
from dataset_script.verify.check import verify
from dataset_script.verify.manifest import lines

DEV = "shop/Agent-a/shop.1"
TEST = "shop/Agent-a/shop.2"


def found(report):
    """Codes with the file and the names in it."""
    return {(finding.code, finding.file): finding.names for finding in report.findings}


def codes(report):
    return {finding.code for finding in report.findings}


REWARDING = [
    '{"cum_reward": 1.0}',
    "cum_raw_reward",
    '{\\"reward\\": 1.0}',
    "{'reward' : 0.0}",
    "Cum_Reward=1",
]


@pytest.mark.parametrize("text", REWARDING)
@pytest.mark.parametrize(
    ("configuration", "column"),
    [
        (name, column.name)
        for name, configuration in CONFIGURATIONS.items()
        for column in configuration.columns
        if column.is_text
        and name != "rewards"
        and column.name in ("goal", "axtree", "reply", "category", "annotator", "final_axtree")
    ],
)
def test_a_planted_reward_is_caught_in_every_text_column(published, own_suite, configuration, column, text):
    published.rows[configuration, "dev"][0][column] = f"seen: {text} there"

    report = verify(published.write(), suite=own_suite)

    assert found(report)["reward", f"data/{configuration}/dev-00000-of-00001.parquet"] == (column,)
    assert not report.ok


@pytest.mark.parametrize("field", ["reasoning", "action", "url", "last_action_error", "focused_element"])
def test_a_planted_reward_is_caught_inside_the_list_of_steps(published, own_suite, field):
    published.rows["trajectories", "test"][0]["steps"][1][field] = '{"cum_reward": 0}'

    report = verify(published.write(), suite=own_suite)

    assert found(report)["reward", "data/trajectories/test-00000-of-00001.parquet"] == (f"steps.{field}",)


def test_words_about_rewards_are_no_reward_field(published, own_suite):
    for words in ("Reward points: 5", "Reward: 4", "my rewards", "https://shop/reward"):
        published.rows["judgments", "dev"][0]["reply"] = words
        assert verify(published.write(), suite=own_suite).ok


def test_an_agents_prompt_is_caught(published, own_suite):
    published.rows["steps", "dev"][2]["reasoning"] = '{"chat_messages": []}'

    assert "prompt" in codes(verify(published.write(), suite=own_suite))


@pytest.mark.parametrize("label", ["success", "side_effect", "repetition", "optimality"])
@pytest.mark.parametrize("configuration", ["trajectories", "trajectories_with_screenshot"])
def test_a_planted_test_label_is_caught_and_not_repeated(published, own_suite, configuration, label):
    published.rows[configuration, "test"][0][label] = 1

    report = verify(published.write(), suite=own_suite)

    assert found(report) == {("test_label", f"data/{configuration}/test-00000-of-00001.parquet"): (label,)}
    assert "successful" not in str(report.as_json())


def test_an_annotation_of_a_test_trajectory_is_caught(published, own_suite):
    published.rows["annotations", "dev"][0]["trajectory_id"] = TEST

    report = verify(published.write(), suite=own_suite)

    assert found(report)["wrong_split", "data/annotations/dev"] == (TEST,)
    assert "task_in_both_splits" in codes(report)


def test_a_file_of_test_annotations_is_caught(published, own_suite):
    published.rows["annotations", "test"] = published.rows["annotations", "dev"]

    assert "bad_name" in codes(verify(published.write(), suite=own_suite))


def test_an_image_swapped_in_the_file_is_caught_by_the_manifest(published, own_suite):
    folder = published.write()
    name = "data/steps/dev-00000-of-00001.parquet"
    table = pq.read_table(folder / name)
    shots = table.column("screenshot").to_pylist()
    shots[0], shots[1] = shots[1], shots[0]
    place = table.schema.get_field_index("screenshot")
    pq.write_table(
        table.set_column(place, table.schema.field(place), pa.array(shots, table.schema.field(place).type)),
        folder / name,
        row_group_size=3,
    )

    report = verify(folder, suite=own_suite)

    assert "SHA-256" in found(report)["other_bytes", name]


@pytest.mark.parametrize("configuration", ["trajectories_with_screenshot", "steps"])
def test_a_swapped_final_image_is_caught_even_with_an_honest_manifest(published, own_suite, configuration):
    column = "screenshot" if configuration == "steps" else "final_screenshot"
    rows = published.rows[configuration, "dev"]
    rows[-1][column], rows[0][column] = rows[0][column], rows[-1][column]

    report = verify(published.write(), suite=own_suite)

    assert codes(report) == {"configurations_disagree"}
    assert (
        f"{DEV.replace('Agent-a', 'Agent-b')}: final_screenshot"
        in found(report)["configurations_disagree", "data"]
    )


@pytest.mark.parametrize("configuration", list(CONFIGURATIONS))
def test_a_duplicated_id_is_caught_in_every_configuration(published, own_suite, configuration):
    rows = published.rows[configuration, "dev"]
    rows.append(dict(rows[0]))

    report = verify(published.write(), suite=own_suite)

    assert ("duplicate_id", f"data/{configuration}/dev-00000-of-00001.parquet") in found(report)


def test_another_spelling_of_an_id_is_the_same_id(published, own_suite):
    rows = published.rows["rewards", "dev"]
    rows.append(rows[0] | {"trajectory_id": DEV.replace("shop.1", "shop.resized.1")})

    assert "duplicate_id" in codes(verify(published.write(), suite=own_suite))


def test_a_task_in_both_splits_is_caught(published):
    for (_, split), rows in published.rows.items():
        if split == "test":
            for row in rows:
                if "trajectory_id" in row:
                    row["trajectory_id"] = "shop/Agent-c/shop.1"

    report = verify(published.write())

    assert found(report)["task_in_both_splits", "data"] == ("shop.1",)
    assert not report.ok


def test_a_canary_is_caught_in_every_text_column_and_named_by_its_number(published, own_suite):
    canary = "canary 7c1f"
    expected = set()
    for (configuration, split), rows in published.rows.items():
        for column in CONFIGURATIONS[configuration].columns:
            if column.is_text and column.name not in ("trajectory_id", "split", "benchmark", "task"):
                rows[0][column.name] = f"so {canary}!"
                expected.add((configuration, split, column.name))

    report = verify(published.write(), suite=own_suite, canaries=["another one", canary])

    names = {
        (finding.file.split("/")[1], finding.file.split("/")[2][:4].rstrip("-"), name.split(":")[0])
        for finding in report.findings
        if finding.code == "canary"
        for name in finding.names
    }
    assert names == expected
    assert all(canary not in line for line in lines(report))


def test_a_canary_in_the_card_is_caught(published, own_suite):
    folder = published.write()
    (folder / "README.md").write_text((folder / "README.md").read_text() + "canary 7c1f")

    assert found(verify(folder, suite=own_suite, canaries=["canary 7c1f"]))["canary", "README.md"] == (
        "text: canary 1",
    )


def test_a_canary_too_short_to_mean_anything_is_refused(published):
    with pytest.raises(ValueError, match="at least 6"):
        verify(published.write(), canaries=["a"])


def test_annotators_by_name_are_caught(published, own_suite):
    published.rows["annotations", "dev"][1]["annotator"] = "Ada"

    report = verify(published.write(), suite=own_suite)

    assert codes(report) == {"annotator_name"}
    assert "Ada" not in str(report.as_json())


@pytest.mark.parametrize("path", ["/home/ada/runs/1", "saved to /root/x", "C:\\Users\\ada", "(/Users/ada/x)"])
def test_a_path_of_the_machine_is_caught_where_no_page_and_no_model_wrote_it(published, own_suite, path):
    published.rows["steps", "dev"][1]["last_action_error"] = f"Error: {path}"

    report = verify(published.write(), suite=own_suite)

    assert codes(report) == {"machine_path"}


def test_a_path_on_a_page_or_in_an_address_is_no_path_of_the_machine(published, own_suite):
    published.rows["steps", "dev"][1]["axtree"] = "cd /home/git/gitlab"
    published.rows["steps", "dev"][1]["last_action_error"] = "at http://shop/home/x, see ./root/x"

    assert verify(published.write(), suite=own_suite).ok


def test_the_path_inside_an_image_cell_is_caught(published, own_suite):
    published.rows["steps", "dev"][1]["screenshot"]["path"] = "runs/1/screenshot.png"

    assert codes(verify(published.write(), suite=own_suite)) == {"machine_path"}


@pytest.mark.parametrize("content", [b"", b"no image", None])
@pytest.mark.parametrize(
    ("configuration", "column"),
    [
        ("steps", "screenshot"),
        ("trajectories_with_screenshot", "final_screenshot"),
        ("trajectories_with_screenshot", "goal_images"),
    ],
)
def test_an_image_that_cannot_be_decoded_is_caught(published, own_suite, configuration, column, content):
    cell = {"bytes": content, "path": None}
    published.rows[configuration, "test"][0][column] = [cell] if column == "goal_images" else cell

    assert "bad_image" in codes(verify(published.write(), suite=own_suite))


def test_an_image_cut_in_the_middle_is_caught(published, own_suite):
    image = published.rows["steps", "dev"][0]["screenshot"]
    image["bytes"] = image["bytes"][:-20]

    assert codes(verify(published.write(), suite=own_suite)) == {"bad_image"}
