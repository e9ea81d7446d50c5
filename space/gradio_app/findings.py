"""The findings of a checked file for the page /submit, and a summary of the file's content."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from markupsafe import Markup, escape

from arb.core.console import counted, percent
from arb.core.predictions.excerpts import excerpt, row_texts
from arb.core.predictions.findings import Finding
from arb.core.predictions.raw import recognise
from arb.core.predictions.table import Predictions, is_answered
from arb.core.suite import Suite
from arb.core.suites.targets import Target
from space.pages.rows import MISSING
from submissions.intake.upload import Upload

MOST_ROWS: Final = 6
"""The maximum number of rows that are shown for a finding. Its message says how many rows there are."""

_KINDS: Final = tomllib.loads(Path(__file__).with_name("findings.toml").read_text(encoding="utf-8"))
KINDS: Final[Mapping[str, str]] = {name: kind["title"] for name, kind in _KINDS.items()}
_TEMPLATE_COMMAND: Final = re.compile(r"`arb submissions template --split (dev|test)`")
_OTHER_SPLIT: Final = re.compile(r"check the file with --split (dev|test)")


@dataclass(frozen=True)
class FindingView:
    """A finding with its first rows and the number of rows left out.

    ``rows`` has the number of each row, its text in the file, and what is probably meant ("" if unknown).
    """

    finding: Finding
    message: Markup
    rows: tuple[tuple[int, str, str], ...]
    more: int


def grouped_findings(upload: Upload) -> dict[str, list[FindingView]]:
    """Return the findings, keyed by the title of their kind. Errors and kinds with errors come first."""
    texts = _texts(upload)
    groups: dict[str, list[FindingView]] = {title: [] for title in KINDS.values()}
    for finding in sorted(upload.check.findings, key=_is_warning):
        groups[KINDS[kind_of(finding)]].append(_view(finding, texts))
    found = [(title, views) for title, views in groups.items() if views]
    return dict(sorted(found, key=lambda group: _is_warning(group[1][0].finding)))


def _is_warning(finding: Finding) -> bool:
    return finding.level != "error"


def kind_of(finding: Finding) -> str:
    for name, kind in _KINDS.items():
        if finding.code in kind["codes"]:
            return name
    if finding.column == "trajectory_id":
        return "ids"
    return "values" if finding.column else "file"


def message_html(text: str) -> Markup:
    """Return a message as HTML, with a link to the template instead of the command."""
    html = _TEMPLATE_COMMAND.sub(
        r'<a href="/api/template?split=\1" download>the template for \1</a>', str(escape(text))
    )
    return Markup(_OTHER_SPLIT.sub(r"choose \1 above", html))


def _view(finding: Finding, texts: Mapping[int, str]) -> FindingView:
    numbers = finding.rows[:MOST_ROWS]
    as_written = finding.ids or tuple(texts.get(n, "") for n in numbers)
    around = "" if finding.ids else finding.column or ""
    meant = finding.meant or ("",) * len(numbers)
    rows = tuple(
        (n, excerpt(text, around), excerpt(other))
        for n, text, other in zip(numbers, as_written, meant, strict=False)
        if text.strip()
    )
    text = finding.summary if rows and finding.ids else finding.message
    return FindingView(finding, message_html(text), rows, finding.count - len(rows) if rows else 0)


def _texts(upload: Upload) -> Mapping[int, str]:
    """Return the text of every row that will be shown, keyed by row number."""
    wanted = {number for finding in upload.check.findings for number in finding.rows[:MOST_ROWS]}
    if not wanted or not upload.content:
        return {}
    found = recognise(upload.content)
    return {} if isinstance(found, Finding) else row_texts(upload.content, found, wanted)


def understood(upload: Upload, suite: Suite) -> tuple[str, ...]:
    """Return sentences that sum up a file's verdicts, labels, scores and costs; none if it has errors."""
    aligned = upload.check.aligned
    if aligned is None:
        return ()
    main = suite.main_target
    lines, absent = [_answers(aligned, main)], []
    if not is_answered(aligned.codes(main.name)).all():
        lines.append(f"A row without a verdict {MISSING[main.missing]} in the ranking.")
    for target in suite.scored_targets:
        if target is main:
            continue
        if is_answered(aligned.codes(target.name)).any():
            lines.append(_answers(aligned, target))
        else:
            absent.append(target.title.lower())
    if absent:
        lines.append(f"The judge is not ranked on {' and '.join(absent)}: the file has no such verdicts.")
    if scores := _finite(aligned.score):
        lines.append(
            f"There are scores for {counted(len(scores), 'trajectory')}, so the judge's page shows their "
            "calibration."
        )
    if costs := _finite(aligned.cost_usd):
        where = counted(len(costs), "trajectory")
        lines.append(f"There are costs for {where}, ${math.fsum(costs):,.2f} in total.")
    ended = Counter(state for state in aligned.state or () if state not in (None, "ok"))
    if ended:
        counts = ", ".join(f"{count:,} {state}" for state, count in ended.items())
        lines.append(f"Trajectories with a state other than ok: {counts}.")
    return tuple(lines)


def _answers(aligned: Predictions, target: Target) -> str:
    """Return a sentence that says how many answers to a target there are, and how many are yes."""
    codes = aligned.codes(target.name)
    total = int(is_answered(codes).sum())
    if target.type != "binary":
        return f"{target.title}: {total:,} of {aligned.rows:,} rows have an answer."
    yes = int((codes == 1).sum())
    share = percent(yes / total if total else None)
    return f"{target.title}: {yes:,} of {total:,} verdicts are yes ({share} %); {aligned.rows:,} rows."


def _finite(numbers: np.ndarray | None) -> list[float]:
    return [] if numbers is None else numbers[np.isfinite(numbers)].tolist()
