"""Where a run's files lie, and how they are put in order: calls and answers by partition of their keys,
results by trajectory.

The tasks of a shuffle take and give tables. A partition is in one task at a time, so that nothing is locked.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from arb.core.files import atomic_writer
from arb.core.predictions.write import write_predictions
from arb.judges.engine.answers import AnswerStore, Place, answer_table, journal_lines
from arb.judges.engine.cache import complete_lines, is_segment, key_in, truncate_partial_line
from arb.judges.run.folder import (
    JUDGMENTS,
    PREDICTIONS,
    PROMPTS,
    Record,
    RunFolder,
    error_of,
    prediction_row,
    totals,
)
from arb.judges.run.progress import Progress
from arb.judges.run.runner import note_totals
from arb.judges.types import AnyJudge, ModelSettings

if TYPE_CHECKING:
    import pyarrow as pa


Row = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """Where what passes between the passes of a run lies, in the place of the answers.

    A plan is named by all that its calls depend on, so that the first pass, which reads every trajectory, is
    not made again in another ``session``; the rest is of one session.
    """

    url: str
    plan: str
    session: str

    @property
    def place(self) -> Place:
        return Place(self.url)

    @property
    def folder(self) -> str:
        return f"plans/{self.plan}"

    @property
    def session_folder(self) -> str:
        return f"{self.folder}/{self.session}"

    def calls(self, number: int, shard: int) -> str:
        """The calls that the sessions of a shard wait for after a pass: session and key."""
        return self._of_pass(number, "calls", shard)

    def results(self, number: int, shard: int) -> str:
        return self._of_pass(number, "results", shard).replace(".parquet", ".jsonl")

    def prompts(self, number: int, shard: int) -> str:
        return self._of_pass(number, "prompts", shard).replace(".parquet", ".jsonl")

    def missing(self, number: int, shard: int) -> str:
        """Those of the calls that this shard asks."""
        return f"{self.session_folder}/missing-{number}/{shard:06d}.parquet"

    def replies(self, number: int, shard: int) -> str:
        """Key and line of the answers to the calls."""
        return f"{self.session_folder}/replies-{number}/{shard:06d}.parquet"

    def _of_pass(self, number: int, what: str, shard: int) -> str:
        folder = self.folder if number == 0 else self.session_folder
        return f"{folder}/{what}-{number}/{shard:06d}.parquet"


FEW_ROWS: Final = 16
"""Shards, or files, that the driver itself puts in order."""

SHARDS_OF_A_TASK: Final = 256
JOURNALS_OF_A_TASK: Final = 64
"""What one task reads, at most: some ten megabytes."""

IMPORT_BYTES: Final = 32_000_000
"""Bytes of the reply cache that one task reads."""

IMPORTED: Final = "imported"
"""The folder that says how far each segment of a reply cache was added."""

CHUNK: Final = 192
SMALLEST_CHUNK: Final = 8
CHUNKS_PER_WORKER: Final = 4
"""A chunk has a part of the calls that are left, as many as each worker has still so many of, so that at the
end none waits long for a slow one.
"""

CHUNKS_AT_ONCE: Final = 6
"""That a worker has: while the last calls of one wait to be tried again, it has others to make. With eight
workers, one of them ten times slower, 64 calls in flight and a tenth of them failing, six reach 0.95 of the
ideal rate and four 0.89, in an event loop whose clock goes from event to event.
"""

ROUNDS_OF_A_CHUNK: Final = 2
"""A chunk takes no longer than so many calls one after another: a worker that is ten times slower than the
others gets few of them.
"""

RENDERED: Final = 3 * CHUNK
"""Calls that are rendered at once."""


def chunks(missing: Mapping[int, int], workers: int, in_flight: int) -> Iterator[tuple[int, list[int]]]:
    """Calls of shards in chunks that become smaller towards the end: a shard, the first row of each chunk
    and the row after the last one. What is rendered at once has `RENDERED` calls at most.
    """
    left = sum(missing.values())
    most = min(CHUNK, max(SMALLEST_CHUNK, ROUNDS_OF_A_CHUNK * in_flight // workers))
    for shard, calls in sorted(missing.items()):
        cuts = [0]
        while cuts[-1] < calls:
            size = max(SMALLEST_CHUNK, min(most, left // (workers * CHUNKS_PER_WORKER)))
            stop = min(calls, cuts[-1] + size)
            if stop - cuts[0] > RENDERED:
                yield shard, cuts
                cuts = cuts[-1:]
            left -= stop - cuts[-1]
            cuts.append(stop)
        if len(cuts) > 1:
            yield shard, cuts


def as_dataset(rows: Sequence[Row], blocks: int) -> Any:
    """Rows as a dataset of so many blocks: a task takes one."""
    import ray

    return ray.data.from_items(list(rows), override_num_blocks=blocks)


def shuffled(rows: Sequence[Row], read: Callable, *steps: tuple[str, Callable], of_a_task: int) -> list[Row]:
    """What is left of the tables that ``read`` makes of rows, ``of_a_task`` at most at once, after each
    function was given the groups of a column. A few rows are not worth the start of processes.
    """
    if len(rows) <= FEW_ROWS:
        return shuffled_in_process(rows, read, steps)
    blocks = max(-(-len(rows) // of_a_task), FEW_ROWS)
    made = as_dataset(rows, blocks).map_batches(read, batch_format="pyarrow", batch_size=None)
    for column, function in steps:
        grouped = made.groupby(column, num_partitions=min(256, blocks))
        made = grouped.map_groups(function, batch_format="pyarrow")
    return list(made.iter_rows())


def shuffled_in_process(
    rows: Sequence[Row], read: Callable, steps: Sequence[tuple[str, Callable]]
) -> list[Row]:
    """What Ray Data makes of a read, and of functions of the groups of a column, made in this process."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = read(pa.Table.from_pylist(list(rows)))
    for column, function in steps:
        values = sorted(pc.unique(table[column]).to_pylist())
        tables = [function(table.filter(pc.equal(table[column], value))) for value in values]
        if not tables:
            return []
        table = pa.concat_tables(tables)
    return table.to_pylist()


