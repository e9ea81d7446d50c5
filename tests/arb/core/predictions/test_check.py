import io
import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arb.core.predictions import read_predictions
from arb.core.predictions.check import check
from arb.core.predictions.excerpts import LONGEST, excerpt, row_texts
from arb.core.predictions.findings import Finding
from arb.core.predictions.raw import recognise
from arb.core.predictions.write import template
from arb.core.suite import SuiteError, load_suite


def test_a_row_of_jsonl_is_its_line_blank_lines_counted():
    content = b'\xef\xbb\xbf{"trajectory_id": "a"}\r\n\r\n{"trajectory_id": "b"}\r\n'
    assert row_texts(content, "jsonl", [1, 3]) == {1: '{"trajectory_id": "a"}', 3: '{"trajectory_id": "b"}'}
    assert row_texts(content, "jsonl", [9]) == row_texts(content, "jsonl", []) == {}


def test_a_row_of_csv_is_its_record_even_when_it_takes_several_lines():
    content = b'trajectory_id;success\na;"two\nlines"\nb;maybe\n'
    assert row_texts(content, "csv", [2, 3]) == {2: 'a,"two\nlines"', 3: "b,maybe"}


def test_rows_after_quotes_that_break_are_left_out():
    assert row_texts(b'trajectory_id,success\na,true\n"b,x\nc,true\n', "csv", [2, 4]) == {2: "a,true"}


def test_of_parquet_the_ids_are_shown():
    content = pd.DataFrame({"trajectory_id": ["a", "b"], "success": [True, False]}).to_parquet()
    assert row_texts(content, "parquet", [2]) == {2: "b"}


def test_a_long_row_is_cut_around_the_column_that_is_meant():
    row = json.dumps({"trajectory_id": "a", "reasoning": "x" * 5000, "success": "maybe", "model": "y" * 900})
    plain = excerpt(row)
    assert plain.startswith('{"trajectory_id": "a"') and plain.endswith("x…") and len(plain) == LONGEST + 1
    cut = excerpt(row, around="success")
    assert '"success": "maybe"' in cut and cut[0] == cut[-1] == "…" and len(cut) == LONGEST + 2


def test_marks_that_would_turn_the_text_around_are_spelled():
    # U+202E turns what follows from right to left; U+001B begins a terminal's commands.
    assert excerpt("a\u202eb\x1b[2J") == "a\\u202eb\\x1b[2J"


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_whatever_a_finding_names_can_be_asked_for(content):
    file_format = recognise(content)
    if isinstance(file_format, Finding) or file_format == "parquet":
        return
    _, findings = read_predictions(content)
    rows = {row for finding in findings for row in finding.rows}
    for text in row_texts(content, file_format, rows).values():
        assert excerpt(text, around="success").isprintable()


def checked(suite, content: bytes, split: str = "test"):
    table, findings = read_predictions(content)
    return check(table, findings, suite, split)


def found(result) -> dict[str, tuple]:
    return {finding.code: (finding.rows, finding.count) for finding in result.findings}


def rows_for(ids, verdicts=None):
    verdicts = verdicts or [True, False] * len(ids)
    return [{"trajectory_id": i, "success": v} for i, v in zip(ids, verdicts, strict=False)]


def test_a_right_file_is_acceptable_and_summed_up(shop, test_ids, jsonl):
    # test_ids: shop 2, workarena 1, workarena++ 1; verdicts true, null, false, true
    result = checked(shop, jsonl(*rows_for(test_ids, [True, None, False, True])))
    assert (result.acceptable, result.rows) == (True, 4)
    assert result.coverage == 3 / 4
    assert result.success_share == 2 / 3
    assert found(result) == {"low_coverage": ((), 1)}
    assert asdict(result.by_benchmark["shop"]) == {
        "expected": 2, "rows": 2, "coverage": 0.5, "success_share": 1.0,
    }  # fmt: skip
    assert result.by_benchmark["workarena"].success_share == 0.0
    # the vocabulary's order, then others
    assert list(result.by_benchmark) == ["workarena", "workarena++", "shop"]


def test_the_report_has_the_contracts_shape(shop, test_ids, jsonl):
    result = checked(shop, jsonl(*rows_for(test_ids), {"trajectory_id": test_ids[0], "success": None}))
    body = json.loads(json.dumps(result.to_json()))
    assert {"acceptable", "rows", "coverage", "findings", "by_benchmark"} <= body.keys()
    assert body["acceptable"] is False
    (finding,) = body["findings"]
    assert {k: finding[k] for k in ("level", "code", "rows", "count", "column")} == {
        "level": "error", "code": "duplicate_id", "rows": [1, 5], "count": 2, "column": "trajectory_id",
    }  # fmt: skip
    assert body["by_benchmark"]["shop"] == {"expected": 2, "rows": 3, "coverage": 1.0, "success_share": 0.5}


