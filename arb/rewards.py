"""Judges as reward functions of training loops (`JudgeReward`, which is ``arb.reward``)."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from arb.core.trajectory import Recording
from arb.judges.run.live import LiveJudge
from arb.judges.run.records import error_of
from dataset_script.sources.chat.messages import read_run
from dataset_script.sources.problems import UnusableFileError

Run = Recording | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A recording, or a run's messages in a form that `arb data inspect-source` reads from files: a list, or an
object with ``messages`` and optionally ``goal``."""

_logger: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Rewards:
    """The rewards of a batch. All lists are in the order of its runs.

    Attributes:
        rewards: 1 for success, 0 for failure, or None without a verdict.
        scores: The judge's scores from 0 to 1, such as the share of samples that say yes; None if unknown.
        states: ``ok``, or why there is no verdict: ``unparsed``, ``refused``, ``too_long`` or ``error``.
        problems: The reason for each state ``error``, else None.
        calls: The number of paid calls for this batch. Replies from the cache cost nothing.
        cost_usd: The cost of these calls in US dollars, or None if a price is unknown.
    """

    rewards: list[int | None]
    scores: list[float | None]
    states: list[str]
    problems: list[str | None]
    calls: int
    cost_usd: float | None


class JudgeReward(LiveJudge):
    """A judge as a reward function for training loops, which returns `Rewards` for a batch of runs.

    Replies are cached, so a run that was judged before costs nothing. ``max_usd`` limits all batches
    together. The arguments are those of `LiveJudge`.
    """

    def __call__(self, runs: Sequence[Run]) -> Rewards:
        """Judge runs concurrently and return their rewards.

        Raises:
            ValueError: Some runs cannot be judged, so no call was made. The message lists all problems.
            StopRunError: The budget is used up, or the endpoint refuses the account.
        """
        records, spend = self.submit(_recordings(runs)).result()
        answers = [record["answer"] for record in records]
        found = Rewards(
            rewards=[None if (yes := each.get("success")) is None else int(yes) for each in answers],
            scores=[each.get("score") for each in answers],
            states=[record["state"] for record in records],
            problems=[error_of(each) if each["state"] == "error" else None for each in records],
            calls=spend.calls,
            cost_usd=spend.usd,
        )
        if missing := found.rewards.count(None):
            reason = next(filter(None, found.problems), "see the states")
            _logger.warning("%d of %d runs have no reward: %s", missing, len(found.rewards), reason)
        return found


def _recordings(runs: Sequence[Run]) -> list[Recording]:
    """Return the runs as recordings. If a run is given as messages, its id contains their hash."""
    found, problems = [], []
    for number, run in enumerate(runs, start=1):
        if isinstance(run, Recording):
            found.append(run)
            continue
        try:
            record = run if isinstance(run, Mapping) else {"messages": list(run)}
            digest = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]
            recording, notes = read_run(record, f"chat/run/{digest}", None, Path())
            found.append(recording)
            unread = [note.detail for note in notes if note.code == "missing_screenshot"]
            problems += [f"run {number}: {each}; pass pictures as data URLs" for each in unread]
        except UnusableFileError as problem:
            problems.append(f"run {number}: {problem}")
        except (TypeError, ValueError, RecursionError) as problem:
            problems.append(f"run {number}: is neither a recording nor chat messages in JSON ({problem})")
    if problems:
        raise ValueError("no call was made\n" + "\n".join(problems))
    return found
