"""The texts of a file are kept only for whoever asks; checking and scoring have no use for them."""

import pandas as pd
import pytest

from arb.core.predictions import read_predictions
from arb.core.predictions.raw import ReadingLimits

ROWS = [
    {"trajectory_id": "a/b/c", "success": True, "reasoning": "It is <b>done</b>."},
    {"trajectory_id": "a/b/d", "success": False, "reasoning": "  "},
    {"trajectory_id": "a/b/e", "success": None, "reasoning": None},
]


FRAME = pd.DataFrame(ROWS)
FILES = {
    "jsonl": FRAME.to_json(orient="records", lines=True).encode(),
    "csv": FRAME.to_csv(index=False).encode(),
    "parquet": FRAME.to_parquet(),
}


@pytest.mark.parametrize("file_format", FILES)
def test_texts_are_kept_where_they_are_asked_for(file_format):
    table, findings = read_predictions(FILES[file_format], limits=ReadingLimits(keep_reasoning=True))
    assert findings == []
    # nothing but space is no text
    assert table.reasoning == ("It is <b>done</b>.", None, None)


@pytest.mark.parametrize("file_format", FILES)
def test_texts_are_not_kept_otherwise(file_format):
    table, findings = read_predictions(FILES[file_format])
    assert findings == []
    assert table.reasoning is None
    assert table.targets["success"].tolist() == [1, 0, -1]


def test_a_text_that_is_no_text_is_found_either_way():
    content = b'{"trajectory_id": "a/b/c", "success": true, "reasoning": 5}\n'
    for keep in (False, True):
        _, findings = read_predictions(content, limits=ReadingLimits(keep_reasoning=keep))
        assert [(finding.code, finding.column) for finding in findings] == [("wrong_type", "reasoning")]
