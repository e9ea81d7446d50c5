"""What tests of judges share: the official package, unpacked, of which single modules can be imported."""

import importlib.util
import sys
import zipfile
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from leaderboard.labels.source import locate_labels
from tests.support.text_runs import text_runs  # noqa: F401 - a fixture

PACKAGE = "agent_reward_bench"


@pytest.fixture(scope="session")
def official_folder(official_settings, tmp_path_factory) -> Path:
    """The folder of the package agent-reward-bench: installed, or out of the wheel."""
    found = locate_labels(official_settings)
    if found.suffix != ".whl":
        return found.parents[1]
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(found) as wheel:
        wheel.extractall(folder)
    return folder / PACKAGE


@pytest.fixture
def official_package(official_folder):
    """Imports a module of the package by its name inside it, without what the package itself would import."""
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == PACKAGE}
    for name in before:
        del sys.modules[name]
    hollow = ModuleSpec(PACKAGE, None, is_package=True)
    hollow.submodule_search_locations = [str(official_folder)]
    sys.modules[PACKAGE] = importlib.util.module_from_spec(hollow)
    yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
        del sys.modules[name]
    sys.modules.update(before)
