"""Judges as scorers of Inspect (https://inspect.aisi.org.uk). Needs the extra ``inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from arb.core.files import install_command
from arb.core.trajectory import Recording
from arb.judges.run.live import judge_for_log, judge_of_logs, recorded_options
from dataset_script.sources.inspect_log import read_sample
from dataset_script.sources.values import id_part

try:
    from inspect_ai import scorer as scorers
    from inspect_ai.solver import TaskState
except ImportError as problem:
    raise ImportError(f"inspect_ai is not installed; run {install_command('inspect')}") from problem


def scorer(
    judge: str, out: str | Path | None = None, submit: str = "submit", **options: Any
) -> scorers.Scorer:
    """Return an Inspect scorer that asks a judge whether the agent succeeded.

    The judge sees what ``arb judges run --source`` reads from the log: the input, the messages and the
    answer, but not the target. The score is ``C`` for success and ``I`` for failure. A sample without a
    verdict is unscored, and its explanation says why.

    Args:
        judge: A judge's name from ``arb judges list``, or ``FILE.py:CLASS``.
        out: A folder for the judgments, as ``arb judges run`` writes them. By default, none are written.
        submit: The name of the tool by which the agent submits its answer.
        options: Options of ``arb judges run``, such as ``model="gpt-4o"``, ``samples=5`` or ``max_usd=5``.

    Raises:
        ValueError: The options cannot be used. The message lists all problems.
    """
    live = judge_of_logs(judge, out, options)

    def made(judge: str, **options: Any) -> scorers.Scorer:
        async def score(state: TaskState, target: scorers.Target) -> scorers.Score:
            success, reason, facts = await judge_for_log(live, lambda: _recording(state, submit))
            grade = {True: scorers.CORRECT, False: scorers.INCORRECT, None: float("nan")}[success]
            return scorers.Score(value=grade, explanation=reason, metadata=facts)

        return score

    decorate = scorers.scorer(metrics=[scorers.accuracy(), scorers.stderr()], name=id_part(judge))
    return decorate(made)(judge, **recorded_options(options))


def _recording(state: TaskState, submit: str) -> Recording:
    """Return the run of a sample as it will be read from the log. Raises UnusableFileError."""
    fields = {
        "input": state.input,
        "choices": [choice.value for choice in state.choices],
        "messages": state.messages,
        "output": state.output,
    }
    name = f"inspect/{id_part(str(state.model))}/{id_part(f'{state.sample_id}.{state.uuid}')}"
    sample = to_jsonable_python(fields, exclude_none=True, fallback=str)
    return read_sample(sample, name, str(state.model), {"submit", submit})[0]
