"""Findings: what is wrong with a prediction file, a source of runs or a built dataset.

They are values, made where something is found and printed elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, Literal

Level = Literal["error", "warning"]

MAX_ROWS_NAMED: Final = 1_000
MAX_EXAMPLES: Final = 5
MAX_QUOTED_CHARS: Final = 80

UNREAD_ROW_CODES: Final = frozenset({"invalid_json", "not_an_object", "field_count"})
"""Findings about rows that are left out of the table, so that their ids are not known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong (error) or worth a look (warning), and where it was seen.

    `file` is a file or a trajectory of a source or a dataset, `names` a few places in it. `rows` holds the
    first 1,000 row numbers (a line of JSONL, a record of CSV with the header as 1, a row of Parquet from 1),
    `count` all of them, or what the message counts where no row is to blame.
    """

    level: Level
    code: str
    message: str
    rows: tuple[int, ...] = ()
    count: int = 1
    column: str | None = None
    file: str | None = None
    names: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The finding as the check report spells it; `column` only where there is one."""
        body: dict[str, object] = {
            "level": self.level,
            "code": self.code,
            "message": self.message,
            "rows": list(self.rows),
            "count": self.count,
        }
        return body if self.column is None else body | {"column": self.column}


def error(code: str, message: str, *, count: int = 1, column: str | None = None) -> Finding:
    """An error about the file as a whole."""
    return Finding("error", code, message, count=count, column=column)


def warning(code: str, message: str, *, count: int = 1, column: str | None = None) -> Finding:
    """A warning about the file as a whole."""
    return Finding("warning", code, message, count=count, column=column)


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
    """One finding for every row with the same problem: up to five are shown, all are counted.

    `show(i)` gives the text for `rows[i]`, already safe to print; it is asked for the examples only.
    """
    named = [f"{of} {row}" for row in islice(rows, MAX_EXAMPLES)]
    if show is not None:
        named = [f"{name}: {show(i)}" for i, name in enumerate(named)]
    if len(rows) > MAX_EXAMPLES:
        named.append(f"and {len(rows) - MAX_EXAMPLES:,} more")
    prefix = f"{column}: " if column else ""
    message = f"{prefix}{problem} in {counted(len(rows), of)} ({'; '.join(named)}). {advice}"
    return Finding(level, code, message, tuple(sorted(rows)[:MAX_ROWS_NAMED]), len(rows), column)


def counted(number: int, noun: str) -> str:
    """`1 row`, `1,106 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def quoted(value: object, most_chars: int = MAX_QUOTED_CHARS) -> str:
    """Return a user's value, cut to some characters and safe to print.

    `repr` spells control characters, terminal escapes, line ends, direction marks and lone surrogates as
    escapes, so what is left prints as itself.
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
    """Return an id, long enough to show its task: released ones have up to 130 characters."""
    return quoted(trajectory_id, 2 * MAX_QUOTED_CHARS)


def quoted_names(names: Sequence[str]) -> str:
    """A list of names, safe to print, with no more than eight of them."""
    few = ", ".join(quoted(name) for name in names[:8])
    return few if len(names) <= 8 else f"{few} and {len(names) - 8:,} more"
