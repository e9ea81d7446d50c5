"""The report of `verify`, and the check of a dataset's files against its manifest.

There is one finding per code and file, with a count and a few names. Findings never repeat a label, a reward
or the text around a canary, because people paste reports into issues.

Suspicious words that a page or a model may have written itself (`WORDS`) are only warnings, one per code and
trajectory. `publish` refuses the dataset until each warning is accepted by its name, ``CODE:TRAJECTORY_ID``.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from arb.core.hub import BESIDE_THE_DATA
from arb.core.predictions.findings import Finding
from dataset_script.build.report import CODES
from dataset_script.schema import CONFIGURATIONS
from dataset_script.sources.published import MANIFEST, Manifest, Shard

TITLES: Final[dict[str, str]] = CODES["errors"] | CODES["warnings"]
"""The text for each code of an error or a warning."""

WORDS: Final = ("reward_words", "prompt_words", "path_words")
"""Codes of warnings about suspicious words, each of which must be accepted before publishing."""

WARNINGS: Final = frozenset(CODES["warnings"])
NAMES_KEPT: Final = 10


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """The result of `verify`: how many data files and rows there are, and the findings.

    ``accepted`` has the names of the accepted warnings, each as ``CODE:TRAJECTORY_ID``.
    """

    files: int
    rows: dict[str, dict[str, int]]
    findings: tuple[Finding, ...]
    accepted: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return all(finding.level != "error" for finding in self.findings)

    @property
    def to_accept(self) -> tuple[str, ...]:
        """The warnings that still have to be accepted, each as ``CODE:TRAJECTORY_ID``."""
        names = (f"{finding.code}:{finding.file}" for finding in self.findings if finding.code in WORDS)
        return tuple(name for name in names if name not in self.accepted)

    def as_json(self) -> dict[str, Any]:
        names = ("level", "code", "file", "message", "names", "count")
        findings = tuple({name: getattr(finding, name) for name in names} for finding in self.findings)
        return {
            "ok": self.ok, "files": self.files, "rows": self.rows, "findings": findings,
            "accepted": self.accepted, "to_accept": self.to_accept,
        }  # fmt: skip


def check_acceptances(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names without duplicates. Raises ValueError for a name whose code is not in `WORDS`."""
    for name in names:
        code, _, trajectory_id = name.partition(":")
        if code not in WORDS or not trajectory_id:
            codes = ", ".join(WORDS)
            raise ValueError(
                f"--accept {name!r}: write CODE:TRAJECTORY_ID, where CODE is one of {codes}; fix errors "
                "instead of accepting them"
            )
    return tuple(dict.fromkeys(names))


@dataclass(slots=True)
class Findings:
    """A collection of findings by code and file, each with a count and a few names."""

    names: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def add(self, code: str, file: str, *names: str, count: int = 1) -> None:
        """Add a finding. ``names`` describe what was found, or where in the file."""
        self.counts[code, file] += count
        known = self.names.setdefault((code, file), [])
        for name in names:
            if name not in known and len(known) < NAMES_KEPT:
                known.append(name)

    def merge(self, other: "Findings") -> None:
        for (code, file), names in other.names.items():
            self.add(code, file, *names, count=other.counts[code, file])

    def accept(self, names: Collection[str]) -> tuple[str, ...]:
        """Return the names that match a warning in `WORDS`. Add a finding for each name without a match."""
        found = {f"{code}:{file}" for code, file in self.counts if code in WORDS}
        for name in names:
            if name not in found:
                self.add("unused_acceptance", name)
        return tuple(name for name in names if name in found)

    def listed(self) -> tuple[Finding, ...]:
        """Return all findings in the order of `TITLES`, errors first."""
        order = list(TITLES)
        keys = sorted(self.counts, key=lambda key: (key[0] in WARNINGS, order.index(key[0]), key[1]))
        return tuple(
            Finding(
                "warning" if code in WARNINGS else "error",
                code,
                TITLES[code],
                count=self.counts[code, file],
                file=file,
                names=tuple(self.names[code, file]),
            )
            for code, file in keys
        )


def lines(report: VerifyReport) -> Iterator[str]:
    for configuration, splits in report.rows.items():
        yield f"{configuration}: " + ", ".join(f"{split} {rows:,}" for split, rows in splits.items())
    for finding in report.findings:
        is_accepted = f"{finding.code}:{finding.file}" in report.accepted
        level = "accepted" if is_accepted else finding.level
        yield f"{level}: {finding.file}: {finding.message} ({finding.count:,})"
        yield from (f"    {name}" for name in finding.names)
        if len(finding.names) < finding.count and finding.names:
            yield "    …"
    yield from (f"to publish, review the warning, then add: --accept {name}" for name in report.to_accept)
    yield f"{report.files} files: " + ("ok" if report.ok else "not fit to publish")


_NOT_LISTED: Final = frozenset({*BESIDE_THE_DATA, ".gitattributes"})
_SHARD: Final = re.compile(
    r"data/(?P<configuration>\w+)/(?P<split>\w+)-(?P<index>\d{5})-of-(?P<count>\d{5})\.parquet"
)
ALWAYS_THERE: Final = frozenset({"trajectories", "trajectories_with_screenshot", "steps", "rewards", "tasks"})
"""Configurations that every dataset must have. `annotations` and `judgments` are optional."""

_HUB_CACHE: Final = ".cache"


def check_files(folder: Path, manifest: Manifest, findings: Findings) -> tuple[Shard, ...]:
    """Return the manifest's shards that exist, and add findings for unlisted, missing or misnamed files."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or name in _NOT_LISTED or name.split("/")[0] == _HUB_CACHE:
            continue
        if name not in manifest.files:
            findings.add("unlisted_file", name)
    shards: list[Shard] = []
    numbers: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for name, shard in sorted(manifest.files.items()):
        found = _SHARD.fullmatch(name)
        if found is None or (shard.configuration, shard.split) != (found["configuration"], found["split"]):
            findings.add("bad_name", name)
            continue
        declared = CONFIGURATIONS.get(shard.configuration)
        if declared is None or shard.split not in declared.splits:
            findings.add("bad_name", name, "no such configuration or split")
        elif not (folder / name).is_file():
            findings.add("missing_file", name)
        else:
            shards.append(shard)
            place = f"data/{shard.configuration}/{shard.split}"
            numbers[place].append((int(found["index"]), int(found["count"])))
    for place, pairs in numbers.items():
        if sorted(pairs) != [(index, len(pairs)) for index in range(len(pairs))]:
            findings.add("missing_file", place, "the shards' numbers have a gap")
    for configuration in sorted(ALWAYS_THERE - {shard.configuration for shard in shards}):
        findings.add("missing_configuration", MANIFEST, configuration)
    return tuple(shards)
