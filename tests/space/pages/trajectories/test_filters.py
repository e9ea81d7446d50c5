"""What an address chooses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suites.targets import default_targets
from space.pages.trajectories.filters import (
    AGREEMENTS,
    LENGTHS,
    SORTS,
    TrajectoriesQuery,
    choose,
    outcomes_of,
    read_choice,
)
from space.pages.trajectories.index import Labels, TrajectoryEntry, Votes

KNOWN = {
    "suite": ("one", "two"), "split": ("dev", "test"), "benchmark": ("webarena", "workarena++"),
    "agent": ("a", "b/c d"), "outcome": outcomes_of(default_targets()), "length": LENGTHS,
    "judges": AGREEMENTS, "sort": SORTS,
}  # fmt: skip


def entry(name: str, **changes) -> TrajectoryEntry:
    return TrajectoryEntry(
        **{
            "trajectory_id": f"webarena/a/{name}", "split": "dev", "benchmark": "webarena", "agent": "a",
            "task": name, "goal": "Buy a red teapot.", "n_actions": 7, "labels": None, **changes,
        }
    )  # fmt: skip


def labels(**changes) -> Labels:
    return {"success": "no", "side_effect": "no", "repetition": "no", "optimality": "1", **changes}


def names(entries, choice, votes=None) -> list[str]:
    vote_counts = {f"webarena/a/{name}": found for name, found in (votes or {}).items()}
    return [found.task for found in choose(entries, choice, vote_counts, default_targets())]


def test_nothing_chosen_is_everything_in_the_order_given():
    assert names([entry("b"), entry("a")], TrajectoriesQuery()) == ["b", "a"]


@pytest.mark.parametrize(
    ("field", "value"), [("split", "test"), ("benchmark", "workarena"), ("agent", "b"), ("task", "x")]
)
def test_a_field_chooses_its_entries(field, value):
    entries = [entry("one"), entry("two", **{field: value})]
    expected = "x" if field == "task" else "two"
    assert names(entries, TrajectoriesQuery(**{field: value})) == [expected]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("success", ["won"]), ("success-no", ["lost", "looped"]), ("side_effect", ["won"]),
        ("repetition", ["looped"]), ("unsure", ["unclear"]), ("repetition-no", ["won", "lost", "unclear"]),
    ],
)  # fmt: skip
def test_an_outcome_chooses_among_dev_and_never_a_test_run(outcome, expected):
    entries = [
        entry("won", labels=labels(success="yes", side_effect="yes")),
        entry("lost", labels=labels()),
        entry("looped", labels=labels(repetition="yes")),
        entry("unclear", labels=labels(success=None)),
        entry("hidden", split="test"),
    ]
    assert names(entries, TrajectoriesQuery(outcome=outcome)) == expected


@pytest.mark.parametrize(
    ("length", "expected"), [("1-5", [0, 5]), ("6-10", [6, 10]), ("11-20", [11, 20]), ("21-", [21, 50])]
)
def test_lengths_meet_without_a_gap(length, expected):
    entries = [entry(str(n), n_actions=n) for n in (0, 5, 6, 10, 11, 20, 21, 50)]
    assert names(entries, TrajectoriesQuery(length=length)) == [str(n) for n in expected]


def test_a_subset_chooses_its_runs_also_together_with_an_agent():
    entries = [
        entry("one", subsets=("difficulty=hard", "length=long")),
        entry("two", subsets=("difficulty=easy",)),
        entry("three", subsets=("difficulty=hard",), agent="b"),
    ]
    assert names(entries, TrajectoriesQuery(subset="difficulty=hard")) == ["one", "three"]
    assert names(entries, TrajectoriesQuery(subset="difficulty=hard", agent="b")) == ["three"]


VOTES = {
    "all": Votes(yes=3), "none": Votes(no=2, silent=1), "split": Votes(yes=2, no=4),
    "one-off": Votes(yes=9, no=1), "alone": Votes(yes=1),
}  # fmt: skip


@pytest.mark.parametrize(
    ("agreement", "expected"),
    # 2 of 6 is a third; 1 of 10 is not; one judge alone agrees with nobody
    [("agree", ["all", "none"]), ("disagree", ["split", "one-off"]), ("divided", ["split"])],
)
def test_judges_are_chosen_by_how_their_verdicts_lie(agreement, expected):
    entries = [entry(name, split="test") for name in VOTES] + [entry("unjudged")]
    assert names(entries, TrajectoriesQuery(judges=agreement), VOTES) == expected


def test_most_judges_are_wrong_where_the_majority_is_not_the_experts_and_only_on_dev():
    entries = [
        entry("all", labels=labels(success="no")),  # three say yes, the expert no
        entry("none", labels=labels(success="no")),  # two say no, and so does the expert
        entry("split", labels=labels(success=None)),  # the expert was unsure
        entry("one-off", split="test"),
        entry("tie", labels=labels()),
    ]
    votes = VOTES | {"tie": Votes(yes=2, no=2)}
    assert names(entries, TrajectoriesQuery(judges="wrong"), votes) == ["all"]


@pytest.mark.parametrize("search", ["teapot", "TEAPOT red", "webarena/a/x", "x"])
def test_a_search_finds_every_word_in_goal_or_id(search):
    entries = [entry("x"), entry("other", goal="Sell", trajectory_id="webarena/a/other")]
    assert names(entries, TrajectoriesQuery(search=search)) == ["x"]


def test_orders():
    entries = [
        entry("all", n_actions=3),
        entry("split", n_actions=9),
        entry("one-off", n_actions=5),
        entry("z"),
    ]
    assert names(entries, TrajectoriesQuery(sort="longest")) == ["split", "z", "one-off", "all"]
    assert names(entries, TrajectoriesQuery(sort="shortest")) == ["all", "one-off", "z", "split"]
    # 2 of 6 differ, then 1 of 10, then 0 of 3, and last the one that nobody judged
    assert names(entries, TrajectoriesQuery(sort="disagreement"), VOTES) == ["split", "one-off", "all", "z"]


def test_an_address_is_read_as_it_was_written():
    choice = TrajectoriesQuery(
        "two", "dev", "workarena++", "b/c d", "t 1&2", "success", "21-", "divided", "é+ x", "longest", 3
    )
    path, query = choice.address().split("?")
    assert path == "/trajectories"
    assert read_choice(query, KNOWN)[0] == choice


def test_defaults_are_left_out_of_the_address():
    assert TrajectoriesQuery().address() == "/trajectories"
    assert TrajectoriesQuery(split="dev").address(id="a/b/c") == "/trajectories?split=dev&id=a/b/c"
    assert TrajectoriesQuery(page=4).address(page=1) == "/trajectories"


def test_a_query_of_very_many_fields_is_read_as_far_as_it_may_reach():
    query = "split=dev&" + "x=1&" * 5_000 + "agent=a"
    assert read_choice(query, KNOWN)[0] == TrajectoriesQuery(split="dev")


@given(st.text(max_size=400))
def test_no_query_breaks_the_reading_of_it(query):
    choice = read_choice(query, KNOWN)[0]
    assert choice.page >= 1
    assert len(choice.search) <= 300


@given(
    search=st.text(max_size=40).map(str.strip),
    task=st.text(max_size=40).map(str.strip),
    page=st.integers(1, 999_999),
)
def test_any_text_survives_the_address(search, task, page):
    choice = TrajectoriesQuery(search=search, task=task, page=page)
    assert read_choice(choice.address().partition("?")[2], KNOWN)[0] == choice


def test_narrowed_tells_whether_anything_is_left_out():
    assert not TrajectoriesQuery(suite="two", sort="longest", page=2).narrowed
    assert TrajectoriesQuery(search="x").narrowed
    assert (
        TrajectoriesQuery(suite="two", split="dev", sort="longest", page=3).unfiltered()
        == "/trajectories?suite=two&sort=longest"
    )
