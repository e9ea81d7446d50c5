"""What a build did: what is in the dataset, and by name everything that is not, with the reason."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Final

from arb.core.console import printable
from arb.core.predictions.findings import Finding
from arb.core.vocabulary import SPLITS

DAMAGED: Final = MappingProxyType(
    {
        "unreadable": "the file cannot be read",
        "not_json": "not a whole JSON document",
        "not_a_trajectory": "not a trajectory as released",
        "not_a_judgment": "not a judgment as released",
        "not_a_pickle": "not a whole pickle",
        "refused_pickle": "a pickle with a class that is not allowed (your own: --allow-class)",
        "no_steps": "has no steps",
        "link_out": "a link that leads out of the source, not followed; put there what it points to",
        "reader_failed": "a reader failed on it, which is a fault of ours: please report it",
    }
)
"""Files that are broken, by code: each is named in a line, and the exit code says that there are any."""

LEFT_OUT: Final = MappingProxyType(
    {
        "not_in_suite": "not in the suite",
        **DAMAGED,
        "invalid": "marked as invalid by those who recorded it",
        "duplicate": "another file gives the same trajectory",
        "failed_judgment": "a failed attempt, and another file has the judgment",
        "misplaced": "a JSON file that is not at its place in the layout",
        "missing": "in the suite, but not in the source",
    }
)
"""Why something is not in the dataset, by code."""

NOTES: Final = MappingProxyType(
    {
        "action_on_last_step": "the last step has an action or a reasoning; kept",
        "step_numbers": "the steps are not numbered 0, 1, 2, …; kept as they are",
        "renumbered": "the steps are not numbered 0, 1, 2, …; numbered in the order that they stand in",
        "unequal_lists": "the lists of actions, thoughts and pictures disagree; some may be at a wrong step",
        "other_names": "the file names another benchmark, agent or task than its folder; the folder counts",
        "other_spelling": "the file spells the id in another way; published as in the suite",
        "large_file": "a file of more than 100 MB; read like any other",
        "no_goal": "the goal is empty",
        "no_final_tree": "the final page has no accessibility tree",
        "not_strict_json": "not strict JSON (NaN, or half a character, which became U+FFFD); kept",
        "bad_box": "the box of the element acted on cannot be read; null",
        "final_page": "nothing was recorded after the last action; the page of before it stands for the end",
        "missing_screenshot": "screenshots are missing; null",
        "no_screenshot": "screenshots are missing; null",
        "broken_image": "a picture that is broken; null",
        "missing_reference": "names another file of the run that is missing or lies outside; read without it",
        "large_image": "a picture of more pixels than can be shown, by its header; null",
        "regraded": "a trial that only checked the run of another trial again; that one stands for both",
        "no_screenshots": "a source without screenshots; they are null",
        "allowed_missing": "in the suite, not in the source, and allowed to be missing",
        "more_pictures": "several pictures in one observation; the last one is kept",
        "earlier_attempt": "samples that a later log of the same evaluation has again; not read",
        "unfinished_log": "a log whose evaluation did not end well; the samples in it are read",
        "no_dev_labels": "a dev trajectory without labels in dev_labels.csv",
        "not_json_file": "a file of another kind; not looked at",
        "empty_split": "no trajectory in this split, so the card does not list it",
    }
)
"""What is in the dataset and worth knowing, by code."""

MOST_NAMES: Final = 20
"""Names listed for a reason; damaged files are all listed."""

LINE_CHARACTERS: Final = 400


def finding(code: str, file: str, detail: str = "") -> Finding:
    """Something left out (an error) or worth knowing (a warning) about a file or a trajectory."""
    return Finding("error" if code in LEFT_OUT else "warning", code, detail, file=file)


@dataclass(slots=True)
class BuildReport:
    """Counts of trajectories by split and benchmark, of rows by configuration and split, and the findings.

    Findings stand in the order of the suite's trajectories, whatever the order of the work.
    """

    suite: str
    counts: dict[str, dict[str, int]] = field(default_factory=lambda: {split: {} for split in SPLITS})
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    left_out: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    published: bool = False

    def count(self, split: str, benchmark: str) -> None:
        self.counts[split][benchmark] = self.counts[split].get(benchmark, 0) + 1

    def built(self, split: str | None = None) -> int:
        """Trajectories built in one split, or in both."""
        return sum(sum(self.counts[name].values()) for name in SPLITS if split in (None, name))

    def damaged(self) -> int:
        return sum(finding.code in DAMAGED for finding in self.left_out)

    def as_json(self) -> dict[str, Any]:
        """Everything, every name included, as plain values."""
        found = {
            name: [{"code": f.code, "name": f.file, "detail": f.message} for f in getattr(self, name)]
            for name in ("left_out", "notes")
        }
        return asdict(self) | found


def lines(report: BuildReport) -> Iterator[str]:
    """The report as text: a table of reasons with their counts, then names.

    At most 20 names for a reason, but every damaged file. A code that has no words here stands for itself.
    """
    yield f"suite {report.suite}: " + ", ".join(f"{split} {report.built(split)}" for split in SPLITS)
    for configuration, splits in report.rows.items():
        yield f"  {configuration}: " + ", ".join(f"{split} {rows}" for split, rows in splits.items())
    yield from section("left out", LEFT_OUT, report.left_out)
    yield from section("to know", NOTES, report.notes)


def section(heading: str, titles: Mapping[str, str], findings: Sequence[Finding]) -> Iterator[str]:
    """Findings under a heading: how many for each reason, then their names."""
    if not findings:
        yield f"{heading}: nothing"
        return
    codes = [*titles, *dict.fromkeys(f.code for f in findings if f.code not in titles)]
    groups = {code: [f for f in findings if f.code == code] for code in codes}
    groups = {code: group for code, group in groups.items() if group}
    yield f"{heading}:"
    yield from (f"  {len(group):>6}  {titles.get(code, code)}" for code, group in groups.items())
    for code, group in groups.items():
        yield ""
        yield f"{titles.get(code, code)}:"
        listed = group if code in DAMAGED else group[:MOST_NAMES]
        yield from (f"  {finding_line(finding)}" for finding in listed)
        if len(group) > len(listed):
            yield f"  … and {len(group) - len(listed)} more; --report FILE writes every name"
    yield ""


def finding_line(finding: Finding) -> str:
    """File and detail, fit for a terminal."""
    text = f"{finding.file}: {finding.message}" if finding.message else f"{finding.file}"
    return printable(text)[:LINE_CHARACTERS]
