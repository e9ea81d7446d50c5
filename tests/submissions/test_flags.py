"""What asks for a maintainer's look, and when it was looked at."""

from datetime import UTC, datetime, timedelta

from submissions.flags import ListedSubmission, flags_of
from submissions.standing import SubmissionStatus

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


def test_what_is_in_order_asks_for_nothing():
    assert told([listed(1), listed(2, content="b"), listed(3, "Bob", "Beta", "c")]) == []


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


def test_one_account_may_call_its_judges_alike():
    assert told([listed(1), listed(2, judge="ALPHA", content="b")]) == []


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
    back = listed(1, is_scored=False, is_refunded=True, reasons=("its kept file is missing",))
    rejected = listed(2, judge="Beta", content="b", is_scored=False, is_refunded=True, is_rejected=True)
    (flag,) = flags_of([back, rejected], {}, {})
    assert (flag.kind, flag.submission) == ("given back", back)
    assert "its kept file is missing" in flag.reason


def test_withdrawn_submissions_ask_for_nothing():
    assert told([listed(1), listed(2, "Bob", "alpha", is_scored=False, is_withdrawn=True)]) == []
