"""Print the notes of a release: the section of the version in CHANGELOG.md.

With ``--version``, print only the version. Exits with a message if the change log or the version is not
ready.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLASSES = ("Breaking", "Added", "Changed", "Fixed")


def version_in(code: str) -> str:
    """Return the version that ``arb/core/__init__.py`` declares. Raises ValueError if it is no release."""
    found = re.search(r'^__version__ = "(.+)"$', code, re.MULTILINE)
    if found is None or not re.fullmatch(r"\d+\.\d+\.\d+", found[1]):
        raise ValueError("arb/core/__init__.py: __version__ is not a release such as 1.0.0")
    return found[1]


def notes_of(version: str, changelog: str) -> str:
    """Return the section of a version.

    Raises ValueError if it is missing or undated, has other headings than `CLASSES`, or is not the first one.
    """
    titles = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    if not titles or not re.fullmatch(rf"{re.escape(version)} · \d{{4}}-\d\d-\d\d", titles[0]):
        raise ValueError(f"CHANGELOG.md: the first section has to be '## {version} · YYYY-MM-DD'")
    section = changelog.split(f"## {titles[0]}\n", 1)[1].split("\n## ", 1)[0].strip()
    if unknown := sorted(set(re.findall(r"^### (.+)$", section, re.MULTILINE)) - set(CLASSES)):
        raise ValueError(f"CHANGELOG.md: {', '.join(unknown)}: use {', '.join(CLASSES)}")
    return section


if __name__ == "__main__":
    try:
        version = version_in((ROOT / "arb" / "core" / "__init__.py").read_text(encoding="utf-8"))
        print(
            version
            if "--version" in sys.argv[1:]
            else notes_of(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        )
    except ValueError as error:
        sys.exit(str(error))
