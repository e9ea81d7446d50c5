"""Check one shard, a few rows at a time: schema, sizes, texts, images, labels and ids.

Texts, columns and metadata must not contain a canary, reward, prompt, test label or path of a machine. Every
image must be completely decodable. In a blind dataset, no id, column or host name may show which agent ran.
What agents wrote about themselves, and what pictures show, is not checked.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from arb.core.ids import TrajectoryId
from arb.core.suites.targets import Target
from dataset_script.build.pictures import image_digest, why_undecodable
from dataset_script.schema import ANNOTATIONS, CONFIGURATIONS, LABEL_COLUMNS, Configuration, arrow_schema
from dataset_script.sources.published import Shard
from dataset_script.verify.manifest import WORDS, Findings
from dataset_script.verify.totals import ShardFacts

_VALUE: Final = rb"""\s*:\s*(?:-?[\d.]|-?Infinity|NaN|nan|-?inf|[tT]rue|[fF]alse|null|None|\\*["'\[{])"""
"""Matches what follows a key in JSON, or in a dictionary that Python printed."""

_WORDS: Final = {
    "reward": re.compile(rb"""cum_(?:raw_)?reward|\\?["']reward\\?["']\s*:""", re.IGNORECASE),
    "prompt": re.compile(rb"""\\?["']chat_messages\\?["']\s*:""", re.IGNORECASE),
}
"""Names of rewards and prompts in recordings. In text of a page or a model they may be harmless."""

_FIELDS: Final = {
    "reward": re.compile(rb"""(\\*["'])(?:(?i:cum_(?:raw_)?reward)|(?:raw_)?reward)\1""" + _VALUE),
    "prompt": re.compile(rb"""(\\*["'])(?i:chat_messages)\1""" + _VALUE),
    "test_label": re.compile(
        rb"""(\\*["'])trajectory_(?:success|side_effect|looping|optimality)\1""" + _VALUE
    ),
    "annotator_name": re.compile(rb"""(\\*["'])annotator_name\1""" + _VALUE),
}
"""Names of rewards, prompts, labels and annotators as keys in JSON or in a dictionary that Python printed."""

_SUSPECT: Final = re.compile(
    rb"""cum_(?:raw_)?reward|(?:reward|chat_messages|annotator_name)\\*["']\s*:"""
    rb"""|trajectory_(?:success|side_effect|looping|optimality)\\*["']"""
)
"""A quick test: matches every lowercased text in which a pattern of `_WORDS` or `_FIELDS` can match."""

_CUMULATIVE: Final = re.compile(rb"""(\\*["'])cum_(?:raw_)?reward\1""" + _VALUE, re.IGNORECASE)
_PATH: Final = rb"""(?:/home/\w|/root/|/Users/\w|/tmp/\w|[A-Za-z]:\\Users\\)"""
_MACHINE_PATH: Final = re.compile(rb"(?<![\w./-])" + _PATH)
_TRACEBACK: Final = re.compile(rb"""File \\?["']""" + _PATH + rb"""[^"'\n]*["'], line \d""")
_NODE: Final = re.compile(rb"""^[ \t]*(?:\[[^\]\n]*\] )?[A-Za-z]\w* ['"].*$""", re.MULTILINE)
"""A line of an accessibility tree: an id and a role, then a name or value, which is the page's own text."""

TREES: Final = frozenset({"axtree", "axtree_pruned", "final_axtree", "final_axtree_pruned"})
PAGE_OR_MODEL_TEXT: Final = TREES | {"url", "goal", "action", "reasoning", "reply", "text", "answer"}
"""Columns with text of a page or a model. File paths in them need not be of the recording machine."""

BROWSER_ERROR: Final = "last_action_error"
"""The column of browser errors, which may quote the page or contain a program's traceback."""

REPLY: Final = "reply"
OWN_REWARDS: Final = frozenset({REPLY, "text"})
"""Columns that may have a key ``reward``, from a judge or a tool, but not ``cum_reward``."""


@dataclass(frozen=True)
class Forbidden:
    """A search for content that must not be published.

    ``canaries`` are strings that were planted in private data. ``questions`` are the suite's questions, whose
    answers are labels.
    """

    canaries: tuple[str, ...] = ()
    questions: tuple[Target, ...] = ()

    @property
    def own_targets(self) -> tuple[Target, ...]:
        return tuple(question for question in self.questions if question.is_own)

    @cached_property
    def _canaries(self) -> tuple[bytes, ...]:
        return tuple(canary.encode() for canary in self.canaries)

    def is_suspect(self, text: bytes, column: str) -> bool:
        """Return whether `found_in` may find anything in the text. This is a quick test before it."""
        if any(canary in text for canary in self._canaries) or _SUSPECT.search(text.lower()):
            return True
        return column not in PAGE_OR_MODEL_TEXT and _MACHINE_PATH.search(text) is not None

    def found_in(
        self, text: bytes, column: str, *, may_hold_rewards: bool = False, may_hold_labels: bool = True
    ) -> Iterator[tuple[str, str]]:
        """Yield (code, place) for each finding in a UTF-8 text, without repeating the text.

        Canaries, and forbidden keys with a value, are errors in every column. A forbidden word without a
        value is a warning in columns with text of a page or a model, and an error in other columns. In an
        accessibility tree, keys in the page's own text count only as words.
        """
        for number, canary in enumerate(self._canaries, start=1):
            if canary in text:
                yield "canary", f"{column}: canary {number}"
        is_quoted = column in PAGE_OR_MODEL_TEXT or column == BROWSER_ERROR
        own_text = _NODE.sub(b"", text) if column in TREES else text
        fields = _FIELDS | ({"reward": _CUMULATIVE} if column in OWN_REWARDS else {})
        allowed = {"reward": may_hold_rewards, "test_label": may_hold_labels or column == REPLY}
        for code, pattern in fields.items():
            if allowed.get(code):
                continue
            if pattern.search(own_text):
                yield code, column
            elif code in _WORDS and _WORDS[code].search(text):
                yield f"{code}_words" if is_quoted else code, column
        if column == BROWSER_ERROR and _TRACEBACK.search(text):
            yield "machine_path", column
        elif column not in PAGE_OR_MODEL_TEXT and _MACHINE_PATH.search(text):
            yield "path_words" if column == BROWSER_ERROR else "machine_path", column


def check_canaries(canaries: Sequence[str]) -> tuple[str, ...]:
    """Return the canaries. Raises ValueError if one is so short that it may occur by chance."""
    if short := [canary for canary in canaries if len(canary.strip()) < 6]:
        raise ValueError(
            f"--canary: a text of {len(short[0])} characters may occur by chance; use at least 6"
        )
    return tuple(canaries)


TEXT_SHARD_BYTES: Final = 16_000_000
IMAGE_SHARD_BYTES: Final = 250_000_000
ROWS_AT_A_TIME: Final = 16


_BLIND_AGENT: Final = re.compile(r"run-[0-9a-f]{16}")
_HOST_COPY: Final = r"[A-Za-z0-9]-xl-[12]([^A-Za-z0-9]|$)"
_COLUMNS: Final = {
    "reward": re.compile(r"(?:cum_|raw_|cum_raw_)?rewards?|rule_based", re.IGNORECASE),
    "prompt": re.compile(r"chat_messages|prompts?", re.IGNORECASE),
    "test_label": re.compile(r"(?:trajectory_)?(?:success|side_effect|looping|repetition|optimality)"),
    "annotator_name": re.compile(r"annotator_name"),
}
"""Names of columns that must not be published, by the finding's code."""

OF_ARROW: Final = frozenset({b"ARROW:schema", b"PARQUET:field_id"})
"""Metadata keys that Arrow itself writes, for the schema and the number of a column."""


def check_shard(
    folder: Path, shard: Shard, forbidden: Forbidden, is_blind: bool
) -> tuple[ShardFacts, Findings]:
    """Check a shard's hash and content, and return its `ShardFacts` and the findings."""
    path, facts = folder / shard.name, ShardFacts(shard)
    check = _ShardCheck(shard, forbidden, is_blind)
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != shard.sha256:
            check.add("other_bytes", "SHA-256")
    size = path.stat().st_size
    if size != shard.bytes:
        check.add("other_bytes", "size")
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:
            facts.rows = file.metadata.num_rows
            check.check_file(file, size, facts)
    except (pa.ArrowException, OSError) as error:
        facts.rows = 0
        check.add("not_parquet", str(error).splitlines()[0][:200])
    return facts, check.findings


@dataclass(frozen=True)
class _ShardCheck:
    """The check of one shard, with its findings."""

    shard: Shard
    forbidden: Forbidden
    is_blind: bool
    findings: Findings = field(default_factory=Findings)

    def add(self, code: str, *names: str, count: int = 1) -> None:
        self.findings.add(code, self.shard.name, *names, count=count)

    @property
    def configuration(self) -> Configuration:
        return CONFIGURATIONS[self.shard.configuration]

    def check_file(self, file: pq.ParquetFile, size: int, facts: ShardFacts) -> None:
        """Check an opened Parquet file, and add its rows to ``facts``."""
        if file.metadata.num_rows != self.shard.rows:
            self.add("other_bytes", "rows")
        most = IMAGE_SHARD_BYTES if self.configuration.has_images else TEXT_SHARD_BYTES
        if size > most and file.num_row_groups > 1:  # a single row group may be one long trajectory
            self.add("large_shard", f"{size:,} bytes; at most {most:,}")
        self._check_metadata(file)
        expected = arrow_schema(self.shard.configuration, self.forbidden.questions)
        if not file.schema_arrow.equals(expected):
            self.add("other_schema", _difference(file.schema_arrow, expected))
            self._check_columns(file.schema_arrow, expected)
            return
        if self.configuration.groups_by_trajectory:
            self._check_row_groups(file)
        for batch in file.iter_batches(ROWS_AT_A_TIME, use_threads=False):
            self._check_texts(batch)
            self._check_labels(batch)
            self._check_own_answers(batch)
            if self.is_blind:
                self._check_blind(batch)
            facts.take(batch, self._check_images(batch), self.findings)

    def _check_row_groups(self, file: pq.ParquetFile) -> None:
        """Check, with the statistics that readers use, that every row group has exactly one trajectory."""
        for index in range(file.num_row_groups):
            statistics = file.metadata.row_group(index).column(0).statistics
            if statistics is None or not statistics.has_min_max or statistics.min != statistics.max:
                self.add("row_groups", f"row group {index}")

    def _check_columns(self, schema: pa.Schema, expected_schema: pa.Schema) -> None:
        """Add findings for unexpected columns whose names suggest private data."""
        is_test = self.shard.split == "test"
        expected = dict(_columns_in(expected_schema))
        own = {question.name for question in self.forbidden.own_targets}
        for name, _ in _columns_in(schema):
            if name in expected:
                continue
            if name in own and is_test:
                self.add("test_label", f"the column {name}")
            for code, pattern in _COLUMNS.items():
                if pattern.fullmatch(name.rsplit(".", 1)[-1]) and (code != "test_label" or is_test):
                    self.add(code, f"the column {name}")

    def _check_metadata(self, file: pq.ParquetFile) -> None:
        """Check that the metadata of the file and its columns has only what `build` and Arrow write."""
        known = arrow_schema(self.shard.configuration, self.forbidden.questions).metadata
        metadata = {k: v for k, v in (file.metadata.metadata or {}).items() if known.get(k) != v}
        columns = _columns_in(file.schema_arrow)
        places = {f"the metadata of {name}": column.metadata or {} for name, column in columns}
        may_hold = {"may_hold_rewards": False, "may_hold_labels": self.shard.split != "test"}
        for place, pairs in {"the file's metadata": metadata, **places}.items():
            own = {key: value for key, value in pairs.items() if key not in OF_ARROW}
            if own:
                self.add("other_schema", f"unexpected: {place}")
            for key, value in own.items():
                for code, what in self.forbidden.found_in(b'"%s": %s' % (key, value), place, **may_hold):
                    self.add(code, what)

    def _check_texts(self, batch: pa.RecordBatch) -> None:
        may_hold = {
            "may_hold_rewards": self.shard.configuration == "rewards",
            "may_hold_labels": self.shard.split != "test",
        }
        for name, text in _texts(zip(batch.schema.names, batch.columns, strict=True)):
            column = name.rsplit(".", 1)[-1]
            if not self.forbidden.is_suspect("\n".join(text.drop_null().to_pylist()).encode(), column):
                continue
            for row, step, content in _cells(batch, name):  # search again, cell by cell, to say where
                for code, what in self.forbidden.found_in(content.encode(), column, **may_hold):
                    trajectory = self._row_name(batch, row)
                    where = "" if step is None else f"step {step}: "
                    what = what.replace(column, name, 1)
                    if code in WORDS:
                        self.findings.add(code, trajectory, f"{self.shard.configuration}, {where}{what}")
                    else:
                        self.add(code, f"{trajectory}, {where}{what}")

    def _row_name(self, batch: pa.RecordBatch, row: int) -> str:
        """Return the name of a row's trajectory or task, or the row's number if the name has a canary."""
        column = next((name for name in ("trajectory_id", "task") if name in batch.schema.names), None)
        name = batch.column(column)[row].as_py() if column else None
        has_canary = name and any(canary in name for canary in self.forbidden.canaries)
        return f"row {row}" if not name or has_canary else name[:200]

    def _check_labels(self, batch: pa.RecordBatch) -> None:
        """Check that a file of the test split contains no expert label."""
        if self.shard.split != "test" or self.shard.configuration == "judgments":  # a judge's own verdicts
            return
        for name in LABEL_COLUMNS:
            if name in batch.schema.names and (count := len(batch) - batch.column(name).null_count):
                self.add("test_label", name, count=count)

    def _check_own_answers(self, batch: pa.RecordBatch) -> None:
        """Check that the columns of the suite's own questions contain only possible answers."""
        for question in self.forbidden.own_targets if self.shard.configuration == ANNOTATIONS else ():
            answers = batch.column(question.name).to_pylist()
            if others := sum(answer is not None and answer not in question.values for answer in answers):
                self.add("other_schema", f"{question.name}: not an answer to the question", count=others)

    def _check_images(self, batch: pa.RecordBatch) -> dict[str, list[str | None]]:
        """Check that every image can be decoded, and return the hashes of each column of single images."""
        digests = {}
        for column in self.configuration.columns:
            if column.type != "image" and column.item != "image":
                continue
            cells = batch.column(column.name)
            images = (cells.flatten() if column.item == "image" else cells).to_pylist()
            for image in filter(None, images):
                if reason := why_undecodable(image["bytes"]):
                    self.add("bad_image", f"{column.name}: {reason}")
                if image["path"] and "/" in image["path"]:
                    self.add("machine_path", f"{column.name}.path")
            if column.type == "image":
                digests[column.name] = [
                    image_digest(image["bytes"]) if image and image["bytes"] else None for image in images
                ]
        return digests

    def _check_blind(self, batch: pa.RecordBatch) -> None:
        """Check that no id, private column or host name shows which agent ran."""
        ids = batch.column("trajectory_id").to_pylist() if "trajectory_id" in batch.schema.names else ()
        for name in ids:
            if not _hides_agent(name):
                self.add("not_blind", f"{str(name)[:80]}: the id")
        for column in self.configuration.columns:
            if column.private and (count := len(batch) - batch.column(column.name).null_count):
                self.add("not_blind", column.name, count=count)
        for name, text in _texts(zip(batch.schema.names, batch.columns, strict=True)):
            if count := pc.sum(pc.match_substring_regex(text, _HOST_COPY)).as_py():
                self.add("not_blind", f"{name}: a copy of a site", count=count)


def _hides_agent(trajectory_id: str | None) -> bool:
    try:
        return _BLIND_AGENT.fullmatch(TrajectoryId.parse(trajectory_id or "").agent) is not None
    except ValueError:
        return False


def _difference(found: pa.Schema, expected: pa.Schema) -> str:
    """Describe how two schemas differ: unexpected, absent or differently typed columns, or only "order"."""
    parts = {
        "unexpected": [name for name in found.names if name not in expected.names],
        "absent": [name for name in expected.names if name not in found.names],
        "of another type": [
            name
            for name in expected.names
            if found.names.count(name) == 1 and found.field(name).type != expected.field(name).type
        ],
    }
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names) or "order"


def _columns_in(fields: Iterable[pa.Field], prefix: str = "") -> Iterator[tuple[str, pa.Field]]:
    """Yield (dotted name, field) for every column, including those inside lists and structs."""
    for column in fields:
        yield f"{prefix}{column.name}", column
        kind = column.type.value_type if pa.types.is_list(column.type) else column.type
        if pa.types.is_struct(kind):
            yield from _columns_in(kind, f"{prefix}{column.name}.")


def _cells(batch: pa.RecordBatch, name: str) -> Iterator[tuple[int, int | None, str]]:
    """Yield (row, step number or None, text) for every text in a column, except empty ones."""
    top, _, inner = name.partition(".")
    numbers = batch.column("num").to_pylist() if "num" in batch.schema.names else [None] * len(batch)
    for row, value in enumerate(batch.column(top).to_pylist()):
        for item in value if isinstance(value, list) else [value]:
            number, text = numbers[row], item
            if isinstance(item, dict):
                text = item.get(inner)
                number = item.get("num") if number is None else number
            if text:
                yield row, number, text


def _texts(columns: Iterable[tuple[str, pa.Array]]) -> Iterator[tuple[str, pa.Array]]:
    """Yield (dotted name, array) for every column of text, including those inside lists and structs."""
    for name, column in columns:
        if pa.types.is_string(column.type):
            yield name, column
        elif pa.types.is_list(column.type):
            yield from _texts([(name, column.flatten())])
        elif pa.types.is_struct(column.type):
            names = (f"{name}.{inner.name}" for inner in column.type)
            yield from _texts(zip(names, column.flatten(), strict=True))
