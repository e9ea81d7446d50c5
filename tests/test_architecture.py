"""The order of packages, retired words, and what a command may import."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from arb.core.suites.targets import default_targets
from tests.conftest import APART, LONGEST

REPOSITORY = Path(__file__).parents[1]

MAY_IMPORT = {
    "arb.core": set(),
    "dataset_script": {"arb.core"},
    "leaderboard": {"arb.core", "dataset_script"},
    "arb.judges": {"arb.core", "dataset_script", "leaderboard"},
    "submissions": {"arb.core", "dataset_script", "leaderboard"},
    "space": {"arb.core", "dataset_script", "leaderboard", "arb.judges", "submissions"},
    "arb": {"arb.core", "dataset_script", "leaderboard", "arb.judges", "submissions", "space"},
    "tools": {"arb.core", "dataset_script"},
}
PRODUCT = tuple(package for package in MAY_IMPORT if package != "tools")
COMMANDS = ("dataset_script", "leaderboard", "arb.judges", "submissions", "space")
HEAVY = (
    "numpy", "pandas", "pyarrow", "datasets", "evaluate", "gradio", "sqlalchemy", "scipy", "sklearn",
    "fastapi", "aiohttp", "huggingface_hub", "pydantic_settings",
)  # fmt: skip

IN_FILES = frozenset({"allow_dropped_params", "dropped", "said_yes", "spent_usd", "_spent_usd"})
"""Names with a retired word that options and files of earlier runs have."""

RETIRED_WORDS = {
    "told": "view, describe, to_response",
    "tell": "view, describe",
    "revealed": "leak_report",
    "disclosed": "disclosure",
    "discloser": "DisclosurePolicy",
    "shelf": "cache, store, state",
    "standing": "status",
    "standings": "statuses",
    "chain": "event_log",
    "ledger": "recorder",
    "acts": "actions",
    "acting": "http_errors",
    "refusals": "errors",
    "asking": "JudgeSession",
    "askings": "sessions",
    "asker": "CallExecutor, engine",
    "trying": "retry",
    "tries": "retry, RetryState",
    "patience": "retry_policy",
    "keeping": "ResultWriter",
    "keeper": "ResultWriter",
    "seams": "interfaces",
    "pace": "throughput, rate limit",
    "turns": "lease",
    "bring": "pull",
    "desk": "AnnotationService",
    "office": "annotation admin",
    "seat": "AnnotatorContext",
    "ballots": "vote_counts",
    "ballot": "vote",
    "grove": "ForestGroup",
    "whisker": "interval",
    "whiskers": "interval",
    "look": "StaticAssets",
    "prepared": "CachedResponse",
    "choosable": "QueryParam",
    "people": "account",
    "dropped": "uploaded_file, unsupported_params",
    "made_up": "dummy_replies",
    "put_right": "repair_json",
    "loose": "repair",
    "said": "parsed",
    "in_words": "describe",
    "spent": "spend",
    "interim": "parsing",
    "choosing": "threshold_selection",
    "look_alikes": "confusable_names",
    "sending": "client",
    "fresh": "options",
    "shown": "view, datasets",
    "here": "local",
    "nobody": "anonymous",
    "given": "parameters",
    "hope": "can_retry",
    "hopeless": "is_permanent",
    "at_hand": "cached",
    "nothing_lasts": "not durable",
    "take_turn": "acquire_lease",
    "give_back": "refund",
    "held_against": "evaluated_against",
}
"""Words that no module, class or function has in its name, and what is said instead."""

RETIRED_NAMES = {
    "Record": "Event",
    "Entry": "Event",
    "NotAllowed": "PermissionDenied",
    "TooMany": "RateLimited",
    "Choice": "LeaderboardQuery",
    "HubMirror": "HubSync",
    "Opening": "InitialHtml",
    "Found": "a name of the field",
    "Given": "a name of the field",
}
"""Names of classes, whole; and what is said instead."""

RETIRED_PHRASES = {
    "held against": "evaluated against",
    "read it like this": "Key findings",
    "how the board came about": "Rank history",
    "what a judge means for training": "Effect on rejection fine-tuning",
    "what it said, what was so": "Confusion matrix",
    "if they voted": "Ensembles",
    "wrong together": "Error overlap",
    "none such": "there is no ...",
    "nothing lasts": "records are not durable",
}
"""Phrases that no page, message or file of text has, in small letters; and what is said instead."""


@cache
def modules(package: str) -> tuple[Path, ...]:
    """A package's files; those of `arb.core` and `arb.judges` are not among those of `arb`."""
    paths = sorted(REPOSITORY.joinpath(*package.split(".")).rglob("*.py"))
    return tuple(path for path in paths if package_of(name_of(path)) == package)


def package_of(module: str) -> str:
    """The package of `MAY_IMPORT` that a module is in."""
    first, second, *_ = [*module.split("."), ""]
    return f"{first}.{second}" if f"{first}.{second}" in MAY_IMPORT else first


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Every module of ours that a file names, with type-checking imports and late ones."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            below = {name.name: f"{node.module}.{name.name}" for name in node.names}
            found |= {full if is_module(full) else node.module for full in below.values()}
    return frozenset(name for name in found if package_of(name) in MAY_IMPORT)


