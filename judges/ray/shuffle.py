"""How a run's files are put in order: calls and answers by partition of their keys, results by trajectory.

The tasks of a shuffle take and give tables. A partition is in one task at a time, so that nothing is locked.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from core.files import atomic_writer
from core.predictions.write import write_predictions
from judges.engine.answers import AnswerStore, Place, answer_table, journal_lines
from judges.engine.cache import complete_lines, key_in, truncate_partial_line
from judges.ray.workers import Work
from judges.run.folder import (
    JUDGMENTS,
    PREDICTIONS,
    PROMPTS,
    Record,
    RunFolder,
    error_of,
    prediction_row,
    totals,
)
from judges.run.progress import Progress

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK: Final = 512
SMALLEST_CHUNK: Final = 8
CHUNKS_PER_WORKER: Final = 4
"""A chunk has a part of the calls that are left, as many as each worker has still so many of, so that at the
end none waits long for a slow one."""


def chunks(missing: Mapping[int, int], workers: int) -> Iterator[tuple[int, int, int]]:
    """Calls of shards in chunks that become smaller towards the end: shard, first row, and the one after."""
    left = sum(missing.values())
    for shard, calls in sorted(missing.items()):
        start = 0
        while start < calls:
            size = max(SMALLEST_CHUNK, min(CHUNK, left // (workers * CHUNKS_PER_WORKER)))
            stop = min(calls, start + size)
            yield shard, start, stop
            left -= stop - start
            start = stop


def shuffled_in_process(
    rows: Sequence[Mapping[str, Any]], read: Callable, steps: Sequence[tuple[str, Callable]]
) -> list[dict[str, Any]]:
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


def sum_up(folder: RunFolder) -> tuple[int, str | None]:
    """Sum up the lines of the folder into run.json; how many there are, and why the first error is one."""
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

    folder.update_run({"totals": totals(records())})
    return judged, problem