def calls_table(pairs: Sequence[tuple[int, bytes]]) -> pa.Table:
    """Sessions of a shard, by their number, with the keys of calls."""
    import pyarrow as pa

    sessions, keys = [session for session, _ in pairs], [key for _, key in pairs]
    return pa.table({"session": pa.array(sessions, pa.int32()), "key": pa.array(keys, pa.binary(32))})


def read_calls(work: Work, number: int, rows: pa.Table) -> pa.Table:
    """The calls that shards wait for: shard, session, key, and the partition of the key."""
    import pyarrow as pa

    tables = []
    for shard in rows["shard"].to_pylist():
        table = work.place.read_table(work.calls(number, shard))
        table = table.append_column("shard", pa.array([shard] * table.num_rows, pa.int32()))
        partitions = pa.array([key[0] for key in table["key"].to_pylist()], pa.int32())
        tables.append(table.append_column("partition", partitions))
    return pa.concat_tables(tables)


def _stores(work: Work) -> tuple[AnswerStore, AnswerStore]:
    """The answers, and the calls that failed in this session."""
    return AnswerStore(work.url), AnswerStore(f"{work.url}/{work.session_folder}")


def find_missing(work: Work, calls: pa.Table) -> pa.Table:
    """Those calls of a partition that have no answer, each once; only keys are read."""
    import pyarrow as pa
    import pyarrow.compute as pc

    partition = calls["partition"][0].as_py()
    for store in _stores(work):
        calls = calls.filter(pc.invert(pc.is_in(calls["key"], value_set=store.keys(partition))))
    calls = calls.sort_by([("shard", "ascending"), ("session", "ascending")])
    first = {key: row for row, key in reversed([*enumerate(calls["key"].to_pylist())])}
    return calls.take(pa.array(sorted(first.values()), pa.int64())).drop_columns(["partition"])


def write_missing(work: Work, number: int, calls: pa.Table) -> pa.Table:
    import pyarrow as pa

    shard = calls["shard"][0].as_py()
    calls = calls.sort_by("session").select(["session", "key"])
    work.place.write_table(work.missing(number, shard), calls)
    return pa.table({"shard": [shard], "calls": [calls.num_rows]})


def find_replies(work: Work, calls: pa.Table) -> pa.Table:
    """Shard, key and line of those calls of a partition that have an answer, be it that they failed."""
    import pyarrow as pa

    shards: dict[bytes, set[int]] = defaultdict(set)
    for key, shard in zip(calls["key"].to_pylist(), calls["shard"].to_pylist(), strict=True):
        shards[key].add(shard)
    lines: dict[bytes, bytes] = {}
    for store in _stores(work):
        for batch in store.table(calls["partition"][0].as_py()).to_batches():
            for key, line in zip(batch["key"].to_pylist(), batch["line"], strict=True):
                if key in shards and key not in lines:
                    lines[key] = line.as_py()
    pairs = [(shard, key) for key in lines for shard in sorted(shards[key])]
    return pa.table(
        {
            "shard": pa.array([shard for shard, _ in pairs], pa.int32()),
            "key": pa.array([key for _, key in pairs], pa.binary(32)),
            "line": pa.array([lines[key] for _, key in pairs], pa.large_binary()),
        }
    )


def write_replies(work: Work, number: int, replies: pa.Table) -> pa.Table:
    import pyarrow as pa

    shard = replies["shard"][0].as_py()
    work.place.write_table(work.replies(number, shard), replies.select(["key", "line"]))
    return pa.table({"shard": [shard]})


def read_lines(url: str, rows: pa.Table) -> pa.Table:
    """The answers in journals of a place, and in parts of the reply cache's segments, with their partition.

    A part has the lines that begin in it.
    """
    import pyarrow as pa

    found: list[tuple[bytes, bytes]] = []
    for row in rows.to_pylist():
        if row["start"] < 0:
            lines: Iterable[bytes] = journal_lines(Place(url), row["name"])
        else:
            lines = _segment_lines(Path(row["name"]), row["start"], row["stop"])
        found += [(key, line) for line in lines if (key := key_in(line)) is not None]
    table = answer_table({})
    key = pa.array([key for key, _ in found], table.schema.field("key").type)
    line = pa.array([line for _, line in found], table.schema.field("line").type)
    return pa.table(
        {"partition": pa.array([key[0] for key, _ in found], pa.int32()), "key": key, "line": line}
    )


