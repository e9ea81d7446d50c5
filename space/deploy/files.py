"""Finds the files to deploy, and refuses unknown files and files with test labels."""

import csv
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pyarrow import parquet

from arb.core.files import project_file
from arb.core.hub import PublishError
from arb.core.ids import reading_key
from arb.core.suite import OFFICIAL, SHIPPED, Suite, shipped_suites
from arb.core.suites.targets import RELEASED_ANSWERS

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("arb", "dataset_script", "leaderboard", "space", "submissions")
BESIDE: Final = ("CHANGELOG.md", "LICENSE", "requirements.txt")
MADE: Final[Mapping[str, tuple[str, ...]]] = {
    "gradio": ("README.md", "app.py", "thumbnail.png"),
    "docker": ("Dockerfile", "README.md", "app.py", "thumbnail.png"),
}
"""The files that are generated for a deployment, keyed by the Space's SDK."""
SITE: Final = "site"
"""The folder of the built documentation, if any (`make docs`; a wheel may contain it)."""

SUFFIXES: Final = frozenset(
    (
        ".bib", ".css", ".csv", ".gz", ".html", ".j2", ".js", ".json", ".mako", ".md", ".parquet", ".py",
        ".toml", ".txt", ".yaml",
    )
)  # fmt: skip
NOT_NEEDED: Final = frozenset(
    ("dataset_script/sample/annotations.csv", *(f"{package}/py.typed" for package in PACKAGES))
)
"""Files that are not sent: the labels from which the sample was built, and files for type checkers."""

SUITE_FILES: Final = (
    "trajectories.csv", "items.csv", "dev_labels.csv", "tasks.csv", "suite.toml", "about.md", "guidelines.md",
)  # fmt: skip


def space_files(suites: Sequence[str | Path], root: Path = ROOT) -> dict[str, Path]:
    """Return the files to send, keyed by their path in the Space's repository.

    These are the code, the data, the files of each suite that is in a folder and, if the official suite comes
    first, the built documentation. Raises PublishError, which names the files that are missing or not needed.
    """
    found: dict[str, Path] = {}
    beside = {name: project_file(name) if root == ROOT else root / name for name in BESIDE}
    problems = [f"{path.name}: is missing; restore it" for path in beside.values() if not path.is_file()]
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*")):
            name = path.relative_to(root).as_posix()
            if name in NOT_NEEDED or _is_ignored(path.relative_to(root)):
                continue
            if path.is_symlink():
                problems.append(f"{name}: is a link; move it out of the code")
            elif path.is_file() and path.suffix not in SUFFIXES:
                problems.append(f"{name}: is not a file that the Space needs; move it out of the code")
            elif path.is_file():
                found[name] = path
    for suite in suites:
        own, problem = _own_suite(suite)
        found |= own
        problems += [problem] if problem else []
    if problems:
        raise PublishError("; ".join(problems))
    site = project_file(SITE) if root == ROOT else root / SITE
    pages = sorted(site.rglob("*")) if str(suites[0]) == OFFICIAL else ()
    documentation = {f"{SITE}/{path.relative_to(site).as_posix()}": path for path in pages if path.is_file()}
    return {**found, **beside, **documentation}


def is_ours(path: str) -> bool:
    """Return whether deployments manage a path in the Space's repository; other files stay as they are.

    A Dockerfile left by an earlier deployment is ours too, so it is deleted from a Gradio Space.
    """
    return path in (*BESIDE, *MADE["docker"]) or path.split("/")[0] in (*PACKAGES, SITE)


def total_bytes(files: Mapping[str, Path]) -> int:
    return sum(path.stat().st_size for path in files.values())


def by_folder(files: Mapping[str, Path]) -> dict[str, tuple[int, int]]:
    """Return (number of files, bytes) of each package and of a suite that is not shipped, keyed by folder."""
    found: dict[str, tuple[int, int]] = {}
    for name, path in sorted(files.items()):
        is_own = name.startswith("arb/core/suites/") and not path.resolve().is_relative_to(ROOT)
        parts = name.split("/")[:-1]
        folder = "/".join([*parts[: 4 if is_own else 1], ""]) or "other files"
        n, size = found.get(folder, (0, 0))
        found[folder] = n + 1, size + path.stat().st_size
    return found


