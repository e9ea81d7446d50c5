"""``judges ablate``: what the simplified judge gains from the tree and from the screenshot."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated

import typer

from judges.base import OptionsError
from judges.command_options import RunOptions, with_run_options
from judges.run_commands import run_or_exit


@with_run_options(without=("judge", "cascade"))
def ablate(
    options: RunOptions,
    out: Annotated[Path, typer.Option("--out", help="A folder for the runs, one in it for each variant.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Repeat the paper's Table 2: the simplified judge with tree, screenshot, both, neither.

    Runs the four variants (GPT-4o Mini unless --model is given) and scores them, with intervals, beside the
    paper's figures where the model is the paper's. Stopped, the same command goes on.
    """
    from core.files import atomic_write
    from dataset_script.command_line import plain_console
    from dataset_script.suite import OFFICIAL
    from judges.ablation import PAPERS_MODEL, VARIANTS, Variant, ablation_table

    model = options.model or PAPERS_MODEL
    labels, suite = _labels(options)
    variants = []
    for family, has_axtree, has_screenshot in VARIANTS:
        run_or_exit(replace(options, judge=family, model=model), out / family)
        report = _score(out / family, labels)
        variants.append(Variant(family, has_axtree, has_screenshot, report))
    found = {
        "model": model,
        "variants": [
            {"judge": v.family, "tree": v.has_axtree, "screenshot": v.has_screenshot, "report": v.report}
            for v in variants
        ],
    }
    atomic_write(out / "report.json", json.dumps(found, indent=2).encode() + b"\n")
    if as_json:
        print(json.dumps(found))
    else:
        is_papers = (model, suite.name) == (PAPERS_MODEL, OFFICIAL)
        plain_console().print(ablation_table(variants, _printed() if is_papers else {}))


def _labels(options: RunOptions):
    """The labels to score with, before anything is paid. Raises OptionsError where there are none."""
    from judges.selection import select, settings_of_environment
    from leaderboard.label_source import LabelsUnavailable
    from leaderboard.labels import LabelsInvalid, load_labels

    settings = settings_of_environment()
    suite = select(replace(options, judge="simplified-both"), settings).suite
    try:
        return load_labels(suite, options.split, settings), suite
    except (LabelsUnavailable, LabelsInvalid) as reason:
        raise OptionsError(f"no labels to score {options.split} with: {reason}; use --split dev") from None


def _score(folder: Path, labels) -> dict:
    """The report over the runs that were judged: with --limit and the like the others are left out."""
    import numpy as np

    from dataset_script.vocabulary import LABELS
    from judges.engine.run_folder import read_judgments
    from leaderboard.report import score_report

    answers = {record["trajectory_id"]: record["answer"] for record in read_judgments(folder)}
    judged = [each.trajectory_id in answers for each in labels.trajectories]
    there = replace(
        labels,
        trajectories=tuple(each for each in labels.trajectories if each.trajectory_id in answers),
        primary={name: values[judged] for name, values in labels.primary.items()},
    )
    codes = {True: 1, False: 0, None: -1}
    columns = {
        label: np.array(
            [codes[answers[t.trajectory_id].get(label)] for t in there.trajectories], dtype=np.int8
        )
        for label in LABELS
    }
    return score_report(SimpleNamespace(**columns), there, "published")


def _printed() -> dict[tuple[str, str, str], tuple[float, ...]]:
    """Table 2 as printed, fractions, by (tree, screenshot, label)."""
    from leaderboard.published_files import PUBLISHED

    with (PUBLISHED / "ablation.csv").open(encoding="utf-8", newline="") as file:
        return {
            (line["tree"], line["screenshot"], line["label"]): tuple(
                float(line[figure]) / 100 for figure in ("precision", "recall", "f1")
            )
            for line in csv.DictReader(file)
        }
