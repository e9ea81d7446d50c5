"""Judges as scanners of Inspect Scout. Needs the extra ``scout``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pydantic_core import to_jsonable_python

from arb.core.files import install_command
from arb.core.trajectory import Recording
from arb.judges.run.live import judge_for_log, judge_of_logs, recorded_options
from dataset_script.sources.base import SourceFile
from dataset_script.sources.inspect_log import InspectSource, is_turn, read_sample
from dataset_script.sources.problems import UnusableFileError
from dataset_script.sources.values import id_part

try:
    import inspect_scout
except ImportError as problem:
    raise ImportError(f"inspect_scout is not installed; run {install_command('scout')}") from problem


def scanner(
    judge: str, out: str | Path | None = None, submit: str = "submit", **options: Any
) -> inspect_scout.Scanner:
    """Return a scanner for Inspect Scout that asks a judge whether the agent succeeded.

    A result's value is True, False, or None if there is no verdict. In that case, its explanation says why.
    If a transcript comes from an Inspect log on this machine, the run is read from the log, as by
    ``arb judges run --source``.

    Args:
        judge: A judge's name from ``arb judges list``, or ``FILE.py:CLASS``.
        out: A folder for the judgments, as ``arb judges run`` writes them. By default, none are written.
        submit: The name of the tool by which the agent submits its answer, in transcripts from other sources.
        options: Options of ``arb judges run``, such as ``model="gpt-4o"``, ``samples=5`` or ``max_usd=5``.
            A limit (``max_usd`` and others) or ``out`` needs a scan with ``max_processes=1``.

    Raises:
        ValueError: The options cannot be used. The message lists all problems.
    """
    live = judge_of_logs(judge, out, options)

    def made(judge: str, **options: Any) -> inspect_scout.Scanner:
        async def scan(transcript: inspect_scout.Transcript) -> inspect_scout.Result:
            success, reason, facts = await judge_for_log(live, lambda: _recording(transcript, submit))
            return inspect_scout.Result(value=success, explanation=reason, metadata=facts)

        return scan

    decorate = inspect_scout.scanner(messages="all", name=id_part(judge))
    return decorate(made)(judge, **recorded_options(options))


def _recording(transcript: inspect_scout.Transcript, submit: str) -> Recording:
    """Return the run that a transcript records. Raises UnusableFileError."""
    model = transcript.model or "unknown"
    task = f"{transcript.task_id or 'run'}.{transcript.transcript_id}"
    name = f"{id_part(transcript.task_set or 'scout')}/{id_part(model)}/{id_part(task)}"
    log = Path(unquote((transcript.source_uri or "").removeprefix("file://")))
    if transcript.source_type == "eval_log" and log.is_file():
        stat = log.stat()
        source, files = _runs_in(log, stat.st_mtime_ns, stat.st_size)
        file = files.get(f"{transcript.task_id}_epoch_{transcript.task_repeat}")
        if file is None:
            raise UnusableFileError("not_a_trajectory", f"the sample is not in {log.name}")
        return replace(source.read(file)[0], trajectory_id=name)
    messages = to_jsonable_python(transcript.messages, exclude_none=True, fallback=str)
    asked = [each for each in takewhile(lambda each: not is_turn(each), messages) if each["role"] != "system"]
    return read_sample({"input": asked, "messages": messages}, name, transcript.model, {submit})[0]


@lru_cache(maxsize=64)
def _runs_in(log: Path, *_version: int) -> tuple[InspectSource, Mapping[str, SourceFile]]:
    source = InspectSource(log)
    return source, {file.name.removeprefix(f"{log.name}#"): file for file in source.list_runs().files}
