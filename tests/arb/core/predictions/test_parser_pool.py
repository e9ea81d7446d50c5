"""Processes that read strangers' files: what comes back, what ends them, what they get, and for how long."""

import os
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa
import pytest

from arb.core.predictions import parser_pool, read_predictions
from arb.core.predictions.parser_pool import ParserPool, read_in_process
from arb.core.predictions.raw import ReadingLimits
from tests.support.hostile import written
from tests.support.waiting import eventually

LIMITS = ReadingLimits()


def parquet(**columns) -> bytes:
    return written(pa.table(columns))


GOOD = parquet(trajectory_id=["a/b/c"], success=[True])
# The footer's "optional" (zigzag 2) of the first column becomes a repetition that does not exist.
OPTIONAL = b"\x25\x02\x18\x0dtrajectory_id"
KILLER = GOOD.replace(OPTIONAL, b"\x25\x03\x18\x0dtrajectory_id")
"""The library aborts its process over it."""


@pytest.fixture(scope="module")
def pool():
    with ParserPool(1) as pool:
        yield pool


def codes(answer) -> list[str]:
    table, findings = answer
    assert table is None
    return [finding.code for finding in findings]


def worker_of(pool: ParserPool) -> int:
    """The process id of its one worker."""
    (worker,) = pool._idle
    return worker._process.pid


def instead(monkeypatch, program: str) -> ParserPool:
    """A pool whose workers run another program after they got a file; ``answer`` sends bytes."""
    setup = (
        "import json, os, sys, time; sys.path[:] = json.loads(sys.argv[1]); "
        "from arb.core.predictions import parser_pool; "
        "connection = parser_pool.Connection(int(sys.argv[2])); answer = connection.send_bytes; "
        "connection.recv_bytes(); connection.recv_bytes(); "
    )
    monkeypatch.setattr(parser_pool, "_PROGRAM", setup + program)
    return ParserPool(1)


def test_what_comes_back_is_what_was_read(pool):
    files = (
        parquet(
            trajectory_id=pa.array([b"a/b/c", b"\xff", None]),
            success=[True, None, False],
            score=[0.1, float("nan"), float("inf")],
            input_tokens=[1, 0, 2**62],
            extra=["x"] * 3,
        ),
        b'{"trajectory_id": "a/b/c", "success": 1, "state": "\\ud800"}\n{"score": NaN, "success": []}\nno\n',
        b'trajectory_id,success,reasoning\na/b/c,yes,"so\nit is"\n"',
        b"\xff\xfe",
    )
    for keeps in (False, True):
        limits = ReadingLimits(keep_reasoning=keeps)
        for content in files:
            expected, found = read_in_process(content, limits)
            table, findings = pool.read(content, limits)
            assert findings == found
            assert repr(table) == repr(expected)  # nan is not equal to itself, its spelling is
            if table is not None:
                dtypes = [
                    {name: column.dtype for name, column in (each.targets | each.numbers).items()}
                    for each in (table, expected)
                ]
                assert dtypes[0] == dtypes[1]


def test_the_limits_go_along(pool):
    content = parquet(trajectory_id=["a/b/c"] * 3, success=[True] * 3)
    assert codes(pool.read(content, ReadingLimits(max_rows=2))) == ["too_many_rows"]


def test_a_file_that_kills_the_library_is_a_finding_and_the_worker_reads_the_next_one(pool):
    assert KILLER != GOOD
    assert codes(read_predictions(KILLER)) == ["invalid_parquet"]  # in a process for this file
    assert pool.read(GOOD, LIMITS)[0].rows == 1
    worker = worker_of(pool)
    for _ in range(3):
        assert codes(pool.read(KILLER, LIMITS)) == ["invalid_parquet"]
    assert pool.read(GOOD, LIMITS)[0].rows == 1
    assert worker_of(pool) == worker


def test_a_long_value_that_every_row_points_at_comes_back_once(pool):
    # 50,000 rows x 1 MB would be 50 GB.
    long = pa.DictionaryArray.from_arrays(pa.array([0] * 50_000), ["x" * 1_000_000])
    content = parquet(trajectory_id=long, success=[True] * 50_000)
    table, findings = read_predictions(content, parsers=pool)
    assert table.rows == 50_000
    assert [(finding.code, finding.count) for finding in findings] == [("cell_too_long", 50_000)]
    assert table.trajectory_ids[0] is table.trajectory_ids[-1]


def test_small_text_is_read_without_a_worker_and_large_text_with_one():
    row = b'{"trajectory_id": "a/b/c", "success": true}\n'
    with ParserPool(1) as pool:
        read_predictions(row, parsers=pool)
        assert pool._idle == []
        table, _ = read_predictions(row * 10_000, parsers=pool)
        assert (table.rows, len(pool._idle)) == (10_000, 1)


