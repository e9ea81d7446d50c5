"""Known vulnerabilities in what the Space runs on: fails where one has a fix; left out without a network.

Run by the Python whose packages are meant: `.venv-test/bin/python .ci/audit.py`. pip-audit itself goes into
an environment of its own, only after an advisory service has answered.
"""

import json
import re
import subprocess
import sys
import urllib.request
import venv
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY: Final = Path(__file__).parents[1]
ENVIRONMENT: Final = REPOSITORY / ".venv-audit"
SERVICES: Final = {
    "osv": (
        "https://api.osv.dev/v1/query",
        b'{"package": {"name": "pip", "ecosystem": "PyPI"}, "version": "9.0.0"}',
    ),
    "pypi": ("https://pypi.org/pypi/pip/9.0.0/json", None),
}
"""Under pip-audit's name for a service: a question that it answers with vulnerabilities."""
SECONDS: Final = 8


def main() -> int:
    """The exit status: 1 where a vulnerability has a fix, else 0."""
    service = next((name for name in SERVICES if _answers(name)), None)
    if service is None:
        return _left_out("no advisory service answers")
    pins = runtime_pins((REPOSITORY / "requirements.txt").read_text())
    report = _audited(pins, service)
    if report is None:
        return _left_out("pip-audit could not be installed, or got no answer")
    lines, fails = findings(report)
    print("\n".join([f"dependency audit: {len(pins)} packages, {len(lines)} known vulnerabilities", *lines]))
    return int(fails)


def runtime_pins(requirements: str) -> list[str]:
    """`name==version` of every installed package that the requirements lead to, sorted."""
    wanted = [line.split("#")[0].strip() for line in requirements.splitlines()]
    queue = [Requirement(line) for line in wanted if line and not line.startswith("-")]
    found: dict[str, str] = {}
    asked: set[tuple[str, frozenset[str]]] = set()
    while queue:
        requirement = queue.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in asked:
            continue
        asked.add((name, extras))
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # for another system, or optional
            continue
        found[name] = package.version
        below = (Requirement(line) for line in package.requires or ())
        queue += [each for each in below if _is_needed(each, extras)]
    return sorted(f"{name}=={version}" for name, version in found.items())


def findings(report: dict[str, Any]) -> tuple[list[str], bool]:
    """A line for each vulnerability of pip-audit's report, and whether one of them has a fix."""
    lines, fails = [], False
    for package in report["dependencies"]:
        for known in package.get("vulns", ()):
            fixes = ", ".join(known["fix_versions"])
            fails = fails or bool(fixes)
            lines.append(
                f"{package['name']} {package['version']}: {known['id']}, "
                + (f"mended in {fixes}: raise its bound in requirements.txt" if fixes else "no fix yet")
            )
    return lines, fails


def _is_needed(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""})


def _answers(service: str) -> bool:
    address, body = SERVICES[service]
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return bool({"vulns", "vulnerabilities"} & set(json.load(answer)))
    except (OSError, ValueError):
        return False


def _audited(pins: list[str], service: str) -> dict[str, Any] | None:
    """What pip-audit says of the pins, as JSON; None when it cannot be had."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    installed = subprocess.run([python, "-m", "pip", "install", "--quiet", "pip-audit>=2.10,<3"], check=False)
    if installed.returncode:
        return None
    listed = ENVIRONMENT / "pins.txt"
    listed.write_text("\n".join(pins))
    options = ["--disable-pip", "--no-deps", "--format", "json", "--progress-spinner", "off", "-s", service]
    options += ["--osv-url", SERVICES["osv"][0]]
    command = [python, "-m", "pip_audit", *options, "-r", listed]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # It ends with 1 over a finding and over a failure; only with the first there is JSON.
    told = re.search(r"^\{.*\}", done.stdout, re.DOTALL | re.MULTILINE)
    return json.loads(told[0]) if told else None


def _left_out(why: str) -> int:
    print(f"dependency audit left out: {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
