"""Which forms of a file wait for a maintainer.

What asks for a maintainer's look, and when it was looked at.
"""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suite import SuiteRules, Trajectory
from arb.core.suites.targets import default_targets
from submissions.intake.upload import reasons_to_hold
from submissions.moderation.confusable_names import skeletons_of
from submissions.moderation.overview import ListedSubmission, flags_of
from submissions.records.statuses import SubmissionStatus
from tests.support.verdict_tables import verdict_table

RULES, MAIN = SuiteRules(fewest_positives=30), default_targets()[0]
TRAJECTORIES = tuple(
    Trajectory(f"{name}/a/{number}", name, "a", str(number), "test")
    for name in ("webarena", "workarena")
    for number in range(50)
)


def _file(positives, no_verdict=(), side_effects=()):
    success, side_effect = np.zeros((2, 100), dtype=np.int8)
    success[list(no_verdict)] = -1
    success[list(positives)] = 1
    side_effect[list(side_effects)] = 1
    return verdict_table(success=success, side_effect=side_effect)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (_file(()), ["no trajectory"]),
        (_file((), no_verdict=range(100)), ["no trajectory"]),
        (_file(range(100)), ["every trajectory"]),
        (_file(range(30, 59)), ["yes to 29 of 100"]),
        (_file(range(50)), ["one benchmark, webarena"]),
        (_file(range(50, 60)), ["yes to 10 of 100", "one benchmark, workarena"]),
        (_file(range(30, 60)), []),
        (_file(range(99)), []),
        (_file(range(30, 60), side_effects=[3]), []),
    ],
)
def test_each_form_has_its_reasons(file, words):
    reasons = reasons_to_hold(file, TRAJECTORIES, RULES, MAIN)
    assert len(reasons) == len(words)
    for reason, word in zip(reasons, words, strict=True):
        assert word in reason
        assert reason.endswith(".")


def test_the_suite_says_how_few_positives_hold_a_file_and_whether_it_can_be_one_sided():
    assert reasons_to_hold(_file(range(45, 55)), TRAJECTORIES, SuiteRules(fewest_positives=10), MAIN) == ()
    assert reasons_to_hold(_file(range(40)), TRAJECTORIES[:50] * 2, RULES, MAIN) == ()


START = datetime(2026, 1, 1, tzinfo=UTC)


def at(day: int) -> datetime:
    return START + timedelta(days=day)


def listed(
    number: int, account="Ada", judge="Alpha", content="a", is_scored=True, first_name=None, **standing
):
    return ListedSubmission(
        f"{number:012x}", account, judge, first_name or judge, at(number), content,
        SubmissionStatus(**standing), is_scored,
    )  # fmt: skip


def told(submissions, looked_at=None, named_at=None) -> list[tuple[str, str]]:
    found = flags_of(submissions, looked_at or {}, named_at or {})
    return [(flag.submission.id[-1], flag.kind) for flag in found]


@pytest.mark.parametrize(
    "others",
    [
        (listed(2, content="b"), listed(3, "Bob", "Beta", "c")),
        (listed(2, judge="ALPHA", content="b"),),  # one account may call its judges alike
        (listed(2, "Bob", "alpha", is_scored=False, is_withdrawn=True),),
    ],
)
def test_what_is_in_order_asks_for_nothing(others):
    assert told([listed(1), *others]) == []


def test_held_files_come_first_with_their_reasons():
    held = listed(
        2, "Bob", "Beta", "b", is_scored=False, is_held=True, reasons=("few positives", "one benchmark")
    )
    first, second = flags_of([listed(1, is_scored=False), held], {}, {})
    assert (first.kind, first.reason) == ("held", "few positives; one benchmark")
    assert second.kind == "unscored"


def test_a_name_that_looks_like_another_accounts_is_told_of_the_later_one():
    cyrillic = "Аlpha"  # a Cyrillic A
    submissions = [listed(1), listed(2, "Bob", cyrillic, "b"), listed(3, "Bob", cyrillic, "c")]
    (flag,) = flags_of(submissions, {}, {})
    assert (flag.submission.id[-1], flag.kind) == ("3", "alike")
    assert "'Alpha' by Ada" in flag.reason


