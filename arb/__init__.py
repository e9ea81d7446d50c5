"""AgentRewardBench from Python, for notebooks: what the commands give, as pandas DataFrames.

    import arb
    arb.board()                                             # the leaderboard
    arb.judge("rule-based", "runs/rules", split="dev")      # run a judge: its prediction file
    arb.score("runs/rules/predictions.jsonl", split="dev")  # how well it judges
    arb.compare("mine.jsonl", "other.jsonl", split="dev")   # whether the difference can be told from chance
    arb.estimate(["judge.jsonl"], "labels.csv")             # agents' success rates from a few labels

Rates are fractions from 0 to 1. ``attrs`` of each DataFrame has what is true of all rows. A prediction file
may be given as its path or as a DataFrame with ``trajectory_id``, ``success`` and what else the format has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pandas as pd

    from arb.core.predictions import Finding, Predictions
    from arb.core.suite import Suite
    from leaderboard.labels.labels import LabelSet

    File = str | Path | pd.DataFrame

__all__ = ["board", "compare", "estimate", "judge", "score"]

_CELL: Final = ("n", "tp", "fp", "fn", "tn", "no_verdict", "precision", "recall", "f1", "kappa")


def board(file: str | Path | None = None) -> pd.DataFrame:
    """A row for each judge, label and benchmark, best first: the published rows, or a Space's board.json.

    Raises ValueError where the file is no board, OSError where it cannot be read.
    """
    from io import StringIO

    import pandas as pd

    from arb.core.suite import OFFICIAL
    from leaderboard.board.board import Board, make_board
    from leaderboard.board.export import board_to_csv
    from leaderboard.paper.published import load_published_rows

    published = make_board(OFFICIAL, [], load_published_rows(), None) if file is None else None
    try:
        found = published or Board.from_bytes(Path(file or "").read_bytes())
    except ValueError as problem:
        raise ValueError(f"{file} {problem}") from None
    table = pd.read_csv(StringIO(board_to_csv(found)))
    table.attrs = {"suite": found.suite, "label_version": found.label_version, "digest": found.digest}
    return table


def judge(name: str, out: str | Path, **options: Any) -> pd.DataFrame:
    """Run a judge as ``arb judges run`` does and return its predictions; called again it goes on.

    ``options`` are those of the command: ``split="dev"``, ``model="gpt-4o"``, ``max_usd=5``,
    ``retry="error"``. Progress goes to stderr; ``attrs`` has the run's folder, which is one beside ``out``
    where that holds another run, its judge and totals. Raises RuntimeError with the command's message.
    """
    import pandas as pd

    from arb.core.cli import flags

    command = [sys.executable, "-m", "arb", "judges", "run", name, *flags(out=out, **options), "--json"]
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    # A process of its own: a notebook runs an event loop already, and an interrupt ends it as on a terminal.
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
        lines = []
        for line in process.stderr or ():
            sys.stderr.write(line)
            lines = [*lines[-20:], line]
        printed = process.stdout.read() if process.stdout else ""
    if process.returncode:
        message = "".join(lines).strip().removeprefix("error: ")
        raise RuntimeError(message or f"judges run ended with {process.returncode}")
    found = json.loads(printed)
    table = pd.read_json(found["predictions"], lines=True)
    table.attrs = {name: found[name] for name in ("run", "judge", "judged", "chosen", "totals")}
    return table


def score(
    file: File,
    split: str = "dev",
    suite: str | None = None,
    policy: str = "strict",
    labels: str | Path | None = None,
) -> pd.DataFrame:
    """Precision, recall, F1 and kappa with 95 % intervals over tasks: overall, by benchmark and by agent.

    A row for each label and group, as ``arb leaderboard score``. ``policy`` strict counts no verdict as no,
    published leaves it out. ``labels`` names a file of annotations; left out, ``ARB_LABELS`` says where they
    are. Raises ValueError with every problem of the file, or where there are no labels, OSError where a file
    cannot be read.
    """
    import pandas as pd

    from leaderboard.report import score_report

    chosen, known = _suite_and_labels(split, suite, labels)
    report = score_report(_aligned(file, chosen, split), known, policy)
    rows = [
        {"label": label, "group": group, "name": name, **_cell(cell)}
        for label, found in report["labels"].items() if found is not None
        for group, cells in (
            ("overall", {"overall": found["overall"]}),
            ("benchmark", found["by_benchmark"]),
            ("agent", found["by_agent"]),
        )
        for name, cell in cells.items()
    ]  # fmt: skip
    table = pd.DataFrame(rows).set_index(["label", "group", "name"])
    table.attrs = {name: report[name] for name in ("suite", "split", "label_version", "policy", "coverage")}
    return table


def compare(
    *files: File,
    split: str = "dev",
    suite: str | None = None,
    label: str = "success",
    metric: str = "precision",
    labels: str | Path | None = None,
) -> pd.DataFrame:
    """Each pair of prediction files: the difference of a metric over the same tasks, with its 95 % interval.

    ``p_accuracy`` is McNemar's exact test of equal accuracy, ``labels`` is as for `score`. Files are numbered
    from 0 where they are DataFrames. Raises ValueError with every problem of the files.
    """
    from itertools import combinations

    import numpy as np
    import pandas as pd

    from arb.core.vocabulary import LABELS
    from leaderboard.judge_precision.confusion import FORMULAS
    from leaderboard.judge_precision.scores import cluster_codes
    from leaderboard.paired import mcnemar, paired_difference_of, resample_judges
    from leaderboard.report import SEED, task_names, verdicts_of

    if len(files) < 2:
        raise ValueError("compare takes two prediction files or more")
    for option, value, known in (("label", label, LABELS), ("metric", metric, FORMULAS)):
        if value not in known:
            raise ValueError(f"{option}: there is no {value!r}; use one of {', '.join(known)}")
    chosen, known = _suite_and_labels(split, suite, labels)
    names = [_name(file, number) for number, file in enumerate(files)]
    columns = [verdicts_of(_aligned(file, chosen, split), label) for file in files]
    if missing := [name for name, column in zip(names, columns, strict=True) if column is None]:
        raise ValueError(f"no verdict on {label} in {', '.join(missing)}")
    truth = known.primary[label]
    tasks, _ = cluster_codes(task_names(known), len(truth))
    resampled = resample_judges(columns, truth, tasks, [np.ones(len(truth), dtype=bool)], seed=SEED)
    rows = []
    for first, second in combinations(range(len(files)), 2):
        found = paired_difference_of(resampled, first, second, 0, metric)
        low, high = found.interval or (None, None)
        rows.append(
            {
                "first": names[first], "second": names[second],
                f"{metric}_first": found.first, f"{metric}_second": found.second,
                "difference": found.value, "low": low, "high": high,
                "p_accuracy": mcnemar(columns[first], columns[second], truth).p,
            }
        )  # fmt: skip
    table = pd.DataFrame(rows)
    table.attrs = {"label": label, "metric": metric, "split": split, "label_version": known.version}
    return table


def estimate(
    verdicts: Sequence[File] | File, labels: File, draw: str | Path | None = None, agent: str | None = None
) -> pd.DataFrame:
    """Agents' success rates from judges' verdicts on all runs and labels on some, with 95 % intervals.

    A row for each agent: each judge alone, labels only, assisted, and the share of labels saved; warnings are
    in ``attrs["warnings"]``. ``draw`` is the record that ``annotation-template --for-estimate`` wrote. Raises
    ValueError with every problem of the files.
    """
    import pandas as pd

    from leaderboard.success_rates.files import estimate_files
    from leaderboard.success_rates.runs import SUCCESS_LABELS

    files = list(verdicts) if isinstance(verdicts, list | tuple) else [verdicts]
    found = estimate_files(
        [(_name(file, number), _read(file)) for number, file in enumerate(files)],
        (_name(labels, "labels"), _read(labels, SUCCESS_LABELS)),
        (Path(draw).name, Path(draw).read_bytes()) if draw else None,
        agent,
    )
    _raise_errors(found.errors)
    rows = [
        {
            "agent": each.agent, "n": each.assisted.n, "labelled": each.assisted.labelled,
            **{f"{name} alone": rate for name, rate in each.judge_alone.items()},
            **_rate("labels_only", each.labels_only), **_rate("assisted", each.assisted), "saved": each.saved,
        }
        for each in found.agents
    ]  # fmt: skip
    table = pd.DataFrame(rows).set_index("agent")
    table.attrs = {"warnings": list(found.warnings)}
    return table


def _rate(name: str, found: Any) -> dict[str, float | None]:
    low, high = found.interval or (None, None)
    return {name: found.value, f"{name}_low": low, f"{name}_high": high}


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _CELL:
        found[name] = cell.get(name)
        if f"{name}_ci" in cell:
            found[f"{name}_low"], found[f"{name}_high"] = cell[f"{name}_ci"] or (None, None)
    return found


def _suite_and_labels(split: str, suite: str | None, labels: str | Path | None) -> tuple[Suite, LabelSet]:
    from arb.core.settings import Settings
    from arb.core.suite import load_suite
    from leaderboard.labels.labels import LabelsInvalid, load_labels
    from leaderboard.labels.source import LabelsUnavailable

    if labels is not None and not Path(labels).is_file():
        raise FileNotFoundError(f"{labels}: there is no such file of labels")
    settings = Settings() if labels is None else Settings(labels=f"csv:{labels}")
    chosen = load_suite(suite or settings.suite)
    try:
        return chosen, load_labels(chosen, split, settings)
    except (LabelsUnavailable, LabelsInvalid) as problem:
        raise ValueError(f"no labels to score {split} with: {problem}") from None


def _aligned(file: File, suite: Suite, split: str) -> Predictions:
    from arb.core.predictions.check import check

    table, findings = _read(file)
    result = check(table, findings, suite, split)
    _raise_errors(() if result.acceptable else result.findings, _name(file, "the predictions"))
    return result.aligned


def _read(file: File, reader: str | None = None) -> Any:
    from arb.core.predictions import read_predictions

    if isinstance(file, str | Path):
        return read_predictions(Path(file).read_bytes(), Path(file).name, reader=reader)
    content = file.reset_index(drop=True).to_json(orient="records", lines=True)
    return read_predictions(content.encode(), reader=reader)


def _name(file: File, otherwise: int | str) -> str:
    return Path(file).name if isinstance(file, str | Path) else str(otherwise)


def _raise_errors(findings: Iterable[Finding], name: str = "") -> None:
    errors = [f"{each.file or name}: {each.message}" for each in findings if each.level == "error"]
    if errors:
        raise ValueError("\n".join(errors))
