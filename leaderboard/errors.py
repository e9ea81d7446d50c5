"""A judge's errors: the queue for reviewing them, and the tags that reviewers give them.

A queue reveals labels, so it exists only for dev, and for test if the suite's test labels are public. A tag
names one of the paper's categories, or one of the reviewer's own. Tags can be counted, compared between
reviewers, and written as CSV.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

import numpy as np
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from arb.core.files import csv_text
from arb.core.ids import TrajectoryId
from arb.core.suite import Suite
from leaderboard.board.export import inert
from leaderboard.judge_precision.confusion import ratio
from leaderboard.labels.coefficients import coefficients, confusion_table
from leaderboard.labels.labels import LabelSet

Kind = Literal["false positive", "false negative", "wrong answer"]


@dataclass(frozen=True, slots=True)
class Category:
    """A kind of error: its title, and how to recognise it."""

    title: str
    description: str


_FILE: Final = Path(__file__).with_name("error_categories.toml")
CATEGORIES: Final = MappingProxyType(
    {name: Category(**found) for name, found in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()}
)
"""The paper's categories (section 6) in our words. People may also use their own."""


def categories_of(suite: Suite) -> Mapping[str, Category]:
    """Return the categories of a suite: ``error_tags`` in its ``suite.toml``, else those of the paper."""
    own = suite.profile.error_tags
    return {name: Category(title, description) for name, title, description in own} or CATEGORIES


class ErrorsHidden(Exception):
    """Raised when the labels of a split are hidden, since a list of errors would reveal them."""


@dataclass(frozen=True, slots=True, repr=False)
class WrongVerdict:
    """A verdict that the label contradicts; on a target that is not binary, it is a "wrong answer".

    ``others`` is the number of other judges with a verdict on the trajectory; ``others_right`` of them agree
    with the label. ``priority`` is ``others_right / others``, or 0 without other judges: an error that the
    others avoid teaches more.
    """

    trajectory_id: str
    benchmark: str
    agent: str
    kind: Kind
    priority: float
    others_right: int
    others: int
    step: str | None = None
    part: str | None = None

    def __repr__(self) -> str:
        return f"WrongVerdict({self.trajectory_id!r})"  # without ``kind``, which reveals the label


def error_queue(
    suite: Suite, labels: LabelSet, label: str, verdicts: np.ndarray, others: Sequence[np.ndarray] = ()
) -> tuple[WrongVerdict, ...]:
    """Return a judge's errors on one label, highest priority first.

    ``verdicts`` are the judge's own. The verdicts of ``others``, the other judges, determine the priority.
    Each array is int8 of shape (n,) in the order of the labels, with the codes of `Target.code`. Rows without
    a verdict are left out, since they have no reasoning to read. Raises ErrorsHidden if the labels are
    hidden, and ValueError if an array is not as long as the labels, or if the answers are numbers.
    """
    target = labels.target(label)
    if target.type == "score":
        raise ValueError(f"{label}: its answers are numbers, which are neither right nor wrong")
    if not suite.shows_labels(labels.split):
        raise ErrorsHidden(
            f"the test labels of {labels.suite} are hidden, and a list of errors would reveal them; use dev"
        )
    truth = labels.primary[label]
    if wrong_length := [len(column) for column in (verdicts, *others) if len(column) != len(truth)]:
        raise ValueError(f"verdicts: got {wrong_length} rows, but {labels.split} has {len(truth)}")
    is_error = (truth >= 0) & (verdicts >= 0) & (verdicts != truth)
    answers = np.stack(others) if others else np.empty((0, len(truth)), dtype=np.int8)
    n_verdicts = (answers >= 0).sum(axis=0)
    right = (answers == truth).sum(axis=0)
    found = []
    for place in np.flatnonzero(is_error):
        run = labels.trajectories[place]
        kind: Kind = "wrong answer"
        if target.type == "binary":
            kind = "false positive" if verdicts[place] == 1 else "false negative"
        n, n_right = int(n_verdicts[place]), int(right[place])
        share = n_right / n if n else 0.0
        where = run.trajectory_id, run.benchmark, run.agent
        found.append(WrongVerdict(*where, kind, share, n_right, n, run.step, run.part))
    return tuple(sorted(found, key=lambda error: (-error.priority, -error.others, error.trajectory_id)))


