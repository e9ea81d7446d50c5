"""Tables of strangers: whatever they contain, the answer is a report or a sentence, never an exception."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.predictions.parser_pool import ParserPool, WorkerFailed
from arb.core.predictions.raw import ReadingLimits
from leaderboard.success_rates.runs import read_outcome_labels, read_outcome_verdicts
from leaderboard.validation.parsing import parse_table
from leaderboard.validation.tables import Columns
from leaderboard.validation.uploaded import UploadedTable, ask_worker, validate_upload
from tests.support.hostile import hostile_files

SEED = [
    [{"trajectory_id": f"run-{n}", "success": n % 2 == 0, "score": n / 9, "label": n % 3} for n in range(9)]
]


class InThisProcess(ParserPool):
    def call(self, content, limits, function, parse):
        return parse(json.loads(json.dumps(validate_upload(content, limits))))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "csv", "foreign"])
@given(data=st.data())
def test_any_text_gets_a_report_or_a_sentence(kind, data):
    file = data.draw(hostile_files(kind, SEED))
    content = file.content[:200_000]
    tables = [UploadedTable("t", content)] * data.draw(st.integers(1, 2))
    answer = ask_worker(InThisProcess(), tables, Columns(), 0.5, ReadingLimits())
    assert (answer.report is None) == bool(answer.problem)
    assert len(answer.problem) < 20_000
    for read in (read_outcome_labels, read_outcome_verdicts):
        table, findings = read(content, ReadingLimits())
        assert table is not None or findings


def test_columns_of_parquet_that_have_one_name_are_refused():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table([[1], [0]], names=["label", "label"]), sink)
    with pytest.raises(ValueError, match="several columns are called label"):
        parse_table(sink.getvalue().to_pybytes())


def test_a_worker_that_fails_says_why():
    with ParserPool(1) as pool, pytest.raises(WorkerFailed, match="the reader crashed on it"):
        pool.call(b"no header", ReadingLimits(), "leaderboard.validation.uploaded:validate_upload", dict)