def test_two_spellings_of_one_id_are_a_duplicate(shop, test_ids, jsonl):
    assert test_ids[1] == "shop/GenericAgent-b/shop.resized.2"
    result = checked(
        shop, jsonl(*rows_for(test_ids), {"trajectory_id": "shop/GenericAgent-b/shop.2", "success": True})
    )
    assert found(result) == {"duplicate_id": ((2, 5), 2)}
    assert result.aligned is None


def test_every_spelling_of_an_id_is_accepted(shop, test_ids, jsonl):
    ids = [f" {spelled.replace('.resized', '')}\t" for spelled in test_ids]
    result = checked(shop, jsonl(*rows_for(ids)))
    assert result.acceptable
    assert result.aligned.trajectory_ids == test_ids


def test_wrong_ids_are_distinguished_and_named_by_row(shop, test_ids, jsonl):
    strange = ["shop/GenericAgent-a/shop.3", "shop/GenericAgent-a/shop.1", "shop.2", 7, "", None]
    result = checked(shop, jsonl(*rows_for([*strange, *test_ids[1:]])))
    assert found(result) == {
        "unknown_id": ((1,), 1),
        "wrong_split": ((2,), 1),
        "malformed_id": ((3,), 1),
        "wrong_type": ((4,), 1),
        "empty_id": ((5, 6), 2),
        "missing_id": ((), 1),
        "low_coverage": ((), 1),  # 3 of 4
    }
    messages = {finding.code: finding.message for finding in result.findings}
    assert "did you mean 'shop/GenericAgent-a/shop.2'?" in messages["unknown_id"]
    assert "--split dev" in messages["wrong_split"]
    assert repr(test_ids[0]) in messages["missing_id"]


def test_rows_that_could_not_be_read_are_recalled_beside_missing_ids(shop, test_ids, jsonl):
    result = checked(shop, jsonl(*rows_for(test_ids[1:])) + b"{broken\n")
    message = next(f.message for f in result.findings if f.code == "missing_id")
    assert "1 row could not be read" in message


def test_a_reading_that_stopped_early_claims_no_missing_ids(shop):
    result = checked(shop, b'trajectory_id,success\nshop/GenericAgent-a/shop.2,1\nshop/x,"1\n')
    assert list(found(result)) == ["broken_quotes"]


def test_all_findings_come_at_once(shop, test_ids, jsonl):
    result = checked(
        shop,
        jsonl(
            {"trajectory_id": test_ids[0], "success": "perhaps", "score": 2},
            {"trajectory_id": test_ids[0], "success": True, "state": "refused"},
            {"trajectory_id": "x", "success": None, "state": "ok", "extra": 1},
        ),
    )
    assert [finding.code for finding in result.findings] == [
        "unknown_word", "out_of_range", "state_contradicts_verdict", "malformed_id", "duplicate_id",
        "missing_id", "unknown_columns", "state_without_verdict",
    ]  # fmt: skip
    levels = [finding.level for finding in result.findings]
    assert levels == ["error"] * 6 + ["warning"] * 2


def test_a_bad_success_cell_is_not_also_a_missing_verdict(shop, test_ids, jsonl):
    rows = [row | {"state": "ok", "success": "perhaps"} for row in rows_for(test_ids)]
    assert found(checked(shop, jsonl(*rows))) == {"unknown_word": ((1, 2, 3, 4), 4)}


def test_rows_are_capped_at_1000_and_all_counted(shop, jsonl):
    result = checked(shop, jsonl(*rows_for([f"shop/x/{i}" for i in range(1_500)])))
    rows, count = found(result)["unknown_id"]
    assert (rows, count) == (tuple(range(1, 1_001)), 1_500)


@pytest.mark.parametrize("file_format", ["jsonl", "csv", "parquet"])
def test_a_template_is_refused_until_it_is_filled_in(shop, file_format):
    result = checked(shop, template(shop, "test", file_format))
    assert found(result) == {"no_verdicts": ((), 4)}
    assert result.coverage == 0.0


def test_a_template_has_a_column_for_each_target_that_judges_are_scored_on():
    header = template(load_suite("sample"), "dev", "csv").decode().partition("\n")[0]
    assert header == "trajectory_id,success,side_effect,repetition"  # not optimality, which is only asked


def test_a_template_filled_in_is_acceptable(shop):
    filled = template(shop, "test").replace(b"null", b"true", 2).replace(b"null", b"false")
    assert checked(shop, filled).acceptable
    frame = pd.read_csv(io.BytesIO(template(shop, "test", "csv")))
    frame["success"] = ["Yes", "No", "No", ""]
    result = checked(shop, frame.to_csv(index=False).encode())
    assert (result.acceptable, result.coverage) == (True, 0.75)
    parquet = template(shop, "test", "parquet")
    assert pq.read_schema(io.BytesIO(parquet)).metadata[b"format"] == b"1"
    frame = pd.read_parquet(io.BytesIO(parquet))
    frame["success"] = [True, False, None, True]
    result = checked(shop, frame.to_parquet())
    assert result.aligned.targets["success"].tolist() == [1, 0, -1, 1]


