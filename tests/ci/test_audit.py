"""What CI says of the report of `pip-audit`, and when it fails."""

import json
import subprocess
import sys
from pathlib import Path

AUDIT = Path(__file__).parents[2] / ".ci" / "audit.py"
REASON = "Dependency not found on PyPI and could not be audited"


def audit(folder: Path, *packages: dict, has_service: bool = True) -> tuple[int, list[str]]:
    """Return the exit code and the lines that are printed for a report of these packages."""
    report, known = folder / "report.json", folder / "known.json"
    report.write_text(json.dumps({"dependencies": packages, "fixes": []}))
    package = audited("py", {"id": "PYSEC-2022-42969", "fix_versions": []}) if has_service else skipped("py")
    known.write_text(json.dumps({"dependencies": [package], "fixes": []}))
    done = subprocess.run([sys.executable, AUDIT, report, known], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def audited(name: str, *vulnerabilities: dict) -> dict:
    return {"name": name, "version": "1.0", "vulns": list(vulnerabilities)}


def skipped(name: str) -> dict:
    return {"name": name, "skip_reason": REASON}


def test_packages_without_vulnerabilities_pass(tmp_path):
    code, lines = audit(tmp_path, audited("a"), audited("b"))
    assert (code, lines) == (0, ["dependency audit: 2 packages audited, 0 skipped, 0 known vulnerabilities"])


def test_skipped_packages_are_counted_and_the_reason_is_given(tmp_path):
    code, lines = audit(tmp_path, audited("a"), skipped("b"), skipped("c"))
    assert code == 0
    assert lines == [
        "dependency audit: 1 packages audited, 2 skipped, 0 known vulnerabilities",
        f"  skipped 2: {REASON}",
    ]


def test_it_fails_if_every_package_was_skipped(tmp_path):
    code, lines = audit(tmp_path, *(skipped(f"p{n}") for n in range(112)))
    assert code == 1
    assert lines[0] == "dependency audit: 0 packages audited, 112 skipped, 0 known vulnerabilities"
    assert lines[-1].startswith("dependency audit failed: no package was audited")


def test_it_is_left_out_if_the_index_does_not_know_a_package_with_advisories_either(tmp_path):
    code, lines = audit(tmp_path, skipped("a"), has_service=False)
    assert code == 0
    assert lines[-1] == "dependency audit left out: the package index here has no advisories"


def test_it_fails_only_for_a_vulnerability_that_has_a_fix(tmp_path):
    unfixed = audited("a", {"id": "PYSEC-1", "fix_versions": []})
    fixed = audited("b", {"id": "PYSEC-2", "fix_versions": ["1.1", "2.0"]})
    assert audit(tmp_path, unfixed)[0] == 0
    code, lines = audit(tmp_path, unfixed, fixed)
    assert code == 1
    assert lines[1:] == [
        "  a 1.0: PYSEC-1 (fixed in no version yet)",
        "  b 1.0: PYSEC-2 (fixed in 1.1, 2.0)",
    ]


def test_ci_runs_this_script(tmp_path):
    assert (
        'python3 .ci/audit.py "$reports/all.json" "$reports/known.json"' in (AUDIT.parent / "run").read_text()
    )
