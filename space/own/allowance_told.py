"""What is left to an account today and this year, as data and in a sentence. Pure."""

from typing import Any

from dataset_script.suite_rules import SuiteRules
from submissions.limits import Quota


def rules_sentence(rules: SuiteRules) -> str:
    """What everybody may: so many files a day and a year."""
    return (
        f"An account may have {_files(rules.files_a_day)} scored on test in 24 hours and "
        f"{rules.files_a_year} in a year, over all its judges and under each version of the labels. Checking "
        "and rehearsing on dev are free."
    )


def allowance_sentence(left: Quota, rules: SuiteRules) -> str:
    """What is left, and when the next file may come where none may now."""
    if left.next_at is None:
        return (
            f"You have left: {left.left_today} of {_files(rules.files_a_day)} today, "
            f"{left.left_this_year} of {rules.files_a_year} this year."
        )
    if left.next_at.year >= 9999:
        return "This suite accepts no test files now."
    used = "this year's files are used" if not left.left_this_year else "today's files are used"
    return (
        f"You have none left now: {used}. You may submit the next file from "
        f"{left.next_at:%Y-%m-%d %H:%M} UTC; {left.left_this_year} of {rules.files_a_year} are left this "
        "year."
    )


def allowance_json(left: Quota | None, rules: SuiteRules) -> dict[str, Any]:
    """The same as data; without labels nothing can be said of what is left."""
    return {
        "files_a_day": rules.files_a_day,
        "files_a_year": rules.files_a_year,
        "left_today": left and left.left_today,
        "left_this_year": left and left.left_this_year,
        "next_at": left.next_at.isoformat() if left and left.next_at else None,
        "told": allowance_sentence(left, rules) if left else "",
    }


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"
