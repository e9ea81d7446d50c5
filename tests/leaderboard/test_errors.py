import csv
import dataclasses
import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.settings import Settings
from arb.core.suite import load_suite
from arb.core.suites.profile import read_profile
from leaderboard.board.export import inert
from leaderboard.errors import (
    CATEGORIES,
    NOTE_LENGTH,
    Category,
    ErrorsHidden,
    ErrorTagInvalid,
    categories_of,
    compare_taggers,
    count_tags,
    current_tags,
    error_queue,
    make_tag,
    tags_to_csv,
)
from leaderboard.labels.labels import load_labels

# In the order of the split; labels: yes, no, no, unsure.
IDS = [
    "visualwebarena/agent-a/visualwebarena.resized.7",
    "visualwebarena/agent-b/visualwebarena.7",
    "workarena/agent-a/workarena.servicenow.order-l2",
    "workarena/agent-b/workarena.servicenow.order-l2",
]
WORDS = ["Successful", "Unsuccessful", "Unsuccessful", "Unsure"]


@pytest.fixture
def public(small_suite):
    return dataclasses.replace(small_suite, labels_are_public=True)


@pytest.fixture
def labels(small_suite, write_annotations):
    rows = [(name, word, "No", "Unsure", "No") for name, word in zip(IDS, WORDS, strict=True)]
    rows.append(("webarena/agent-a/webarena.1", "Successful", "No", "Unsure", "No"))
    settings = Settings(labels=f"csv:{write_annotations(rows)}")
    return lambda split="test": load_labels(small_suite, split, settings)


def column(*verdicts) -> np.ndarray:
    return np.array(verdicts, dtype=np.int8)


def test_errors_come_with_the_share_of_other_judges_that_got_them_right_highest_first(public, labels):
    others = [column(0, 0, 0, 1), column(1, 0, 1, 1), column(-1, 0, 1, 1)]
    found = error_queue(public, labels(), "success", column(0, 1, 1, 1), others)
    assert [(e.trajectory_id, e.kind, e.others_right, e.others, e.priority) for e in found] == [
        (IDS[1], "false positive", 3, 3, 1.0),
        (IDS[0], "false negative", 1, 2, 0.5),  # the third judge gave no verdict
        (IDS[2], "false positive", 1, 3, 1 / 3),
    ]
    assert (found[2].benchmark, found[2].agent) == ("workarena++", "agent-a")


def test_right_verdicts_missing_ones_and_unsure_labels_are_no_errors(public, labels):
    assert error_queue(public, labels(), "success", column(1, 0, -1, 1)) == ()


def test_among_equals_more_judges_then_the_id_decide(public, labels):
    others = [column(-1, 0, 0, 0), column(1, 0, 0, 0)]
    found = error_queue(public, labels(), "success", column(0, 1, 1, 1), others)
    assert [e.trajectory_id for e in found] == [IDS[1], IDS[2], IDS[0]]


def test_errors_of_test_are_hidden_where_its_labels_are_and_those_of_dev_never(small_suite, public, labels):
    with pytest.raises(ErrorsHidden, match="the test labels of small are hidden"):
        error_queue(small_suite, labels(), "success", column(0, 1, 1, 1))
    (found,) = error_queue(small_suite, labels("dev"), "success", column(0, 0))
    assert found.trajectory_id == "webarena/agent-a/webarena.1"
    assert [suite.shows_labels(split) for suite in (small_suite, public) for split in ("dev", "test")] == [
        True, False, True, True,
    ]  # fmt: skip


def test_columns_of_another_length_are_refused(public, labels):
    with pytest.raises(ValueError, match=r"^verdicts: got \[3\] rows, but test has 4"):
        error_queue(public, labels(), "success", column(0, 1, 1, 1), [column(0, 0, 0)])


def test_an_error_shows_no_label(public, labels):
    (found,) = error_queue(public, labels(), "success", column(0, 0, 0, 0))
    assert repr(found) == f"WrongVerdict({IDS[0]!r})"


def test_the_papers_four_categories_are_there_each_described_in_a_sentence():
    assert [category.title for category in CATEGORIES.values()] == [
        "Grounding mismatch",
        "Misleading agent reasoning",
        "Missed instruction details",
        "Misunderstood action intent",
    ]
    assert all(category.description.endswith(".") for category in CATEGORIES.values())


AT = datetime(2026, 1, 1, tzinfo=UTC)
RUN = "webarena/agent-a/webarena.{}"


def tag(number=0, category="grounding_mismatch", tagger="ada", judge="judge-1", minute=0, **more):
    fields = {"trajectory_id": RUN.format(number), "judge": judge, "tagger": tagger, "category": category}
    return make_tag(**{**fields, "at": AT + timedelta(minutes=minute), **more})


def test_a_tag_has_a_category_of_the_paper_or_one_of_ones_own():
    for category in (*CATEGORIES, "login_wall", "captcha2"):
        assert tag(category=category).category == category


def test_every_problem_of_a_tag_is_named_by_field():
    with pytest.raises(ErrorTagInvalid) as refusal:
        make_tag(
            trajectory_id="webarena.1", judge="j" * 121, tagger=" ", category="Login wall",
            note="\0", at="2026-01-01T00:00:00", score=1,
        )  # fmt: skip
    assert refusal.value.problems == (
        ("trajectory_id", "expected <benchmark>/<agent>/<task_id>"),
        ("judge", "is over 120 characters; shorten it"),
        ("tagger", "is empty; fill it in"),
        (
            "category",
            "use one of grounding_mismatch, misleading_reasoning, missed_instruction, misunderstood_action, "
            "or a category of your own (lowercase letters, digits and _)",
        ),
        ("note", "contains a NUL character, which cannot be stored; remove it"),
        ("at", "has no time zone; write it with one, such as +00:00"),
        ("score", "there is no such field; remove it"),
    )


