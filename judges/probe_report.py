"""What probes did to a judge's verdicts: flips with intervals, and what it called a success then. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from core.console import interval, percent, text_table
from judges.probes import Probe

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Proportion:
    """``count`` of ``n``, as a fraction with Wilson's 95 % interval; None over nothing."""

    count: int
    n: int
    value: float | None
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """One probe. ``changed`` runs were asked about in other words than before; the shares are of those.

    ``flipped`` of the runs with a verdict both times changed it, ``to_yes`` and ``to_no`` of them; ``lost``
    verdicts there were before and not now. ``said_yes`` is the share of successes after the change: for a
    probe that must fail, the share that was missed.
    """

    probe: str
    title: str
    expected: str
    changed: int
    unchanged: int
    flipped: Proportion
    to_yes: int
    to_no: int
    lost: int
    said_yes: Proportion


def share_of(count: int, n: int) -> Proportion:
    """A share with its interval (Wilson; runs taken as independent)."""
    from leaderboard.judge_precision.intervals import approximate_interval

    found = approximate_interval(count, n, 1.0)
    return Proportion(count, n, count / n if n else None, tuple(found) if found else None)


def report_probe(probe: Probe, before: Iterable[Record], after: Iterable[Record]) -> ProbeReport:
    """Compare the judgments of a run with those under a probe; lines of judgments.jsonl, of the same runs."""
    first = {record["trajectory_id"]: record for record in before}
    pairs = [(first[record["trajectory_id"]], record) for record in after if record["trajectory_id"] in first]
    changed = [pair for pair in pairs if _asked(pair[0]) != _asked(pair[1])]
    verdicts = [(_verdict(one), _verdict(other)) for one, other in changed]
    both = [pair for pair in verdicts if None not in pair]
    to_yes, to_no = both.count((False, True)), both.count((True, False))
    verdicts_after = [other for _, other in verdicts if other is not None]
    return ProbeReport(
        probe=probe.name,
        title=probe.title,
        expected=probe.expected,
        changed=len(changed),
        unchanged=len(pairs) - len(changed),
        flipped=share_of(to_yes + to_no, len(both)),
        to_yes=to_yes,
        to_no=to_no,
        lost=sum(one is not None and other is None for one, other in verdicts),
        said_yes=share_of(verdicts_after.count(True), len(verdicts_after)),
    )


def probe_table(reports: Iterable[ProbeReport], judge: str):
    """The reports as a table for a terminal."""
    table = text_table(
        "probe",
        "expected",
        figures=("changed", "flipped", "95 %", "to yes", "to no", "no verdict", "says yes", "95 %"),
        title=f"{judge}: what changes its verdict",
        title_justify="left",
    )
    for report in reports:
        must_fail = report.expected == "fails"
        table.add_row(
            report.title,
            "says no" if must_fail else {"stands": "stands", "open": "–"}[report.expected],
            f"{report.changed:,}",
            *_cells(report.flipped),
            f"{report.to_yes:,}",
            f"{report.to_no:,}",
            f"{report.lost:,}",
            *_cells(report.said_yes),
        )
    return table


def to_json(reports: Iterable[ProbeReport], judge: str, split: str) -> dict[str, Any]:
    """The reports as one object; fractions, None where there is nothing to take a share of."""
    return {"judge": judge, "split": split, "probes": [asdict(report) for report in reports]}


def _asked(record: Record) -> list[str | None]:
    """The calls of a run by their keys: hashes over what was sent."""
    return [call.get("key") for call in record["calls"]]


def _verdict(record: Record) -> bool | None:
    return record["answer"].get("success") if record["state"] == "ok" else None


def _cells(share: Proportion) -> tuple[str, str]:
    return percent(share.value), interval(list(share.interval)) if share.interval else ""
