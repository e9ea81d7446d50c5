"""The direction of imports, and what a command may import before it knows what to do."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
MAY_IMPORT = {
    "dataset_script": set(),
    "leaderboard": {"dataset_script"},
    "judges": {"dataset_script", "leaderboard"},
    "submissions": {"dataset_script", "leaderboard"},
    "space": {"dataset_script", "leaderboard", "judges", "submissions"},
}
HEAVY = (
    "numpy",
    "pandas",
    "pyarrow",
    "datasets",
    "evaluate",
    "gradio",
    "sqlalchemy",
    "plotly",
    "pydantic_settings",
)


def _modules(package: str) -> list[Path]:
    return sorted((REPOSITORY / package).rglob("*.py"))


def _imports(path: Path) -> set[str]:
    """Every module of ours that a file names, with type-checking imports and late ones."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return {name for name in found if name.split(".")[0] in MAY_IMPORT}


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_what_lies_below_it(package):
    wrong = [
        f"{path.relative_to(REPOSITORY)} imports {name}"
        for path in _modules(package)
        for name in _imports(path)
        if name.split(".")[0] != package and name.split(".")[0] not in MAY_IMPORT[package]
    ]
    assert wrong == []


def test_no_two_files_import_each_other():
    graph = {}
    for package in MAY_IMPORT:
        for path in _modules(package):
            name = ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
            graph[name] = _imports(path)
    edges = {(a, b) for a, targets in graph.items() for b in targets & graph.keys() if a != b}
    assert [edge for edge in edges if edge[::-1] in edges] == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_help_comes_without_any_heavy_import(package):
    code = f"import sys, {package}.__main__; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_only_one_module_names_the_columns_of_the_released_annotations():
    readers = [
        str(path.relative_to(REPOSITORY))
        for package in MAY_IMPORT
        for path in _modules(package)
        if "trajectory_success" in path.read_text(encoding="utf-8")
    ]
    assert readers == ["leaderboard/released_annotations.py"]
