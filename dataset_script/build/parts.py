"""Make the tables of one trajectory (a "part") and store them, so that an interrupted build can resume.

A part's folder is named by a hash of everything that its content depends on: the source files, the labels,
the blinding and the code. ``part.json`` is written last; a part without it is incomplete and is made again.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa

from arb.core.annotation import Annotation
from arb.core.ids import Trajectory, TrajectoryId
from arb.core.predictions.findings import Finding
from arb.core.suite import Suite, SuiteError, load_suite, shipped_suites
from arb.core.suites.targets import Target
from arb.core.trajectory import Recording
from dataset_script.build.blind import Blinding
from dataset_script.build.output import code_version
from dataset_script.build.report import BuildReport, finding
from dataset_script.build.rows import ROWS_OF_A_RUN, Run, judgment_row, notes_on, with_images
from dataset_script.schema import arrow_schema, columns_of
from dataset_script.sources.base import RecordedJudgment, SourceFile, SourceListing, TrajectorySource
from dataset_script.sources.problems import Note, UnusableFileError
from dataset_script.sources.steps import ordered_steps


def choose_suite(files: Collection[SourceFile]) -> Suite:
    """Return the only shipped suite that has any of these runs. Raises SuiteError if none or several do."""
    holding = []
    for name in shipped_suites():
        suite = load_suite(name)
        if any(suite.find(file.trajectory_id) for file in files):
            holding.append(suite)
    if len(holding) == 1:
        return holding[0]
    if holding:
        names = ", ".join(suite.name for suite in holding)
        raise SuiteError(f"the source has trajectories of several suites ({names}); choose one with --suite")
    few = ", ".join(file.trajectory_id for file in islice(files, 3))
    raise SuiteError(
        f"no shipped suite ({', '.join(shipped_suites())}) has any of the {len(files)} trajectories "
        f"found, such as {few}; add --suite FOLDER, a folder with "
        "trajectories.csv (columns trajectory_id, split; split is dev or test)"
    )


def named_trajectories(suite: Suite, ids: Iterable[str]) -> tuple[Trajectory, ...]:
    """Return the suite's trajectories with these ids. Raises SuiteError for an unknown id."""
    found = {name: suite.find(name) for name in ids}
    if unknown := [name for name, trajectory in found.items() if trajectory is None]:
        raise SuiteError(f"{', '.join(unknown[:5])}: not in the suite {suite.name}; correct or remove them")
    return tuple(dict.fromkeys(filter(None, found.values())))


def group_files(
    suite: Suite, listing: SourceListing, report: BuildReport
) -> dict[Trajectory, tuple[SourceFile, ...]]:
    """Return the files of each trajectory of the suite. Files that spell the id as the suite does come first.

    Files with runs that are not in the suite are added to the findings in ``report``.
    """
    found: dict[Trajectory, list[SourceFile]] = {}
    for file in listing.files:
        trajectory = suite.find(file.trajectory_id)
        if trajectory is None:
            report.left_out.append(finding("not_in_suite", file.name))
        else:
            found.setdefault(trajectory, []).append(file)

    for trajectory, files in found.items():
        files.sort(key=lambda file: file.name.encode("utf-8", "surrogatepass"))
        files.sort(key=lambda file: file.trajectory_id != trajectory.trajectory_id)
    return {trajectory: tuple(files) for trajectory, files in found.items()}


Result = TypeVar("Result")

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
"""Options for storing parts. The compression is fast, since a part is written once and read once."""


@dataclass(frozen=True, slots=True)
class PartTask:
    """A trajectory whose tables are to be made, with its files in order of preference.

    With ``is_judgments``, the files are published judgments instead of runs. ``for_judges`` omits the reward.
    ``reward`` replaces the one in the source.
    """

    folder: Path
    source: TrajectorySource
    trajectory: Trajectory
    files: tuple[SourceFile, ...]
    labels: Annotation | None = None
    blinding: Blinding | None = None
    is_judgments: bool = False
    for_judges: bool = False
    reward: float | None = None

    @property
    def published_id(self) -> str:
        own = self.trajectory.trajectory_id
        return self.blinding.trajectory_id(own) if self.blinding else own


