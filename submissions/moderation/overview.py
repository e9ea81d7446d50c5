"""What owners and maintainers read: lists of submissions, decisions, the event log, and what needs a look.

That are held files, confusable names, equal verdicts, missing scores.

The log is newest first and holds nothing that was made from labels. A file is held when its form alone says
that it is no judge's; no label is read for it. Names: a judge may not pass for another account's by letters
that only look the same. Characters are replaced by what stands for all that look like them, from Unicode's
table of confusables (Unicode Technical Standard 39; the package `confusable_homoglyphs` carries it). What is
left out besides: what cannot be seen, and spaces, dashes, underscores and quotation marks, but for a dash
between digits (`v1-1` is not `v11`).
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from arb.core.predictions.table import Predictions
from arb.core.suite import SuiteRules, Trajectory
from submissions.intake.accounts import is_same_name
from submissions.records.database import ScoreRow, Submission
from submissions.records.event_log import (
    STATUS_KINDS,
    Event,
    events_after,
    events_before,
    events_of_submission,
)
from submissions.records.queries import POLICY, current_statuses, owned_submissions, score_lines
from submissions.records.statuses import SubmissionStatus, SubmissionStatuses

# Selectors of a variant, joiners and fillers: categories of letters and marks, but nothing is seen of them.
_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
_BETWEEN_DIGITS: Final = re.compile(r"(?<=\d)[\s_\-\u00ad]+(?=\d)")
_SEPARATORS: Final = re.compile(r"[\s_'\"`´‘’“”«»]+")
_DASHES: Final = re.compile("[-\u00ad\u058a\u05be\u2010-\u2015\u2043\u2212\u30fc\ufe58\ufe63\uff0d]")
_KEPT_DASH: Final = "\x00"
"""Stands for a dash between digits while the other dashes are taken out; no name holds it."""


def skeletons_of(name: str) -> frozenset[str]:
    """What a name looks like, as written and in small letters: two names are alike when they share one.

    Capitals make no difference, nor do `I`, `l`, `1` and `|`, `O` and `0`, `rn` and `m`, or letters of other
    scripts and styles with the same shape.
    """
    plain = _without_unseen(unicodedata.normalize("NFKC", _without_unseen(name)))
    plain = _BETWEEN_DIGITS.sub(_KEPT_DASH, _DASHES.sub("-", plain))
    plain = _SEPARATORS.sub("", plain.replace("-", ""))
    # An I looks like an l and an i does not, so neither of the two alone is enough.
    return frozenset((_prototypes(_prototypes(plain).casefold()), _prototypes(plain.casefold())))


def _without_unseen(text: str) -> str:
    return "".join(mark for mark in _UNSEEN.sub("", text) if unicodedata.category(mark) not in ("Cf", "Cc"))


def _prototypes(text: str) -> str:
    return "".join(_prototype(character) for character in text)


@lru_cache(maxsize=10_000)
def _prototype(character: str) -> str:
    """What stands for all characters that look like this one; a character that none looks like, itself."""
    from confusable_homoglyphs.confusables import confusables_data

    # Each group is a star in the table: every member names its middle, and the middle all of them. Several
    # characters are a middle always (`rn` for m); of a pair of single ones either may be.
    alike = [_bare(found["c"]) for found in confusables_data.get(character, ())]
    middles = [found for found in alike if len(found) > 1]
    if middles:
        return min(middles)
    if len(alike) != 1:
        return character
    (other,) = alike
    is_pair = len(confusables_data.get(other, ())) == 1
    return min(character, other) if is_pair else other


def _bare(text: str) -> str:
    """The characters of an entry, without the direction marks that stand around those of Arabic."""
    return text.strip("\u200e\u200f")


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
    name) got the name that it has now. Names and equal verdicts that a maintainer has seen are not named
    again; withdrawn submissions are nobody's concern.
    """
    alive = [each for each in submissions if not each.status.is_withdrawn]
    return [
        *(Flag(each, "held", _reasons(each)) for each in alive if each.status.is_held),
        *_alike(alive, looked_at, named_at),
        *_same_verdicts(alive, looked_at),
        *_without_score(alive),
    ]


def _alike(
    submissions: Sequence[ListedSubmission],
    looked_at: Mapping[str, datetime],
    named_at: Mapping[tuple[str, str], datetime],
) -> Iterable[Flag]:
    """Judges whose name looks like another account's earlier one; the flag is on their newest submission."""
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
        status = each.status
        if status.is_refunded and not status.is_rejected:
            yield Flag(each, "given back", f"does not count towards the account's limits: {_reasons(each)}")
        elif not (each.is_scored or status.is_held or status.is_rejected):
            yield Flag(each, "unscored", "has no score under the current labels; re-score to make one")


def _reasons(each: ListedSubmission) -> str:
    return "; ".join(reason.rstrip(".") for reason in each.status.reasons) or "no reason was given"


def reasons_to_hold(
    verdicts: Predictions, trajectories: Sequence[Trajectory], rules: SuiteRules
) -> tuple[str, ...]:
    """Why a file waits for a maintainer, each reason a sentence; empty for most files.

    ``trajectories`` are those of the split, in the order of the columns. Only ``success`` is looked at: side
    effects are rare, and an honest judge may well see few of them, or see them on one benchmark; there the
    noise alone has to do. A block of likely negatives, spread and large enough, passes: without labels its
    shape is that of a careful judge.
    """
    called = np.asarray(verdicts.success) == 1
    count = int(called.sum())
    if not count:
        return ("It calls no trajectory successful, so it says the same of every one.",)
    if count == len(called):
        return ("It calls every trajectory successful, so it says the same of every one.",)
    reasons = []
    if count < rules.fewest_positives:
        reasons.append(
            f"It calls {count} of {len(called)} trajectories successful; with fewer than "
            f"{rules.fewest_positives} a figure would speak of single trajectories."
        )
    where = {trajectories[row].benchmark for row in np.flatnonzero(called)}
    if len(where) == 1 and len({trajectory.benchmark for trajectory in trajectories}) > 1:
        reasons.append(
            f"All that it calls successful is in one benchmark, {where.pop()}; a judge of the suite answers "
            "for all of them."
        )
    return tuple(reasons)


