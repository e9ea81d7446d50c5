"""What asks for a maintainer's look: held files, look-alike names, equal verdicts, missing scores. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Final, Literal

from submissions.look_alikes import skeletons_of
from submissions.standing import SubmissionStatus

FlagKind = Literal["held", "alike", "same verdicts", "unscored", "given back"]
TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "held": "Held",
        "alike": "Look-alike name",
        "same verdicts": "Same verdicts",
        "unscored": "Not scored",
        "given back": "Given back",
    }
)


@dataclass(frozen=True)
class ListedSubmission:
    """A submission in a list; ``judge`` is the name it has now, ``first_name`` the one it came under."""

    id: str
    account: str
    judge: str
    first_name: str
    submitted_at: datetime
    content_hash: str
    status: SubmissionStatus
    is_scored: bool


@dataclass(frozen=True)
class Flag:
    """Why a maintainer should look at a submission, in a sentence or two."""

    submission: ListedSubmission
    kind: FlagKind
    reason: str


def flags_of(
    submissions: Sequence[ListedSubmission],
    looked_at: Mapping[str, datetime],
    named_at: Mapping[tuple[str, str], datetime],
) -> list[Flag]:
    """What asks for a look, held files first. ``submissions`` are in the order they came.

    ``looked_at`` is when a maintainer last decided on a submission, ``named_at`` when a judge (account, first
    name) got the name that it has now. Names and equal verdicts that a maintainer has seen are not told
    again; withdrawn submissions are nobody's concern.
    """
    alive = [each for each in submissions if not each.status.is_withdrawn]
    return [
        *_held(alive),
        *_alike(alive, looked_at, named_at),
        *_same_verdicts(alive, looked_at),
        *_without_score(alive),
    ]


def _held(submissions: Iterable[ListedSubmission]) -> Iterable[Flag]:
    for each in submissions:
        if each.status.is_held:
            yield Flag(each, "held", _reasons(each))


def _alike(
    submissions: Sequence[ListedSubmission],
    looked_at: Mapping[str, datetime],
    named_at: Mapping[tuple[str, str], datetime],
) -> Iterable[Flag]:
    """Judges whose name looks like one that another account gave before; told of their newest submission."""
    newest = {(each.account, each.first_name): each for each in submissions}
    since: dict[tuple[str, str], datetime] = {}
    for each in submissions:
        key = (each.account, each.first_name)
        since.setdefault(key, named_at.get(key, each.submitted_at))
    seen: dict[str, list[ListedSubmission]] = {}
    for key in sorted(newest, key=lambda key: (since[key], key)):
        each, shapes = newest[key], skeletons_of(newest[key].judge)
        before = [other for shape in shapes for other in seen.get(shape, ()) if other.account != each.account]
        for shape in shapes:
            seen.setdefault(shape, []).append(each)
        was_seen = each.id in looked_at and looked_at[each.id] >= since[key]
        if before and not was_seen and not each.status.is_rejected:
            reason = f"can be taken for {before[0].judge!r} by {before[0].account}, which was there before"
            yield Flag(each, "alike", reason)


def _same_verdicts(
    submissions: Sequence[ListedSubmission], looked_at: Mapping[str, datetime]
) -> Iterable[Flag]:
    """A file that says what another account's said before, whatever its bytes are."""
    first: dict[str, ListedSubmission] = {}
    for each in submissions:
        before = first.setdefault(each.content_hash, each)
        if before.account != each.account and each.id not in looked_at:
            reason = f"says the same of every trajectory as {before.id}, which {before.account} sent before"
            yield Flag(each, "same verdicts", reason)


def _without_score(submissions: Iterable[ListedSubmission]) -> Iterable[Flag]:
    for each in submissions:
        standing = each.status
        if standing.is_refunded and not standing.is_rejected:
            yield Flag(each, "given back", f"does not count towards the account's limits: {_reasons(each)}")
        elif not (each.is_scored or standing.is_held or standing.is_rejected):
            yield Flag(each, "unscored", "has no score under the current labels; re-score to make one")


def _reasons(each: ListedSubmission) -> str:
    return "; ".join(reason.rstrip(".") for reason in each.status.reasons) or "no reason was given"
