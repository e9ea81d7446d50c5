"""A suite: the trajectories of a dev and a test split, with rules, tasks and published dev labels.

A suite is public and has no test labels. Shipped suites are folders under ``suites/``. A custom suite is a
folder of the same form anywhere else. Only ``trajectories.csv`` or ``published.csv`` is required:

- ``trajectories.csv``: trajectory_id, split.
- ``published.csv``: metrics of judges as published, for a suite whose runs and labels are not public
  (`leaderboard.suites.published`). It takes the place of ``trajectories.csv``, and nobody can submit.
- ``items.csv``: trajectory_id with a step or a part, for targets about steps or other parts of runs.
- ``test_labels.csv``: the test labels of a suite with public labels, as annotations.
- ``dev_labels.csv``: the published dev labels, which the dataset also contains.
- ``tasks.csv``: task, benchmark, split, sites, evaluation_types, difficulty, category. Sites and evaluation
  types are separated by spaces. Unknown values are empty. The official suite's tasks are from the PyPI wheel
  `agent-reward-bench` 0.1.2.
- ``about.md``: a text for the dataset's card.
- ``guidelines.md``: general guidelines for annotators, in Markdown.
- ``suite.toml``: profile, targets, rules and more, as explained in ``suites/suite.toml.j2``.
"""

import csv
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from arb.core.annotation import DECISION, Annotation
from arb.core.files import csv_text
from arb.core.formats import format_problem
from arb.core.ids import ItemKey, Trajectory, reading_key, task_key
from arb.core.suites.profile import PROFILE_KEYS, SuiteProfile, read_profile
from arb.core.suites.targets import (
    RELEASED_ANSWERS,
    UNSURE,
    Target,
    default_guidelines,
    default_targets,
    main_target,
    questions_sha256,
    read_targets,
    scored,
)
from arb.core.vocabulary import SPLITS


@dataclass(frozen=True)
class SuiteRules:
    """The rules of a suite; ``suites/suite.toml.j2`` explains each of them."""

    files_a_day: int = 2
    files_a_year: int = 20
    accounts_a_year: int = 20
    reserved_share: float = 0.5
    account_age_days: int = 0
    age_exempt: tuple[str, ...] = ()
    private_noise: float = 6.0
    public_noise: float = 3.0
    public_rows_a_year: int = 2
    round_days: int = 30
    fewest_positives: int = 30
    ranking_half: bool = True


def read_rules(table: Any) -> SuiteRules:
    """Return the rules in the table ``[rules]``, with defaults for missing ones.

    Raises ValueError with a message that lists every problem.
    """
    if not isinstance(table, Mapping):
        raise ValueError("rules: write them as a table, [rules]")
    known: dict[str, Any] = {field.name: field.default for field in fields(SuiteRules)}
    problems = [
        f"rules.{name}: there is no such rule; use one of {', '.join(known)}" for name in table.keys() - known
    ]
    found: dict[str, Any] = {}
    for name, default in known.items():
        if name in table:
            found[name] = tuple(table[name]) if isinstance(table[name], list) else table[name]
            if (problem := _problem(found[name], default)) is not None:
                problems.append(f"rules.{name}: {problem}")
            elif name == "reserved_share" and found[name] > 1:
                problems.append(f"rules.{name}: write a share from 0 to 1")
    if problems:
        raise ValueError("; ".join(sorted(problems)))
    return SuiteRules(**found)


