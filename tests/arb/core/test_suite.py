"""dev_labels.csv is written as it is read.

The rules in a suite's suite.toml: read, defaulted, and refused with every problem at once.
"""

import csv
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suite import (
    SHIPPED,
    SuiteError,
    SuiteRules,
    load_dev_labels,
    load_suite,
    read_rules,
    render_dev_labels,
    shipped_suites,
)
from arb.core.suites.targets import default_targets
from tests.support.annotations import by, success_of
from tests.support.small_suite import suite_with

ANSWERS = st.sampled_from(("yes", "no", "unsure"))


def test_the_samples_own_file_comes_out_byte_for_byte():
    suite = load_suite("sample")
    said = load_dev_labels(suite)
    shipped = (SHIPPED / "sample" / "dev_labels.csv").read_text(encoding="utf-8")
    assert render_dev_labels(reversed(said), suite.targets) == shipped


@given(st.lists(st.builds(by, st.just("shop/a/shop.1"), st.none() | st.just("annotator-3"), ANSWERS, ANSWERS,
                          ANSWERS, st.sampled_from(("1", "4", "unsure")), annotation=st.integers(1, 9)),
                unique_by=lambda row: row.annotation, max_size=9))  # fmt: skip
def test_what_is_written_is_read_again(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "trajectories.csv").write_text("trajectory_id,split\nshop/a/shop.1,dev\nshop/a/shop.2,test\n")
    rows = [
        *(row for row in rows if row.annotation != 1),
        by("shop/a/shop.1", None, "yes", "unsure", "no", "4"),
    ]
    (folder / "dev_labels.csv").write_text(render_dev_labels(rows, default_targets()), encoding="utf-8")
    assert load_dev_labels(load_suite(folder)) == tuple(sorted(rows, key=lambda row: row.annotation))


def test_what_is_left_out_has_its_default():
    assert read_rules({}) == SuiteRules()
    assert read_rules({"files_a_day": 3, "private_noise": 4, "age_exempt": ["ada"]}) == SuiteRules(
        files_a_day=3, private_noise=4, age_exempt=("ada",)
    )


def test_every_problem_is_reported_at_once():
    said = {"files_a_day": "two", "private_noise": -1, "age_exempt": "ada", "ranking_half": 1, "speed": 9}
    said["reserved_share"] = 1.5
    with pytest.raises(ValueError) as refused:
        read_rules(said)
    message = str(refused.value)
    for rule, words in (
        ("files_a_day", "whole number"),
        ("private_noise", "number from 0"),
        ("age_exempt", "list of names"),
        ("ranking_half", "true or false"),
        ("speed", "there is no such rule"),
        ("reserved_share", "from 0 to 1"),
    ):
        assert f"rules.{rule}" in message and words in message
    with pytest.raises(ValueError, match=r"\[rules\]"):
        read_rules(3)


def test_a_suite_has_the_rules_of_its_file(tmp_path):
    suite = suite_with(tmp_path, 'labels = "private"\n[rules]\nfiles_a_year = 7\n')
    assert suite.rules == SuiteRules(files_a_year=7)


def test_a_suite_may_name_its_format_and_a_newer_one_is_refused_with_one_sentence(tmp_path):
    assert suite_with(tmp_path, "format = 1") == suite_with(tmp_path, "")
    with pytest.raises(SuiteError) as refused:
        suite_with(tmp_path, "format = 2\nwhat_is_new = true")
    text = "suite.toml has format 2, but this program reads formats up to 1; upgrade it"
    assert str(refused.value) == text


OFFICIAL = load_suite()


def test_the_official_suite_has_the_papers_trajectories():
    assert len(OFFICIAL.trajectories) == 1302  # 196 + 1,106; paper, abstract
    assert (len(OFFICIAL.split("dev")), len(OFFICIAL.split("test"))) == (196, 1106)
    # four agents on 33 AssistantBench, 118 WorkArena and 100 WebArena tasks, three on 100 of VisualWebArena;
    # two WebArena runs of Llama are not there: 132 + 472 + 398 + 300 = 1,302
    folders = Counter(t.trajectory_id.split("/")[0] for t in OFFICIAL.trajectories)
    assert folders == {"assistantbench": 132, "workarena": 472, "webarena": 398, "visualwebarena": 300}


def test_trajectories_are_in_the_order_of_their_ids():
    ids = [t.trajectory_id for t in OFFICIAL.trajectories]
    assert ids == sorted(ids)
    assert len(set(ids)) == 1302