def cached_parts(place: Place, cache: Path | None) -> list[Row]:
    """The parts of a reply cache's segments that were not added to the answers at a place yet."""
    if cache is None or not cache.is_dir():
        return []
    rows: list[Row] = []
    known = {Path(name).name: int(place.read(name)) for name in place.files(IMPORTED)}
    for path in sorted(cache.iterdir()):
        if is_segment(path.name):
            start, end = known.get(path.name, 0), path.stat().st_size
            rows += [
                {"name": str(path.resolve()), "start": at, "stop": min(at + IMPORT_BYTES, end)}
                for at in range(start, end, IMPORT_BYTES)
            ]
    return rows


def _segment_lines(path: Path, start: int, stop: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        if start:
            file.seek(start - 1)
            start += len(file.readline()) - 1
        for at, line in complete_lines(file, start):
            if at >= stop:
                return
            yield line


def add_lines(url: str, lines: pa.Table) -> pa.Table:
    import pyarrow as pa

    partition = lines["partition"][0].as_py()
    answers = dict(zip(lines["key"].to_pylist(), lines["line"].to_pylist(), strict=True))
    return pa.table({"added": [AnswerStore(url).add(partition, answers)]})


def content_of(place: Place, name: str) -> bytes:
    try:
        return place.read(name)
    except FileNotFoundError:
        return b""


_ID: Final = re.compile(rb'\{"trajectory_id":("(?:[^"\\]|\\.)*")')


def id_of(line: bytes) -> str:
    return json.loads(_ID.match(line)[1])


def merge_results(folder: Path, new: Iterator[bytes], prompts: Iterator[bytes], progress: Progress) -> int:
    """Put new lines among those of the run's folder, in the order of their ids; returns how many they are.

    One line is in memory at a time: a session that ended left the folder in order. What a killed one left may
    be in another, and is sorted in memory.
    """
    counted = 0

    def counting() -> Iterator[bytes]:
        nonlocal counted
        for line in new:
            counted += 1
            progress.judged(json.loads(line)["state"])
            yield line

    with (folder / PROMPTS).open("a+b") as file:  # its texts come before the lines that name them
        truncate_partial_line(file.fileno())
        for content in prompts:
            file.write(content)
    lines = heapq.merge(counting(), _lines_in_order(folder / JUDGMENTS), key=id_of)
    with atomic_writer(folder / JUDGMENTS) as file:
        write_predictions(folder / PREDICTIONS, map(prediction_row, _written(lines, file)))
    return counted


def _written(lines: Iterable[bytes], file: BinaryIO) -> Iterator[Record]:
    """The records of lines as they are written; of two of one trajectory the first."""
    last = None
    for line in lines:
        if (name := id_of(line)) != last:
            file.write(line)
            yield json.loads(line)
        last = name


def _lines_in_order(path: Path) -> Iterator[bytes]:
    def lines() -> Iterator[bytes]:
        if path.exists():
            with path.open("rb") as file:
                for _, line in complete_lines(file, 0):
                    yield line

    last, is_sorted = "", True
    for line in lines():
        is_sorted, last = is_sorted and id_of(line) > last, id_of(line)
    if is_sorted:
        yield from lines()
    else:
        by_id = {id_of(line): line for line in lines()}
        yield from (by_id[name] for name in sorted(by_id))


def sum_up(
    folder: RunFolder, judge: AnyJudge, models: Mapping[str, ModelSettings]
) -> tuple[int, str, str | None]:
    """Sum up the lines of the folder into run.json.

    Returns how many there are, the judge's name by the models that answered, and why the first error is one.
    """
    judged, problem = 0, None

    def records() -> Iterator[Record]:
        nonlocal judged, problem
        with (folder.folder / JUDGMENTS).open("rb") as file:
            for _, line in complete_lines(file, 0):
                record = json.loads(line)
                judged += 1
                if record["state"] == "error" and problem is None:
                    problem = error_of(record)
                yield record

    name = note_totals(folder, totals(records()), judge, models)
    return judged, name, problem


def judged_lines(work: Work, passes: int, shards: int) -> Iterator[bytes]:
    """The lines of all trajectories that were judged, in the order of their ids."""
    for shard in range(shards):
        lines = [
            line
            for number in range(passes + 1)
            for line in content_of(work.place, work.results(number, shard)).splitlines(keepends=True)
        ]
        yield from sorted(lines, key=id_of)


def prompt_lines(work: Work, passes: int, shards: int) -> Iterator[bytes]:
    """The prompts that were sent, a file's lines at a time."""
    for number in range(passes + 1):
        for shard in range(shards):
            yield content_of(work.place, work.prompts(number, shard))