DECIDED: Final = ("hidden", "shown", "verified", "rejected", "released", "label_exposed")
"""Kinds of events by which a maintainer has looked at a submission."""


_WAITING: Final = ("held", "unscored", "given back")
"""Kinds of flags on files that wait for a decision: nobody has to decide on those of banned accounts."""


@dataclass(frozen=True)
class Overview:
    """What maintainers look after: submissions as they came, what asks for a look, decisions on accounts."""

    submissions: tuple[ListedSubmission, ...]
    flags: tuple[Flag, ...]
    banned: frozenset[str]
    confirmed: frozenset[str]


def own_submissions(
    session: Session, suite: str, label_version: str | None, account: str
) -> list[ListedSubmission]:
    """The submissions of an account, newest first."""
    listed = _listed(session, suite, label_version, current_statuses(session))
    return [each for each in reversed(listed) if is_same_name(each.account, account)]


def overview(session: Session, suite: str, label_version: str | None) -> Overview:
    """All submissions, and which of them a maintainer should look at."""
    found = current_statuses(session)
    listed = _listed(session, suite, label_version, found)
    looked_at = {event.body["submission_id"]: event.at for event in events_after(session, kinds=DECIDED)}
    named_at = {
        (event.body["account"], event.body["judge"]): event.at
        for event in events_after(session, kinds=["renamed"])
    }
    flags = [
        flag
        for flag in flags_of(listed, looked_at, named_at)
        if flag.kind not in _WAITING or not found.is_banned(flag.submission.account)
    ]
    return Overview(tuple(listed), tuple(flags), found.banned, found.confirmed)


def decisions_on(session: Session, submission_id: str) -> list[Event]:
    """Everything that was decided of a submission since it came, in order."""
    return [event for event in events_of_submission(session, submission_id) if event.kind in STATUS_KINDS]


def exact_figures(
    session: Session, label_version: str | None, ids: Sequence[str]
) -> Mapping[str, Mapping[str, Any]]:
    """The exact overall CELL of each label, by submission: for maintainers only where labels are private."""
    wanted = select(ScoreRow.submission_id, ScoreRow.report).where(
        ScoreRow.submission_id.in_(ids),
        ScoreRow.label_version == (label_version or ""),
        ScoreRow.policy == POLICY,
    )
    return {
        submission_id: {label: found and found["overall"] for label, found in report["labels"].items()}
        for submission_id, report in session.execute(wanted)
    }


def judge_names(session: Session, suite: str) -> dict[str, tuple[str, str]]:
    """Judge and account of every submission as they are called now, by its id."""
    found = current_statuses(session)
    return {
        each.id: (found.name_of(each.account, each.judge), found.current_name(each.account))
        for each in owned_submissions(session, suite)
    }


def _listed(
    session: Session, suite: str, label_version: str | None, found: SubmissionStatuses
) -> list[ListedSubmission]:
    """Return the submissions of a suite in the order they came."""
    scored = {line.submission_id for line in score_lines(session, suite, label_version or "")}
    wanted = select(Submission).where(Submission.suite == suite)
    wanted = wanted.order_by(Submission.submitted_at, Submission.id)
    return [
        ListedSubmission(
            id=each.id,
            account=each.judge.account.name,
            judge=found.name_of(each.judge.account.name, each.judge.name),
            first_name=each.judge.name,
            submitted_at=each.submitted_at,
            content_hash=each.content_hash,
            status=found.of(each.id),
            is_scored=each.id in scored,
        )
        for each in session.scalars(wanted)
    ]


MOST: Final = 200
PUBLIC_FIELDS: Final = MappingProxyType(
    {
        "identified": ("account", "name"),
        "scored": ("submission_id", "label_version", "policy"),
        "annotated": ("trajectory_id", "annotator", "is_done"),
        "gold_marked": ("trajectory_id",),
        "resolved": ("trajectory_id", "question"),
        "disputed": ("dispute_id", "trajectory_id", "question", "split"),
        "dispute_decided": ("dispute_id",),
        "labels_published": (
            "suite",
            "version",
            "file_sha256",
            "why",
            "labelled",
            "changes",
            "guidelines_sha256",
        ),
        "error_tagged": ("judge", "trajectory_id"),
        "rescored": ("from", "to", "submissions", "ranks"),
    }
)
"""Kinds that hold labels, or figures that give them away (counts by task): the fields that are shown."""


def read_log(
    session: Session, before: int | None = None, kind: str | None = None, most: int = 50
) -> list[dict[str, Any]]:
    """At most ``most`` events before a sequence, newest first; of one kind, where that is said."""
    kinds = None if kind is None else [kind]
    return [event_to_response(event) for event in events_before(session, before, kinds, min(most, MOST))]


def event_to_response(event: Event) -> dict[str, Any]:
    """An event as JSON, without its nonce and anything that labels went into."""
    body = {name: event.body[name] for name in PUBLIC_FIELDS.get(event.kind, tuple(event.body))}
    return {
        "sequence": event.sequence,
        "kind": event.kind,
        "at": event.at.isoformat(timespec="microseconds"),
        "actor": event.actor,
        "body": body,
        "hash": event.hash,
    }
