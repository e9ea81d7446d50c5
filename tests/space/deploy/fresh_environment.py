"""Makes a new environment with only the packages that a requirements.txt needs.

The packages are linked from the environment that runs the tests, because downloading them takes minutes. A
package that no requirement needs, directly or indirectly, cannot be imported there.
"""

import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def make_environment(folder: Path, requirements: Path, more: Iterable[str] = ()) -> Path:
    """Return the path of the environment's Python; ``more`` are requirements that the file lacks."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in required(requirements, more):
        for entry in _entries(metadata.distribution(name)):
            if entry.exists() and not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def required(requirements: Path, more: Iterable[str] = ()) -> set[str]:
    """Return the distributions that a requirements.txt needs, directly or indirectly, by normalized name.

    All of them must be installed here. Raises AssertionError if an installed version does not fit.
    """
    lines = (line.partition("#")[0].strip() for line in (*requirements.read_text().splitlines(), *more))
    waiting = [Requirement(line) for line in lines if line]
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        version = metadata.version(wanted.name)
        assert wanted.specifier.contains(version, prereleases=True), f"{wanted}: {version} is installed"
        for extra in ("", *wanted.extras):
            key = (canonicalize_name(wanted.name), extra)
            if key in seen:
                continue
            seen.add(key)
            its_own = [Requirement(text) for text in metadata.requires(wanted.name) or ()]
            waiting += [r for r in its_own if r.marker is None or r.marker.evaluate({"extra": extra})]
    return {name for name, _ in seen}


def _entries(distribution: metadata.Distribution) -> set[Path]:
    """Return the importable files that a distribution has in site-packages."""
    names = {file.parts[0] for file in distribution.files or ()}
    names -= {"..", "__pycache__"} | {name for name in names if name.endswith(".pth")}
    return {Path(str(distribution.locate_file(name))) for name in names}
