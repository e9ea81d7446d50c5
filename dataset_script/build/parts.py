"""One trajectory's tables, made once: a file named by what it was made from, so that a build can go on.

A part is written under another name and renamed when it is whole; a build that was killed finds the parts
that it has, and makes the others. A part's name is a hash of the source file's identity, of everything else
that goes into it, and of the code that makes it. Pictures that are files of the source are not copied into
it (`PictureFile`), so that a build writes hardly more than the dataset. `Workers` shares the work out to
processes, a bounded amount of it at a time.
"""

import hashlib
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from itertools import islice
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa

from arb.core.annotation import Annotation
from arb.core.predictions.findings import Finding
from arb.core.suite import Suite, SuiteError, Trajectory, load_suite, shipped_suites
from arb.core.suites.questions import Question
from dataset_script.build.blind import Blinding
from dataset_script.build.output import code_version
from dataset_script.build.pictures import picture_files, read_pictures
from dataset_script.build.report import finding
from dataset_script.build.rows import ROWS_OF_A_RUN, Run, judgment_row, notes_on, with_images
from dataset_script.schema import arrow_schema, columns_of
from dataset_script.sources.base import (
    Judgment,
    SourceFile,
    TrajectorySource,
    UnusableFileError,
)


def choose_suite(files: Collection[SourceFile]) -> Suite:
    """The shipped suite that holds some of these runs; raises SuiteError when none does, or more than one."""
    holding = []
    for name in shipped_suites():
        suite = load_suite(name)
        if any(suite.find(file.trajectory_id) for file in files):
            holding.append(suite)
    if len(holding) == 1:
        return holding[0]
    if holding:
        names = ", ".join(suite.name for suite in holding)
        raise SuiteError(f"the source holds trajectories of several suites ({names}); choose by --suite")
    few = ", ".join(file.trajectory_id for file in islice(files, 3))
    raise SuiteError(
        f"no shipped suite ({', '.join(shipped_suites())}) has any of the {len(files)} trajectories "
        f"found, such as {few}; give --suite FOLDER, a folder with "
        "trajectories.csv (columns trajectory_id, split; split is dev or test)"
    )


Result = TypeVar("Result")

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
"""Parts are written once and read once, so they are packed quickly rather than well."""

_BEGINS_WITH: Final = {"trajectories_with_screenshot": "trajectories"}
"""A configuration whose first columns are another one's; a part has those once."""

_BYTES_AT_A_TIME: Final = 1_000_000
"""Arrow writes each buffer of each column by a call of its own, a hundred for a trajectory, unless they are
gathered.
"""

_MOST_PICTURE_BYTES: Final = 2**31 - 1
"""Of one trajectory: what a column of Arrow's `binary` holds."""


@dataclass(frozen=True, slots=True)
class PartTask:
    """A trajectory to make a part of: its files, the one to prefer first, and what goes with them."""

    folder: Path
    source: TrajectorySource
    trajectory: Trajectory
    files: tuple[SourceFile, ...]
    labels: Annotation | None = None
    blinding: Blinding | None = None
    is_judgments: bool = False

    @property
    def published_id(self) -> str:
        own = self.trajectory.trajectory_id
        return self.blinding.trajectory_id(own) if self.blinding else own


@dataclass(frozen=True, slots=True)
class Part:
    """A part that was made: its published id, the sizes of its tables by configuration, and what there is to
    say.

    A trajectory whose files give nothing has a part without tables. ``sizes`` are about what the tables take
    in a shard, pictures included. ``earlier`` is the number of the shard that it has in the dataset that is
    added to; None where it is new.
    """

    file: str
    trajectory_id: str
    sizes: Mapping[str, int]
    left_out: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()
    earlier: int | None = None

    def table(self, configuration: str) -> pa.Table:
        """One table of the part. Raises SourceError when a picture in it was changed since."""
        with pa.memory_map(self.file) as file:
            return read_pictures(_stored_table(file, _contents(file)["places"], configuration))


def make_part(task: PartTask) -> Part:
    """The part of a task: the one that is there, or a new one. Raises OSError when the disk is full.

    The file has the tables one after the other, each as a stream of Arrow's, then as JSON where they begin
    (``places``), their ``sizes`` and the findings, then the length of that in 8 bytes.
    """
    path = task.folder / _name(task)
    if path.is_file() and (part := _read(path, task.published_id)) is not None:
        return part
    unfinished = path.with_name(f"{path.name}.unfinished")
    tables, left_out, notes = make_tables(task)
    places: dict[str, int] = {}
    sizes: dict[str, int] = {}
    with pa.output_stream(str(unfinished), compression=None, buffer_size=_BYTES_AT_A_TIME) as file:
        for name, table in tables.items():
            base = _BEGINS_WITH.get(name)
            own = table.select(table.column_names[tables[base].num_columns :]) if base else table
            places[name] = file.tell()
            with pa.ipc.new_stream(file, own.schema, options=_OPTIONS) as writer:
                writer.write_table(own)
            sizes[name] = file.tell() - places[name] + sum(each.size for each in picture_files(own))
            sizes[name] += sizes[base] if base else 0
        found = {"left_out": left_out, "notes": notes}
        stored = {name: [(f.code, f.file, f.message) for f in findings] for name, findings in found.items()}
        content = json.dumps({"places": places, "sizes": sizes, **stored}).encode()
        file.write(content)
        file.write(len(content).to_bytes(8))
    unfinished.rename(path)
    return Part(str(path), task.published_id, sizes, tuple(left_out), tuple(notes))


