"""Findings: the problems found in a prediction file, a source of runs or a built dataset."""

import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Literal

from arb.core.console import counted

Level = Literal["error", "warning"]

MAX_ROWS_NAMED: Final = 1_000
MAX_EXAMPLES: Final = 5
MAX_QUOTED_CHARS: Final = 80

_TEXTS: Final = tomllib.loads(Path(__file__).with_name("findings.toml").read_text(encoding="utf-8"))

UNREAD_ROW_CODES: Final = frozenset({"invalid_json", "not_an_object", "field_count"})
"""Codes of findings about rows that cannot be read, so that their ids are unknown."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An error or a warning, and where it was found.

    Attributes:
        rows: The first 1,000 row numbers: lines of JSONL, records of CSV with the header as 1, or rows of
            Parquet from 1.
        count: The number of affected rows, or of whatever else the message counts.
        file: A file, or a trajectory of a source or dataset.
        names: A few places in ``file``.
        summary: The message without examples, for a page that shows the examples in a table. If it is empty,
            the page shows ``message``.
        ids: If the finding is about ids, the ids in the first few of ``rows``.
        meant: For each of ``ids``, the valid id that was probably meant, or "" if unknown.
    """

    level: Level
    code: str
    message: str
    rows: tuple[int, ...] = ()
    count: int = 1
    column: str | None = None
    file: str | None = None
    names: tuple[str, ...] = ()
    summary: str = ""
    ids: tuple[str, ...] = ()
    meant: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the finding as an entry of the check report, which has ``column`` only if it is set."""
        body: dict[str, object] = {
            "level": self.level,
            "code": self.code,
            "message": self.message,
            "rows": list(self.rows),
            "count": self.count,
        }
        return body if self.column is None else body | {"column": self.column}


def error(
    code: str, message: str, *, count: int = 1, column: str | None = None, file: str | None = None
) -> Finding:
    """Return an error about the whole file."""
    return Finding("error", code, message, count=count, column=column, file=file)


def warning(code: str, message: str, *, count: int = 1, column: str | None = None) -> Finding:
    """Return a warning about the whole file."""
    return Finding("warning", code, message, count=count, column=column)


def finding(
    name: str, *, rows: Sequence[int] = (), count: int = 1, column: str | None = None, **words: object
) -> Finding:
    """Return the finding ``name`` of findings.toml about the file or a column, with ``words`` filled in."""
    about = _TEXTS[name]
    message = f"{column}: " if column else ""
    message += about["message"].format(**words)
    level, code = about.get("level", "error"), about.get("code", name)
    return Finding(level, code, message, tuple(rows[:MAX_ROWS_NAMED]), count, column)


def finding_in_rows(
    name: str,
    rows: Sequence[int],
    *,
    column: str | None = None,
    show: Callable[[int], str] | None = None,
    **words: object,
) -> Finding:
    """Return the `row_finding` with this name in findings.toml, with ``words`` filled in."""
    about = _TEXTS[name]
    level, code, of = about.get("level", "error"), about.get("code", name), about.get("of", "row")
    problem, advice = about["problem"].format(**words), about["advice"].format(**words)
    return row_finding(level, code, problem, rows, advice, column=column, show=show, of=of)


def row_finding(
    level: Level,
    code: str,
    problem: str,
    rows: Sequence[int],
    advice: str,
    *,
    column: str | None = None,
    show: Callable[[int], str] | None = None,
    of: str = "row",
) -> Finding:
    """Return one finding for all rows with the same problem. Its message shows up to five of them.

    ``show(i)`` returns the text to show for ``rows[i]``, safe to print. ``of`` is the word before each
    row number, such as "line".
    """
    named = [f"{of} {row}" for row in islice(rows, MAX_EXAMPLES)]
    if show is not None:
        named = [f"{name}: {show(i)}" for i, name in enumerate(named)]
    if len(rows) > MAX_EXAMPLES:
        named.append(f"and {len(rows) - MAX_EXAMPLES:,} more")
    prefix = f"{column}: " if column else ""
    have = "has" if len(rows) == 1 else "have"
    about = f"{prefix}{counted(len(rows), of)} {have} {problem}"
    message = f"{about} ({'; '.join(named)}). {advice}"
    numbers = tuple(sorted(rows)[:MAX_ROWS_NAMED])
    return Finding(level, code, message, numbers, len(rows), column, summary=f"{about}. {advice}")


def quoted(value: object, most_chars: int = MAX_QUOTED_CHARS) -> str:
    """Return a user's value, shortened and made safe to print.

    ``repr`` escapes control characters, line ends, direction marks and lone surrogates.
    """
    match value:
        case None:
            return "null"
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case str() | bytes():
            cut = repr(value[:most_chars])
            return cut if len(value) <= most_chars else f"{cut}…"
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > 256:
            return "an enormous whole number"
        case _:
            return repr(value)[:most_chars]


def quoted_id(trajectory_id: str) -> str:
    """Return an id that is safe to print and at most 160 characters long. Released ids have up to 130."""
    return quoted(trajectory_id, 2 * MAX_QUOTED_CHARS)


def quoted_names(names: Sequence[str], quote: Callable[[str], str] = quoted) -> str:
    """Return up to eight names, safe to print and separated by commas, and the number of further names."""
    few = ", ".join(map(quote, names[:8]))
    return few if len(names) <= 8 else f"{few} and {len(names) - 8:,} more"
