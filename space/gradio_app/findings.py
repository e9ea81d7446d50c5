"""The findings of a checked file as the submit page shows them, and a summary of what the file says."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from markupsafe import Markup, escape

from arb.core.console import percent
from arb.core.predictions.check import excerpt, row_texts
from arb.core.predictions.findings import Finding
from arb.core.predictions.raw import recognise
from arb.core.vocabulary import BENCHMARK_TITLES, LABEL_TITLES, LABELS
from submissions.intake.upload import Upload

MOST_ROWS: Final = 6
"""Of each finding; its message counts them all."""

KINDS: Final = MappingProxyType(
    {
        "file": "The file as a whole",
        "columns": "Columns",
        "lines": "Rows that could not be read",
        "ids": "Which trajectories",
        "values": "Values in cells",
        "verdicts": "The verdicts taken together",
    }
)
_KIND_OF: Final = MappingProxyType(
    {
        **dict.fromkeys(
            ("missing_column", "duplicate_column", "unknown_columns", "too_many_columns"), "columns"
        ),
        **dict.fromkeys(
            ("invalid_json", "not_an_object", "duplicate_key", "field_count", "blank_rows", "broken_quotes"),
            "lines",
        ),
        **dict.fromkeys(("malformed_id", "unknown_id", "wrong_split", "duplicate_id", "missing_id"), "ids"),
        **dict.fromkeys(("no_verdicts", "low_coverage", "constant_verdicts"), "verdicts"),
    }
)
_TEMPLATE_COMMAND: Final = re.compile(r"`python -m submissions template --split (dev|test)`")
_OTHER_SPLIT: Final = re.compile(r"check the file with --split (dev|test)")


@dataclass(frozen=True)
class RowExcerpt:
    """A row of the file by its number, and an excerpt of its text."""

    number: int
    text: str


@dataclass(frozen=True)
class FindingView:
    """A finding with the first rows that its message does not quote; ``more`` follow."""

    finding: Finding
    message: Markup
    rows: tuple[RowExcerpt, ...]
    more: int


@dataclass(frozen=True)
class FindingGroup:
    """The findings of one kind, errors first."""

    title: str
    has_error: bool
    findings: tuple[FindingView, ...]


@dataclass(frozen=True)
class UploadView:
    """Everything that the page says of an uploaded file."""

    groups: tuple[FindingGroup, ...]
    n_errors: int
    n_warnings: int
    parts: tuple[tuple[str, object], ...]
    """Title and summary of each benchmark of the split."""
    expected: int
    understood: tuple[str, ...]


def view_upload(upload: Upload) -> UploadView:
    """Group the findings by kind, show the rows they name, and say what was understood."""
    result = upload.check
    kinds: dict[str, list[Finding]] = {}
    for finding in result.findings:
        kinds.setdefault(kind_of(finding), []).append(finding)
    texts = _texts(upload)
    groups = [_group(kind, kinds[kind], texts) for kind in KINDS if kind in kinds]
    groups.sort(key=lambda group: not group.has_error)
    levels = [finding.level for finding in result.findings]
    return UploadView(
        groups=tuple(groups),
        n_errors=levels.count("error"),
        n_warnings=levels.count("warning"),
        parts=tuple((BENCHMARK_TITLES.get(n, n), part) for n, part in result.by_benchmark.items()),
        expected=sum(part.expected for part in result.by_benchmark.values()),
        understood=understood(upload) if result.acceptable else (),
    )


def kind_of(finding: Finding) -> str:
    """The key of a finding in KINDS."""
    if finding.code in _KIND_OF:
        return _KIND_OF[finding.code]
    if finding.column == "trajectory_id":
        return "ids"
    return "values" if finding.column else "file"


def message_html(finding: Finding) -> Markup:
    """The message for a page: a link to the template where the message names a command that writes it."""
    html = str(escape(finding.message))
    html = _TEMPLATE_COMMAND.sub(r'<a href="/api/template?split=\1" download>the template of \1</a>', html)
    return Markup(_OTHER_SPLIT.sub(r"choose \1 above", html))


def _group(kind: str, findings: Sequence[Finding], texts: Mapping[int, str]) -> FindingGroup:
    ordered = sorted(findings, key=lambda finding: finding.level != "error")
    views = tuple(_view(finding, kind, texts) for finding in ordered)
    return FindingGroup(KINDS[kind], ordered[0].level == "error", views)


def _view(finding: Finding, kind: str, texts: Mapping[int, str]) -> FindingView:
    rows: tuple[RowExcerpt, ...] = ()
    if kind != "ids":  # a message about ids quotes them itself
        around, numbers = finding.column or "", finding.rows[:MOST_ROWS]
        rows = tuple(RowExcerpt(n, excerpt(texts[n], around)) for n in numbers if texts.get(n, "").strip())
    return FindingView(finding, message_html(finding), rows, finding.count - len(rows) if rows else 0)


def _texts(upload: Upload) -> Mapping[int, str]:
    """What stands in every row that will be shown, read once."""
    wanted = {number for finding in upload.check.findings for number in finding.rows[:MOST_ROWS]}
    if not wanted or not upload.content:
        return {}
    found = recognise(upload.content)
    return {} if isinstance(found, Finding) else row_texts(upload.content, found, wanted)


def understood(upload: Upload) -> tuple[str, ...]:
    """What a valid file says, before anything is submitted: verdicts, other labels, scores, cost."""
    aligned, result = upload.check.aligned, upload.check
    n = len(aligned.trajectory_ids)
    n_true, n_false = int((aligned.success == 1).sum()), int((aligned.success == 0).sum())
    lines = [
        f"Success: {n_true:,} called successful, {n_false:,} not, {n - n_true - n_false:,} without a verdict "
        f"({percent(result.success_share)} % of the verdicts say successful)."
    ]
    if n_true + n_false < n:
        lines.append("A trajectory without a verdict counts as not successful in the ranking.")
    for label in LABELS[1:]:
        column = getattr(aligned, label)
        if column is not None and (column >= 0).any():
            yes, total = int((column == 1).sum()), int((column >= 0).sum())
            lines.append(f"{LABEL_TITLES[label]}: {yes:,} of {total:,} verdicts say that it happened.")
    absent = [LABEL_TITLES[label].lower() for label in LABELS[1:] if not _has_verdicts(aligned, label)]
    if absent:
        lines.append(f"No verdicts on {' and '.join(absent)}: the judge will not be on those boards.")
    return (*lines, *_extras(aligned))


def _has_verdicts(aligned, label: str) -> bool:
    column = getattr(aligned, label)
    return column is not None and bool((column >= 0).any())


def _extras(aligned) -> list[str]:
    lines = []
    if aligned.score is not None and np.isfinite(aligned.score).any():
        lines.append(
            f"Scores for {int(np.isfinite(aligned.score).sum()):,} trajectories: calibration is shown."
        )
    if aligned.cost_usd is not None and np.isfinite(aligned.cost_usd).any():
        known = aligned.cost_usd[np.isfinite(aligned.cost_usd)]
        lines.append(f"Costs for {len(known):,} trajectories, ${known.sum():,.2f} in all.")
    if aligned.state is not None:
        ended = [state for state in aligned.state if state not in (None, "ok")]
        if ended:
            counts = ", ".join(f"{ended.count(state):,} {state}" for state in dict.fromkeys(ended))
            lines.append(f"Answers that did not end well: {counts}.")
    return lines
