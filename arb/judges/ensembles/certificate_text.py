"""A certificate for people: one list of sections, shown in a terminal, as Markdown and as a page. Pure.

The page needs no other file and no script: it can be mailed, and attached to a paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arb.core.console import coefficient, interval, markdown_row, markdown_text, percent
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, LABEL_TITLES, STATES

if TYPE_CHECKING:
    from rich.console import Console

TEMPLATE: Final = Path(__file__).with_name("certificate.html")
NONE: Final = "–"
EXPECTED: Final = {"fails": "says no", "stands": "stands", "open": NONE}


@dataclass(frozen=True, slots=True)
class Estimate:
    """A fraction with its 95 % interval; the page draws it."""

    value: float | None
    bounds: Sequence[float] | None = None

    def __str__(self) -> str:
        return percent(self.value) + (f" ({interval(self.bounds)})" if self.bounds else "")


Cell = str | Estimate


@dataclass(frozen=True, slots=True)
class Section:
    """A table, of which the first ``texts`` columns are text and the others figures, with notes under it."""

    title: str
    head: tuple[str, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()
    notes: tuple[str, ...] = ()
    texts: int = 1


def title_of(certificate: Mapping[str, Any]) -> str:
    return f"Certificate of {certificate['judge']['name']}"


def summary_of(certificate: Mapping[str, Any]) -> str:
    """What a hurried reader should know, in two or three sentences."""
    counts = certificate["trajectories"]
    place = f"{counts['judged']:,} trajectories of {certificate['suite']}, split {certificate['split']}"
    quality = certificate["quality"]
    if isinstance(quality, str):
        first = f"Measured on {place}, whose labels are hidden: precision, recall and FPR are not known here."
    else:
        found = quality["labels"]["success"]
        cell = found["overall"] if found else dict.fromkeys(("precision", "recall", "fpr"))
        names = {"precision": "Precision", "recall": "recall", "fpr": "false positive rate"}
        figures = (f"{title} {_estimate(cell, name)} %" for name, title in names.items())
        first = f"{', '.join(figures)} on {place}."
    flips = [probe for probe in certificate["probes"] if probe["expected"] == "stands" and probe["changed"]]
    if not flips:
        return first
    worst = max(flips, key=lambda probe: probe["flipped"]["value"] or 0.0)
    share = percent(worst["flipped"]["value"])
    again = worst["flipped_again"]
    compared = "" if again is None else f"; {percent(again['value'])} % flip when the same is asked again"
    return f"{first} At most {share} % of verdicts flip where they should stand ({worst['title']}){compared}."


def sections_of(certificate: Mapping[str, Any]) -> list[Section]:
    """The report, most wanted first."""
    return [
        *_quality(certificate["quality"]),
        *_calibration(certificate["calibration"]),
        _threshold(certificate["threshold"], certificate["measured"]["has_threshold"]),
        _probes(certificate),
        *_stability(certificate["stability"]),
        _costs(certificate["costs"]),
        _states(certificate),
        _measured(certificate),
    ]


def _estimate(cell: Mapping[str, Any], name: str) -> Estimate:
    return Estimate(cell[name], cell.get(f"{name}_ci"))


def _share(proportion: Mapping[str, Any]) -> Estimate:
    return Estimate(proportion["value"], proportion["interval"])


def _quality(quality: Mapping[str, Any] | str) -> Iterator[Section]:
    title = "Verdicts against the experts' labels, %"
    if isinstance(quality, str):
        yield Section(title, notes=(quality,))
        return
    rows = []
    for label, found in quality["labels"].items():
        if found is None:
            rows.append((LABEL_TITLES[label], *[NONE] * 6, "no such verdicts"))
            continue
        cell = found["overall"]
        figures = (_estimate(cell, name) for name in ("precision", "recall", "fpr", "f1"))
        counts = "/".join(f"{cell[name]:,}" for name in ("tp", "fp", "fn", "tn"))
        rows.append((LABEL_TITLES[label], *figures, f"{cell['n']:,}", counts, f"{cell['no_verdict']:,}"))
    head = ("label", "precision", "recall", "FPR", "F1", "labelled", "TP/FP/FN/TN", "no verdict")
    notes = (
        f"95 % intervals from resamples of tasks, as on the leaderboard; labels {quality['label_version']}; "
        f"no verdict counts as “not successful” (policy {quality['policy']}).",
    )
    yield Section(title, head, tuple(rows), notes)
    if (success := quality["labels"]["success"]) is not None:
        groups = [(BENCHMARK_TITLES, success["by_benchmark"]), (AGENT_TITLES, success["by_agent"])]
        parts = tuple(
            (
                titles.get(name, name),
                _estimate(cell, "precision"),
                _estimate(cell, "recall"),
                percent(cell["fpr"]),
                f"{cell['n']:,}",
            )
            for titles, cells in groups
            for name, cell in cells.items()
        )
        yield Section(
            "Success by benchmark and agent, %", ("of", "precision", "recall", "FPR", "labelled"), parts
        )


def _calibration(found: Mapping[str, Any] | str) -> Iterator[Section]:
    title = "Calibration of the score"
    if isinstance(found, str):
        yield Section(title, notes=(found,))
        return
    notes = (
        f"{found['n']:,} labelled trajectories with a score, {found['without_score']:,} without. Brier score "
        f"{found['brier']:.3f} (one score for all: {found['brier_of_base_rate']:.3f}); expected calibration "
        f"error {percent(found['error'])} %; area under the ROC curve {coefficient(found['auc'])}.",
    )
    bins = tuple(
        (
            f"{each['low']:g} to {each['high']:g}",
            f"{each['n']:,}",
            percent(each["mean_score"]),
            Estimate(each["share"], each["interval"]),
        )
        for each in found["bins"]
        if each["n"]
    )
    yield Section(title, ("score", "trajectories", "mean score, %", "successful, %"), bins, notes)


def _threshold(found: Mapping[str, Any] | str, is_used: bool) -> Section:
    title = "Threshold on the score, frozen on dev"
    if isinstance(found, str):
        return Section(title, notes=(found,))
    cells = {
        "the judge’s own verdicts": found.get("plain"),
        "by the threshold, on the trajectories it was chosen on": found["chosen_on"],
        "by the threshold, held out": found["held_out"],
    }
    rows = tuple(
        (
            name,
            *((NONE,) * 4 if cell is None else (_estimate(cell, f) for f in ("precision", "recall", "f1"))),
            *(() if cell is None else (f"{cell['n']:,}",)),
        )
        for name, cell in cells.items()
    )
    use = "The verdicts are by it." if is_used else "The file threshold.json is for `run --threshold`."
    notes = (
        f"A score from {found['value']:.4g} on is a success, for the highest {found['figure']}. Held "
        f"out: five parts of the tasks, each judged by the threshold chosen on the other four. {use}",
    )
    return Section(title, ("", "precision, %", "recall, %", "F1, %", "labelled"), rows, notes)


_PROBE_FIGURES: Final = ("to yes", "to no", "lost", "says yes, %")


def _probe_figures(report: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        f"{report['to_yes']:,}",
        f"{report['to_no']:,}",
        f"{report['lost']:,}",
        _share(report["said_yes"]),
    )


def _probes(certificate: Mapping[str, Any]) -> Section:
    title = "Flips when what the judge sees is changed"
    reports = certificate["probes"]
    if not reports:
        return Section(title, notes=("not measured: the judge asks no model, or the probes were left out",))
    rows = tuple(
        (
            each["title"],
            EXPECTED[each["expected"]],
            f"{each['changed']:,}",
            _share(each["flipped"]),
            NONE if each["flipped_again"] is None else _share(each["flipped_again"]),
            *_probe_figures(each),
            percent(each["fpr"]),
        )
        for each in reports
    )
    notes = (
        "Asked: trajectories whose prompt the change altered; the shares are of those with a verdict, with "
        "Wilson's 95 % intervals. Asked again: how often verdicts on the same trajectories flip when the "
        "unchanged question is asked again; only flips beyond these are due to the change. Lost: verdicts "
        "that there were before and not now. The false positive rate is over all labelled trajectories, for "
        "changes that leave the label true.",
    )
    head = ("change", "expected", "asked", "flipped, %", "asked again, %", *_PROBE_FIGURES, "FPR, %")
    return Section(title, head, rows, notes, texts=2)


def _stability(found: Mapping[str, Any] | None) -> Iterator[Section]:
    title = "Stability: the same question asked again"
    if found is None:
        yield Section(title, notes=("not measured: the judge asks no model, or --repeats is 1",))
        return
    figures = found["figures"] or [None] * found["runs"]
    rows = [("1", *[NONE] * 6, *_run_figures(figures[0]))]
    rows += [
        (
            str(number),
            f"{report['changed']:,}",
            _share(report["flipped"]),
            *_probe_figures(report),
            *_run_figures(figures[number - 1]),
        )
        for number, report in enumerate(found["repeats"], start=2)
    ]
    notes = (
        f"Of {found['unanimous']['n']:,} trajectories with a verdict every time, "
        f"{_share(found['unanimous'])} % got the same one all {found['runs']} times.",
    )
    head = ("time", "asked", "flipped, %", *_PROBE_FIGURES, "precision, %", "recall, %", "FPR, %")
    yield Section(title, head, tuple(rows), notes)


def _run_figures(cell: Mapping[str, Any] | None) -> tuple[str, ...]:
    return tuple(percent(cell and cell[name]) for name in ("precision", "recall", "fpr"))


def _costs(found: Mapping[str, Any]) -> Section:
    def number(value: float | None, form: str) -> str:
        return "unknown" if value is None else format(value, form)

    dollars = number(found["usd_per_1000"], ",.2f")
    rows = (
        ("dollars for 1,000 trajectories", dollars),
        ("calls for a trajectory", number(found["calls"], ",.1f")),
        ("input tokens for a trajectory", number(found["input_tokens"], ",.0f")),
        ("output tokens for a trajectory", number(found["output_tokens"], ",.0f")),
        ("seconds for a trajectory, median", number(found["median_seconds"], ",.2f")),
        ("seconds for a trajectory, 95th percentile", number(found["seconds_95"], ",.2f")),
        ("dollars paid for this certificate", number(found["paid_usd"], ",.4f")),
    )
    notes = (f"A cost is known of {found['priced']:,} of {found['n']:,} trajectories.",)
    return Section("Cost and latency", ("", "judge as it is"), rows, notes)


def _states(certificate: Mapping[str, Any]) -> Section:
    states = certificate["states"]
    there = [state for state in STATES if any(found.get(state) for found in states.values())]
    rows = tuple((name, *(f"{found.get(state, 0):,}" for state in there)) for name, found in states.items())
    counts = certificate["trajectories"]
    notes = [f"{counts['called_successful']:,} of {counts['with_verdict']:,} verdicts are “successful”."]
    if counts["without_a_run"]:
        notes.append(f"{counts['without_a_run']:,} of {counts['chosen']:,} chosen trajectories have no run.")
    return Section("How the answers ended", ("run", *there), rows, tuple(notes))


def _measured(certificate: Mapping[str, Any]) -> Section:
    judge, measured = certificate["judge"], certificate["measured"]
    facts = {
        "judge": judge["name"],
        "sees": judge["inputs"],
        "source": judge["source"],
        "calls": judge["calls"],
        "the judge's file, SHA-256": measured["judge_file_sha256"],
        "prompts": measured["prompts"],
        "prompts, SHA-256": measured["prompts_hash"],
        "view, SHA-256": measured["view_hash"],
        "recorded runs, SHA-256": measured["data_hash"],
        "trajectory ids, SHA-256": measured["trajectories_sha256"],
        "labels' version": measured["label_version"],
        "samples": f"{measured['samples']}, {measured['vote']}" if measured["vote"] else None,
        **{f"model of {role}": _values(model) for role, model in measured["models"].items()},
        **{f"answered for {role}": _counts(each) for role, each in measured["served_models"].items()},
        **{f"not sent for {role}": _counts(each) for role, each in measured["dropped_params"].items()},
        "sent prompts, SHA-256": measured["prompts_sha256"],
        "pictures": _values(measured["images"]),
        **{f"predictions of {name}, SHA-256": each for name, each in measured["predictions_sha256"].items()},
        "versions": "; ".join(map(_values, measured["versions"])),
        "measured": f"{measured['from']} to {measured['to']}",
    }
    rows = tuple((name, str(value)) for name, value in facts.items() if value)
    return Section("What was measured", ("", ""), rows, texts=2)


def _values(facts: Mapping[str, Any]) -> str:
    """Settings in words, without those that are off; a temperature of 0 is not off."""
    there = {name: value for name, value in facts.items() if value is not None and value is not False}
    return ", ".join(f"{name} {value}" for name, value in there.items() if value != {})


def _counts(calls: Mapping[str, int]) -> str:
    """Names with the number of their calls, ``gpt-4o (12), gpt-4o-mini (1)``."""
    return ", ".join(f"{name} ({number:,})" for name, number in calls.items())


def to_markdown(certificate: Mapping[str, Any]) -> str:
    """The certificate in GitHub's Markdown."""
    lines = [f"# {markdown_text(title_of(certificate))}", "", markdown_text(summary_of(certificate))]
    for section in sections_of(certificate):
        lines += ["", f"## {markdown_text(section.title)}"]
        if section.rows:
            marks = ["---" if place < section.texts else "---:" for place in range(len(section.head))]
            lines += ["", markdown_row(section.head), markdown_row(marks)]
            lines += [markdown_row([markdown_text(str(cell)) for cell in row]) for row in section.rows]
        for note in section.notes:
            lines += ["", markdown_text(note)]
    return "\n".join(lines) + "\n"


def to_html(certificate: Mapping[str, Any]) -> str:
    """The certificate as one page, with its style inside."""
    from leaderboard.board.export import FOLDER

    return _template().render(
        title=title_of(certificate),
        summary=summary_of(certificate),
        sections=sections_of(certificate),
        style=(FOLDER / "site.css").read_text(encoding="utf-8"),
    )


@lru_cache(maxsize=1)
def _template():
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.tests["estimate"] = lambda cell: isinstance(cell, Estimate)
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8"))


def print_certificate(certificate: Mapping[str, Any], console: Console) -> None:
    """The certificate in a terminal."""
    from arb.core.console import printable, text_table

    console.print(printable(title_of(certificate)))
    console.print(printable(summary_of(certificate)))
    for section in sections_of(certificate):
        heading = printable(section.title)
        if section.rows:
            table = text_table(
                *section.head[: section.texts],
                figures=section.head[section.texts :],
                title=heading,
                title_justify="left",
                show_header=any(section.head),
            )
            for row in section.rows:
                table.add_row(*(printable(str(cell)) for cell in row))
            console.print(table)
        else:
            console.print(heading)
        for note in section.notes:
            console.print(printable(note))