def _problem(value: Any, default: Any) -> str | None:
    """Return advice on what to write instead of a rule's value, or None if it has the type of the default."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1_000_000
    match default:
        case bool():
            return None if isinstance(value, bool) else "write true or false"
        case tuple():
            is_names = isinstance(value, tuple) and all(isinstance(name, str) for name in value)
            return None if is_names else 'write a list of names, such as ["ada", "bob"]'
        case float():
            return None if is_number else "write a number from 0 to 999,999"
        case _:
            return None if is_number and isinstance(value, int) else "write a whole number from 0 to 999,999"


SHIPPED = Path(__file__).parent / "suites"
OFFICIAL = "agent-reward-bench"
EXAMPLES = ("localshop", "sample")
"""Shipped suites that guides use; a Space serves them only if it is asked to."""
TEST_LABELS = "test_labels.csv"
PUBLISHED_METRICS = "published.csv"
_KEYS = ("format", "labels", "subsets", "rules", "targets", "guidelines", *PROFILE_KEYS)
"""The keys of ``suite.toml``."""


class SuiteError(ValueError):
    """Raised for a suite that cannot be used. The message lists every problem and says what to do."""


@dataclass(frozen=True)
class Suite:
    """A suite, with its trajectories in the order of their ids."""

    name: str
    trajectories: tuple[Trajectory, ...]
    dev_labels_path: Path
    tasks_path: Path
    test_labels_path: Path | None = None
    """The file with the test labels, in a suite with public labels, or None."""
    about: str = ""
    """A text about the data in Markdown (``about.md``), for the dataset's card."""
    labels_are_public: bool = False
    """Whether anyone can get the test labels elsewhere, so that exact figures may be shown.

    It is true for a suite of published metrics, which has no labels to protect.
    """
    rules: SuiteRules = field(default_factory=SuiteRules)
    profile: SuiteProfile = field(default_factory=SuiteProfile)
    targets: tuple[Target, ...] = field(default_factory=default_targets)
    """The questions that annotators and judges answer, in the order in which annotators are asked."""
    parts: tuple[Trajectory, ...] = ()
    """The steps and other parts of runs that have labels, sorted by run and step."""
    published_path: Path | None = None
    """The file of published metrics of a suite without runs, or None."""
    subsets: tuple[str, ...] = ()
    """The columns of trajectories.csv or tasks.csv whose values define subsets with figures of their own."""
    guidelines: str = field(default_factory=default_guidelines)
    """General guidelines for annotators, in Markdown. A question may have its own guide."""

    @property
    def is_official(self) -> bool:
        return self.name == OFFICIAL

    @property
    def folder(self) -> Path:
        return self.tasks_path.parent

    @property
    def why_closed(self) -> str | None:
        """A public message that says why no judge can be scored on the suite, or None if judges can."""
        if self.published_path is None:
            return None
        return "this suite has only published metrics; its runs and labels are not public"

    @property
    def own_targets(self) -> tuple[Target, ...]:
        """The suite's targets that have no column in the released format."""
        return tuple(target for target in self.targets if target.is_own)

    @property
    def has_own_targets_only(self) -> bool:
        return len(self.own_targets) == len(self.targets)

    @property
    def scored_targets(self) -> tuple[Target, ...]:
        """The targets that judges are scored on."""
        return scored(self.targets)

    @property
    def main_target(self) -> Target:
        """The target that the board shows first."""
        return main_target(self.targets)

    def target(self, name: str) -> Target | None:
        """Return the target with this name, or None if the suite has no such target."""
        return next((target for target in self.targets if target.name == name), None)

    @property
    def target_titles(self) -> dict[str, str]:
        """The titles of the targets, by name."""
        return {each.name: each.title for each in self.targets}

    @cached_property
    def guidelines_sha256(self) -> str:
        """The SHA-256 (hex) of the questions and guidelines."""
        return questions_sha256(self.targets, self.guidelines)

    @cached_property
    def _by_key(self) -> Mapping[str, Trajectory]:
        return MappingProxyType({reading_key(t.trajectory_id): t for t in self.trajectories})

    @cached_property
    def _asked(self) -> Mapping[str, tuple[list[str], list[str]]]:
        found: dict[str, tuple[list[str], list[str]]] = {}
        for item in self.parts:
            steps, parts = found.setdefault(item.trajectory_id, ([], []))
            if item.step is not None:
                steps.append(item.step)
            elif item.part is not None:
                parts.append(item.part)
        return found

    def asked_in(self, trajectory_id: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return the steps and the other parts of a run that the suite asks about, in order."""
        return self._asked.get(trajectory_id, ((), ()))

    def find(self, trajectory_id: str) -> Trajectory | None:
        """Return the trajectory with an id, in any spelling, or None if the suite does not have it."""
        return self._by_key.get(reading_key(trajectory_id))

    def shows_labels(self, split: str) -> bool:
        """Return whether individual labels of a split may be shown. On test, this requires public labels.

        Every page, response and command that shows a label, or an error that reveals one, follows this rule.
        """
        return split == "dev" or self.labels_are_public

    def split(self, name: str) -> tuple[Trajectory, ...]:
        """Return the trajectories of ``dev`` or ``test``, sorted by id. Raises SuiteError for other names."""
        if name not in SPLITS:
            raise SuiteError(f"there is no split {name!r}: use one of {', '.join(SPLITS)}")
        return tuple(t for t in self.trajectories if t.split == name)

    def items(self, name: str) -> tuple[Trajectory, ...]:
        """Return the items to label in a split: runs (if a target asks about runs), steps and parts."""
        asks_runs = any(target.level == "run" for target in self.targets)
        runs = self.split(name)
        return (runs if asks_runs else ()) + tuple(part for part in self.parts if part.split == name)


def shipped_suites() -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/suite.toml")))


def load_suite(name_or_folder: str | Path = OFFICIAL) -> Suite:
    """Read a shipped suite by its name, or a custom suite from its folder.

    Raises:
        SuiteError: The suite cannot be used. The message names the file and every invalid row.
    """
    is_shipped = str(name_or_folder) in shipped_suites()
    folder = SHIPPED / str(name_or_folder) if is_shipped else Path(name_or_folder)
    path, published_path = folder / "trajectories.csv", folder / PUBLISHED_METRICS
    is_published = published_path.is_file() and not path.is_file()
    if not (path.is_file() or is_published):
        raise SuiteError(
            f"no suite {str(name_or_folder)!r}; use a shipped one ({', '.join(shipped_suites())}) or a "
            "folder that contains trajectories.csv (columns trajectory_id, split)"
        )
    about = folder / "about.md"
    name = folder.resolve().name
    configuration = _configuration(folder, name, "public" if is_published else "private")
    trajectories = () if is_published else _trajectories(path)
    trajectories = _with_tags(trajectories, configuration["subsets"], folder)
    has_labels = (folder / TEST_LABELS).is_file()
    if has_labels and not configuration["labels_are_public"]:
        raise SuiteError(
            f"{TEST_LABELS}: the suite's labels are private; move the file out of its folder, and name it in "
            "ARB_LABELS (csv:PATH), or in ARB_SUITE_LABELS if it is not the first suite"
        )
    return Suite(
        name=name,
        trajectories=trajectories,
        parts=_parts(folder / "items.csv", trajectories),
        published_path=published_path if is_published else None,
        dev_labels_path=folder / "dev_labels.csv",
        tasks_path=folder / "tasks.csv",
        test_labels_path=folder / TEST_LABELS if has_labels else None,
        about=about.read_text(encoding="utf-8").strip() if about.is_file() else "",
        **configuration,
    )


def _configuration(folder: Path, name: str, default_labels: str) -> dict[str, Any]:
    """Return the fields of `Suite` that ``suite.toml`` and ``guidelines.md`` set.

    ``default_labels`` (public or private) applies if the file does not say whether the labels are public or
    private.

    Raises SuiteError with a message that lists every problem.
    """
    path = folder / "suite.toml"
    content: dict[str, Any] = {}
    if path.is_file():
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SuiteError(f"{path.name}: cannot be read ({error}); save it as TOML in UTF-8") from error
    if problem := format_problem("suite.toml", content):
        raise SuiteError(f"{path.name} {problem}")
    labels = content.get("labels", default_labels)
    subsets = content.get("subsets", [])
    found: dict[str, Any] = {"labels_are_public": labels == "public"}
    problems = [
        f"{key[:40]}: is not a known key; use one of {', '.join(_KEYS)}"
        for key in content
        if key not in _KEYS
    ]
    if labels not in ("public", "private"):
        problems.append(f'labels {labels!r}: write labels = "public" or labels = "private"')
    if not isinstance(subsets, list) or not all(isinstance(each, str) for each in subsets):
        problems.append("subsets: write a list of columns of trajectories.csv or tasks.csv, in quotes")
    else:
        found["subsets"] = tuple(each for each in subsets if each not in ("benchmark", "agent"))
    for read in (
        lambda: {"rules": read_rules(content.get("rules", {}))},
        lambda: {"profile": read_profile(content, name)},
        lambda: read_targets(content, folder / "guidelines.md"),
    ):
        try:
            found |= read()
        except ValueError as error:
            problems.append(str(error))
    problems += _unprotected(found)
    if problems:
        raise SuiteError(f"{path.name}, {'; '.join(problems)}")
    targets, off = found.get("targets") or default_targets(), set()
    if not main_target(targets).is_outcome and all(target.level == "run" for target in scored(targets)):
        off.add("errors")
    if not any(target.is_outcome for target in scored(targets)):
        off.add("rates")
    found["profile"] = replace(found["profile"], pages=found["profile"].pages - off)
    return found


def _unprotected(found: Mapping[str, Any]) -> list[str]:
    """Return a problem for each scored target whose figures get no noise although the labels are private."""
    if found["labels_are_public"]:
        return []
    return [
        f"target {target.name}: its figures cannot be protected yet, as noise is added only to binary "
        'targets of level run with missing = "negative"; write labels = "public", or metrics = [] here'
        for target in scored(found.get("targets", ()))
        if not target.is_outcome or target.missing != "negative"
    ]


def read_rows(path: Path, needed: Iterable[str] = ()) -> list[dict[str, str]]:
    """Return the rows of a CSV file.

    Raises:
        SuiteError: The file is not CSV in UTF-8, or lacks one of the ``needed`` columns.
        OSError: The file cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or ()
            if absent := [name for name in needed if name not in columns]:
                raise SuiteError(f"{path.name}: the columns {', '.join(absent)} are missing; add them")
            return list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise SuiteError(f"{path.name}: cannot be read ({error}); save it as CSV in UTF-8") from error


def _trajectories(path: Path) -> tuple[Trajectory, ...]:
    """Return the trajectories in a suite's file, sorted by id."""
    rows = read_rows(path)
    if not rows or not {"trajectory_id", "split"} <= rows[0].keys():
        raise SuiteError(f"{path.name}: needs the columns trajectory_id and split, and at least one row")
    problems: list[str] = []
    by_key: dict[str, Trajectory] = {}
    splits: dict[tuple[str, str], set[str]] = defaultdict(set)
    for number, row in enumerate(rows, start=2):
        spelled, split = row["trajectory_id"] or "", row["split"]
        try:
            run = Trajectory.of(spelled, split)
        except ValueError as error:
            problems.append(f"row {number}, trajectory_id {spelled[:80]!r}: {error}")
            continue
        if split not in SPLITS:
            problems.append(f"row {number}, split {split!r}: use one of {', '.join(SPLITS)}")
        elif by_key.setdefault(reading_key(spelled), run) is not run:
            problems.append(f"row {number}, trajectory_id {spelled[:80]!r}: an earlier row has it; keep one")
        else:
            splits[run.benchmark, run.task].add(split)
    problems += [
        f"task {task}: its runs are in both splits; put them into one split"
        for (_, task), found in splits.items()
        if len(found) > 1
    ]
    if problems:
        raise SuiteError(f"{path.name}: " + "; ".join(problems))
    return tuple(sorted(by_key.values(), key=lambda run: run.trajectory_id))


_MOST_VALUES = 30


def _with_tags(
    trajectories: tuple[Trajectory, ...], subsets: Sequence[str], folder: Path
) -> tuple[Trajectory, ...]:
    """Return the trajectories, tagged with their values in the columns that ``subsets`` names.

    Every report has figures by benchmark and by agent anyway, so benchmarks and agents need no tags.
    """
    if not subsets:
        return trajectories
    runs, tasks = read_rows(folder / "trajectories.csv"), folder / "tasks.csv"
    of_task = read_rows(tasks, ("task", "benchmark")) if tasks.is_file() else []
    by_run = {reading_key(row["trajectory_id"]): row for row in runs}
    by_task = {(row["benchmark"], task_key(row["task"])): row for row in of_task}
    tagged = []
    values: dict[str, set[str]] = {name: set() for name in subsets}
    for run in trajectories:
        row = {**by_task.get((run.benchmark, run.task), {}), **by_run[reading_key(run.trajectory_id)]}
        tags = [(name, (row.get(name) or "").strip()) for name in subsets]
        for name, value in tags:
            values[name] |= {value} - {""}
        tagged.append(replace(run, tags=tuple(tag for tag in tags if tag[1])))
    if problems := [
        f"subsets, {name[:40]}: has {len(found):,} values in the columns of trajectories.csv and tasks.csv; "
        f"name a column with 1 to {_MOST_VALUES} of them"
        for name, found in values.items()
        if not 1 <= len(found) <= _MOST_VALUES
    ]:
        raise SuiteError(f"suite.toml, {'; '.join(problems)}")
    return tuple(tagged)


def _parts(path: Path, trajectories: Sequence[Trajectory]) -> tuple[Trajectory, ...]:
    """Return the steps and parts in ``items.csv``, or an empty tuple if the file is missing."""
    if not path.is_file():
        return ()
    runs = {reading_key(run.trajectory_id): run for run in trajectories}
    problems: list[str] = []
    found: dict[ItemKey, Trajectory] = {}
    for number, row in enumerate(read_rows(path, ("trajectory_id",)), start=2):
        spelled = row["trajectory_id"] or ""
        step, part = row.get("step") or None, row.get("part") or None
        run = runs.get(reading_key(spelled))
        if run is None:
            problems.append(f"row {number}, trajectory_id {spelled[:80]!r}: not in trajectories.csv")
        elif (step is None) == (part is None):
            problems.append(f"row {number}: write either a step or a part")
        elif step is not None and not (step.isascii() and step.isdecimal()):
            problems.append(f"row {number}, step {step[:80]!r}: write the step's number")
        else:
            item = replace(run, step=step, part=part)
            if found.setdefault(item.key, item) is not item:
                problems.append(f"row {number}: an earlier row has the same step or part; keep one")
    if problems:
        raise SuiteError(f"{path.name}: " + "; ".join(problems))
    return tuple(sorted(found.values(), key=_place_in_run))


def _place_in_run(item: Trajectory) -> tuple[str, int, str, str]:
    """Return a sort key that orders the steps of a run by number, and its other parts by name."""
    step = item.step or ""
    return item.trajectory_id, int(step) if step.isdecimal() else 0, step, item.part or ""


_YES_NO = ("yes", "no")
"""The answers that ``dev_labels.csv`` writes as true and false in the columns of released targets."""
_NUMBERS = tuple("123456789")
_ANNOTATOR = re.compile(rf"annotator-\d{{1,4}}|{DECISION}")


def load_dev_labels(suite: Suite) -> tuple[Annotation, ...]:
    """Return the annotations in ``dev_labels.csv``, if it exists, sorted by trajectory and number.

    An empty cell means Unsure if the question is one of the paper's. The columns ``annotator`` (opaque ids)
    and those of the suite's own questions are optional.

    Raises:
        SuiteError: The message names the file and every invalid row, but no label. Rows of test trajectories
            are invalid, because the file is published.
    """
    path = suite.dev_labels_path
    if not path.is_file():
        return ()
    problems: list[str] = []
    asked = [target.name for target in suite.targets if not target.is_own]
    found: dict[tuple[str, str, str, int], Annotation] = {}
    for number, row in enumerate(read_rows(path, ("trajectory_id", "annotation", *asked)), start=2):
        label = _read_dev_label(suite, row)
        if not isinstance(label, Annotation):
            problems += [f"row {number}, {problem}" for problem in label]
            continue
        key = label.trajectory_id, label.of_step or "", label.of_part or "", label.annotation
        if found.setdefault(key, label) is not label:
            problems.append(f"row {number}: annotation {key[-1]} of {key[0]} is given twice; keep one row")
    if not problems:  # otherwise annotation 1 may be in an invalid row
        items = sorted({key[:-1] for key in found})
        problems += [f"{item[0]}: has no annotation 1; add it" for item in items if (*item, 1) not in found]
    if problems:
        raise SuiteError(f"{path.name}: " + "; ".join(problems))
    return tuple(found[key] for key in sorted(found))


def _read_dev_label(suite: Suite, row: Mapping[str, str | None]) -> Annotation | list[str]:
    """Return the annotation in a row of ``dev_labels.csv``, or a list of the row's problems."""
    spelled, number = row["trajectory_id"] or "", row["annotation"]
    trajectory = suite.find(spelled)
    problems: list[str] = []
    if trajectory is None:
        problems.append(f"trajectory_id {spelled[:80]!r}: not in the suite {suite.name}")
    elif trajectory.split != "dev":
        problems.append(f"trajectory_id {spelled[:80]!r}: is a test trajectory; remove this row")
    if number not in _NUMBERS:
        problems.append("annotation: write a number from 1 (the primary annotation) to 9")
    answers = {}
    for name, values in ({} if suite.has_own_targets_only else RELEASED_ANSWERS).items():
        words = (
            {"true": "yes", "false": "no"} if values == _YES_NO else dict(zip(values, values, strict=True))
        )
        word = row.get(name, "")
        if word not in ("", *words):  # None if the row is too short
            problems.append(f"{name}: write one of {', '.join(words)}, or leave it empty")
        answers[name] = words.get(word or "", UNSURE)
    for target in suite.own_targets:
        word = row.get(target.name, "")
        if word is None or (word and not target.accepts(word)):
            values = target.values or ("a number",)
            problems.append(f"{target.name}: write one of {', '.join(values)}, or leave it empty")
        elif word:
            answers[target.name] = word
    annotator = row.get("annotator") or None
    if annotator is not None and not _ANNOTATOR.fullmatch(annotator):
        problems.append("annotator: write an id such as annotator-1, not a name, or leave it empty")
    if problems or trajectory is None or number is None:
        return problems
    step, part = row.get("step") or None, row.get("part") or None
    return Annotation(
        trajectory.trajectory_id, annotator, answers, annotation=int(number), of_step=step, of_part=part
    )


def render_dev_labels(labels: Iterable[Annotation], questions: Sequence[Target]) -> str:
    """Return the text of ``dev_labels.csv``, sorted by trajectory and annotation.

    Unsure is an empty cell. The suite's own questions are the last columns.
    """
    asked = {question.name for question in questions}
    released = [name for name in RELEASED_ANSWERS if name in asked]
    own = [question.name for question in questions if question.is_own]
    truth = {"yes": "true", "no": "false"}
    labels = sorted(
        labels, key=lambda each: (each.trajectory_id, each.of_step or "", each.of_part or "", each.annotation)
    )
    parts = [name for name in ("step", "part") if any(getattr(label, f"of_{name}") for label in labels)]
    rows = []
    for label in labels:
        cells = {name: answer for name, answer in label.answers.items() if answer != UNSURE}
        cells |= {name: truth.get(cells[name], cells[name]) for name in released if name in cells}
        rows.append(
            [
                label.trajectory_id,
                *(getattr(label, f"of_{name}") or "" for name in parts),
                label.annotation,
                *(cells.get(name, "") for name in released),
                label.annotator or "",
                *(cells.get(name, "") for name in own),
            ]
        )
    return csv_text(("trajectory_id", *parts, "annotation", *released, "annotator", *own), rows)