NOTE_LENGTH: Final = 4_000
MOST_CATEGORIES: Final = 6
"""The maximum number of categories that one person can give to one error."""
_OWN_CATEGORY: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


class ErrorTagInvalid(ValueError):
    """Raised for an invalid tag. ``problems`` has a (field, message) pair for each problem."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(f"{field}: {message}" for field, message in problems))


def _on_one_line(text: str) -> str:
    text = text.strip()
    if not text:
        raise ValueError("is empty; fill it in")
    if not text.isprintable():
        raise ValueError("contains line breaks or invisible characters; write it on one line")
    return text


def _category(text: str) -> str:
    if text not in CATEGORIES and not _OWN_CATEGORY.fullmatch(text):
        raise ValueError(
            f"use one of {', '.join(CATEGORIES)}, or a category of your own (lowercase letters, digits and _)"
        )
    return text


def _storable(text: str) -> str:
    if "\0" in text:  # PostgreSQL cannot store it
        raise ValueError("contains a NUL character, which cannot be stored; remove it")
    return text.strip()


class ErrorTag(BaseModel):
    """One person's categories for one error of one judge. Only a person's latest tag on an error counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trajectory_id: Annotated[
        str,
        Field(max_length=300),
        AfterValidator(_on_one_line),
        AfterValidator(lambda text: str(TrajectoryId.parse(text))),
    ]
    judge: Annotated[str, Field(max_length=120), AfterValidator(_on_one_line)]
    tagger: Annotated[str, Field(max_length=80), AfterValidator(_on_one_line)]
    category: Annotated[str, Field(max_length=60), AfterValidator(_category)]
    note: Annotated[str, Field(max_length=NOTE_LENGTH), AfterValidator(_storable)] = ""
    at: AwareDatetime
    more: Annotated[
        tuple[Annotated[str, Field(max_length=60), AfterValidator(_category)], ...],
        Field(max_length=MOST_CATEGORIES - 1),
    ] = ()
    """Categories other than ``category``. Events have this field only if it is not empty."""

    @property
    def categories(self) -> tuple[str, ...]:
        """All categories of the error, sorted and without repeats."""
        return tuple(sorted({self.category, *self.more}))


def make_tag(**fields: Any) -> ErrorTag:
    """Return a tag made from the fields of a form. Raises ErrorTagInvalid with all problems."""
    try:
        return ErrorTag(**fields)
    except ValidationError as error:
        problems = []
        for each in error.errors():
            values = {**each.get("ctx", {}), "msg": each["msg"]}
            message = _MESSAGES.get(each["type"], "{msg}").format(**values)
            problems.append((str(each["loc"][0]), message))
    raise ErrorTagInvalid(problems)


_MESSAGES: Final = {
    "missing": "fill it in",
    "string_type": "fill it in",
    "string_too_long": "is over {max_length:,} characters; shorten it",
    "too_long": "has over {max_length} further categories; remove some",
    "string_unicode": "contains invalid Unicode; write it again",
    "timezone_aware": "has no time zone; write it with one, such as +00:00",
    "value_error": "{error}",
    "extra_forbidden": "there is no such field; remove it",
}
"""Message templates, keyed by pydantic's error type. They are filled in from the error's context."""


def current_tags(tags: Iterable[ErrorTag]) -> tuple[ErrorTag, ...]:
    """Return the latest tag of each person on each error, sorted by trajectory, judge and person."""
    latest: dict[tuple[str, str, str], ErrorTag] = {}
    for tag in tags:
        key = (tag.trajectory_id, tag.judge, tag.tagger)
        if key not in latest or tag.at >= latest[key].at:
            latest[key] = tag
    return tuple(latest[key] for key in sorted(latest))


