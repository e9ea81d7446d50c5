"""Which files the Space needs, by their path in its repository. Anything unknown is refused, not sent."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dataset_script.published_files import PublishError
from dataset_script.suite import SHIPPED, shipped_suites

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = ("dataset_script", "judges", "leaderboard", "space", "submissions")
BESIDE: Final = ("CHANGELOG.md", "LICENSE", "requirements.txt")
MADE: Final = ("README.md", "app.py")
"""Written for the deployment."""

SUFFIXES: Final = frozenset(
    {".py", ".css", ".csv", ".html", ".js", ".json", ".mako", ".md", ".parquet", ".toml", ".txt", ".yaml"}
)
NOT_NEEDED: Final = frozenset({"dataset_script/sample/annotations.csv"})
"""Labels of the sample's recordings, from which its data was built."""

SUITE_FILES: Final = ("trajectories.csv", "dev_labels.csv", "tasks.csv", "suite.toml", "about.md")

ENTRY: Final = '''"""What the Hub starts: the Space on port 7860."""

from space.__main__ import app

if __name__ == "__main__":
    app(["serve", "--host", "0.0.0.0"], prog_name="app.py")
'''


def space_files(suite: str | Path, root: Path = ROOT) -> dict[str, Path]:
    """The code, its data, and the files of a custom suite (its folder).

    Raises PublishError naming every file that does not belong there.
    """
    found: dict[str, Path] = {}
    problems = [
        f"{name}: is missing; deploy from a checkout" for name in BESIDE if not (root / name).is_file()
    ]
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
    own, problem = _own_suite(suite)
    if problem:
        problems.append(problem)
    if problems:
        raise PublishError("; ".join(problems))
    return {**found, **own, **{name: root / name for name in BESIDE}}


def is_ours(path: str) -> bool:
    """Whether a path in the Space's repository belongs to a deployment; anything else there stays."""
    return path in (*BESIDE, *MADE) or path.split("/")[0] in PACKAGES


def total_bytes(files: Mapping[str, Path]) -> int:
    """How much it is."""
    return sum(path.stat().st_size for path in files.values())


def _is_ignored(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _own_suite(suite: str | Path) -> tuple[dict[str, Path], str | None]:
    """A suite's files at the place of a shipped one, so that the Space finds it by its name."""
    folder = Path(suite)
    if str(suite) in shipped_suites() or not (folder / "trajectories.csv").is_file():
        return {}, None
    name = folder.resolve().name
    files = {f"dataset_script/suites/{name}/{file}": folder / file for file in SUITE_FILES}
    there = {path: file for path, file in files.items() if file.is_file()}
    shipped = SHIPPED / name
    if shipped.is_dir() and any(_bytes_of(shipped / f.name) != _bytes_of(f) for f in there.values()):
        return {}, f"--suite {name}: a shipped suite has this name; give the folder another one"
    return there, None


def _bytes_of(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
