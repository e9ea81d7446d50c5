import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.inert_cells import FORMULA_SIGNS, inert


@pytest.mark.parametrize(
    "formula", ["=1+1", "+1", "-1", "@SUM(A1)", " \u00a0=1", "\tx", "\rx", "\nx", "＝1", "=cmd|' /C calc'!A0"]
)
def test_a_formula_gets_an_apostrophe(formula):
    assert inert(formula) == f"'{formula}"


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("x;=1+1", "x;'=1+1"),
        ("Ada; @Bob", "Ada; '@Bob"),
        ("https://x.org/;=A1", "https://x.org/;'=A1"),
        ('x;"=1', "x;\"'=1"),
        ("=1;-1", "'=1;'-1"),
    ],
)
def test_a_sign_after_a_semicolon_begins_a_cell_where_the_comma_is_the_decimal_mark(text, safe):
    assert inert(text) == safe


@pytest.mark.parametrize("text", ["GPT-4o", "a=b", "Ada; Bob", "judge -1", "'quoted'", "", "né", "a;b=c"])
def test_other_texts_stay_as_they_are(text):
    assert inert(text) == text


@pytest.mark.parametrize("value", [None, -1, -0.5, True])
def test_what_is_no_text_stays_as_it_is(value):
    assert inert(value) is value


MARKS = st.text(st.sampled_from([*FORMULA_SIGNS, *"; \t\r\n,\"'ab|"]), max_size=12)


@given(st.lists(MARKS, min_size=1, max_size=4), st.sampled_from(",;"))
def test_no_cell_begins_with_a_sign_whichever_delimiter_is_taken_for_one(texts, delimiter):
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(["label", 1, *map(inert, texts)])
    cells = next(csv.reader(io.StringIO(out.getvalue(), newline=""), delimiter=","))
    if delimiter != ",":  # as a spreadsheet splits it that knows no quotes within a cell
        cells = out.getvalue().replace('"', "").split(delimiter)
    assert not [cell for cell in cells if cell.lstrip().startswith(FORMULA_SIGNS)]