def test_fields_left_out_are_asked_for():
    with pytest.raises(ErrorTagInvalid) as refusal:
        make_tag(judge=None, tagger="two\nlines", note="x" * (NOTE_LENGTH + 1), at=AT)
    assert dict(refusal.value.problems) == {
        "trajectory_id": "fill it in",
        "judge": "fill it in",
        "tagger": "contains line breaks or invisible characters; write it on one line",
        "category": "fill it in",
        "note": "is over 4,000 characters; shorten it",
    }


def test_a_persons_later_tag_of_an_error_stands_whatever_the_order_of_the_records():
    first, second, other = tag(), tag(category="login_wall", minute=5), tag(tagger="bob")
    for records in ([first, second, other], [other, second, first]):
        assert current_tags(records) == (second, other)
    same_time = [tag(), tag(category="login_wall")]
    assert current_tags(same_time) == (same_time[1],)


def test_an_error_counts_once_in_a_category_whoever_put_it_there():
    records = [
        tag(0), tag(0, tagger="bob"),  # both alike: one
        tag(1), tag(1, "login_wall", tagger="bob"),  # one in each
        tag(1, "login_wall", judge="judge-2"),
        tag(2, "login_wall"), tag(2, "missed_instruction", minute=1),  # thought better of it
        tag(3, trajectory_id="workarena/agent-b/workarena.x-l2"),
    ]  # fmt: skip
    found = count_tags(records)
    assert dict(found.overall) == {"grounding_mismatch": 3, "login_wall": 2, "missed_instruction": 1}
    assert list(found.overall) == ["grounding_mismatch", "login_wall", "missed_instruction"]
    assert dict(found.by_judge["judge-2"]) == {"login_wall": 1}
    assert {name: sum(counts.values()) for name, counts in found.by_benchmark.items()} == {
        "webarena": 5,
        "workarena++": 1,
    }
    assert dict(found.by_agent["agent-b"]) == {"grounding_mismatch": 1}


def test_two_peoples_tags_are_compared_where_both_tagged():
    pairs = ["aa", "aa", "ab", "bb", "bc"]
    records = [
        tag(n, both[place], who) for n, both in enumerate(pairs) for place, who in enumerate(("x", "y"))
    ]
    records += [tag(8, "a", "x"), tag(9, "a", "y"), tag(0, "c", "z")]
    found = compare_taggers(records, "x", "y")
    assert (found.n, found.percent) == (5, 3 / 5)
    # x: a 3, b 2; y: a 2, b 2, c 1: p_e = (3 * 2 + 2 * 2) / 25 = 0.4; (0.6 - 0.4) / 0.6
    assert found.kappa == pytest.approx(1 / 3)
    assert (found.categories, found.table) == (("a", "b", "c"), ((2, 1, 0), (0, 1, 1), (0, 0, 0)))
    assert [(one.category, other.category) for one, other in found.differing] == [("a", "b"), ("b", "c")]


def test_two_people_with_nothing_in_common_have_no_agreement():
    found = compare_taggers([tag(0, tagger="x"), tag(1, tagger="y")], "x", "y")
    assert (found.n, found.percent, found.kappa, found.table, found.differing) == (0, None, None, (), ())


def test_the_csv_has_every_record_in_order_of_time_and_runs_in_no_spreadsheet():
    late = datetime(2026, 1, 1, 5, tzinfo=timezone(timedelta(hours=4)))
    records = [tag(at=late, note='=HYPERLINK("x")', judge="+judge", tagger="@ada"), tag(minute=1)]
    rows = list(csv.DictReader(io.StringIO(tags_to_csv(records), newline="")))
    assert [row["at"] for row in rows] == ["2026-01-01T00:01:00+00:00", "2026-01-01T01:00:00+00:00"]
    assert (rows[1]["note"], rows[1]["judge"], rows[1]["tagger"]) == ('\'=HYPERLINK("x")', "'+judge", "'@ada")
    assert (rows[0]["benchmark"], rows[0]["agent"]) == ("webarena", "agent-a")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40))
def test_any_note_comes_back_from_the_csv_inert(note):
    record = tag(note=note)
    (row,) = csv.DictReader(io.StringIO(tags_to_csv([record]), newline=""))
    assert row["note"] == inert(record.note)


def test_the_error_tags_of_a_suite_replace_those_of_the_paper():
    tags = {"wrong_tool": {"title": "Wrong tool", "description": "The judge overlooks the wrong tool."}}
    suite = load_suite("sample")
    own = replace(suite, profile=read_profile({"error_tags": tags}, "own"))
    assert categories_of(own) == {"wrong_tool": Category(*tags["wrong_tool"].values())}
    assert categories_of(suite) == CATEGORIES
    for wrong in ({"Wrong Tool": tags["wrong_tool"]}, {"a": {"title": "A"}}, {"a": "text"}, ["a"]):
        with pytest.raises(ValueError, match="error_tags"):
            read_profile({"error_tags": wrong}, "own")
