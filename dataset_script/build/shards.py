"""Distribute the trajectories of a split over shards (Parquet files), write the shards, and list them.

manifest.json lists every file with its hash, size and number of rows. The distribution depends only on ids
and sizes, so the same trajectories give the same files.

Within size limits, a new shard begins at a trajectory whose id has a low hash. Added trajectories therefore
change few shards. If an earlier build is extended (`earlier_places`), new trajectories go into new shards, so
that publishing again uploads little else.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import structs

from arb.core.formats import FORMATS
from arb.core.suites.targets import Target
from dataset_script.build.blind import Blinding
from dataset_script.build.parts import Part, table_of
from dataset_script.build.rows import ROWS_OF_A_RUN, Row
from dataset_script.schema import CONFIGURATIONS, arrow_schema
from dataset_script.sources.problems import SourceError
from dataset_script.sources.published import MANIFEST, OBSERVED, PublishedDataset, Shard

TEXT_SHARD_BYTES: Final = 8_000_000
"""The size limit of a text shard. It is small because streaming reads a whole shard for the first row.

A text shard is a single row group, because a process that ends after streaming one row then rarely aborts
in pyarrow 26.0.1: 0 of 40 times, against 5 of 30 with several row groups. On a busy machine it may still
abort; see docs/data.md. `verify` allows twice this size.
"""

IMAGE_SHARD_BYTES: Final = 200_000_000

PLANNED: Final = (*ROWS_OF_A_RUN, "judgments")
"""The configurations that are made from the trajectories' parts, not from the suite."""

MOST_TRAJECTORIES: Final = 250
"""The maximum number of trajectories in a shard of `steps`. Readers fetch its footer: 4 kB per trajectory."""

LEAST_FILLED: Final = 0.25
"""A new shard begins at a low hash only if the current one has reached this share of its size limit."""

PAGE_BYTES: Final = {"min_chunk_size": 256 * 1024, "max_chunk_size": 1024 * 1024, "norm_level": 0}
"""Size limits for content-defined pages, as in `datasets`, so that the Hub stores equal pages only once.

Measured with hf-xet: if 10 of 1,010 rows (13 kB of text each) are new, 54 % of the bytes are uploaded again.
Without these settings it is 81 %, and with smaller pages 62 to 67 %.
"""

ROW_GROUP_BYTES: Final = 2_000_000
"""The approximate uncompressed size of a row group with the images of several trajectories."""

_BYTES_AT_A_TIME: Final = 1_000_000
"""The size of the write buffer, which combines Arrow's many small writes (about 30 per trajectory)."""

