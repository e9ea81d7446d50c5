"""The versions of the formats that other programs read or write. A document has its version in ``format``.

Increase a version when you remove or redefine something in a format, but not when you add a field or column.
"""

from types import MappingProxyType
from typing import Final

FORMATS: Final = MappingProxyType(
    {
        "annotation file": 1,
        "board.json": 1,
        "certificate": 1,
        "combination": 1,
        "comparison": 1,
        "dataset": 1,
        "export of the records": 1,
        "prediction file": 1,
        "receipt": 1,
        "record of a draw": 2,
        "report.json": 1,
        "run folder": 1,
        "score report": 1,
        "suite.toml": 1,
        "threshold": 1,
        "validation report": 1,
    }
)


def format_problem(name: str, content: object) -> str | None:
    """Return what is wrong with the version of a parsed document, or None. A missing version means 1."""
    version = content.get("format", 1) if isinstance(content, dict) else 1
    if version in range(1, FORMATS[name] + 1):
        return None
    return f"has format {version!r:.20}, but this program reads formats up to {FORMATS[name]}; upgrade it"
