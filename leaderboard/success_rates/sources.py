"""What the source of judged runs says about them: crashed runs, and other names of the agents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arb.core.ids import TrajectoryId, reading_key
from arb.core.lazy import lazy_imports
from leaderboard.success_rates.files import CountAs, CrashedRuns

with lazy_imports():
    from dataset_script import sources
    from dataset_script.sources import base

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dataset_script.sources.base import FileCounts

_PARTS = ("from_a_file", "limit", "shard", "skipped", "subset")
"""Keys of ``selection`` in run.json that are set if only some of the runs were judged."""
CRASHED_UNKNOWN: Final = "crashed runs are not counted, because a judge's verdicts cover only some runs"


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """What the run.json files next to verdicts record about the source of the judged runs.

    ``crashed`` is None if it is not known which runs crashed. If a judge was asked about only some of the
    runs (``is_part``), it is not known which crashed runs belong to the judged part.
    """

    crashed: tuple[str, ...] | None = None
    files: FileCounts | None = None
    is_part: bool = False

    def crashed_runs(self, count_as: CountAs) -> CrashedRuns | None:
        return None if self.crashed is None else CrashedRuns(self.crashed, count_as)


def recorded_source(verdicts: Sequence[Path]) -> RecordedSource:
    """Return what the ``run.json`` files next to the verdict files record about the source, merged.

    Verdict files without one are skipped.
    """
    crashed: dict[str, None] = {}
    counts, is_part = None, False
    for file in verdicts:
        try:
            run: Any = json.loads(file.with_name("run.json").read_bytes())
            source, chosen = run["source"], run["selection"]
            is_part |= any(chosen.get(key) for key in _PARTS)
            own = (each for each in source["crashed"] if _is_chosen(TrajectoryId.parse(each), chosen))
            crashed |= dict.fromkeys(own)
            counts = counts or base.FileCounts(source["files"]["found"], source["files"]["read"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
    is_known = (crashed or counts) and not is_part
    return RecordedSource(tuple(crashed) if is_known else None, counts, is_part)


def _is_chosen(run: TrajectoryId, chosen: Mapping[str, Any]) -> bool:
    benchmarks, agents = chosen.get("benchmark"), chosen.get("agent")
    return (not benchmarks or run.benchmark in benchmarks) and (not agents or run.agent in agents)


def other_names(source: Path, agent_from: tuple[str, ...], judged: Iterable[str]) -> Mapping[str, str]:
    """Return the runs' ids with ``agent_from``, keyed by the `reading_key` of their ids without it.

    The result is empty if all ``judged`` ids were made with ``agent_from`` already. Raises SourceError.
    """
    usual, named = (
        sources.open_source(source, agent_from=facts).list_all().files for facts in ((), agent_from)
    )
    keys = {reading_key(file.trajectory_id) for file in named}
    if all(reading_key(run) in keys for run in judged):
        return {}
    pairs = zip(usual, named, strict=True)
    return {reading_key(one.trajectory_id): other.trajectory_id for one, other in pairs}
