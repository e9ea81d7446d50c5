"""Summarise the JSON report of pip-audit: how many packages were audited, skipped, and are vulnerable.

Exits with 1 if a known vulnerability has a fix, or if pip-audit skipped every package: then nothing is known.
"""

import json
import sys
from collections import Counter
from pathlib import Path


def summary(report: dict) -> tuple[list[str], bool]:
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
    if not audited:
        lines.append("dependency audit failed: no package was audited; see why pip-audit skipped them")
    return lines, bool(audited) and not any(fixed for *_, fixed in known)


def main(path: str) -> int:
    """Print the summary of the report at ``path`` and return the exit code."""
    lines, passes = summary(json.loads(Path(path).read_text()))
    print(*lines, sep="\n")
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
