"""Parquet read in a process of its own, so that a hostile file can end that process and nothing else.

Damaged Parquet makes the library's C++ code abort the whole process (pyarrow 26: one changed byte in the
footer is enough), and a few kB can unpack to gigabytes. The process is bounded in memory and time, gets the
bytes on its standard input, and answers in JSON. It costs a quarter of a second.
"""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from dataset_script.prediction_file.findings import Finding, error
from dataset_script.prediction_file.limits import ReadingLimits
from dataset_script.prediction_file.raw import RawTable

_MAX_MEMORY_BYTES: Final = 1 << 30
"""Of address space; a file at the limits takes 330 MB of it, and less than 600 MB with its reasoning."""
_MAX_SECONDS: Final = 30

_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from dataset_script.prediction_file.parquet_apart import main; main(sys.argv[2])"
)
_PASSED_ON: Final = ("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "SYSTEMROOT", "TMPDIR")
"""Of the environment; tokens and addresses of databases are none of that process's business."""
_SMALL: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "ARROW_IO_THREADS": "1", "OMP_NUM_THREADS": "1"} | {
    "OPENBLAS_NUM_THREADS": "1"
}

logger = logging.getLogger(__name__)


def read_parquet_apart(content: bytes, limits: ReadingLimits) -> tuple[RawTable | None, list[Finding]]:
    """What `parquet.read_parquet` gives, from a process that may die of the file."""
    command = [sys.executable, "-c", _PROGRAM, json.dumps(sys.path), json.dumps(asdict(limits))]
    environment = _SMALL | {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=_MAX_SECONDS, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return None, [_unreadable(f"reading it took over {_MAX_SECONDS} seconds")]
    except OSError as problem:
        logger.error("no process to read Parquet in: %s", problem)
        return None, [_unreadable("the server has no room to read it now; try again later")]
    if done.returncode != 0:
        # What it wrote to its standard error may quote the file, which is nothing for a log.
        logger.warning("the process that reads Parquet ended with %d", done.returncode)
        return None, [_unreadable("the reader broke down over it")]
    return _unpack(json.loads(done.stdout))


def main(limits: str) -> None:
    """The other process: bytes on standard input, JSON on standard output."""
    _bound_this_process()
    from dataset_script.prediction_file.parquet import read_parquet

    bounds = ReadingLimits(**json.loads(limits))
    table, findings = read_parquet(sys.stdin.buffer.read(), bounds)
    answer = json.dumps(_pack(table, findings))
    if len(answer) > 2 * bounds.max_unpacked_bytes:
        answer = json.dumps(_pack(None, [*findings, _unreadable("it holds too much text")]))
    sys.stdout.write(answer)


def _bound_this_process() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such bounds
        return
    for what, bound in (
        (resource.RLIMIT_AS, _MAX_MEMORY_BYTES),
        (resource.RLIMIT_CPU, _MAX_SECONDS),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(what, (bound, bound))
        except (ValueError, OSError):  # a lower bound is in force already, or the system knows no such one
            continue


def _pack(table: RawTable | None, findings: Sequence[Finding]) -> dict[str, object]:
    """Each distinct value once, so that a long text that every row points at is written once."""
    columns = {}
    for name, values in (table.columns if table is not None else {}).items():
        places: dict[tuple[type, object], int] = {}
        index = [places.setdefault((value.__class__, value), len(places)) for value in values]
        distinct = [{"hex": v.hex()} if isinstance(v, bytes) else v for _, v in places]
        columns[name] = {"distinct": distinct, "index": index}
    rows = len(table.row_numbers) if table is not None else None
    return {"rows": rows, "columns": columns, "findings": [asdict(finding) for finding in findings]}


def _unpack(answer: dict) -> tuple[RawTable | None, list[Finding]]:
    findings = [
        Finding(**(said | {name: tuple(said.get(name, ())) for name in ("rows", "names")}))
        for said in answer["findings"]
    ]
    if answer["rows"] is None:
        return None, findings
    columns = {}
    for name, column in answer["columns"].items():
        distinct = [bytes.fromhex(v["hex"]) if isinstance(v, dict) else v for v in column["distinct"]]
        columns[name] = [distinct[place] for place in column["index"]]
    return RawTable(range(1, answer["rows"] + 1), columns), findings


def _unreadable(why: str) -> Finding:
    return error("invalid_parquet", f"the Parquet file cannot be read ({why}). Write it again.")