def _is_ignored(path: Path) -> bool:
    if path.parts[:2] in {("arb", name) for name in (*BESIDE, SITE)}:
        return True  # a wheel has these within `arb`; they are sent under their own names
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _own_suite(suite: str | Path) -> tuple[dict[str, Path], str | None]:
    """Return the files of a suite in a folder, keyed by path, and why they cannot be sent (or None).

    The paths are like those of a shipped suite, so that the Space finds the suite by its name. If the suite
    is a shipped one, there are no files to add.
    """
    folder = Path(suite)
    if str(suite) in shipped_suites() or not (folder / "trajectories.csv").is_file():
        return {}, None
    name = folder.resolve().name
    files = {f"arb/core/suites/{name}/{file}": folder / file for file in SUITE_FILES}
    there = {path: file for path, file in files.items() if file.is_file()}
    shipped = SHIPPED / name
    if shipped.is_dir() and any(_digest(shipped / f.name) != _digest(f) for f in there.values()):
        return {}, f"--suite {name}: a shipped suite has this name; rename the folder"
    return there, None


ANSWERS: Final = frozenset({*RELEASED_ANSWERS, "looping"})
"""Columns with experts' answers. In the released annotations their names begin with ``trajectory_``."""

_ANSWER: Final = next(iter(RELEASED_ANSWERS))

PLACES: Final = ("trajectory_id",), ("benchmark", "model_name", "task_id")
"""The columns that identify a trajectory: in our files, and in the released annotations."""

TABLES: Final = frozenset({".csv", ".json", ".jsonl", ".md", ".parquet", ".toml", ".txt", ".tsv", ".yaml"})

Row = Mapping[str, Any]


def label_problems(files: Mapping[str, Path], suites: Iterable[Suite], labels: Path | None) -> list[str]:
    """Return a message for each file that must not be sent because it has labels. No message has a label.

    The files are searched for labels of test trajectories, except for suites whose labels are part of their
    folder. ``labels`` is the configured label file on this machine, or None.
    """
    suites = tuple(suites)
    with_labels = [suite for suite in suites if suite.test_labels_path is None]
    hidden = {reading_key(t.trajectory_id) for suite in with_labels for t in suite.split("test")}
    asked = ANSWERS | {question.name for suite in suites for question in suite.own_targets}
    own = _digest(labels) if labels is not None else None
    problems = []
    for name, path in files.items():
        if own is not None and _digest(path) == own:
            problems.append(f"{name}: is the file with the labels; move it out of the code")
        elif path.suffix in TABLES:
            count = sum(_is_label(row, hidden, asked) for row in _rows(path, asked))
            if count:
                problems.append(
                    f"{name}: {count} rows have labels of test trajectories; move the file out of the code"
                )
    return problems


def _is_label(row: Row, hidden: set[str], asked: Collection[str]) -> bool:
    named = {str(column).strip().lower(): value for column, value in row.items()}
    if not any(value not in (None, "") and _is_answer(column, asked) for column, value in named.items()):
        return False
    return any(
        reading_key("/".join(str(named[column]) for column in columns)) in hidden
        for columns in PLACES
        if all(named.get(column) for column in columns)
    )


def _is_answer(column: str, asked: Collection[str]) -> bool:
    return column.removeprefix("trajectory_") in asked


def _rows(path: Path, asked: Collection[str]) -> Iterator[Row]:
    """Yield the rows of a CSV, TSV, JSON, JSON Lines or Parquet file. Yields nothing if it has no table."""
    if path.suffix == ".parquet":
        places = {column for columns in PLACES for column in columns}
        names = parquet.read_schema(path).names
        columns = [name for name in names if name.lower() in places or _is_answer(name.lower(), asked)]
        yield from parquet.read_table(path, columns=columns).to_pylist()
        return
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if path.suffix in (".json", ".jsonl"):
        yield from _json_rows(text)
        return
    try:
        delimiter = "\t" if path.suffix == ".tsv" else ","
        yield from (row for row in csv.DictReader(text.splitlines(), delimiter=delimiter) if row)
    except csv.Error:
        return


def _json_rows(text: str) -> Iterator[Row]:
    for part in (text, *text.splitlines()):
        try:
            found = json.loads(part)
        except ValueError:
            continue
        rows: Sequence[Any] = found if isinstance(found, list) else [found]
        for row in rows:
            if isinstance(row, dict):
                yield row
                yield from ({"trajectory_id": key, _ANSWER: row[key]} for key in row if "/" in key)
        if part is text:
            return


def _digest(path: Path) -> bytes | None:
    return hashlib.sha256(path.read_bytes()).digest() if path.is_file() else None
