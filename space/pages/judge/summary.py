"""Values on a judge's page: its metrics in words, costs, calibration, label noise, and how to cite it."""

import re
from collections.abc import Mapping
from typing import Any, Final

import yaml
from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

from arb.core.console import interval, percent
from arb.core.suite import OFFICIAL, Suite
from arb.core.suites.profile import SuiteProfile
from arb.core.suites.targets import scored
from arb.core.vocabulary import metric_name
from dataset_script.card import PAPER_BIBTEX
from leaderboard.board.board import Board, BoardRow
from leaderboard.calibration import calibrate
from leaderboard.costs import running_costs
from leaderboard.judge_precision.scores import cluster_codes
from leaderboard.labels.quality import disagreement_rates, noise_band
from leaderboard.report import task_names
from leaderboard.score import metric_of
from space.pages.judge.view import JudgeView
from space.pages.rows import overall_of
from space.web.cells import Axis, metric_cell, metric_text, short_name, unit_of
from submissions.app import SubmissionsApp
from submissions.scoring.verdicts import VerdictsUnavailable


def spread(view: JudgeView, heading: str) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """Return (title, main metric) of the highest and lowest group, or None if fewer than two are known."""
    lines = next((lines for title, lines in view.sections if title == heading), ())
    known = []
    for title, found, _ in lines:
        cell = metric_cell(found, view.target.main_metric)
        if cell.value is not None and not cell.is_few:
            known.append((cell.value, (title, cell.text)))
    if len(known) < 2:
        return None
    known.sort(key=lambda each: each[0])
    return known[-1][1], known[0][1]


def dollars(amount: float) -> str:
    """Return an amount as ``$12.30``, or with two significant digits if it is less than a dollar."""
    if amount == 0 or amount >= 0.995:
        return f"${amount:,.2f}"
    return f"${amount:.2g}" if amount >= 0.0001 else f"${amount:.1e}"


def describe_label_noise(
    service: SubmissionsApp, row: BoardRow, label: str, axis: Axis | None
) -> dict[str, Any] | None:
    """Return how label noise affects a row, with its band in percent of the axis.

    Return None for references, for private labels, if there is no axis of precision, and if no two annotators
    disagree.
    """
    test = service.labels_for_public_figures()
    if test is None or row.provenance == "reference" or axis is None:
        return None
    rates = disagreement_rates([found for found in (service.labels.dev, test) if found is not None], label)
    band = noise_band(row.labels.get(label), rates)
    if band is None or not rates.overall.differing:
        return None
    left, right = axis.place(band.low), axis.place(band.high)
    ends = interval((band.low, band.high))
    return {
        "left": left,
        "width": round(right - left, 2),
        "words": f"precision with another person's labels: {ends}",
        "ends": ends,
        "band": band,
        "overall": rates.overall,
        "yes": rates.of(None, 1),
        "no": rates.of(None, 0),
    }


NO_FILE = "This server has no file of this judge, so its costs are not known."
NO_COLUMNS = "Its file has no costs: it has no column cost_usd, input_tokens, output_tokens or latency_s."
PRIVATE_SCORES = (
    "Its file has a score, the judge's probability of a yes. The labels of this suite are private, so "
    "scores are not evaluated against them here. Evaluate them on dev with "
    "arb leaderboard calibrate FILE --split dev."
)


def file_facts(service: SubmissionsApp, row: BoardRow, label: str) -> dict[str, Any]:
    """Return the costs and the calibration of a row's file, or why they are not known.

    Calibration needs public labels. ``calibration_absent`` is empty if the judge gives no score.
    """
    facts: dict[str, Any] = {"costs": None, "costs_absent": NO_FILE}
    facts |= {"calibration": None, "calibration_absent": ""}
    if row.provenance != "scored" and row.id not in service.records.paper_verdicts:
        return facts
    try:
        verdicts = service.records.verdicts(row.id)
    except (KeyError, VerdictsUnavailable):
        return facts | {"costs_absent": "Its file cannot be read at the moment."}
    costs = running_costs(verdicts, verdicts.rows)
    facts |= {"costs": costs if costs.are_known else None, "costs_absent": NO_COLUMNS}
    main = service.suite.main_target
    if verdicts.score is None or label != main.name or not main.is_outcome:
        return facts
    labels = service.labels_for_public_figures()
    if labels is None:
        return facts | {"calibration_absent": PRIVATE_SCORES}
    tasks, _ = cluster_codes(task_names(labels), len(labels.trajectories))
    calibration = calibrate(verdicts.score, labels.primary[main.name], tasks)
    absent = "" if calibration else "Too few rows of its file have a score to measure its calibration."
    return facts | {"calibration": calibration, "calibration_absent": absent}


