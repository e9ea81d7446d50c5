"""The former names of the methods of the three services, until every caller uses those."""

from typing import Any

from submissions.app import SubmissionsApp

_MOVED = {
    **dict.fromkeys(
        ("board", "board_under", "latest_board", "cached_board", "submission", "quota", "verdicts",
         "paper_verdicts", "leak"), "records",
    ),
    **dict.fromkeys(
        ("check", "dry_run", "submit", "finish_scoring", "listeners", "read_only_reason", "is_off",
         "is_closed_for_now"), "intake",
    ),
    **dict.fromkeys(("decide", "identify"), "moderation"),
}  # fmt: skip


class SubmissionService(SubmissionsApp):
    """The app with the methods of its services."""

    def __getattr__(self, name: str) -> Any:
        if name == "actions":
            return self.moderation
        if name not in _MOVED:
            raise AttributeError(name)
        return getattr(getattr(self, _MOVED[name]), name)
