"""Lazy imports, so that a command prints its help without loading the libraries that it needs to run."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """A module that is executed when one of its names is used, by one thread while others wait.

    `importlib.util.LazyLoader` shows other threads a half-executed module before Python 3.11.9.
    """

    def __getattribute__(self, name: str) -> Any:
        if name in ("__class__", "__spec__"):  # the import system asks for these of every module
            return object.__getattribute__(self, name)
        spec: Any = self.__spec__
        with spec.loader_state["lock"]:
            if self.__class__ is _LazyModule and not spec.loader_state["begun"]:
                spec.loader_state["begun"] = True  # the module may use its own names while it is executed
                try:
                    spec.loader.exec_module(self)
                except BaseException:
                    spec.loader_state["begun"] = False
                    raise
                object.__setattr__(self, "__class__", ModuleType)
        return ModuleType.__getattribute__(self, name)


class _LazyLoader(Loader):
    """A loader that leaves the execution of a module to `_LazyModule`."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        assert spec is not None
        spec.loader = module.__loader__ = self._loader
        spec.loader_state = {"lock": RLock(), "begun": False}
        module.__class__ = _LazyModule


class _LazyFinder:
    """A finder whose modules load when one of their names is used."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        # Extension modules cannot wait: their loader creates the module itself.
        if spec is None or spec.loader is None or not (spec.origin or "").endswith(".py"):
            return None
        spec.loader = _LazyLoader(spec.loader)
        return spec


@contextmanager
def lazy_imports() -> Iterator[None]:
    """Load the modules imported in this block when they are first used.

    Use it at the top of a module that defines commands:

        with lazy_imports():
            import pandas as pd

            from leaderboard import report

    Import modules, not names: ``from leaderboard.report import build`` has to load the module to find the
    name. Type checkers and editors see ordinary imports.
    """
    finder = _LazyFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