_REPEATED: Final = ("trajectory_id", "benchmark", "agent", "model", "judge", "judge_model", "state")
"""Columns to store with a dictionary, since their values repeat within a row group."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """A shard to write, with the parts that have its rows, in order."""

    folder: Path
    configuration: str
    split: str
    index: int
    total: int
    parts: tuple[Part, ...]

    @property
    def name(self) -> str:
        return f"data/{self.configuration}/{self.split}-{self.index:05d}-of-{self.total:05d}.parquet"


def plan_shards(folder: Path, configuration: str, split: str, parts: Iterable[Part]) -> list[ShardTask]:
    """Distribute the parts over shards, in order. Parts of an earlier build come first, in the same shards.

    A shard compresses better than its parts, so the sum of their stored sizes is an upper bound on its size.
    Only a shard with a single part may exceed the limit.
    """
    limit = IMAGE_SHARD_BYTES if CONFIGURATIONS[configuration].has_images else TEXT_SHARD_BYTES
    most = MOST_TRAJECTORIES if CONFIGURATIONS[configuration].groups_by_trajectory else sys.maxsize
    groups: list[list[Part]] = []
    size = 0
    for part in parts:
        if configuration not in part.sizes:  # nothing of it was recorded
            continue
        own = part.sizes[configuration]
        before = groups[-1][-1] if groups else None
        if before is None:
            begins = True
        elif part.earlier is not None or before.earlier is not None:
            begins = part.earlier != before.earlier
        elif size + own > limit or len(groups[-1]) >= most:
            begins = True
        else:
            begins = size >= LEAST_FILLED * limit and _begins_shard(part, own / limit)
        if begins:
            groups.append([])
            size = 0
        groups[-1].append(part)
        size += own
    return [
        ShardTask(folder, configuration, split, index, len(groups), tuple(group))
        for index, group in enumerate(groups)
    ]


def _begins_shard(part: Part, share: float) -> bool:
    """Return whether the hash of a part's id begins a new shard.

    ``share`` is the part's size as a share of the limit. The probability of a new shard is chosen so that a
    shard that may end grows by 0.4 of the limit on average.
    """
    drawn = int.from_bytes(hashlib.blake2b(part.trajectory_id.encode(), digest_size=8).digest())
    return drawn / 2**64 < share / 0.4


def write_shard(task: ShardTask) -> Shard:
    """Write one shard, a row group at a time. Raises OSError when the disk is full."""
    tables: Iterator[pa.Table] = (part.table(task.configuration) for part in task.parts)
    configuration = CONFIGURATIONS[task.configuration]
    if not configuration.has_images:
        tables = iter([pa.concat_tables(tables).combine_chunks()])
    elif not configuration.groups_by_trajectory:
        tables = _batches(tables)
    return _write(task, tables)


def write_rows(
    folder: Path,
    configuration: str,
    split: str,
    rows: Sequence[Row],
    blinding: Blinding | None = None,
    questions: tuple[Target, ...] = (),
) -> Shard:
    """Write rows from the suite, not from parts, as the only shard of a split, and return the shard."""
    table = table_of(configuration, rows, blinding, questions)
    return _write(ShardTask(folder, configuration, split, 0, 1, ()), iter((table,)), questions)


EarlierPlaces = dict[tuple[str, str, str], tuple[int, int]]
"""The (shard number, position) of trajectories in an earlier build, by (configuration, split, id)."""


def earlier_places(folder: Path, suite: str) -> EarlierPlaces:
    """Return the shard and position of each trajectory in the folder's dataset, if it contains one.

    Raises SourceError if the dataset is blind or of another suite. In a blind dataset, the order of the runs
    would show which were added later.
    """
    if not (folder / MANIFEST).is_file():
        return {}
    dataset = PublishedDataset(folder)
    if dataset.suite != suite or dataset.manifest.is_blind:
        raise SourceError(
            f"{folder} contains a dataset of {dataset.suite}, so --append cannot add runs of {suite}; name "
            "another folder, or leave out --append"
        )
    places: EarlierPlaces = {}
    for configuration in set(dataset.configurations) & set(PLANNED):
        for split in dataset.splits(configuration):
            for number, path in enumerate(dataset.files(configuration, split)):
                ids = pq.read_table(path, columns=["trajectory_id"])["trajectory_id"]
                for each in ids.to_pylist():
                    places.setdefault((configuration, split, each), (number, len(places)))
    return places


def _write(task: ShardTask, tables: Iterator[pa.Table], questions: Sequence[Target] = ()) -> Shard:
    path = task.folder / task.name
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = arrow_schema(task.configuration, questions=questions)
    groups_by_trajectory = CONFIGURATIONS[task.configuration].groups_by_trajectory
    rows = 0
    with (
        path.open("wb", buffering=_BYTES_AT_A_TIME) as file,
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name in _REPEATED],
            write_statistics=[name for name in schema.names if name in ("trajectory_id", "num")]
            + list(OBSERVED if groups_by_trajectory else ()),
            # A row group of one trajectory needs neither: it is read completely and never changes.
            write_page_index=not groups_by_trajectory,
            use_content_defined_chunking=False if groups_by_trajectory else PAGE_BYTES,
        ) as writer,
    ):
        for table in tables:
            writer.write_table(table.cast(schema), row_group_size=max(1, table.num_rows))
            rows += table.num_rows
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Shard(task.configuration, task.split, digest, path.stat().st_size, rows, task.name)


def _batches(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Join the tables into larger ones of about the size of a row group, and yield these."""
    begun = 0

    def number(table: pa.Table) -> int:
        nonlocal begun
        begun += table.nbytes
        return begun // ROW_GROUP_BYTES

    for _, group in groupby(tables, key=number):
        yield pa.concat_tables(group).combine_chunks()


def unpacked_bytes(path: Path) -> int:
    """Return the size of a shard's data before compression."""
    metadata = pq.read_metadata(path)
    return sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))


def fingerprint(shards: Iterable[Shard]) -> str:
    """Return 12 hexadecimal digits that identify the content of some shards."""
    content = "".join(sorted(shard.sha256 for shard in shards))
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def render_manifest(suite: str, source: Mapping[str, Any], shards: Iterable[Shard]) -> str:
    """Return the text of manifest.json. ``source`` describes where the runs came from."""
    described = [structs.asdict(shard) for shard in shards]
    files = {entry.pop("name"): entry for entry in described}
    content = {"format": FORMATS["dataset"], "suite": suite, "source": dict(source), "files": files}
    return json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
