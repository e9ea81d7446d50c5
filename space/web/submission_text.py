"""Text about a submission: its status, receipt and metrics, and the remaining quota of its account."""

import json
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from arb.core.suite import Suite, SuiteRules
from space.web.frame import render
from space.web.http_errors import sentence
from submissions.intake.accounts import AccountQuota, suite_full_message
from submissions.intake.receipts import WAITING, Receipt, status_sentence
from submissions.records.statuses import SubmissionStatus


def rules_sentence(rules: SuiteRules) -> str:
    """Return sentences on how many files an account may submit."""
    return (
        f"An account may have {_files(rules.files_a_day)} scored on test in 24 hours and "
        f"{rules.files_a_year} in a year, for all its judges and label versions together. Checking and "
        "dry runs on dev are free."
    )


def allowance_sentence(left: AccountQuota, rules: SuiteRules) -> str:
    """Return a sentence on how many files an account may still submit, or when it may submit again."""
    if left.next_at is None:
        return (
            f"You have left: {left.left_today} of {_files(rules.files_a_day)} today, "
            f"{left.left_this_year} of {rules.files_a_year} this year."
        )
    if left.next_at.year >= 9999:
        return "This suite accepts no test files now."
    if left.is_suite_full:
        why = sentence(suite_full_message(left.is_reserved))
        return f"{why} You may submit the next file from {left.next_at:%Y-%m-%d %H:%M} UTC."
    period = "today" if left.left_this_year else "this year"
    return (
        f"You have no files left {period}. You may submit the next one from "
        f"{left.next_at:%Y-%m-%d %H:%M} UTC; {left.left_this_year} of {rules.files_a_year} are left this "
        "year."
    )


def allowance_json(left: AccountQuota | None, rules: SuiteRules) -> dict[str, Any]:
    """Return an account's limits as JSON. ``left`` is its remaining quota, or None if there are no labels."""
    return {
        "files_a_day": rules.files_a_day,
        "files_a_year": rules.files_a_year,
        "left_today": left and left.left_today,
        "left_this_year": left and left.left_this_year,
        "next_at": left.next_at.isoformat() if left and left.next_at else None,
        "message": allowance_sentence(left, rules) if left else "",
    }


def _files(count: int) -> str:
    return f"{count} file" if count == 1 else f"{count} files"


def receipt_link(receipt: Receipt) -> str:
    """Return the signed receipt as a ``data:`` address, for a link with ``download``."""
    text = json.dumps(receipt.to_json(), indent=2, ensure_ascii=False) + "\n"
    return f"data:application/json;charset=utf-8,{quote(text)}"


WAITING_SECONDS: Final = 2
"""How long clients wait before asking again whether a record is durable: about as long as a commit takes."""


def waiting_headers(receipt: Receipt) -> dict[str, str]:
    """Return headers that say where and when to ask again, if the status of the receipt is ``waiting``."""
    if receipt.status != "waiting":
        return {}
    address = f"/api/submissions/{receipt.submission_id}"
    return {"Location": address, "Retry-After": str(WAITING_SECONDS)}


def report_html(report: Mapping[str, Any], suite: Suite, of: str = "") -> str:
    """Return HTML with the metrics of a score report, as one table per target with a row per benchmark.

    ``of`` names the report on a page with several reports.
    """
    scores = report["labels"]
    found = [(target, scores[target.name]) for target in suite.scored_targets if target.name in scores]
    return render("submit/report.html", scores=found, of=of)


UNSCORED: Final = "It is recorded and has no score yet; the maintainers of this Space take care of it."


class StatusText(NamedTuple):
    """A status as one word, and a sentence that explains it."""

    word: str
    sentence: str


FIGURES_WITHDRAWN: Final = StatusText(
    "scored",
    "It is accepted and scored. Its metrics are withdrawn for now; the maintainers of this Space "
    "decide when they are shown again.",
)


def describe_status(
    status: SubmissionStatus,
    *,
    is_scored: bool,
    lasts: bool = True,
    is_private: bool = False,
    appears_at: datetime | None = None,
    now: datetime | None = None,
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> StatusText:
    """Return the status of a submission in words. If several apply, the most final one is returned.

    ``lasts`` says whether its record is durable, and ``is_private`` whether the suite's labels are private.
    With private labels, only a row that was made public appears, at ``appears_at``. ``reasons`` has the
    reason for the last action of each kind.
    """
    if status.is_withdrawn:
        why = _why(reasons, "withdrawn")
        return StatusText("withdrawn", f"It was withdrawn from the board for good{why}; its record stays.")
    if status.is_rejected:
        return StatusText("rejected", f"A maintainer rejected it{_why(reasons, 'rejected')}.")
    if status.is_held:
        return StatusText("held", status_sentence("held", [reasons.get("held", "")]))
    if not lasts:
        return StatusText("waiting", WAITING)
    if status.is_hidden:
        return StatusText("hidden", f"A maintainer took it off the board{_why(reasons, 'hidden')}.")
    if not is_scored:
        return StatusText("not scored", UNSCORED)
    if not is_private:
        return StatusText("on the board", "It is accepted, scored, and on the board.")
    if appears_at is None:
        return StatusText("scored", "It is accepted and scored; only its owner and maintainers see it.")
    if now is not None and appears_at <= now:
        return StatusText("on the board", f"It has been on the board since {appears_at:%Y-%m-%d}.")
    return StatusText(
        "public soon", f"Its row appears on the board with the next round, on {appears_at:%Y-%m-%d}."
    )


def _why(reasons: Mapping[str, str], kind: str) -> str:
    return f": {reasons[kind].rstrip('.')}" if reasons.get(kind) else ""
