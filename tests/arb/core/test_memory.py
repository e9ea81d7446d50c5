"""The memory of the container, and that a Space with little of it reads fewer and smaller files at once."""

from pathlib import Path

import pytest

from arb.core.memory import container_memory, keep_memory_small, resident_bytes, return_memory
from arb.core.predictions.parser_pool import SMALL_MEMORY_BYTES, ParserPool
from arb.core.predictions.raw import ReadingLimits
from arb.core.settings import Settings


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("memory.max", "536870912\n", 512 << 20),
        ("memory.max", "max\n", None),
        ("memory/memory.limit_in_bytes", "536870912\n", 512 << 20),
        ("memory/memory.limit_in_bytes", "9223372036854771712\n", None),
        ("other", "", None),
    ],
)
def test_the_limit_of_a_container_is_read(tmp_path, name, content, expected):
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)
    assert container_memory(tmp_path) == expected


@pytest.mark.parametrize(("memory_mb", "expected"), [(512, True), (1023, True), (1024, False)])
def test_less_than_a_gigabyte_is_little(memory_mb, expected):
    assert Settings(memory_mb=memory_mb).has_little_memory is expected


@pytest.mark.slow
def test_memory_that_was_freed_goes_back():
    keep_memory_small()
    held = [bytes(4_000) for _ in range(20_000)]  # 80 MB in small pieces
    before = resident_bytes()
    del held
    return_memory()
    assert before - resident_bytes() > 40_000_000


def test_a_small_pool_has_one_worker_with_little_address_space_that_is_killed_first():
    with ParserPool.small() as pool:
        pool.read(b"trajectory_id,success\n", ReadingLimits())
        (worker,) = pool._idle
        folder = Path("/proc") / str(worker._process.pid)
        (line,) = [line for line in (folder / "limits").read_text().splitlines() if "address space" in line]
        assert line.split()[3] == str(SMALL_MEMORY_BYTES)
        assert (folder / "oom_score_adj").read_text().strip() == "1000"
        assert not pool._room.acquire(blocking=False) or not pool._room.acquire(blocking=False)


@pytest.mark.slow
def test_a_large_file_is_read_in_a_small_pool():
    """A file of 5 MB, the default limit: 43,000 rows of 113 bytes."""
    task = "the-long-name-of-a-task-of-the-bench"
    row = f'{{"trajectory_id": "benchmark/an-agent/{task}%05d", "success": true, "score": 0.5}}\n'
    content = "".join(row % number for number in range(43_000)).encode()
    assert len(content) == 43_000 * 113
    with ParserPool.small() as pool:
        table, findings = pool.read(content, ReadingLimits())
    assert (table.rows, findings) == (43_000, [])
