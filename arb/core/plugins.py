"""Find the judges, sources and providers of installed packages through their entry points."""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, Literal

Group = Literal["arb.judges", "arb.sources", "arb.providers"]

BUILT_IN: Final[Mapping[str, Mapping[str, str]]] = tomllib.loads(
    Path(__file__).with_name("plugins.toml").read_text(encoding="utf-8")
)
"""The built-in entry points, in the order in which they are tried."""

_logger: Final = logging.getLogger(__name__)


def load_plugins(group: Group) -> Iterator[tuple[str, Any]]:
    """Yield the name and the loaded object of each entry point of a group, built-in ones first.

    An entry point is imported just before it is yielded. A plug-in that cannot be imported, or whose name is
    already in use, is ignored with a warning, so that a broken package does not stop every command.
    """
    for point in _entry_points(group):
        loaded = _load(point)
        if loaded is not None:
            yield point.name, loaded


@cache
def _load(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:  # importing a package can raise anything
        if point.dist is None:
            raise
        leave_out(
            point.group, point.name, f"{point.value} cannot be loaded ({type(error).__name__}: {error})"
        )
        return None


def leave_out(group: str, name: str, problem: str) -> None:
    """Log a warning that an entry point is ignored. By default, it is printed on stderr."""
    _logger.warning("entry point %s of %s is ignored: %s", name, group, problem)


@cache
def _entry_points(group: Group) -> tuple[EntryPoint, ...]:
    found = {name: EntryPoint(name, value, group) for name, value in BUILT_IN[group].items()}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        if point.name in found:
            leave_out(group, point.name, f"{point.value} has a name that is already in use")
        else:
            found[point.name] = point
    return tuple(found.values())