@pytest.mark.parametrize(
    ("spelled", "released"),
    [
        (
            "visualwebarena/GenericAgent-anthropic_claude-3.7-sonnet/visualwebarena.220",
            "visualwebarena/GenericAgent-anthropic_claude-3.7-sonnet/visualwebarena.resized.220",
        ),
        (
            "visualwebarena/GenericAgent-gpt-4o-2024-11-20/visualwebarena.resized.220",
            "visualwebarena/GenericAgent-gpt-4o-2024-11-20/visualwebarena.220",
        ),
        (
            "assistantbench/GenericAgent-gpt-4o-2024-11-20/assistantbench.validation.1",
            "assistantbench/GenericAgent-gpt-4o-2024-11-20/assistantbench.improved.validation.1",
        ),
    ],
)
def test_both_spellings_find_the_released_one(spelled, released):
    assert OFFICIAL.find(spelled).trajectory_id == released
    assert OFFICIAL.find(released).trajectory_id == released


def test_an_unknown_id_finds_nothing_and_an_unknown_split_is_refused():
    assert OFFICIAL.find("webarena/GenericAgent-gpt-4o-2024-11-20/webarena.999999") is None
    with pytest.raises(SuiteError, match="no split 'train'"):
        OFFICIAL.split("train")


def test_annotators_have_opaque_ids_and_never_names(suite, suite_folder):
    assert [said.annotator for said in load_dev_labels(suite)] == ["annotator-2", "annotator-1", None]
    path = suite_folder / "dev_labels.csv"
    path.write_text(path.read_text().replace("annotator-2", "Ada"))
    with pytest.raises(SuiteError, match=r"row 2, annotator: write an id such as annotator-1, not a name"):
        load_dev_labels(suite)


def test_six_suites_are_shipped_and_another_name_is_refused_with_their_names():
    names = ("agent-reward-bench", "devai", "localshop", "online-mind2web", "osreward", "sample")
    assert shipped_suites() == names
    with pytest.raises(SuiteError, match=", ".join(names)):
        load_suite("no-such-suite")


def test_every_bad_row_of_a_suite_is_named_at_once(tmp_path):
    rows = ["trajectory_id,split", "a/b/c,dev", "a/b,dev", "a/b/d,train", "a/b/c,dev", "a/x/c,test"]
    (tmp_path / "trajectories.csv").write_text("\n".join(rows))
    with pytest.raises(SuiteError) as error:
        load_suite(tmp_path)
    message = str(error.value)
    assert "row 3, trajectory_id 'a/b'" in message
    assert "row 4, split 'train'" in message
    assert "row 5, trajectory_id 'a/b/c': an earlier row has it" in message
    assert "task c: its runs are in both splits" in message


@pytest.mark.parametrize("text", ["", "trajectory_id\na/b/c\n", "trajectory_id,split\n"])
def test_a_suite_without_its_columns_or_rows_is_refused(tmp_path, text):
    (tmp_path / "trajectories.csv").write_text(text)
    with pytest.raises(SuiteError, match="needs the columns trajectory_id and split"):
        load_suite(tmp_path)


def test_the_one_unsure_dev_label_is_none():
    # released-data.md: GPT-4o on webarena.344, success and optimality
    unsure = [said for said in load_dev_labels(OFFICIAL) if said.is_primary and success_of(said) == "unsure"]
    assert [said.trajectory_id for said in unsure] == ["webarena/GenericAgent-gpt-4o-2024-11-20/webarena.344"]
    assert unsure[0].answers == {
        "success": "unsure", "side_effect": "no", "repetition": "no", "optimality": "unsure",
    }  # fmt: skip


def test_labels_are_read_in_any_spelling_and_given_in_the_released_one(suite_folder):
    path = suite_folder / "dev_labels.csv"
    path.write_text(path.read_text().replace("shop.resized.1", "shop.1"))
    said = load_dev_labels(load_suite(suite_folder))
    assert [(s.trajectory_id, s.annotation) for s in said] == [
        ("shop/GenericAgent-a/shop.1", 1),
        ("shop/GenericAgent-a/shop.1", 2),
        ("shop/GenericAgent-b/shop.resized.1", 1),
    ]
    answers = [said[0].answers[name] for name in ("success", "repetition", "optimality")]
    assert answers == ["yes", "unsure", "4"]


