"""Lazy imports, so that a command can print its help without loading heavy libraries."""

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
    """A module that is executed when one of its attributes is first used. Meanwhile, other threads wait.

    `importlib.util.LazyLoader` does not do this: before Python 3.11.9, other threads may see a half-executed
    module.
    """

    def __getattribute__(self, name: str) -> Any:
        present = object.__getattribute__(self, "__dict__")
        # Attributes that the import system set (spec, lazy submodules) can be read without executing the
        # module. An ordinary import of a submodule reads __path__ and expects an executed package.
        if (name not in present and name != "__class__") or (name == "__path__" and not _active_finders()):
            _execute(self)
        return ModuleType.__getattribute__(self, name)


def _active_finders() -> list[_LazyFinder]:
    return [each for each in sys.meta_path if isinstance(each, _LazyFinder) and each.is_active]


def _execute(module: ModuleType) -> None:
    """Execute a lazy module, after its parent package if that is lazy too."""
    spec: Any = module.__spec__
    parent = sys.modules.get(spec.parent)
    if isinstance(parent, _LazyModule) and parent is not module:
        _execute(parent)
    with spec.loader_state["lock"]:
        if not isinstance(module, _LazyModule) or spec.loader_state["begun"]:
            return  # another thread was faster, or the module uses its own names while it is executed
        spec.loader_state["begun"] = True
        finders = _active_finders()
        try:
            for finder in finders:  # imports inside the module are not lazy
                finder.is_active = False
            spec.loader.exec_module(module)
        except BaseException:
            spec.loader_state["begun"] = False
            raise
        finally:
            for finder in finders:
                finder.is_active = True
        object.__setattr__(module, "__class__", ModuleType)


class _LazyLoader(Loader):
    """A loader that creates a `_LazyModule` instead of executing the module."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        spec.loader = module.__loader__ = self._loader
        spec.loader_state = {"lock": RLock(), "begun": False}
        module.__class__ = _LazyModule


class _LazyFinder:
    """A module finder. While ``is_active`` is true, every module that it finds is lazy."""

    is_active = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if self.is_active else None
        # Extension modules cannot be lazy, because their loader creates the module object itself.
        if spec is None or spec.loader is None or not (spec.origin or "").endswith(".py"):
            return None
        spec.loader = _LazyLoader(spec.loader)
        return spec


class _ImportedMeanwhile(Loader):
    """A finder and loader for submodules that were already imported while their lazy package was executed.

    ``import package.sub`` reads the path of the package. If that executes the package, and the package itself
    imports ``package.sub``, the import system would otherwise execute ``package.sub`` a second time.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_there = target is None and fullname in sys.modules
        return ModuleSpec(fullname, self, loader_state=sys.modules[fullname].__spec__) if is_there else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        spec: Any = module.__spec__
        module.__spec__ = spec.loader_state  # the import system has replaced it


_imported_meanwhile = _ImportedMeanwhile()


@contextmanager
def lazy_imports() -> Iterator[None]:
    """Delay the execution of the modules imported in this block until they are first used.

    Use it at the top of a module that defines commands:

        with lazy_imports():
            import pandas as pd

            from leaderboard import report

    Import modules, not names: ``from leaderboard.report import build`` executes the module to find the name.
    Type checkers and editors see ordinary imports.
    """
    finder = _LazyFinder()
    if _imported_meanwhile not in sys.meta_path:
        sys.meta_path.insert(0, _imported_meanwhile)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
