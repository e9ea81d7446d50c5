"""Whatever the bytes, reading and checking end in findings that are safe to print."""

import json

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from arb.core.predictions import read_predictions
from arb.core.predictions.check import check
from arb.core.predictions.raw import ReadingLimits
from tests.conftest import examples
from tests.support.hostile import written

IDS = ("shop/GenericAgent-a/shop.2", "shop/GenericAgent-b/shop.2", "shop/GenericAgent-a/shop.9")
LIMITS = ReadingLimits(max_bytes=100_000, max_unpacked_bytes=1_000_000)
FAST = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])


def _jsonl() -> bytes:
    rows = [{"trajectory_id": i, "success": k == 0, "score": 0.5, "state": "ok"} for k, i in enumerate(IDS)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _csv() -> bytes:
    lines = [f'{i},Yes,0.5,"said ""so"", twice"' for i in IDS]
    return "\r\n".join(["trajectory_id,success,score,reasoning", *lines]).encode()


def _parquet() -> bytes:
    table = {"trajectory_id": IDS, "success": [True, None, False], "score": [0.5, 1.0, None]}
    return written(pa.table(table | {"state": ["ok"] * 3}))


WHOLE = {"jsonl": _jsonl(), "csv": _csv(), "parquet": _parquet()}


def survives(suite, content: bytes) -> None:
    table, findings = read_predictions(content, LIMITS)
    result = check(table, findings, suite, "test")
    assert table is not None or any(finding.level == "error" for finding in findings)
    assert result.acceptable is not any(finding.level == "error" for finding in result.findings)
    json.dumps(result.to_json(), allow_nan=False).encode()
    for finding in result.findings:
        assert finding.message.isprintable(), finding.message
        assert finding.message.endswith(".")
        assert finding.count >= min(1, len(finding.rows))
        assert len(finding.message) < 3_000
    if table is not None:
        assert table.rows == len(table.trajectory_ids) == len(table.row_numbers)


@FAST
@given(st.binary(max_size=400))
@example(b"PAR1")
@example(b"PAR1PAR1")
@example(b'{"trajectory_id": "\\ud800/\\u001b[31m/\\u202e", "success": "\\ud800"}')
@example(b"{" * 3_000)
@example(b'"')
@example(b"\xef\xbb\xbf{")
def test_any_bytes_at_all(shop, content):
    survives(shop, content)


@FAST
@given(st.text(max_size=300))
def test_any_text_as_csv_or_json(shop, text):
    survives(shop, text.encode("utf-8", "surrogatepass"))
    survives(shop, ("trajectory_id,success\n" + text).encode("utf-8", "surrogatepass"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(IDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
COLUMNS = (
    "trajectory_id", "success", "looping", "repetition", "optimality", "score", "state", "reasoning",
    "input_tokens",
)  # fmt: skip
COLUMN = st.sampled_from(COLUMNS)


@FAST
@given(st.lists(st.dictionaries(COLUMN | st.text(max_size=5), JSON, max_size=6), max_size=5))
def test_any_rows_of_json(shop, rows):
    survives(shop, "".join(json.dumps(row) + "\n" for row in rows).encode())


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
@FAST
@given(data=st.data())
def test_a_right_file_with_bytes_changed(shop, kind, data):
    survives(shop, changed(WHOLE[kind], data))


@pytest.mark.slow
@settings(FAST, max_examples=10)  # a process each
@given(data=st.data())
def test_a_right_parquet_file_with_bytes_changed(shop, data):
    survives(shop, changed(WHOLE["parquet"], data))


def changed(whole: bytes, data) -> bytes:
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(content)))
        cut = data.draw(st.integers(0, 4))
        content[start : start + cut] = data.draw(st.binary(max_size=4))
    return bytes(content)
