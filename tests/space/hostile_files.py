"""Prediction files that mean harm, for hypothesis: right files changed by byte, by structure and by field.

`hostile_files` draws one; what it can hold is in `hostile_values`, Parquet in `hostile_tables`.
"""

import bz2
import gzip
import io
import json
import lzma
import pickle
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tests.space.hostile_tables import parquet_files
from tests.space.hostile_values import COLUMNS, LITERALS, NAMES, TEXTS

Row = Mapping[str, object]
Kind = Literal["jsonl", "csv", "foreign", "parquet"]


@dataclass(frozen=True)
class HostileFile:
    """A file as it is sent: the name it is given and its bytes."""

    name: str
    content: bytes


@st.composite
def hostile_files(draw: DrawFn, kind: Kind, seeds: Sequence[Sequence[Row]]) -> HostileFile:
    """A hostile file of a kind, made from one of the seeds: each the rows of a right file."""
    if kind == "parquet":
        content = draw(parquet_files(_some_rows(draw, seeds)))
    elif kind == "foreign":
        content = draw(st.sampled_from(_FOREIGN))()
    else:
        rows = _some_rows(draw, seeds)
        content = _jsonl(draw, rows) if kind == "jsonl" else _csv(draw, rows)
        content = draw(st.sampled_from(_ENCODED))(content)
        content = changed_bytes(draw, content)
    return HostileFile(draw(st.sampled_from(NAMES)), content)


def changed_bytes(draw: DrawFn, content: bytes) -> bytes:
    """The bytes with up to six places cut, overwritten, repeated or filled; half of all stay as they are."""
    changed = bytearray(content)
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2, 6)))):
        start = draw(st.integers(0, len(changed)))
        end = start + draw(st.sampled_from((0, 1, 2, 40, 10_000)))
        filled = draw(
            st.binary(max_size=4) | st.sampled_from((b"\0", b'"', b"\n", b"\xff", b"{", b"\r", b","))
        )
        changed[start:end] = filled + draw(st.sampled_from((b"", bytes(changed[start:end]) * 2)))
    return bytes(changed)


def _some_rows(draw: DrawFn, seeds: Sequence[Sequence[Row]]) -> Sequence[Row]:
    """A right file's rows: some of them mostly, so that a file is quickly checked; all now and then."""
    rows = draw(st.sampled_from(seeds))
    if draw(st.sampled_from((True,) + (False,) * 11)):
        return rows
    start = draw(st.integers(0, len(rows) - 1))
    return rows[start : start + draw(st.sampled_from((1, 3, 20)))]


