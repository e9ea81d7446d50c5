"""AgentProcessBench (RUCBM/AgentProcessBench, arXiv 2603.14465): labels of runs and of their steps.

A checkout has labels in ``data/AnswerOnly/*_final.jsonl`` and the answers of judges in
``eval/results/<judge>/*.jsonl``. The repository states no licence, so none of its content is part of this
project.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from arb.core.annotation import Annotation
from arb.core.console import counted
from arb.core.ids import Trajectory
from dataset_script.sources.values import id_part
from leaderboard.suites.imported import ImportedSuite, ImportProblem, json_lines, keys_of

SUITE_TOML: Final = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
AGENT: Final = "unnamed"
"""The agent in all ids, since the repository does not say which agents made the runs."""
VALUES: Final = ("1", "0", "-1")
_FAILED: Final = "llm_annotate_failed:"


def read(checkout: Path) -> ImportedSuite:
    """Read labels and judges' answers from a checkout. Raises ImportProblem."""
    files = sorted((checkout / "data" / "AnswerOnly").glob("*_final.jsonl"))
    if not files:
        raise ImportProblem(
            f"{checkout} has no data/AnswerOnly/*_final.jsonl; name a checkout of RUCBM/AgentProcessBench"
        )
    items: list[Trajectory] = []
    labels: list[Annotation] = []
    ids: dict[str, str] = {}
    for file in files:
        dataset = file.name.removesuffix("_final.jsonl")
        for number, row in json_lines(file):
            place = f"{file.name}, line {number}"
            record = str(row.get("record_id"))
            run = Trajectory.of(_id_of(dataset, record, place), "test")
            if record in ids:
                raise ImportProblem(
                    f"{place}, record_id {record!r}: an earlier line has it; check out the repository again"
                )
            ids[record] = run.trajectory_id
            items.append(run)
            answer = _value(row.get("final_label"), place, "final_label")
            labels.append(Annotation(run.trajectory_id, None, {} if answer is None else {"final": answer}))
            for step, label in _steps(row, place).items():
                items.append(Trajectory(run.trajectory_id, run.benchmark, run.agent, run.task, "test", step))
                answers = {} if label is None else {"step_label": label}
                labels.append(Annotation(run.trajectory_id, None, answers, of_step=step))
    known = keys_of(items)
    notes: list[str] = []
    verdicts = {}
    for folder in sorted((checkout / "eval" / "results").glob("*/")):
        judge = folder.name.strip()
        verdicts[judge] = _judged(folder, ids, known, notes)
    return ImportedSuite(SUITE_TOML, items, labels, verdicts, tuple(notes))


def _id_of(dataset: str, record: str, place: str) -> str:
    """Return the id of a run from its record ``<source>:<query>:<sample>``. The query identifies the task."""
    parts = record.split(":")
    if len(parts) != 3 or not all(parts):
        raise ImportProblem(
            f"{place}: record_id {record!r} is not SOURCE:QUERY:SAMPLE; check out the repository again"
        )
    source, query, sample = map(id_part, parts)
    return f"{dataset}/{AGENT}/{source}.{query}~{sample}"


def _steps(row: Mapping[str, Any], place: str) -> dict[str, str | None]:
    steps = row.get("step_labels")
    if not isinstance(steps, Mapping):
        raise ImportProblem(f"{place}: step_labels is not an object; check out the repository again")
    return {step: _value(label, place, f"step_labels {step}") for step, label in steps.items()}


def _value(label: object, place: str, field: str) -> str | None:
    if label is None:
        return None
    if str(label) not in VALUES:
        raise ImportProblem(f"{place}: {field} is {label!r}, not one of {', '.join(VALUES)}")
    return str(label)


def _judged(
    folder: Path, ids: Mapping[str, str], known: set[Any], notes: list[str]
) -> list[Mapping[str, object]]:
    """Return the rows of a judge's prediction file. Rows about runs come first, then rows about steps.

    If a record occurs twice, the later line counts.
    """
    latest: dict[str, tuple[str, Mapping[str, Any]]] = {}
    unknown = 0
    for file in sorted(folder.glob("*.jsonl")):
        for number, row in json_lines(file):
            record = str(row.get("record_id"))
            if record in ids:
                latest[record] = f"{folder.name}/{file.name}, line {number}", row
            else:
                unknown += 1
    runs: list[Mapping[str, object]] = []
    steps: list[Mapping[str, object]] = []
    for record, (place, answer) in latest.items():
        run = {"trajectory_id": ids[record]}
        explanations = answer.get("explanations") or {}
        failed = str(answer.get("comment") or "").startswith(_FAILED)
        final = None if failed else _value(answer.get("final_label"), place, "final_label")
        state = "error" if failed else "ok"
        runs.append({**run, "final": final, "state": state, "reasoning": explanations.get("final") or None})
        reasons = explanations.get("steps") or {}
        for step, label in _steps(answer, place).items():
            if (ids[record], step, None) in known:
                reason = reasons.get(step) or None
                steps.append({**run, "step": step, "step_label": label, "reasoning": reason})
            else:
                unknown += 1
    if unknown:
        answers = counted(unknown, "answer")
        notes.append(f"{folder.name.strip()}: {answers} about runs or steps without a label left out")
    absent = len(ids) - len(latest)
    if absent:
        notes.append(f"{folder.name.strip()}: no answer about {counted(absent, 'run')}")
    return [*runs, *steps]
