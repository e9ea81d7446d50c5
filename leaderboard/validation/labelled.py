"""Score and compare judges against the labels of a table, with the same report as for suites.

The table and the files of verdicts become a `LabelSet` and `Predictions`, so that `leaderboard.report` and
`leaderboard.compare` work as for the split of a suite.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from arb.core.console import counted
from arb.core.ids import Trajectory
from arb.core.predictions.table import Predictions
from arb.core.suites.targets import default_targets, main_target, scored
from leaderboard.labels.labels import LabelSet
from leaderboard.validation.tables import Columns, NamedTable, ValidationTable, read_several

EVERYTHING = "all"
"""The name of the benchmark and of the agent for rows whose ids do not name any."""


def align_tables(
    labels: NamedTable, files: Sequence[NamedTable], columns: Columns
) -> tuple[LabelSet, dict[str, Predictions], tuple[str, ...]]:
    """Return the labels of a table, and each judge's verdicts in the order of the labels.

    The labels are treated as labels of AgentRewardBench's main target. If the ids are of the form
    benchmark/agent/task, they give each row's benchmark, agent and task. Otherwise every row is a task of its
    own, unless a column of groups is named. Raises TableError if a table cannot be used.

    Returns:
        The labels, the verdicts by judge, and sentences on what was left out.
    """
    table = read_several(labels, files, columns)
    trajectories = _trajectories(table)
    n = len(trajectories)
    main = main_target(default_targets()).name
    nothing = {target.name: np.full(n, -1, dtype=np.int8) for target in scored(default_targets())}
    truth = table.truth.astype(np.int8)
    digest = hashlib.sha256("\n".join([*table.ids, *map(str, truth.tolist())]).encode()).hexdigest()
    found = LabelSet(
        suite=labels.name,
        split="",
        source="table",
        version=digest[:12],
        trajectories=trajectories,
        primary={**nothing, main: truth},
        second=nothing,
        annotated_twice=np.zeros(n, dtype=bool),
    )
    verdicts = {judge.name: Predictions(table.ids, {main: judge.verdicts}) for judge in table.judges}
    notes = list(table.notes)
    if table.unlabelled:
        notes.append(f"left out: {counted(table.unlabelled, 'row')} without a label")
    return found, verdicts, tuple(notes)


def _trajectories(table: ValidationTable) -> tuple[Trajectory, ...]:
    if all(each.count("/") == 2 and all(each.split("/")) for each in table.ids):
        found = [Trajectory.of(each, "") for each in table.ids]
    else:
        found = [Trajectory(each, EVERYTHING, EVERYTHING, each, "") for each in table.ids]
    if not table.is_grouped:
        return tuple(found)
    groups = table.groups.tolist()
    return tuple(
        Trajectory(each.trajectory_id, each.benchmark, each.agent, f"group {group}", "")
        for each, group in zip(found, groups, strict=True)
    )
