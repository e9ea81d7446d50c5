"""What must not be published is caught wherever it is planted, and not repeated."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset_script.schema import CONFIGURATIONS, arrow_schema
from dataset_script.verify.check import verify
from dataset_script.verify.manifest import lines
from dataset_script.verify.rows import Forbidden
from tests.support.verify_reports import DEV, TEST, codes, found

STRUCTURES = [
    '{"cum_reward": 1.0}',
    '{\\"reward\\": 1.0}',  # JSON inside a string of JSON
    "{'raw_reward' : 0.0}",  # a dictionary that Python has printed
    '{"n": 3, "CUM_RAW_REWARD":null',  # cut off
]
WORDS = ["cum_raw_reward", "Cum_Reward=1", '{"cum_reward": total}', 'info["cum_reward"]']
PAGE_OR_MODEL = [
    *(("trajectories", name) for name in ("goal", "final_axtree", "final_axtree_pruned")),
    *(("trajectories_with_screenshot", name) for name in ("goal", "final_axtree")),
    *(("steps", name) for name in ("url", "action", "reasoning", "axtree", "last_action_error")),
    ("judgments", "reply"),
]
OURS = [
    *(("trajectories", name) for name in ("benchmark", "agent", "model")),
    *(("steps", "focused_element"), ("annotations", "annotator"), ("judgments", "judge_model")),
    ("tasks", "category"),
]


def file_of(configuration, split="dev"):
    return f"data/{configuration}/{split}-00000-of-00001.parquet"


def place_of(configuration, column):
    row = {"tasks": "shop.1", "steps": f"{DEV}, step 0"}.get(configuration, DEV)
    return f"{row}: {column}" if configuration == "steps" else f"{row}, {column}"


@pytest.mark.parametrize(
    ("configuration", "column", "text"),
    [
        *((*place, STRUCTURES[0]) for place in PAGE_OR_MODEL + OURS),
        *(("steps", column, text) for column in ("reasoning", "axtree") for text in STRUCTURES[1:]),
    ],
)
def test_a_reward_as_a_field_is_an_error_in_every_column(published, own_suite, configuration, column, text):
    published.rows[configuration, "dev"][0][column] = f"seen: {text} there"
    report = verify(published.write(), suite=own_suite)
    assert found(report)["reward", file_of(configuration)] == (place_of(configuration, column),)
    assert not report.ok


@pytest.mark.parametrize("field", ["reasoning", "action", "url", "last_action_error", "focused_element"])
def test_a_reward_as_a_field_is_an_error_inside_the_list_of_steps(published, own_suite, field):
    published.rows["trajectories", "test"][0]["steps"][1][field] = '{"cum_reward": 0}'
    report = verify(published.write(), suite=own_suite)
    assert found(report)["reward", file_of("trajectories", "test")] == (f"{TEST}, step 1: steps.{field}",)


@given(
    st.sampled_from(["cum_reward", "cum_raw_reward", "Cum_Reward", "reward", "raw_reward"]),
    st.one_of(st.floats(), st.integers(), st.booleans(), st.none(), st.text(), st.lists(st.integers())),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
    st.sampled_from([None, 2]),
    st.integers(0, 3),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_a_reward_is_a_field_however_it_is_written(key, value, others, indent, escapes, is_python):
    content = {"summary": {**others, key: value}}
    text = str(content) if is_python else json.dumps(content, indent=indent)
    for _ in range(escapes):
        text = json.dumps(text)
    cell = f"It said: {text}, so.".encode("utf-8", "replace")
    assert "reward" in dict(Forbidden().found_in(cell, "reasoning"))
    assert Forbidden().is_suspect(cell, "reasoning")


@pytest.mark.parametrize(
    ("configuration", "column", "text"),
    [*((*place, WORDS[0]) for place in PAGE_OR_MODEL), *(("steps", "reasoning", text) for text in WORDS[1:])],
)
def test_words_of_a_page_or_a_model_are_a_warning_with_trajectory_and_step(
    published, own_suite, configuration, column, text
):
    published.rows[configuration, "dev"][0][column] = text
    report = verify(published.write(), suite=own_suite)
    step = "step 0: " if configuration == "steps" else ""
    names = found(report)["reward_words", DEV]
    assert names == (f"{configuration}, {step}{column}",)
    assert "reward" not in codes(report)
    assert report.ok or column.startswith("final_")  # which has to be that of the last step


@pytest.mark.parametrize(("configuration", "column"), OURS)
def test_words_where_no_page_and_no_model_writes_are_an_error(published, own_suite, configuration, column):
    published.rows[configuration, "dev"][0][column] = "cum_raw_reward"
    report = verify(published.write(), suite=own_suite)
    assert found(report)["reward", file_of(configuration)] == (place_of(configuration, column),)


@pytest.mark.parametrize("line", ["StaticText '{line}'", "\t[a12] textbox '' value='{line}', focused"])
@pytest.mark.parametrize("text", ['{"cum_reward": 1.0}', '{"chat_messages": []}', '"reward": 1'])
def test_what_a_page_shows_is_no_structure(published, own_suite, line, text):
    published.rows["steps", "dev"][1]["axtree"] = f"RootWebArea 'GitLab'\n{line.format(line=text)}\n"
    report = verify(published.write(), suite=own_suite)
    code = "prompt_words" if "chat" in text else "reward_words"
    assert found(report) == {(code, DEV): ("steps, step 1: axtree",)}
    assert report.ok


def test_a_field_beside_the_lines_of_a_tree_is_an_error(published, own_suite):
    tree = "RootWebArea 'Shop'\n\tlink 'cum_reward'\n{\"cum_reward\": 1.0}\n"
    published.rows["steps", "dev"][1]["axtree"] = tree
    assert found(verify(published.write(), suite=own_suite))["reward", file_of("steps")] == (
        f"{DEV}, step 1: axtree",
    )


def test_words_about_rewards_are_no_reward_field(published, own_suite):
    for words in ("Reward points: 5", "Reward: 4", "my rewards", "https://shop/reward"):
        published.rows["judgments", "dev"][0]["reply"] = words
        assert verify(published.write(), suite=own_suite).findings == ()


def test_a_judges_own_reward_in_json_is_words(published, own_suite):
    reply = '{"Thought": "It bought it.", "%s": 5, "trajectory_success": "Successful"}'
    published.rows["judgments", "test"][0]["reply"] = reply % "Reward"
    published.rows["judgments", "dev"][0]["reply"] = reply % "reward"
    report = verify(published.write(), suite=own_suite)
    places = ("judgments, reply",)
    assert found(report) == {("reward_words", DEV): places, ("reward_words", TEST): places}


def test_warnings_about_words_are_accepted_by_name(published, own_suite):
    for row in (0, 1):
        published.rows["steps", "dev"][row]["axtree"] = "StaticText 'cum_reward += reward'"
    published.rows["steps", "test"][0]["axtree"] = "StaticText 'cum_reward'"
    folder = published.write()
    one, other = f"reward_words:{DEV}", f"reward_words:{TEST}"
    report = verify(folder, suite=own_suite, accept=[one, f"reward_words:{DEV}x"])
    assert (report.accepted, report.to_accept) == ((one,), (other,))
    assert found(report)["reward_words", DEV] == ("steps, step 0: axtree", "steps, step 1: axtree")
    assert found(report)["unused_acceptance", f"reward_words:{DEV}x"] == ()
    text = list(lines(report))
    assert f"accepted: {DEV}: text of a page or a model contains a program's name for rewards (2)" in text
    assert f"to publish, review the warning, then add: --accept {other}" in text
    assert verify(folder, suite=own_suite, accept=[one, other]).to_accept == ()


@pytest.mark.parametrize("name", [f"reward:{DEV}", f"canary:{DEV}", "reward_words", "reward_words:", DEV])
def test_nothing_but_words_can_be_accepted(published, own_suite, name):
    with pytest.raises(ValueError, match="fix errors instead"):
        verify(published.write(), suite=own_suite, accept=[name])


def test_an_acceptance_does_not_cover_a_field_or_a_canary_of_the_same_trajectory(published, own_suite):
    published.rows["steps", "dev"][0]["axtree"] = "StaticText 'cum_reward'"
    published.rows["steps", "dev"][1]["reasoning"] = '{"cum_reward": 1.0}'
    published.rows["steps", "dev"][1]["axtree"] = "StaticText 'canary 7c1f'"
    accept = [f"reward_words:{DEV}"]
    report = verify(published.write(), suite=own_suite, canaries=["canary 7c1f"], accept=accept)
    assert codes(report) == {"reward_words", "reward", "canary"}
    assert not report.ok


@pytest.mark.parametrize("key", ["cum_reward", "trajectory_success", "chat_messages"])
@pytest.mark.parametrize("is_column", [False, True])
def test_a_field_in_the_metadata_of_a_file_or_a_column_is_an_error(published, own_suite, key, is_column):
    def schema_of(configuration):
        schema = arrow_schema(configuration)
        if configuration != "trajectories":
            return schema
        if not is_column:
            return schema.with_metadata({**schema.metadata, key.encode(): b"1"})
        place = schema.get_field_index("goal")
        return schema.set(place, schema.field(place).with_metadata({key: "[1]"}))

    report = verify(published.write(schema_of), suite=own_suite)
    code = {"cum_reward": "reward", "trajectory_success": "test_label", "chat_messages": "prompt"}[key]
    place = "the metadata of goal" if is_column else "the file's metadata"
    assert found(report)["other_schema", file_of("trajectories", "test")] == (f"unexpected: {place}",)
    assert found(report)[code, file_of("trajectories", "test")] == (place,)
    assert not report.ok


@pytest.mark.parametrize(
    ("name", "code"), [("cum_reward", "reward"), ("success", "test_label"), ("prompt", "prompt")]
)
def test_a_column_that_does_not_belong_says_what_it_holds(published, own_suite, name, code):
    def schema_of(configuration):
        schema = arrow_schema(configuration)
        return schema.append(pa.field(name, pa.float64())) if configuration == "steps" else schema

    report = verify(published.write(schema_of), suite=own_suite)
    assert found(report)[code, file_of("steps", "test")] == (f"the column {name}",)
    assert ("other_schema", file_of("steps", "test")) in found(report)


def test_a_reward_in_the_manifest_is_an_error(published, own_suite):
    folder = published.write()
    published.manifest["source"]["summary"] = {"cum_reward": 1.0}
    published.write_manifest()
    assert found(verify(folder, suite=own_suite)) == {("reward", "manifest.json"): ("content",)}


def test_a_label_as_a_field_is_an_error_on_test_alone(published, own_suite):
    for split in ("dev", "test"):
        published.rows["steps", split][0]["reasoning"] = '{"trajectory_success": "Successful"}'
    report = verify(published.write(), suite=own_suite)
    assert found(report) == {("test_label", file_of("steps", "test")): (f"{TEST}, step 0: reasoning",)}


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
            if column.type == "string" and column.name not in ("trajectory_id", "split", "benchmark", "task"):
                rows[0][column.name] = f"so {canary}!"
                expected.add((configuration, split, column.name))
    report = verify(published.write(), suite=own_suite, canaries=["another one", canary])
    names = {
        (finding.file.split("/")[1], finding.file.split("/")[2][:4].rstrip("-"), name.split()[-3].rstrip(":"))
        for finding in report.findings
        if finding.code == "canary"
        for name in finding.names
    }
    assert names == expected
    assert all(canary not in line for line in lines(report))


@pytest.mark.parametrize("name", ["README.md", "croissant.json"])
def test_a_canary_beside_the_data_is_caught(published, own_suite, name):
    folder = published.write()
    content = (folder / name).read_text() if (folder / name).exists() else ""
    (folder / name).write_text(content + "canary 7c1f")
    report = verify(folder, suite=own_suite, canaries=["canary 7c1f"])
    assert found(report)["canary", name] == ("content: canary 1",)


def test_a_canary_too_short_to_mean_anything_is_refused(published):
    with pytest.raises(ValueError, match="at least 6"):
        verify(published.write(), canaries=["a"])


TRACE = 'Traceback (most recent call last):\n  File "/home/ada/agent.py", line 7, in run'
MACHINE_PATHS = ["/home/ada/runs/1", "saved to /root/x", "C:\\Users\\ada", "(/Users/ada/x)"]


@pytest.mark.parametrize(
    ("code", "configuration", "column", "value"),
    [
        ("annotator_name", "annotations", "annotator", "Ada"),
        ("prompt", "steps", "reasoning", '{"chat_messages": []}'),
        ("machine_path", "steps", "last_action_error", TRACE),
        *(("machine_path", "steps", "focused_element", path) for path in MACHINE_PATHS),
    ],
)
def test_names_prompts_and_paths_of_a_machine_are_caught_and_not_repeated(
    published, own_suite, code, configuration, column, value
):
    published.rows[configuration, "dev"][1][column] = value
    report = verify(published.write(), suite=own_suite)
    assert codes(report) == {code}
    assert column in str(report.as_json()) and value not in str(report.as_json())


@pytest.mark.parametrize("path", ['<a href="/home/index">', "Error: /home/ada/runs/1", "(/Users/ada/x)"])
def test_a_path_in_an_error_of_the_browser_is_a_warning(published, own_suite, path):
    published.rows["steps", "dev"][1]["last_action_error"] = f"Error: {path} intercepts pointer events"
    report = verify(published.write(), suite=own_suite)
    assert found(report) == {("path_words", DEV): ("steps, step 1: last_action_error",)}
    assert report.ok


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
