"""Files made to cost much: what reading them takes is bounded by their size."""

import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from arb.core.predictions import check as identity
from arb.core.predictions import read_predictions
from arb.core.predictions.check import check
from arb.core.predictions.raw import ReadingLimits

MB = 1_000_000
REPOSITORY = Path(__file__).parents[4]
ROOMY = ReadingLimits(max_bytes=20 * MB)


def read(content: bytes, limits: ReadingLimits | None = None) -> tuple[list[str], int]:
    """The codes of all findings, and the most memory that reading took, in bytes."""
    tracemalloc.start()
    try:
        _, findings = read_predictions(content, limits)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return [finding.code for finding in findings], peak


@pytest.mark.parametrize("row", [b"{}\n", b"\n"])
def test_rows_are_counted_before_they_are_taken_apart(row):
    # 1.6 million lines as Python texts would take 80 MB; counted, they take the text alone.
    codes, peak = read(b"{" + row * (4_800_000 // len(row)) + b"}")
    assert codes == ["too_many_rows"]
    assert peak < 20 * MB


def test_of_csv_only_the_known_columns_are_kept():
    # 5,000 rows of 100 unknown cells: half a million texts of 51 bytes, and 8 for the place of each.
    content = b"trajectory_id,success" + b",x" * 100 + b"\n" + (b"a/b/c,1" + b",no" * 100 + b"\n") * 5_000
    codes, peak = read(content)
    assert "too_many_columns" in codes
    assert peak < 15 * MB


def test_a_line_of_10_mb_is_one_bad_cell():
    codes, peak = read(b'{"trajectory_id": "' + b"x" * 10 * MB + b'", "success": true}', ROOMY)
    assert codes == ["cell_too_long"]
    assert peak < 60 * MB
    codes, peak = read(b'trajectory_id,success\n"' + b"x" * 10 * MB + b'",1\n', ROOMY)
    assert codes == ["broken_quotes"]
    assert peak < 100 * MB


def test_nested_lists_without_end_cost_what_they_hold():
    # 300,000 empty lists of 56 bytes, and 8 for the place of each.
    codes, peak = read(b'{"trajectory_id": "a/b/c", "success": true, "x": [' + b"[]," * 300_000 + b"[]]}")
    assert codes == ["unknown_columns"]
    assert peak < 40 * MB


def test_digits_before_a_letter_are_judged_at_once():
    # A pattern that can split the digits in two ways tries 200,000² / 2 of them: hours.
    program = (
        "from arb.core.predictions import cells; assert cells._NUMBER.fullmatch('1' * 200_000 + 'x') is None"
    )
    subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, check=True, timeout=300)


class Opened:
    """Leaves a trace when a pickle of it is opened."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\n"])
def test_a_pickle_is_refused_and_never_opened(tmp_path, protocol, mark):
    trace = tmp_path / "opened"
    content = pickle.dumps(Opened(trace), protocol)
    table, findings = read_predictions(mark + content)
    assert table is None
    assert any(finding.level == "error" for finding in findings)
    assert not trace.exists()
    pickle.loads(content)
    assert trace.exists()  # it would have


def test_an_id_that_every_row_holds_is_looked_at_once(shop, monkeypatch):
    # Parquet of 48 kB can hold a text of 1 MB in each of 50,000 rows: 50 GB to go through otherwise.
    looked_at = []
    key_of = identity.reading_key
    monkeypatch.setattr(identity, "reading_key", lambda text: (looked_at.append(text), key_of(text))[1])
    table, findings = read_predictions(b'{"trajectory_id": "nowhere", "success": true}\n' * 1_000)
    result = check(table, findings, shop, "test")
    assert [finding.count for finding in result.findings if finding.code == "malformed_id"] == [1_000]
    assert looked_at.count("nowhere") == 1
