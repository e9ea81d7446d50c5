"""``python -m ...`` without its imports: forked from a process that has the libraries already.

To import gradio, pandas and pyarrow takes longer than what most commands do. A test of the process itself
(its signals, its output on a terminal, what it imports) starts one as users do, by `subprocess`.
"""

import gc
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver, get_context
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

REPOSITORY = Path(__file__).parents[2]
SECONDS = 300
READ_AT_IMPORT = ("HF_", "GRADIO_SERVER_")
"""Variables that libraries read while they are imported: another value of them needs a process of its own."""


@cache
def _fork_server() -> BaseContext:
    """Starts the process to fork from; it ends with the process of the tests."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["tests.support.libraries"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", str(REPOSITORY))
        forkserver.ensure_running()
    return context


def start(
    arguments: Sequence[str],
    out: Path,
    error: Path,
    environment: Mapping[str, str],
    folder: Path = REPOSITORY,
) -> BaseProcess:
    """Start ``python -m`` with these arguments and nothing but this environment; files get its output."""
    names = {name for name in {*environment, *os.environ} if name.startswith(READ_AT_IMPORT)}
    is_forked = all(environment.get(name) == os.environ.get(name) for name in names)
    context = _fork_server() if is_forked else get_context("spawn")
    given = (tuple(arguments), str(out), str(error), dict(environment), str(folder))
    process = context.Process(target=_run, args=given)
    process.start()
    return process


def run(arguments: Sequence[str], environment: Mapping[str, str], folder: Path = REPOSITORY) -> str:
    """What ``python -m`` prints; it has to end with status 0."""
    with TemporaryDirectory() as outputs:
        out, error = Path(outputs, "out"), Path(outputs, "error")
        process = start(arguments, out, error, environment, folder)
        process.join(SECONDS)
        status = process.exitcode
        process.kill()  # where it has not ended
        process.join()
        assert status == 0, f"{arguments}: status {status}\n{error.read_text()[-2000:]}"
        return out.read_text()


def path_with_arb(folder: Path) -> str:
    """Return a value of PATH with this environment's programs, and with an ``arb`` that runs the code of the
    folder in which it is typed."""
    folder.mkdir(exist_ok=True)
    script = folder / "arb"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m arb "$@"\n')
    script.chmod(0o755)
    return os.pathsep.join((str(folder), str(Path(sys.executable).parent), os.environ["PATH"]))


def _run(arguments: Sequence[str], out: str, error: str, environment: Mapping[str, str], folder: str) -> None:
    """In the new process: what ``python -m`` does."""
    for path, stream in ((out, sys.stdout), (error, sys.stderr)):
        with Path(path).open("ab") as file:
            os.dup2(file.fileno(), stream.fileno())
    gc.enable()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path.insert(0, folder)
    sys.argv = list(arguments)
    runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