def test_a_reader_that_takes_too_long_is_stopped_with_what_it_started(monkeypatch, tmp_path):
    told = tmp_path / "child"
    program = (
        "child = os.fork() or time.sleep(600); "
        f"open('{told}.part', 'w').write(str(child)); os.rename('{told}.part', '{told}'); time.sleep(600)"
    )

    class OnceItHasAChild(Connection):
        """Its time is over as soon as the reader has started what has to be stopped with it."""

        def poll(self, _seconds):
            eventually(told.exists)
            return False

    monkeypatch.setattr(parser_pool, "Connection", OnceItHasAChild)
    with instead(monkeypatch, program) as pool:
        for content, code in ((b"PAR1", "invalid_parquet"), (b"{", "unreadable")):
            assert codes(pool.read(content, LIMITS)) == [code]
            assert pool._idle == []
            child = told.read_text()
            eventually(lambda child=child: has_ended(child))
            told.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not bound address space")
def test_a_reader_that_takes_too_much_memory_is_stopped(monkeypatch):
    with instead(monkeypatch, "parser_pool._bound('RLIMIT_AS', 1 << 30); bytearray(3 << 30)") as pool:
        assert codes(pool.read(b"PAR1", LIMITS)) == ["invalid_parquet"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_is_bounded_in_memory_and_forks_without_threads(pool):
    pool.read(GOOD, LIMITS)
    process = Path(f"/proc/{worker_of(pool)}")
    limits = process.joinpath("limits").read_text()
    assert f"Max address space         {1 << 30}" in limits
    assert "Max core file size        0 " in limits
    assert len(list(process.joinpath("task").iterdir())) == 1  # a fork of several threads may hang


def test_what_the_other_process_says_of_a_file_is_not_logged(monkeypatch, caplog):
    with instead(monkeypatch, "answer(b'Traceback: a cell'); sys.exit('a cell of the file')") as pool:
        assert codes(pool.read(b"PAR1", LIMITS)) == ["invalid_parquet"]
    assert "the process that reads a file crashed" in caplog.text
    assert "a cell" not in caplog.text


ONE_ROW = (
    '{"texts": {"trajectory_ids": {"distinct": ["a"], "index": %s}}, "numbers": {%s}, "targets": {%s}, '
    '"findings": []}'
)


@pytest.mark.parametrize(
    "answer",
    [
        "", "[]", "{}", "null", "9" * 5_000, "[" * 100_000,
        '{"texts": null, "findings": [{"level": "error"}]}',
        ONE_ROW % ("[7]", "", ""),
        ONE_ROW % ("[0]", '"no": [1]', ""),
        ONE_ROW % ("[0]", "", '"success": [false, [1, 1]]'),
        ONE_ROW % ("[0]", "", '"success": [false, ["x"]]'),
    ],
)  # fmt: skip
def test_an_answer_that_no_reader_of_ours_gives_is_a_finding(monkeypatch, answer):
    class Lying:
        def __init__(self, _most_bytes): ...

        def ask(self, content, limits, reader):
            return answer.encode()

        def end(self): ...

    monkeypatch.setattr(parser_pool, "_Worker", Lying)
    assert codes(ParserPool(1).read(b"PAR1", LIMITS)) == ["invalid_parquet"]


@pytest.mark.slow
def test_an_answer_larger_than_a_file_can_have_is_not_taken(monkeypatch):
    with instead(monkeypatch, "answer(bytes(5_000))") as pool:
        assert codes(pool.read(b"PAR1", ReadingLimits(max_unpacked_bytes=2_000))) == ["invalid_parquet"]


def test_the_other_process_gets_no_secrets(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:secret@host/db")
    telltale = (
        "found = {'level': 'error', 'code': 'x', 'message': json.dumps(dict(os.environ))}; "
        "answer(json.dumps({'findings': [found]}).encode())"
    )
    with instead(monkeypatch, telltale) as pool:
        _, (finding,) = pool.read(b"PAR1", LIMITS)
    assert "PATH" in finding.message
    assert "secret" not in finding.message


@pytest.mark.slow
def test_a_worker_that_has_ended_is_replaced():
    with ParserPool(1) as pool:
        pool.read(GOOD, LIMITS)
        first = worker_of(pool)
        os.kill(first, signal.SIGKILL)  # as the system does where memory is short
        assert pool.read(GOOD, LIMITS)[0].rows == 1
        assert worker_of(pool) != first


@pytest.mark.slow
def test_a_worker_that_is_idle_ends_and_the_pool_goes_on(monkeypatch):
    program = parser_pool._PROGRAM.partition("serve(")[0]
    program += (
        "import arb.core.predictions.parser_pool as p; p.IDLE_SECONDS = 0.01; p.serve(int(sys.argv[2]))"
    )
    monkeypatch.setattr(parser_pool, "_PROGRAM", program)
    with ParserPool(1) as pool:
        pool._idle.append(parser_pool._Worker())
        pool._idle[0]._process.wait(timeout=60)
        monkeypatch.undo()
        assert pool.read(GOOD, LIMITS)[0].rows == 1


@pytest.mark.slow
def test_a_worker_ends_with_the_server():
    import subprocess

    program = (
        "import io, json, os, pyarrow as pa, pyarrow.parquet as pq, signal, sys\n"
        "from arb.core.predictions.parser_pool import ParserPool, ReadingLimits\n"
        "pool = ParserPool(1); pool.read(b'{}', ReadingLimits())\n"
        "print(pool._idle[0]._process.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True)
    eventually(lambda: has_ended(done.stdout.strip()))


def has_ended(process: str) -> bool:
    """Whether a process, named by its number, is gone or a zombie that nobody has looked after."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