@dataclass(frozen=True, slots=True)
class Part:
    """The stored tables of a trajectory. ``sizes`` has each table's size in bytes, keyed by configuration.

    A trajectory without usable files has no tables. If the build extends a dataset that already contains the
    trajectory, ``earlier`` is the number of its shard there.
    """

    folder: str
    trajectory_id: str
    sizes: Mapping[str, int]
    left_out: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    earlier: int | None = None

    def table(self, configuration: str) -> pa.Table:
        with pa.memory_map(str(_table_path(self.folder, configuration))) as file:
            return pa.ipc.open_stream(file).read_all()


def _table_path(folder: str | Path, configuration: str) -> Path:
    return Path(folder) / f"{configuration}.arrow"


def make_part(task: PartTask) -> Part:
    """Return the stored part of a task, or make and store it. Raises OSError if the disk is full."""
    folder = task.folder / _name(task)
    if (part := _stored_part(folder, task.published_id)) is not None:
        return part
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    tables, left_out, notes = make_tables(task)
    sizes = {}
    for name, table in tables.items():
        path = _table_path(folder, name)
        with path.open("wb") as file, pa.ipc.new_stream(file, table.schema, options=_OPTIONS) as writer:
            writer.write_table(table)
        sizes[name] = path.stat().st_size
    findings = {"left_out": left_out, "notes": notes}
    stored = {name: [(f.code, f.file, f.message) for f in found] for name, found in findings.items()}
    (folder / "part.json").write_text(json.dumps({"sizes": sizes, **stored}))
    return Part(str(folder), task.published_id, sizes, tuple(left_out), tuple(notes))


def _stored_part(folder: Path, trajectory_id: str) -> Part | None:
    """Return the part in a folder, or None if it is absent or incomplete."""
    try:
        stored = json.loads((folder / "part.json").read_bytes())
        sizes = {name: _table_path(folder, name).stat().st_size for name in stored["sizes"]}
    except (OSError, ValueError):
        return None
    if sizes != stored["sizes"]:
        return None
    left_out, notes = (tuple(finding(*each) for each in stored[name]) for name in ("left_out", "notes"))
    return Part(str(folder), trajectory_id, sizes, left_out, notes)


Tables = dict[str, pa.Table]


def make_tables(task: PartTask) -> tuple[Tables, list[Finding], list[Finding]]:
    """Return a task's tables, keyed by configuration, the findings on files left out, and the notes."""
    return _judgments(task) if task.is_judgments else _run(task)


def _run(task: PartTask) -> tuple[Tables, list[Finding], list[Finding]]:
    def made(file: SourceFile) -> tuple[Tables, list[Finding]]:
        recording, read_notes = read_run(task.source, file)
        if task.for_judges or task.reward is not None:
            recording = replace(recording, cum_reward=None if task.for_judges else task.reward)
        recording, broken = with_images(recording)
        run = Run(task.trajectory, recording, task.labels)
        tables = {name: table_of(name, rows(run), task.blinding) for name, rows in ROWS_OF_A_RUN.items()}
        if task.blinding is not None or not len(tables["usage"]):  # it may tell which agent ran
            del tables["usage"]
        notes = [finding(note.code, file.name, note.detail) for note in (*read_notes, *broken)]
        if file.trajectory_id != task.trajectory.trajectory_id:
            notes.append(finding("other_spelling", file.name, task.trajectory.trajectory_id))
        known = {note.code for note in read_notes}
        new = (note for note in notes_on(run) if note.code not in known)
        notes += [finding(note.code, task.trajectory.trajectory_id, note.detail) for note in new]
        return tables, notes

    found, left_out = first_usable(task.files, made)
    tables, notes = found or ({}, [])
    return tables, left_out, notes


