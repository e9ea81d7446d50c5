"""Lazy imports, so that a command prints its help without loading the libraries that it needs to run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType


class _LazyFinder:
    """A finder whose modules load when one of their names is used."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        # Packages load at once if they are parents: the import system needs their `__path__`. Extension
        # modules cannot wait: their loader creates the module itself.
        if spec is None or spec.loader is None or not (spec.origin or "").endswith(".py"):
            return None
        spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def lazy_imports() -> Iterator[None]:
    """Load the modules imported in this block when they are first used.

    Use it at the top of a module that defines commands:

        with lazy_imports():
            import pandas as pd

            from leaderboard import report

    Import modules, not names: ``from leaderboard.report import build`` has to load the module to find the
    name. Type checkers and editors see ordinary imports. Use a module on one thread first, since Python 3.11
    does not lock its loading.
    """
    finder = _LazyFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