def test_a_renamed_judge_is_the_later_one():
    # Ada's judge came first, and took its name after Bob's had it.
    submissions = [listed(1, judge="Alpha", first_name="Other"), listed(2, "Bob", "alpha", "b")]
    assert told(submissions, named_at={("Ada", "Other"): at(5)}) == [("1", "alike")]


def test_a_name_that_was_looked_at_is_told_again_only_after_a_renaming():
    submissions = [listed(1), listed(2, "Bob", "alpha", "b", first_name="beta")]
    looked_at = {submissions[1].id: at(4)}
    assert told(submissions, looked_at) == []
    assert told(submissions, looked_at, {("Bob", "beta"): at(5)}) == [("2", "alike")]


def test_equal_verdicts_of_two_accounts_are_told_once_of_the_later_one():
    submissions = [listed(1), listed(2, judge="Gamma"), listed(3, "Bob", "Beta")]
    assert told(submissions) == [("3", "same verdicts")]
    assert told(submissions, {submissions[2].id: at(4)}) == []


def test_what_was_given_back_is_told_and_what_was_rejected_is_not():
    back = listed(1, is_scored=False, is_refunded=True, reasons=("its stored file is missing",))
    rejected = listed(2, judge="Beta", content="b", is_scored=False, is_refunded=True, is_rejected=True)
    (flag,) = flags_of([back, rejected], {}, {})
    assert (flag.kind, flag.submission) == ("given back", back)
    assert "its stored file is missing" in flag.reason


PUBLISHED = ("AER-C", "GPT-4o (tree)", "NNetNav", "Claude 3.7 Sonnet", "AI judge", "modern judge", "判定者")


def looks_like(name: str, others) -> str | None:
    """The first of the other names that has a shape in common with this one."""
    return next((other for other in others if skeletons_of(name) & skeletons_of(other)), None)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("AER-C", "AER-C"),  # the very name is alike too
        ("aer-c", "AER-C"),
        ("AER\u2013C", "AER-C"),  # an en dash
        ("AER C", "AER-C"),
        ("AERC", "AER-C"),
        ("А\u0415R-C", "AER-C"),  # Cyrillic A and E
        ("ΑER-C", "AER-C"),  # Greek Alpha
        ("AER-С", "AER-C"),  # Cyrillic Es
        ("\uff21\uff25\uff32-\uff23", "AER-C"),  # full width, as East Asian keyboards write
        ("𝐀𝐄𝐑-𝐂", "AER-C"),  # mathematical bold
        ("AER-C\ufe0f", "AER-C"),  # a selector of a variant, of which nothing is seen
        ("AER\u200b-C", "AER-C"),  # a space without width
        ("AER-\u202eC", "AER-C"),  # a mark of direction
        ("GPT-40 (tree)", "GPT-4o (tree)"),
        ("GPT-4о (tree)", "GPT-4o (tree)"),  # Cyrillic o
        ("Al judge", "AI judge"),  # a small L
        ("ai judge", "AI judge"),
        ("A1 judge", "AI judge"),
        ("modem judge", "modern judge"),  # m and rn
        ("«NNetNav»", "NNetNav"),
    ],
)
def test_a_name_that_people_would_take_for_another_is_told(name, taken):
    assert looks_like(name, PUBLISHED) == taken


DIFFERENT = (
    "AER-V", "GPT-4o (screenshot)", "GPT-4", "NNetNav 2", "NNetNav+", "判定人", "Žižkův soudce", "",
    "Claude 37 Sonnet",  # a point is seen
)  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENT)
def test_names_that_look_different_are_free(name):
    assert looks_like(name, PUBLISHED) is None


def test_a_dash_between_digits_is_kept_and_any_dash_is_one():
    assert looks_like("v1-1", ["v11"]) is None
    assert looks_like("v1\u20131", ["v11", "v1-1"]) == "v1-1"


def test_accents_are_seen_but_their_spelling_is_not():
    assert looks_like("Juge e\u0301", ["Juge e"]) is None
    assert looks_like("Juge e\u0301", ["Juge \u00e9"]) == "Juge \u00e9"


@given(st.text(max_size=80))
def test_any_name_looks_like_itself_in_any_case(name):
    assert looks_like(name, [name]) == name
    assert looks_like(name.casefold(), [name]) == name


@given(st.text(max_size=30), st.text(max_size=30))
def test_to_look_alike_is_mutual(one, other):
    assert (looks_like(one, [other]) is None) is (looks_like(other, [one]) is None)
