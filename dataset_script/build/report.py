"""The report of a build: how many rows the dataset has, and which files were left out for which reason."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from arb.core.console import printable
from arb.core.predictions.findings import Finding
from arb.core.vocabulary import SPLITS
from dataset_script.sources.base import FileCounts, SourceListing, TrajectorySource
from dataset_script.sources.files import json_fault
from dataset_script.sources.values import valid_text

CODES: Final = tomllib.loads(Path(__file__).parents[1].joinpath("findings.toml").read_text(encoding="utf-8"))
"""The text for each finding code of `build` and `verify`, by group."""

DAMAGED: Final = frozenset(CODES["damaged"])
"""Codes of broken files. The report names every broken file, and the command exits with an error code."""

LEFT_OUT: Final[dict[str, str]] = CODES["left_out"]
"""Reasons why something is not in the dataset, by code."""

NOTES: Final[dict[str, str]] = CODES["notes"]
"""Remarks about the content of the dataset, by code."""

MOST_NAMES: Final = 20
"""The maximum number of names to list for each reason. Broken files are listed without this limit."""

LINE_CHARACTERS: Final = 400


def finding(code: str, file: str, detail: str = "") -> Finding:
    """Return a finding about a file or a trajectory. It is an error if the file was left out."""
    return Finding("error" if code in LEFT_OUT else "warning", code, detail, file=file)


@dataclass(slots=True)
class BuildReport:
    """The result of a build.

    ``counts`` has the number of trajectories by split and benchmark. ``rows`` has the number of rows by
    configuration and split. ``files`` counts the source's files, or is None if the source is a dataset.
    ``published`` says whether the dataset was written to its folder.
    """

    suite: str
    counts: dict[str, dict[str, int]] = field(default_factory=lambda: {split: {} for split in SPLITS})
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    left_out: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    files: FileCounts | None = None
    published: bool = False

    def count(self, split: str, benchmark: str) -> None:
        self.counts[split][benchmark] = self.counts[split].get(benchmark, 0) + 1

    def built(self, split: str | None = None) -> int:
        return sum(sum(self.counts[name].values()) for name in SPLITS if split in (None, name))

    def count_files(self, source: TrajectorySource, listing: SourceListing) -> None:
        """Count the source's files. Call this after all left-out files have been added."""
        self.files = source.count_files(listing, {each.file or "" for each in self.left_out})

    def damaged(self) -> int:
        return sum(finding.code in DAMAGED for finding in self.left_out)

    def as_json(self) -> dict[str, Any]:
        found = {
            name: [{"code": f.code, "name": f.file, "detail": f.message} for f in getattr(self, name)]
            for name in ("left_out", "notes")
        }
        return asdict(self) | found | {"files": self.files and self.files.to_json()}

    def named_files(self) -> dict[str, list[str]]:
        """Return the names of the source's files that were not read, keyed by the code of the reason."""
        found: dict[str, list[str]] = {}
        for each in (*self.left_out, *self.notes):
            if each.file and (each.code == "not_json_file" or each.code in LEFT_OUT.keys() - {"missing"}):
                found.setdefault(each.code, []).append(valid_text(each.file) or "")
        return {code: sorted(names) for code, names in sorted(found.items())}


def listing_findings(source: TrajectorySource, listing: SourceListing) -> tuple[list[Finding], list[Finding]]:
    """Return findings on the source's files that belong to no run, and notes on the source."""
    left_out = [finding("link_out", name) for name in listing.links_out]
    stray = [name for name in listing.others if name.endswith(".json")]
    left_out += [finding("misplaced", name, json_fault(source.root / name)) for name in stray]
    notes = [finding("not_json_file", name) for name in listing.others if not name.endswith(".json")]
    return left_out, [*notes, *(finding(note.code, source.kind, note.detail) for note in listing.notes)]


def files_line(counts: FileCounts) -> str:
    return f"files: {counts.found:,} found = {counts.read:,} read + {counts.named:,} named"


def lines(report: BuildReport) -> Iterator[str]:
    """Yield the report as lines of text: the counts, the files that were left out, and the notes."""
    yield f"suite {report.suite}: " + ", ".join(f"{split} {report.built(split)}" for split in SPLITS)
    for configuration, splits in report.rows.items():
        yield f"  {configuration}: " + ", ".join(f"{split} {rows}" for split, rows in splits.items())
    if report.files is not None:
        yield files_line(report.files)
    yield from section("left out", LEFT_OUT, report.left_out)
    yield from section("notes", NOTES, report.notes)


def section(heading: str, titles: Mapping[str, str], findings: Sequence[Finding]) -> Iterator[str]:
    """Yield lines with a heading, the number of findings per reason, and the names for each reason."""
    if not findings:
        yield f"{heading}: nothing"
        return
    groups: dict[str, list[Finding]] = {code: [] for code in titles}  # in the order of the titles
    for each in findings:
        groups.setdefault(each.code, []).append(each)
    groups = {code: group for code, group in groups.items() if group}
    yield f"{heading}:"
    yield from (f"  {len(group):>6}  {titles.get(code, code)}" for code, group in groups.items())
    for code, group in groups.items():
        yield ""
        yield f"{titles.get(code, code)}:"
        listed = group if code in DAMAGED else group[:MOST_NAMES]
        yield from (f"  {finding_line(finding)}" for finding in listed)
        if len(group) > len(listed):
            yield f"  … and {len(group) - len(listed)} more; use --report FILE to get all names"
    yield ""


def finding_line(finding: Finding) -> str:
    """Return the file and the detail of a finding, without control characters."""
    text = f"{finding.file}: {finding.message}" if finding.message else f"{finding.file}"
    return printable(text)[:LINE_CHARACTERS]