def test_verdicts_all_alike_and_low_coverage_are_warnings():
    official = load_suite()
    ids = [trajectory.trajectory_id for trajectory in official.split("test")]
    # 995 of 1,106 is 89.96 %, 996 is 90.05 %
    for verdicts, low in ((995, True), (996, False)):
        rows = rows_for(ids, [True] * verdicts + [None] * (len(ids) - verdicts))
        result = checked(official, "".join(json.dumps(row) + "\n" for row in rows).encode())
        assert result.acceptable
        assert ("low_coverage" in found(result)) is low
        assert found(result)["constant_verdicts"] == ((), verdicts)


def test_a_split_that_is_not_there_raises_and_an_empty_one_is_an_error(shop, tmp_path):
    with pytest.raises(SuiteError):
        check(None, [], shop, "train")
    (tmp_path / "trajectories.csv").write_text("trajectory_id,split\na/b/c,dev\n")
    only_dev = load_suite(tmp_path)
    result = checked(only_dev, b'{"trajectory_id": "a/b/c", "success": true}')
    assert list(found(result)) == ["empty_split"]


def test_no_table_is_never_acceptable(shop):
    result = check(None, [], shop, "test")
    assert (result.acceptable, result.rows, result.coverage) == (False, 0, 0.0)
    assert result.by_benchmark["shop"].expected == 2


def test_aligned_columns_are_in_suite_order(shop, test_ids, jsonl):
    rows = [
        {"trajectory_id": i, "success": k % 2 == 0, "score": k / 10, "state": "ok", "input_tokens": k}
        for k, i in enumerate(test_ids)
    ]
    aligned = checked(shop, jsonl(*rows[::-1])).aligned
    assert aligned.trajectory_ids == test_ids
    assert aligned.targets["success"].tolist() == [1, 0, 1, 0]
    assert aligned.score.tolist() == [0.0, 0.1, 0.2, 0.3]
    assert aligned.input_tokens.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert aligned.state == ("ok",) * 4
    assert "side_effect" not in aligned.targets
    assert aligned.targets["success"].dtype == np.int8


def test_the_hash_of_verdicts_is_that_of_the_verdicts_alone(shop, test_ids, jsonl):
    rows = rows_for(test_ids, [True, None, False, True])

    def hash_of(content) -> str:
        return checked(shop, content).aligned.content_hash(shop.targets)

    first = hash_of(jsonl(*rows))
    resized = [row | {"trajectory_id": row["trajectory_id"].replace(".resized", "")} for row in rows]
    richer = [row | {"score": 0.5, "cost_usd": 1, "judge": "x", "side_effect": None} for row in rows]
    frame = pd.DataFrame(rows)
    for same in (jsonl(*rows[::-1]), jsonl(*resized), jsonl(*richer), frame.to_csv(index=False).encode()):
        assert hash_of(same) == first
    other = hash_of(jsonl(*rows_for(test_ids, [True, False, False, True])))
    more = hash_of(jsonl(*[row | {"side_effect": True} for row in rows]))
    moved = hash_of(jsonl(*[row | {"repetition": True} for row in rows]))
    assert len({first, other, more, moved}) == 4


@settings(max_examples=50)
@given(st.permutations(range(4)), st.lists(st.sampled_from([True, False, None]), min_size=4, max_size=4))
def test_the_order_of_rows_changes_nothing(shop, test_ids, jsonl, order, verdicts):
    rows = rows_for(test_ids, verdicts)
    result = checked(shop, jsonl(*(rows[i] for i in order)))
    assert result.acceptable is any(verdict is not None for verdict in verdicts)
    if result.acceptable:
        assert result.aligned.targets["success"].tolist() == [-1 if v is None else int(v) for v in verdicts]


@pytest.mark.shared
@pytest.mark.parametrize("judge", ["aer-c", "nnetnav", "rule-based"])
def test_the_real_verdict_files_are_accepted(shared, judge):
    path = shared / "data" / "agent-reward-bench" / "verdicts" / f"{judge}.jsonl"
    result = checked(load_suite(), path.read_bytes())
    assert (result.acceptable, result.rows, result.coverage, result.findings) == (True, 1_106, 1.0, ())
    expected = {name: part.expected for name, part in result.by_benchmark.items()}
    # released-data.md, "Figures to check against"
    assert expected == {
        "assistantbench": 108, "visualwebarena": 276, "webarena": 310, "workarena": 64, "workarena++": 348,
    }  # fmt: skip
