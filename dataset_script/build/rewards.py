"""Read ``rewards.csv``, which contains the rewards of runs. It can also be used as a verdict file."""

import csv
import io
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from arb.core.ids import reading_key

COLUMNS: Final = ("trajectory_id", "success", "reward")


def read_rewards(path: Path) -> dict[str, float]:
    """Return the rewards in a CSV file, keyed by the `reading_key` of the run's id.

    A row without a ``reward`` gets 1 or 0 from its ``success``. A row without both is skipped. Raises
    ValueError, whose message names the line of every invalid row.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} is not UTF-8 text; save it as CSV in UTF-8") from None
    problems: list[str] = []
    rewards = dict(_read_rows(path.name, text, problems))
    if problems:
        raise ValueError(f"{path.name}, {'; '.join(problems)}")
    return rewards


def _read_rows(name: str, text: str, problems: list[str]) -> Iterator[tuple[str, float]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    columns = reader.fieldnames or ()
    if "trajectory_id" not in columns or not {"reward", "success"} & {*columns}:
        raise ValueError(
            f"{name} needs the columns trajectory_id and reward, as `arb data rewards` writes them"
        )
    words = {"true": "1", "yes": "1", "false": "0", "no": "0"}
    seen: dict[str, int] = {}
    for row in reader:
        written = (row.get("reward") or row.get("success") or "").strip()
        key = reading_key(row["trajectory_id"] or "")
        if key in seen:
            problems.append(f"line {reader.line_num}: the run is also in line {seen[key]}; remove one")
        seen[key] = reader.line_num
        try:
            value = float(words.get(written.lower(), written)) if written else None
        except ValueError:
            value = math.nan
        if value is not None and not math.isfinite(value):
            problems.append(f"line {reader.line_num}: reward {written[:40]!r} is not a number; correct it")
        elif value is not None:
            yield key, value
