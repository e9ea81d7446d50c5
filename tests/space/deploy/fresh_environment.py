"""A new environment that holds what a requirements.txt asks for and nothing else.

The packages are linked from the environment that runs the tests: downloading them takes minutes.
What a requirement does not bring in, directly or by its own requirements, cannot be imported there.
"""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def make_environment(folder: Path, requirements: Path) -> Path:
    """The environment's Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in required(requirements):
        for entry in _entries(metadata.distribution(name)):
            if entry.exists() and not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def required(requirements: Path) -> set[str]:
    """The distributions of a requirements.txt, with theirs, by their plain names; all are installed here.

    Raises AssertionError for one that is installed in a version that does not fit.
    """
    lines = (line.partition("#")[0].strip() for line in requirements.read_text().splitlines())
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
    """What a distribution put into site-packages, as far as imports go."""
    names = {file.parts[0] for file in distribution.files or ()}
    names -= {"..", "__pycache__"} | {name for name in names if name.endswith(".pth")}
    return {Path(str(distribution.locate_file(name))) for name in names}
