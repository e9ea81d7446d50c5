"""The notes of a release, and what the release refuses."""

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
_spec = importlib.util.spec_from_file_location("release", ROOT / ".ci" / "release.py")
release = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(release)

CHANGELOG = """# Change log

## 1.0.0 · 2026-12-01

### Added

- A judge.

## 0.1.0 · 2026-11-20

### Fixed

- A bug.
"""


def test_the_notes_are_the_section_of_the_version():
    assert release.notes_of("1.0.0", CHANGELOG) == "### Added\n\n- A judge."


@pytest.mark.parametrize(
    ("version", "changelog"),
    [
        ("1.1.0", CHANGELOG),  # has no section
        ("0.1.0", CHANGELOG),  # is not the newest
        ("1.0.0", CHANGELOG.replace(" · 2026-12-01", "")),  # has no date
        ("1.0.0", ""),
    ],
)
def test_a_version_needs_the_first_section_with_a_date(version, changelog):
    with pytest.raises(ValueError, match=rf"'## {re.escape(version)} · YYYY-MM-DD'"):
        release.notes_of(version, changelog)


def test_a_section_has_only_the_usual_classes():
    with pytest.raises(ValueError, match="Improved: use Breaking, Added, Changed, Fixed"):
        release.notes_of("1.0.0", CHANGELOG.replace("### Added", "### Improved"))


def test_only_a_release_has_a_version():
    assert release.version_in('x = 1\n__version__ = "1.0.0"\n') == "1.0.0"
    with pytest.raises(ValueError, match="is not a release"):
        release.version_in('__version__ = "1.0.0.dev1"\n')


def workflows() -> dict[str, dict]:
    folder = ROOT / ".github" / "workflows"
    return {path.name: yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yml"))}


def test_every_action_is_pinned_by_the_hash_of_a_release():
    text = "".join(path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    used = [line for line in re.findall(r"uses: (.+)", text) if not line.startswith("./")]
    assert len(used) >= 10
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_workflows_call_only_make_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    commands = [
        step.get("run", "")
        for workflow in workflows().values()
        for job in workflow["jobs"].values()
        for step in job.get("steps", ())
    ]
    called = {name for command in commands for name in re.findall(r"\bmake ([a-z-]+)", command)}
    assert called == {"test", "coverage", "test-lowest", "docs"}
    assert called <= targets


def test_only_the_release_may_write_and_it_follows_all_tests():
    found = workflows()
    assert found["tests.yml"]["permissions"] == found["release.yml"]["permissions"] == {"contents": "read"}
    jobs = found["release.yml"]["jobs"]
    assert jobs["tests"]["uses"] == "./.github/workflows/tests.yml"
    assert jobs["release"]["needs"] == "tests"
    assert [name for name, job in jobs.items() if "permissions" in job] == ["release"]