@dataclass(frozen=True)
class TagCounts:
    """The number of errors in each category, the most frequent first, overall and by group.

    An error that two people put into the same category counts only once in it.
    """

    overall: Mapping[str, int]
    by_judge: Mapping[str, Mapping[str, int]]
    by_benchmark: Mapping[str, Mapping[str, int]]
    by_agent: Mapping[str, Mapping[str, int]]


def count_tags(tags: Iterable[ErrorTag]) -> TagCounts:
    """Count the errors in each category, using only the current tags."""
    errors = {
        (tag.trajectory_id, tag.judge, category) for tag in current_tags(tags) for category in tag.categories
    }
    overall: Counter[str] = Counter()
    by_judge: dict[str, Counter[str]] = {}
    by_benchmark: dict[str, Counter[str]] = {}
    by_agent: dict[str, Counter[str]] = {}
    for trajectory_id, judge, category in errors:
        run = TrajectoryId.parse(trajectory_id)
        overall[category] += 1
        for group, name in ((by_judge, judge), (by_benchmark, run.benchmark), (by_agent, run.agent)):
            group.setdefault(name, Counter())[category] += 1
    groups = [
        {name: _largest_first(group[name]) for name in sorted(group)}
        for group in (by_judge, by_benchmark, by_agent)
    ]
    return TagCounts(_largest_first(overall), *groups)


def _largest_first(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


@dataclass(frozen=True)
class TagComparison:
    """Agreement of two people on the ``n`` errors that both tagged.

    If a tag has several categories, their combination counts as one category. ``percent`` is the share of
    equal categories as a fraction, and ``kappa`` is Cohen's kappa; both are None if undefined.
    ``table[i][j]`` counts errors with ``categories[i]`` from the first and ``categories[j]`` from the second
    person. ``differing`` has both tags of every error on which the two people differ.
    """

    n: int
    percent: float | None
    kappa: float | None
    categories: tuple[str, ...]
    table: tuple[tuple[int, ...], ...]
    differing: tuple[tuple[ErrorTag, ErrorTag], ...]


def compare_taggers(tags: Iterable[ErrorTag], first: str, second: str) -> TagComparison:
    """Compare the current tags of two people, over all judges."""
    by_person: dict[str, dict[tuple[str, str], ErrorTag]] = {first: {}, second: {}}
    for tag in current_tags(tags):
        if tag.tagger in by_person:
            by_person[tag.tagger][tag.trajectory_id, tag.judge] = tag
    ours, theirs = by_person[first], by_person[second]
    pairs = [(ours[error], theirs[error]) for error in sorted(ours.keys() & theirs.keys())]
    categories = tuple(sorted({_joined(tag) for pair in pairs for tag in pair}))
    places = {category: place for place, category in enumerate(categories)}
    codes = np.array([places[_joined(tag)] for pair in pairs for tag in pair], dtype=np.int64).reshape(-1, 2)
    table = confusion_table(codes[:, 0], codes[:, 1], len(categories))
    return TagComparison(
        n=len(pairs),
        percent=ratio(int(np.trace(table)), len(pairs)),
        kappa=coefficients(table[None], table[None], "nominal")["kappa"],
        categories=categories,
        table=tuple(tuple(row) for row in table.tolist()),
        differing=tuple(pair for pair in pairs if _joined(pair[0]) != _joined(pair[1])),
    )


def _joined(tag: ErrorTag) -> str:
    return " + ".join(tag.categories)


def tags_to_csv(tags: Iterable[ErrorTag]) -> str:
    """Return all tags, oldest first and including replaced ones, as CSV that is safe in a spreadsheet.

    A tag with several categories has one row for each.
    """
    names = tuple(name for name in ErrorTag.model_fields if name != "more")
    rows = []
    for tag in sorted(tags, key=lambda tag: (tag.at, tag.trajectory_id, tag.judge, tag.tagger)):
        run = TrajectoryId.parse(tag.trajectory_id)
        values = {**tag.model_dump(), "at": tag.at.astimezone(UTC).isoformat()}
        for category in tag.categories:
            values["category"] = category
            rows.append([*(inert(values[name]) for name in names), inert(run.benchmark), inert(run.agent)])
    return csv_text((*names, "benchmark", "agent"), rows, "\r\n")