def _contents(file: pa.NativeFile) -> dict[str, Any]:
    """What stands at the end of a part. Raises ValueError for a file that was cut off."""
    end = file.size() - 8
    length = int.from_bytes(file.read_at(8, max(0, end)))
    return json.loads(file.read_at(length, end - length) if 0 < length <= end else b"")


def _stored_table(file: pa.NativeFile, places: Mapping[str, int], configuration: str) -> pa.Table:
    """A table as it was stored: pictures that are files are still to be read."""
    file.seek(places[configuration])
    own = pa.ipc.open_stream(file).read_all()
    if configuration not in _BEGINS_WITH:
        return own
    base = _stored_table(file, places, _BEGINS_WITH[configuration])
    return pa.Table.from_arrays([*base.columns, *own.columns], schema=pa.schema([*base.schema, *own.schema]))


def _read(path: Path, trajectory_id: str) -> Part | None:
    """A part that is there; None where its pictures, or it, are not as they were."""
    try:
        with pa.memory_map(str(path)) as file:
            content = _contents(file)
            tables = [_stored_table(file, content["places"], name) for name in content["places"]]
    except (ValueError, pa.ArrowException):
        return None
    if not all(picture.is_unchanged() for table in tables for picture in picture_files(table)):
        return None
    return Part(
        str(path),
        trajectory_id,
        content["sizes"],
        tuple(finding(*stored) for stored in content["left_out"]),
        tuple(finding(*stored) for stored in content["notes"]),
    )


Tables = dict[str, pa.Table]


def make_tables(task: PartTask) -> tuple[Tables, list[Finding], list[Finding]]:
    """The tables of a task by configuration, what was left out, and the notes. Pictures that are files are
    still to be read: `read_pictures`.
    """
    return _judgments(task) if task.is_judgments else _run(task)


def _run(task: PartTask) -> tuple[Tables, list[Finding], list[Finding]]:
    """The tables of the first file that gives the trajectory; the ones before and after it are left out."""
    left_out: list[Finding] = []
    for position, file in enumerate(task.files):
        try:
            recording, read_notes = guarded(task.source.read, file)
            recording, broken = with_images(recording)
            run = Run(task.trajectory, recording, task.labels)
            tables = {name: table_of(name, rows(run), task.blinding) for name, rows in ROWS_OF_A_RUN.items()}
            if sum(each.size for each in picture_files(tables["steps"])) > _MOST_PICTURE_BYTES:
                raise UnusableFileError("not_a_trajectory", "steps: more than 2 GB of pictures")
        except UnusableFileError as error:
            left_out.append(finding(error.code, file.name, error.detail))
            continue
        others = task.files[position + 1 :]
        left_out += [finding("duplicate", other.name, f"{file.name} was taken") for other in others]
        notes = [finding(note.code, file.name, note.detail) for note in (*read_notes, *broken)]
        if file.trajectory_id != task.trajectory.trajectory_id:
            notes.append(finding("other_spelling", file.name, task.trajectory.trajectory_id))
        known = {note.code for note in read_notes}
        new = (note for note in notes_on(run) if note.code not in known)
        notes += [finding(note.code, task.trajectory.trajectory_id, note.detail) for note in new]
        return tables, left_out, notes
    return {}, left_out, []


def _judgments(task: PartTask) -> tuple[Tables, list[Finding], list[Finding]]:
    """The judgments of a trajectory by judge; a failed attempt gives way to one that has a reply."""
    left_out: list[Finding] = []
    by_judge: dict[str, tuple[SourceFile, Judgment]] = {}
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
            left_out.append(finding("failed_judgment", taken[0].name, f"{file.name} was taken"))
            by_judge[judgment.judge] = file, judgment
        else:
            code = "failed_judgment" if judgment.state == "error" else "duplicate"
            left_out.append(finding(code, file.name, f"{taken[0].name} was taken"))
    rows = [judgment_row(task.trajectory, by_judge[judge][1]) for judge in sorted(by_judge)]
    return ({"judgments": table_of("judgments", rows, task.blinding)} if rows else {}), left_out, []


def guarded(read: Callable[[SourceFile], Result], file: SourceFile) -> Result:
    """What ``read`` gives. One file never ends a build: whatever else goes wrong is the file's finding."""
    try:
        return read(file)
    except UnusableFileError:
        raise
    except Exception as error:
        raise UnusableFileError("reader_failed", f"{type(error).__name__}: {error}"[:200]) from error


