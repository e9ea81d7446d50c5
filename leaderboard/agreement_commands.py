"""``python -m leaderboard agreement`` and ``ceiling``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dataset_script.command_line import (
    JsonOption,
    SuiteOption,
    plain_console,
    read_settings,
    read_suite,
    stop,
)
from leaderboard.annotation_commands import read_annotations

if TYPE_CHECKING:
    from dataset_script.settings import Settings
    from dataset_script.suite import Suite
    from leaderboard.annotations import Annotation
    from leaderboard.labels import LabelSet

EitherSplitOption = Annotated[
    Literal["dev", "test"] | None, typer.Option("--split", help="One split alone; both if left out.")
]
FileOption = Annotated[
    Path | None,
    typer.Option(
        "--annotations",
        exists=True,
        dir_okay=False,
        help="Annotations of the suite, CSV as released or Parquet; else those that judges are scored on.",
    ),
]


def agreement(
    split: EitherSplitOption = None,
    annotations: FileOption = None,
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how far annotators agree.

    Percent, Cohen's kappa and Krippendorff's alpha, by question, benchmark, two people and time; which
    trajectories they differ on only where the labels may be seen.
    """
    from leaderboard.agreement_report import agreement_json, agreement_report, open_items
    from leaderboard.agreement_tables import print_agreement

    settings = read_settings()
    chosen = read_suite(suite, settings)
    given = read_annotations(chosen, settings, split, annotations)
    report = agreement_report(given)
    is_hidden = split == "test" and not chosen.labels_are_public
    items = None if is_hidden else [item for item in open_items(_to_see(chosen, given)) if item.disagreeing]
    if as_json:
        print(json.dumps({"suite": chosen.name, "split": split, **agreement_json(report, items)}, indent=2))
        return
    print_agreement(report, f"{chosen.name} · {split or 'dev and test'}", items, plain_console())
    if split != "dev" and not chosen.labels_are_public:
        typer.echo("which test trajectories differ is not printed: the test labels of this suite are hidden")


def _to_see(suite: Suite, annotations: tuple[Annotation, ...]) -> list[Annotation]:
    """Those of dev, and of test where anyone can have the test labels anyway."""
    shown = suite.trajectories if suite.labels_are_public else suite.split("dev")
    ids = {trajectory.trajectory_id for trajectory in shown}
    return [annotation for annotation in annotations if annotation.trajectory_id in ids]


def ceiling(
    verdicts: Annotated[
        list[Path] | None,
        typer.Argument(exists=True, dir_okay=False, help="Prediction files of judges on --split."),
    ] = None,
    split: Annotated[Literal["dev", "test"], typer.Option(help="The split of the files.")] = "test",
    suite: SuiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score second annotators as a judge.

    Over all trajectories that two annotated; then how far label noise of that size moves the precision of
    judges: the published ones of the official suite, and files of yours.
    """
    from dataclasses import asdict

    from dataset_script.vocabulary import LABELS
    from leaderboard.agreement_tables import print_bands, print_ceiling
    from leaderboard.ceiling import second_annotator_scores
    from leaderboard.label_noise import disagreement_rates, noise_band

    settings = read_settings()
    chosen = read_suite(suite, settings)
    label_sets = _label_sets(chosen, settings)
    scores = second_annotator_scores(list(label_sets.values()))
    if not any(scores.values()):
        stop(f"no trajectory of {chosen.name} has two annotators, so there is no ceiling to show", code=1)
    rates = {label: disagreement_rates(list(label_sets.values()), label) for label in LABELS}
    judges = {**_published_judges(chosen), **_scored(verdicts or [], chosen, split, label_sets, settings)}
    bands = {name: noise_band(found, rates["success"]) for name, found in judges.items()}
    if as_json:
        found = {
            "suite": chosen.name,
            "label_versions": {name: labels.version for name, labels in label_sets.items()},
            "labels": scores,
            "disagreement": {
                label: {"overall": asdict(rate.overall), "by_benchmark": {
                    name: asdict(own) for name, own in rate.by_benchmark.items()
                }}
                for label, rate in rates.items()
            },
            "bands": {name: band and asdict(band) for name, band in bands.items()},
        }  # fmt: skip
        print(json.dumps(found, indent=2))
        return
    console = plain_console()
    print_ceiling(scores, rates, console)
    if bands:
        print_bands(bands, console)


def _label_sets(suite: Suite, settings: Settings) -> dict[str, LabelSet]:
    """The labels of each split that has some; what cannot be had is reported; stops where nothing can."""
    from dataset_script.vocabulary import SPLITS
    from leaderboard.label_source import LabelsUnavailable
    from leaderboard.labels import LabelsInvalid, load_labels

    found, missing = {}, []
    for split in SPLITS:
        try:
            found[split] = load_labels(suite, split, settings)
        except (LabelsUnavailable, LabelsInvalid) as reason:
            missing.append(f"labels of {split}: {reason}")
    if not found:
        stop("; ".join(missing), code=1)
    for message in missing:
        typer.echo(f"left out: {message}", err=True)
    return found


def _published_judges(suite: Suite) -> dict[str, dict[str, Any] | None]:
    """The success label of each published judge; none but for the official suite."""
    from dataset_script.suite import OFFICIAL
    from leaderboard.board_cells import published_label
    from leaderboard.published_rows import load_published_rows

    rows = load_published_rows() if suite.name == OFFICIAL else ()
    return {
        row.row_id: published_label(row.labels["success"]) for row in rows if row.provenance != "reference"
    }


def _scored(
    files: list[Path], suite: Suite, split: str, label_sets: dict[str, LabelSet], settings: Settings
) -> dict[str, dict[str, Any] | None]:
    """The success label of each file's report; stops with the errors of all files."""
    from leaderboard.report import score_report
    from leaderboard.verdict_files import VerdictFileError, read_verdict_file

    if files and split not in label_sets:
        stop(f"no labels to score {split} with", code=1)
    found, problems = {}, []
    for file in files:
        try:
            verdicts = read_verdict_file(file, suite, split, settings.max_upload_bytes)
        except VerdictFileError as problem:
            problems.append(str(problem))
        else:
            report = score_report(verdicts, label_sets[split], n_resamples=0)
            found[file.name] = report["labels"]["success"]
    if problems:
        stop("\n".join(problems), code=1)
    return found