def is_module(name: str) -> bool:
    path = REPOSITORY.joinpath(*name.split("."))
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def assert_none(findings: list[str]) -> None:
    """Fail with every finding, a line each."""
    assert not findings, "\n".join(findings)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_only_what_lies_below_it(package):
    wrong = [
        f"{path.relative_to(REPOSITORY)} imports {name}"
        for path in modules(package)
        for name in imports_of(path)
        if package_of(name) not in (package, *MAY_IMPORT[package])
    ]
    assert_none(wrong)


def test_no_modules_import_each_other_in_a_circle():
    graph = {name_of(path): imports_of(path) for package in MAY_IMPORT for path in modules(package)}
    graph = {
        name: {each for each in found if each in graph and each != name} for name, found in graph.items()
    }
    while leaves := [name for name, found in graph.items() if not found & graph.keys()]:
        for name in leaves:
            del graph[name]
    left = {name: sorted(found & graph.keys()) for name, found in graph.items()}
    assert_none([f"{name} imports {found}" for name, found in left.items()])


def words_of(name: str) -> str:
    """A name as lower-case words with a blank on each side: `SubmissionView` is ` submission view `."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name)
    return f" {apart.lower().strip()} "


def retired_in(name: str) -> str | None:
    if name in RETIRED_NAMES:
        return RETIRED_NAMES[name]
    words = words_of(name)
    return next((say for word, say in RETIRED_WORDS.items() if words_of(word) in words), None)


def names_in(path: Path) -> set[str]:
    """What a file names: itself, its classes and functions, and all variables, constants and parameters."""
    names = {path.stem}
    for node in ast.walk(tree_of(path)):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names.add(node.name)
            case ast.Name(ctx=ast.Store()):
                names.add(node.id)
            case ast.arg():
                names.add(node.arg)
    return names


@pytest.mark.parametrize("package", PRODUCT)
def test_names_are_words_of_the_field(package):
    found = []
    for path in modules(package):
        if "migrations" in path.parts:  # they stay as they were run
            continue
        retired = [(name, retired_in(name)) for name in sorted(names_in(path) - IN_FILES)]
        found += [f"{name_of(path)}: {name}, say {say}" for name, say in retired if say]
    assert_none(found)


def test_the_name_of_a_class_means_one_thing():
    homes: dict[str, list[str]] = {}
    for package in PRODUCT:
        for path in modules(package):
            for node in ast.walk(tree_of(path)):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(name_of(path))
    assert_none([f"{name} is in {places}" for name, places in homes.items() if len(places) > 1])


@pytest.mark.parametrize("package", PRODUCT)
def test_texts_have_no_retired_phrase(package):
    """In templates and in the text of programs, comments and docstrings too."""
    paths = [
        path
        for ending in ("py", "html")
        for path in sorted(REPOSITORY.joinpath(*package.split(".")).rglob(f"*.{ending}"))
    ]
    found = []
    for path in paths:
        text = " ".join(path.read_text(encoding="utf-8").lower().split())
        found += [f"{path.relative_to(REPOSITORY)}: {each}" for each in RETIRED_PHRASES if each in text]
    assert_none(found)


@pytest.mark.parametrize("package", COMMANDS)
def test_help_comes_without_any_heavy_import(package):
    loaded = "type(sys.modules.get(m)).__name__ not in ('_LazyModule', 'NoneType')"
    code = f"import sys, {package}.__main__; print([m for m in {HEAVY!r} if {loaded}])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_no_module_names_the_columns_of_the_released_annotations():
    """They are in one file, ``arb/core/suites/released.toml``."""
    readers = [
        str(path.relative_to(REPOSITORY))
        for package in MAY_IMPORT
        for path in modules(package)
        if "trajectory_success" in path.read_text(encoding="utf-8")
    ]
    assert readers == []
    assert "trajectory_success" in (REPOSITORY / "arb/core/suites/released.toml").read_text(encoding="utf-8")


def test_tests_that_are_begun_first_or_in_a_process_of_their_own_are_there():
    for name in (*LONGEST, *APART):
        path, _, test = name.partition("::")
        assert (REPOSITORY / path).exists(), name
        assert not test or f"\ndef {test}" in (REPOSITORY / path).read_text(encoding="utf-8"), name


FOLLOW_TARGETS = ("leaderboard", "submissions", "space")
"""Packages that ask the suite for its targets. They must not name those of AgentRewardBench."""


@pytest.mark.parametrize("package", FOLLOW_TARGETS)
def test_no_package_names_the_targets_of_one_suite(package):
    named = "|".join(target.name for target in default_targets())
    found = []
    for path in modules(package):
        # The paper's tables are those of one suite; old databases stay as they were.
        if not {"paper", "migrations"} & set(path.parts):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                if re.search(rf"\b({named})\b", line, re.IGNORECASE):
                    found.append(f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()}")
    assert_none(found)