def test_a_suite_without_labels_has_none(suite_folder):
    (suite_folder / "dev_labels.csv").unlink()
    assert load_dev_labels(load_suite(suite_folder)) == ()


def test_a_label_of_a_test_trajectory_is_refused_and_not_repeated(suite_folder):
    with (suite_folder / "dev_labels.csv").open("a") as file:
        file.write("shop/GenericAgent-a/shop.2,1,true,true,true,3\n")
    with pytest.raises(SuiteError, match=r"dev_labels.csv: row 5, .*a test trajectory") as error:
        load_dev_labels(load_suite(suite_folder))
    assert "true" not in str(error.value)


def test_every_bad_row_of_the_labels_is_named_at_once(suite_folder):
    rows = [
        "trajectory_id,annotation,success,side_effect,repetition,optimality",
        "shop/GenericAgent-a/shop.1,1,yes,false,false,1",
        "shop/GenericAgent-z/shop.1,1,true,false,false,1",
        "shop/GenericAgent-b/shop.1,2,true,false,false,1",
        "shop/GenericAgent-b/shop.1,2,true,false,false,5",
        "shop/GenericAgent-a/shop.1,0,true,false",
    ]
    (suite_folder / "dev_labels.csv").write_text("\n".join(rows))
    with pytest.raises(SuiteError) as error:
        load_dev_labels(load_suite(suite_folder))
    message = str(error.value)
    for part in (
        "row 2, success: write one of true, false, or leave it empty",
        "row 3, trajectory_id 'shop/GenericAgent-z/shop.1': not in the suite own-suite",
        "row 5, optimality",
        "row 6, annotation",
        "row 6, repetition",
        "row 6, optimality",
    ):
        assert part in message


def test_labels_given_twice_or_without_a_primary_one_are_refused(suite_folder):
    path = suite_folder / "dev_labels.csv"
    whole = path.read_text()
    path.write_text(whole + whole.splitlines()[1] + "\n")
    with pytest.raises(SuiteError, match=r"row 5: annotation 1 of shop/GenericAgent-a/shop.1 is given twice"):
        load_dev_labels(load_suite(suite_folder))
    path.write_text("\n".join(line for line in whole.splitlines() if "shop.1,1," not in line))
    with pytest.raises(SuiteError, match=r"shop/GenericAgent-a/shop.1: has no annotation 1"):
        load_dev_labels(load_suite(suite_folder))


def test_labels_without_their_columns_are_refused(suite_folder):
    (suite_folder / "dev_labels.csv").write_text("trajectory_id,success\n")
    absent = "columns annotation, side_effect, repetition, optimality are missing"
    with pytest.raises(SuiteError, match=absent):
        load_dev_labels(load_suite(suite_folder))


@pytest.fixture
def usual_field_limit():
    """The csv module's limit holds for the whole process, and others may have raised it."""
    before = csv.field_size_limit(131_072)
    yield
    csv.field_size_limit(before)


@pytest.mark.usefixtures("usual_field_limit")
@pytest.mark.parametrize("name", ["trajectories.csv", "dev_labels.csv"])
@pytest.mark.parametrize("damage", [b"\xff\xfe", b'"' + b"x" * 200_000], ids=["UTF-16", "endless field"])
def test_files_that_are_no_csv_in_utf_8_are_refused_by_name(suite_folder, name, damage):
    path = suite_folder / name
    path.write_bytes(path.read_bytes() + damage)
    with pytest.raises(SuiteError, match=f"{name}: cannot be read .*save it as CSV in UTF-8"):
        load_dev_labels(load_suite(suite_folder))


def test_files_saved_with_a_byte_order_mark_are_read(suite_folder):
    for name in ("trajectories.csv", "dev_labels.csv"):
        path = suite_folder / name
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert len(load_dev_labels(load_suite(suite_folder))) == 3


@pytest.mark.parametrize(
    ("said", "expected"), [('labels = "public"', True), ('labels = "private"', False), ("", False)]
)
def test_a_suite_says_whether_its_labels_are_public_and_by_default_hides_them(tmp_path, said, expected):
    assert suite_with(tmp_path, said).labels_are_public is expected


@pytest.mark.parametrize("said", ['labels = "pubic"', "labels = true", "labels"])
def test_a_suite_that_is_unclear_about_its_labels_is_refused_with_what_to_write(tmp_path, said):
    with pytest.raises(SuiteError, match=r"suite\.toml"):
        suite_with(tmp_path, said)


def test_the_official_labels_are_public():
    assert load_suite().labels_are_public
