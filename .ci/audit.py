"""Summarise the JSON report of pip-audit: how many packages were audited, skipped, and are vulnerable.

The second argument is the report on one package that every advisory service knows. If the package index has
no advisories, pip-audit skips that one too; the audit is then left out, as if no service had answered.

Exits with 1 if a known vulnerability has a fix, or if a service answered and still no package was audited.
"""

import json
import sys
from collections import Counter
from pathlib import Path


def summary(report: dict, known_package: dict) -> tuple[list[str], bool]:
    """Return the lines to print, and whether the run passes."""
    packages = report["dependencies"]
    skipped = Counter(package["skip_reason"] for package in packages if "skip_reason" in package)
    audited = [package for package in packages if "skip_reason" not in package]
    known = [
        (package["name"], package["version"], found["id"], found["fix_versions"])
        for package in audited
        for found in package["vulns"]
    ]
    lines = [
        f"dependency audit: {len(audited)} packages audited, {skipped.total()} skipped, "
        f"{len(known)} known vulnerabilities"
    ]
    lines += [f"  {name} {version}: {id} (fixed in {', '.join(fixed) or 'no version yet'})"
              for name, version, id, fixed in known]  # fmt: skip
    lines += [f"  skipped {number}: {reason}" for reason, number in skipped.most_common(3)]
    if audited:
        return lines, not any(fixed for *_, fixed in known)
    has_service = any("skip_reason" not in package for package in known_package["dependencies"])
    if has_service:
        lines.append("dependency audit failed: no package was audited; see why pip-audit skipped them")
    else:
        lines.append("dependency audit left out: the package index here has no advisories")
    return lines, not has_service


def main(path: str, known_package_path: str) -> int:
    """Print the summary of the report at ``path`` and return the exit code."""
    lines, passes = summary(*(json.loads(Path(each).read_text()) for each in (path, known_package_path)))
    print(*lines, sep="\n")
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