def table_of(
    configuration: str,
    rows: Iterable[Mapping[str, Any]],
    blinding: Blinding | None,
    questions: Sequence[Question] = (),
) -> pa.Table:
    """The rows as a table of one chunk. Raises UnusableFileError for a value that the column cannot hold."""
    columns = columns_of(configuration, questions)
    if blinding is not None:
        rows = (blinding.row(row, columns) for row in rows)
    schema = arrow_schema(configuration, questions=questions).remove_metadata()
    try:
        return pa.Table.from_pylist(list(rows), schema=schema).combine_chunks()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise UnusableFileError("not_a_trajectory", f"{configuration}: {error}"[:200]) from error


def _name(task: PartTask) -> str:
    """A hash of everything that the part depends on; hiding ids with another key makes another part."""
    content = [
        code_version(),
        task.source.kind,
        task.is_judgments,
        asdict(task.trajectory),
        asdict(task.labels) if task.labels else None,
        hashlib.sha256(task.blinding.key).hexdigest() if task.blinding else None,
        [(file.name, file.trajectory_id, task.source.identity(file)) for file in task.files],
    ]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


Task = TypeVar("Task")
Key = TypeVar("Key")

BYTES_AT_ONCE: Final = 400_000_000
"""Size of the files that are being read at the same time, whatever the number of processes."""


MOST_WORKERS: Final = 4
"""By default: each takes 75 MB before it reads anything, and all together are to stay under 1 GB."""


class WorkerError(RuntimeError):
    """A worker process that ended on its own; the message says what may be done."""


def default_workers() -> int:
    """The number of processors that this process may use, at most `MOST_WORKERS`."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, MOST_WORKERS)


class Workers:
    """Processes that work until the block ends; with one, everything happens in this process."""

    def __init__(self, number: int):
        self._number = number
        self._pool: ProcessPoolExecutor | None = None
        self._others: list[BaseProcess] = []

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_exception: object) -> None:
        if self._pool is None:
            return
        if kind is not None:  # nobody wants the results any more, and one may be long in coming
            for process in multiprocessing.active_children():
                if process not in self._others:
                    process.terminate()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def run_all(
        self,
        function: Callable[[Task], Result],
        tasks: Sequence[Task],
        sizes: Sequence[int],
        done: Callable[[Task], None] = lambda task: None,
    ) -> list[Result]:
        """The results in the order of the tasks; ``done`` is called with each task as it ends.

        Large tasks are begun first, and no more at once than `BYTES_AT_ONCE`, but always one. An exception
        of a task ends the rest. Raises WorkerError when a process was killed.
        """
        order = sorted(range(len(tasks)), key=lambda index: (-sizes[index], index))
        results: dict[int, Result] = {}
        for index, result in self._run(function, ((index, tasks[index], sizes[index]) for index in order)):
            results[index] = result
            done(tasks[index])
        return [results[index] for index in range(len(tasks))]

    def run_each(
        self, function: Callable[[Task], Result], tasks: Iterable[tuple[Task, int]]
    ) -> Iterator[tuple[Task, Result]]:
        """Each task with its result, as they end. ``tasks`` come with their sizes, and are asked for as there
        is room for them: however many there are, few are held. Raises what `run_all` does.
        """
        return self._run(function, ((task, task, size) for task, size in tasks))

    def _run(
        self, function: Callable[[Task], Result], tasks: Iterable[tuple[Key, Task, int]]
    ) -> Iterator[tuple[Key, Result]]:
        if self._number <= 1:
            yield from ((key, function(task)) for key, task, _ in tasks)
            return
        waiting = iter(tasks)
        following = next(waiting, None)
        running: dict[Future[Result], tuple[Key, int]] = {}
        try:
            while following is not None or running:
                while following is not None and self._has_room(
                    following[2], [s for _, s in running.values()]
                ):
                    key, task, size = following
                    running[self._processes().submit(function, task)] = key, size
                    following = next(waiting, None)
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    key, _ = running.pop(future)
                    yield key, future.result()
        except BrokenProcessPool as error:
            raise WorkerError(
                "a worker process was ended from outside, perhaps for want of memory; "
                "run again, it goes on from here (--workers 1 takes the least memory)"
            ) from error

    def _has_room(self, size: int, running: Sequence[int]) -> bool:
        """Whether one more task may be handed out: one is kept ready for each process, within the memory."""
        return not running or (len(running) < 2 * self._number and sum(running) + size <= BYTES_AT_ONCE)

    def _processes(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self._others = multiprocessing.active_children()
            self._pool = ProcessPoolExecutor(self._number, context, initializer=_begin_worker)
        return self._pool


class _WithoutPandas:
    """pyarrow looks for pandas at its first conversion: half a second and 50 MB a worker, for nothing."""

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        """Pandas is not to be had; other modules are for other finders."""
        if name == "pandas":
            raise ImportError("workers do without pandas")


def _begin_worker() -> None:
    """Ctrl-C is the parent's business; a worker whose parent was killed ends too."""
    sys.meta_path.insert(0, _WithoutPandas())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