def first_usable(
    files: Sequence[SourceFile], use: Callable[[SourceFile], Result]
) -> tuple[Result | None, list[Finding]]:
    """Return ``use(file)`` for the first usable file, or None, and a finding on every other file."""
    left_out = []
    for position, file in enumerate(files):
        try:
            result = use(file)
        except UnusableFileError as error:
            left_out.append(finding(error.code, file.name, error.detail))
            continue
        others = files[position + 1 :]
        left_out += [finding("duplicate", other.name, f"{file.name} is used") for other in others]
        return result, left_out
    return None, left_out


def _judgments(task: PartTask) -> tuple[Tables, list[Finding], list[Finding]]:
    """Return a table with one judgment per judge, findings on the files left out, and no notes.

    If a judge has several judgments, the first one that did not fail is preferred.
    """
    left_out: list[Finding] = []
    by_judge: dict[str, tuple[SourceFile, RecordedJudgment]] = {}
    for file in task.files:
        try:
            judgment = guarded(task.source.read_judgment, file)
        except UnusableFileError as error:
            left_out.append(finding(error.code, file.name, error.detail))
            continue
        taken = by_judge.get(judgment.judge)
        if taken is None:
            by_judge[judgment.judge] = file, judgment
        elif taken[1].state == "error" and judgment.state != "error":
            left_out.append(finding("failed_judgment", taken[0].name, f"{file.name} is used"))
            by_judge[judgment.judge] = file, judgment
        else:
            code = "failed_judgment" if judgment.state == "error" else "duplicate"
            left_out.append(finding(code, file.name, f"{taken[0].name} is used"))
    rows = [judgment_row(task.trajectory, by_judge[judge][1]) for judge in sorted(by_judge)]
    return ({"judgments": table_of("judgments", rows, task.blinding)} if rows else {}), left_out, []


def guarded(read: Callable[[SourceFile], Result], file: SourceFile) -> Result:
    """Return ``read(file)``. Any exception becomes an UnusableFileError, so that no file can end a build."""
    try:
        return read(file)
    except UnusableFileError:
        raise
    except Exception as error:
        raise UnusableFileError("reader_failed", f"{type(error).__name__}: {error}"[:200]) from error


def read_run(source: TrajectorySource, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
    """Return a run and the notes on it. Raises UnusableFileError if the id or the file cannot be used."""
    try:
        TrajectoryId.parse(file.trajectory_id)
    except ValueError as error:
        raise UnusableFileError("not_a_trajectory", str(error)) from error
    recording, notes = guarded(source.read, file)
    steps, changed = ordered_steps(recording.steps)
    return replace(recording, steps=steps), (*notes, *changed)


def table_of(
    configuration: str,
    rows: Iterable[Mapping[str, Any]],
    blinding: Blinding | None,
    questions: Sequence[Target] = (),
) -> pa.Table:
    """Return the rows as a one-chunk table. Raises UnusableFileError for a value of the wrong type."""
    columns = columns_of(configuration, questions)
    if blinding is not None:
        rows = (blinding.row(row, columns) for row in rows)
    schema = arrow_schema(configuration, questions=questions).remove_metadata()
    try:
        return pa.Table.from_pylist(list(rows), schema=schema).combine_chunks()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UnusableFileError("not_a_trajectory", f"{configuration}: {error}"[:200]) from error


def _name(task: PartTask) -> str:
    content = [
        code_version(),
        task.source.kind,
        task.is_judgments,
        task.for_judges,
        task.reward,
        asdict(task.trajectory),
        asdict(task.labels) if task.labels else None,
        hashlib.sha256(task.blinding.key).hexdigest() if task.blinding else None,
        [(file.name, file.trajectory_id, task.source.identity(file)) for file in task.files],
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