def _jsonl(draw: DrawFn, rows: Sequence[Row]) -> bytes:
    lines = [json.dumps(row) for row in rows]
    values = st.sampled_from(LITERALS) | (st.sampled_from(TEXTS) | st.text(max_size=20)).map(json.dumps)
    for _ in range(draw(st.sampled_from((0, 0, 1, 3)))):
        place, column = draw(st.integers(0, len(lines) - 1)), json.dumps(draw(st.sampled_from(COLUMNS)))
        added = f", {column}: {draw(values)}" + "}"
        lines[place] = draw(
            st.sampled_from(
                (
                    lines[place].removesuffix("}") + added,
                    "{" + added.removeprefix(", "),
                    lines[place] + lines[place],
                    f"[{lines[place]}]",
                    lines[place][: len(lines[place]) // 2],
                    "",
                )
            )
        )
    joint = draw(st.sampled_from(("\n", "\n", "\n", "\r\n", "\r", "\n\n", ",\n", " ", "\u2028")))
    before, after = draw(
        st.sampled_from((("", ""), ("", ""), ("", "\n"), ("[", "]"), ("\n\n", "\n\n\n"), ("// x\n", "")))
    )
    return (before + joint.join(lines) + after).encode()


def _csv(draw: DrawFn, rows: Sequence[Row]) -> bytes:
    names = list(rows[0])
    table = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    for _ in range(draw(st.sampled_from((0, 0, 1, 3)))):
        line = table[draw(st.integers(0, len(table) - 1))]
        text = draw(st.sampled_from(TEXTS) | st.text(max_size=20))
        text = draw(st.sampled_from((text, f'"{text.replace(chr(34), chr(34) * 2)}"')))
        line[draw(st.integers(0, len(line) - 1))] = text
    if draw(st.sampled_from((False, False, True))):
        added, value = draw(st.sampled_from(COLUMNS)), draw(st.sampled_from(TEXTS))
        times = draw(st.sampled_from((1, 1, 2, 300)))
        table = [line + [added if place == 0 else value] * times for place, line in enumerate(table)]
    delimiter, end = (
        draw(st.sampled_from(",,,;\t|")),
        draw(st.sampled_from(("\n", "\n", "\r\n", "\r", "\n\n"))),
    )
    return end.join(delimiter.join(line) for line in table).encode("utf-8", "surrogatepass")


def _cell(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _as_utf(name: str) -> Callable[[bytes], bytes]:
    return lambda content: content.decode("utf-8", "replace").encode(name, "replace")


_ENCODED: tuple[Callable[[bytes], bytes], ...] = (
    *[lambda content: content] * 12,
    lambda content: b"\xef\xbb\xbf" + content,
    lambda content: content + "é".encode("latin-1"),
    lambda content: content.replace(b"a", "é".encode("cp1252"), 3),
    lambda content: content[: len(content) // 2] + _as_utf("utf-16")(content[len(content) // 2 :]),
    *map(_as_utf, ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "utf-7", "utf-8-sig")),
    lambda content: content.replace(b"\n", b"\0\n", 2),
    lambda content: content + b"\0" * 100_000,
)  # fmt: skip


@lru_cache(maxsize=1)
def _zeros() -> bytes:
    return bytes(30_000_000)


def _zipped(name: str = "verdicts.jsonl") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, _zeros())
    return buffer.getvalue()


_FOREIGN: tuple[Callable[[], bytes], ...] = tuple(
    lru_cache(maxsize=1)(made)
    for made in (
        lambda: gzip.compress(_zeros()),
        lambda: bz2.compress(_zeros()),
        lambda: lzma.compress(_zeros(), preset=0),
        lambda: lzma.compress(b"{}\n", format=lzma.FORMAT_ALONE),
        _zipped,
        lambda: _zipped("../../etc/cron.d/x"),
        *(lambda protocol=protocol: pickle.dumps({"success": print}, protocol) for protocol in range(6)),
        lambda: b"cos\nsystem\n(S'touch /tmp/pwned'\ntR.",
        lambda: b"",
        lambda: b"\n",
        lambda: b"\r\n \t\n",
        lambda: b"\xef\xbb\xbf",
        lambda: b"trajectory_id,success\n",
        lambda: b"\n" * 4_000_000,
        lambda: b"{}\n" * 60_000,
        lambda: b"," * 400_000,
        lambda: b"a,\n" * 49_000,
        lambda: b"trajectory_id,success\n" + b'"' * 300_000,
        lambda: b'{"trajectory_id": "' + b"x" * 4_000_000 + b'", "success": true}',
        lambda: b'{"trajectory_id": "' + b"x" * 10_000_000 + b'", "success": true}',  # a line of 10 MB
        lambda: b'{"x": [' + b"[]," * 500_000 + b"[]]}",
        lambda: b'{"trajectory_id": ' * 200_000,
        lambda: b"".join(b'{"score": "%d%04dx"}\n' % (10**380, place) for place in range(1_000)),
        lambda: b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        lambda: b"%PDF-1.7 <script>alert(1)</script>",
        lambda: b"\x7fELF\x02\x01\x01",
        lambda: b"<!doctype html><script>alert(1)</script>",
        lambda: b"PARE\0\0\0\0PARE",
        lambda: b"\x89HDF\r\n\x1a\n",
    )
)


def name_as_sent(name: str) -> bytes:
    """A file name as browsers write it into a form."""
    quoted = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    return quoted.encode("utf-8", "replace")


def one_file_form(file: HostileFile, part: str) -> tuple[bytes, dict[str, str]]:
    """The body and headers of a form with the file as its only part."""
    boundary = b"a-line-that-no-file-holds-7f3a"
    head = b'Content-Disposition: form-data; name="%s"; filename="%s"' % (
        part.encode(),
        name_as_sent(file.name),
    )
    body = b"--%s\r\n%s\r\n\r\n%s\r\n--%s--\r\n" % (boundary, head, file.content, boundary)
    return body, {"content-type": f"multipart/form-data; boundary={boundary.decode()}"}