_DATASET: Final = re.compile(r"https://huggingface\.co/datasets/([\w.-]+/[\w.-]+)/?")
_LATEX: Final = {
    **{ord(mark): f"\\{mark}" for mark in "&%$#_{}"},
    ord("\\"): r"\textbackslash{}",
    ord("~"): r"\textasciitilde{}",
    ord("^"): r"\textasciicircum{}",
}


def eval_results_yaml(board: Board, row: BoardRow, profile: SuiteProfile) -> str:
    """Return the content of ``.eval_results/SUITE.yaml``: the main metric of each target, mostly in percent.

    The task ids are the targets' names, as in the dataset's eval.yaml. The content is empty if no main metric
    is known.
    """
    dataset = next(filter(None, (_DATASET.fullmatch(address) for _, address in profile.links)), None)
    entries = []
    for target in scored(board.targets):
        overall, metric = overall_of(row, target.name), target.main_metric
        if overall is None or metric_of(overall, metric) is None:
            continue
        source = {"source_url": row.link, "source_name": row.source} if row.link else {}
        entries.append(
            EvalResultEntry(
                dataset_id=dataset[1] if dataset else f"OWNER/{board.suite}",
                task_id=target.name,
                value=float(metric_text(metric_of(overall, metric), metric)),
                date=row.date[:10],
                notes=_notes(board, row, overall, metric),
                **source,
            )
        )
    if not entries:
        return ""
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True, width=56)


def judge_bibtex(row: BoardRow, suite: Suite) -> str:
    """Return BibTeX entries for the row and for the suite. Submitters' text is escaped for LaTeX."""
    is_official = suite.name == OFFICIAL
    if is_official and row.id.startswith(("paper/", "reference/")):
        return PAPER_BIBTEX  # its metrics are those of the paper
    source = f"submission {row.id}" if row.provenance == "scored" else row.source
    place = f"{suite.profile.title} leaderboard, {source}"
    fields = {
        "title": f"{{{_latex(short_name(row))}, a judge of {_latex(suite.profile.noun)}}}",
        "author": _authors(row.authors or row.account),
        "year": row.date[:4],
        "howpublished": _latex(place),
        "url": row.link.replace("{", "%7B").replace("}", "%7D"),
    }
    lines = [f"  {name:12} = {{{value}}}," for name, value in fields.items() if value]
    word = re.sub(r"[^a-z0-9]", "", row.judge.lower())[:24] or "judge"
    entry = "\n".join([f"@misc{{{word}{row.date[:4]},", *lines, "}"])
    return "\n\n".join(filter(None, (entry, PAPER_BIBTEX if is_official else suite.profile.citation)))


def _notes(board: Board, row: BoardRow, overall: Mapping[str, Any], metric: str) -> str:
    notes = [metric_name(metric) + (" in percent" if unit_of(metric) == 100 else "")]
    if "recall" in overall:
        notes.append(f"recall {percent(overall['recall'])}")
    if row.evidence != "reported":
        notes.append(f"{overall['n']:,} test trajectories")
    if "noise" in overall:
        notes.append(f"counts carry noise of ± {overall['noise']['tp_sd']:g} true positives")
    if row.provenance == "scored":
        notes.append(f"submission {row.id}, labels {board.label_version}")
    else:
        notes.append(row.provenance)
    return "; ".join(notes)


def _authors(names: str) -> str:
    """Return ``Ada, Bob et al.`` as BibTeX needs it: ``Ada and Bob and others``."""
    names = re.sub(r",?\s+et al\.?", " and others", names)
    parts = [part.strip() for part in re.split(r"\s*[,;]\s*|\s+and\s+|\s+&\s+", names) if part.strip()]
    return " and ".join(_latex(part) for part in parts)


def _latex(text: str) -> str:
    return text.translate(_LATEX)
