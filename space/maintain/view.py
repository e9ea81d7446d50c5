"""The maintainers' page in words and numbers. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from dataset_script.vocabulary import LABEL_TITLES
from leaderboard.report_tables import percent
from submissions.flags import TITLES, Flag, ListedSubmission
from submissions.probing.leak import Leak
from submissions.revealed import LeakReport
from submissions.standing import SubmissionStatus

DECISIONS: Final = (
    ("released", "Release: score it"),
    ("hidden", "Hide its row"),
    ("shown", "Show its row again"),
    ("verified", "Mark as verified"),
    ("rejected", "Reject"),
    ("label_exposed", "Mark: labels exposed"),
)


@dataclass(frozen=True)
class Figures:
    """The exact figures of a label: precision and recall in percent, and the counts."""

    title: str
    precision: str
    recall: str
    counts: str


@dataclass(frozen=True)
class Line:
    """A submission on the page: where it stands, why it is flagged, what may be decided."""

    listed: ListedSubmission
    status: str
    marks: tuple[str, ...]
    flags: tuple[tuple[str, str], ...]
    figures: tuple[Figures, ...]
    decisions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class LeakLine:
    """What was shown by one group: an account, a judge, a label version."""

    name: str
    figures: int
    epsilon: str


def view_line(listed: ListedSubmission, flags: Iterable[Flag], cells: Mapping[str, Any], status: str) -> Line:
    """A submission with its flags and the exact overall cell of each label; ``status`` is where it stands."""
    standing = listed.status
    marks = {"verified": standing.is_verified, "labels exposed": standing.is_label_exposed,
             "given back": standing.is_refunded, "public": standing.published_at is not None}  # fmt: skip
    return Line(
        listed=listed,
        status=status,
        marks=tuple(mark for mark, is_so in marks.items() if is_so),
        flags=tuple((TITLES[flag.kind], flag.reason) for flag in flags),
        figures=tuple(_figures(label, cell) for label, cell in cells.items() if cell),
        decisions=decisions_on(standing),
    )


def decisions_on(standing: SubmissionStatus) -> tuple[tuple[str, str], ...]:
    """What makes sense to decide as things stand, as (decision, words)."""
    if standing.is_withdrawn:
        return ()
    sensible = {
        "released": standing.is_held,
        "hidden": not standing.is_hidden,
        "shown": standing.is_hidden,
        "verified": not standing.is_verified,
        "rejected": not standing.is_rejected,
        "label_exposed": not standing.is_label_exposed,
    }
    return tuple((decision, words) for decision, words in DECISIONS if sensible[decision])


def is_found(listed: ListedSubmission, search: str) -> bool:
    """Whether every word of a search is in what a submission is called."""
    said = f"{listed.id} {listed.account} {listed.judge} {listed.first_name} {listed.content_hash}".casefold()
    return all(word in said for word in search.casefold().split())


def leak_tables(revealed: LeakReport) -> dict[str, list[LeakLine]]:
    """Who was shown most, the highest first: by account, by judge, by label version."""
    judges = {f"{judge} by {account}": leak for (account, judge), leak in revealed.by_judge.items()}
    return {
        "Account": _highest_first(revealed.by_account),
        "Judge": _highest_first(judges),
        "Labels": _highest_first(revealed.by_label_version),
    }


def describe_epsilon(leak: Leak) -> str:
    """The bound with two decimals; a word where there is none."""
    return "no bound" if leak.epsilon == inf else f"{leak.epsilon:.2f}"


def _highest_first(leaks: Mapping[str, Leak]) -> list[LeakLine]:
    ordered: Sequence[tuple[str, Leak]] = sorted(leaks.items(), key=lambda item: (-item[1].rho, item[0]))
    return [LeakLine(name, leak.figures, describe_epsilon(leak)) for name, leak in ordered]


def _figures(label: str, cell: Mapping[str, Any]) -> Figures:
    counts = " ".join(f"{name.upper()} {cell[name]:,}" for name in ("tp", "fp", "fn", "tn"))
    return Figures(LABEL_TITLES[label], percent(cell["precision"]), percent(cell["recall"]), counts)
