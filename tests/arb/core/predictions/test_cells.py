import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.predictions import table
from arb.core.predictions.raw import MISSING
from arb.core.predictions.table import Problem, target_code
from arb.core.vocabulary import TARGETS

SUCCESS, SIDE_EFFECT, OPTIMALITY = (TARGETS[name] for name in ("success", "side_effect", "optimality"))
TRUE = (True, 1, 1.0, "true", "TRUE", " Yes ", "1", "1.0", "y\u0065s")
FALSE = (False, 0, 0.0, -0.0, "false", "No", "0", "0.0", "\tno\n")
NONE = (None, "", "  ", "null", "NULL", "n/a", "N/A", "na", "None", "unsure", "Unsure")


@pytest.mark.parametrize("target", [SUCCESS, SIDE_EFFECT])
@pytest.mark.parametrize(("values", "code"), [(TRUE, 1), (FALSE, 0), (NONE, -1)])
def test_a_verdict_is_understood_in_the_words_people_use(target, values, code):
    assert [target_code(value, target) for value in values] == [code] * len(values)


def test_the_annotations_words_belong_to_success_alone():
    assert [target_code(word, SUCCESS) for word in ("Successful", "success", "Unsuccessful", "FAILURE")] == [
        1,
        1,
        0,
        0,
    ]
    assert target_code("Successful", SIDE_EFFECT) is table.UNKNOWN_WORD


@pytest.mark.parametrize(
    "word", ["succ", "unsuccessful!", "yes no", "not successful", "truee", "t", "ok", "١"]
)
def test_part_of_a_word_is_no_word(word):
    assert target_code(word, SUCCESS) is table.UNKNOWN_WORD


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (2, table.OUT_OF_RANGE),
        (0.7, table.OUT_OF_RANGE),
        ("0.7", table.OUT_OF_RANGE),
        (-1, table.OUT_OF_RANGE),
        (10**400, table.OUT_OF_RANGE),
        (math.nan, table.NAN),
        ("NaN", table.NAN),
        (math.inf, table.INFINITE),
        ("-Infinity", table.INFINITE),
        ([True], table.WRONG_TYPE),
        ({}, table.WRONG_TYPE),
        (b"\xff", table.NOT_UTF8),
    ],
)
def test_what_is_no_verdict_says_why(value, problem):
    assert target_code(value, SUCCESS) is problem


def test_a_key_that_is_not_there_is_no_answer():
    assert target_code(MISSING, SIDE_EFFECT) == -1
    assert target_code(MISSING, OPTIMALITY) == 0
    assert math.isnan(table.probability(MISSING))


@pytest.mark.parametrize("value", [4, 4.0, "4", "4.0", "4. Completely Optimal", "completely  optimal"])
def test_a_grade_is_understood_as_number_or_in_the_annotations_words(value):
    assert target_code(value, OPTIMALITY) == 4


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (0, table.OUT_OF_RANGE),
        (5, table.OUT_OF_RANGE),
        (2.5, table.OUT_OF_RANGE),
        (True, table.WRONG_TYPE),
        ("3. Completely Optimal", table.UNKNOWN_WORD),
    ],
)
def test_a_grade_outside_1_to_4_is_refused(value, problem):
    assert target_code(value, OPTIMALITY) is problem


@pytest.mark.parametrize(
    ("value", "number"), [(0, 0.0), (1, 1.0), ("0.25", 0.25), (" 1e-1 ", 0.1), (".5", 0.5)]
)
def test_a_probability_is_read_from_numbers_and_from_text(value, number):
    assert table.probability(value) == number


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (1.0000001, table.OUT_OF_RANGE),
        (-0.1, table.OUT_OF_RANGE),
        (True, table.WRONG_TYPE),
        ("85%", table.WRONG_TYPE),
        ("0,5", table.WRONG_TYPE),
        ("1_0", table.WRONG_TYPE),
        ("nan", table.NAN),
        ("1e999", table.INFINITE),
    ],
)
def test_a_probability_outside_0_to_1_is_refused(value, problem):
    assert table.probability(value) is problem


def test_amounts_have_no_upper_bound_and_tokens_are_whole():
    assert table.amount(12_345.6) == 12_345.6
    assert table.amount(-0.01) is table.OUT_OF_RANGE
    assert table.tokens("1106") == 1106.0
    assert table.tokens(0.5) is table.OUT_OF_RANGE
    assert table.tokens(10**40) is table.OUT_OF_RANGE


def test_a_state_is_one_of_the_vocabulary():
    assert table.state("OK") == "ok"
    assert table.state("too_long") == "too_long"
    assert table.state("") is None
    assert table.state("fine") is table.UNKNOWN_WORD
    assert table.state(1) is table.WRONG_TYPE
    assert table.state(True) is table.WRONG_TYPE


def test_an_id_is_text_that_is_not_blank():
    assert table.trajectory_id(" a/b/c ") == " a/b/c "
    assert table.trajectory_id("  ") is table.EMPTY_ID
    assert table.trajectory_id(None) is table.EMPTY_ID
    assert table.trajectory_id(MISSING) is table.ABSENT
    assert table.trajectory_id(7) is table.WRONG_TYPE


ANY_CELL = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.lists(st.integers()),
    st.dictionaries(st.text(), st.none()), st.just(MISSING),
    st.from_regex(r"[-+]?[0-9]*[.]?[0-9]*(e[0-9]+)?"),
)  # fmt: skip


@given(ANY_CELL)
def test_any_cell_has_a_meaning_in_range_or_a_problem(value):
    verdict, success = target_code(value, SIDE_EFFECT), target_code(value, SUCCESS)
    assert isinstance(verdict, Problem) or verdict in (-1, 0, 1)
    assert isinstance(success, Problem) or success in (-1, 0, 1)
    grade = target_code(value, OPTIMALITY)
    assert isinstance(grade, Problem) or grade in range(5)
    score = table.probability(value)
    assert isinstance(score, Problem) or math.isnan(score) or 0 <= score <= 1
    for meaning in (table.amount, table.tokens):
        number = meaning(value)
        assert isinstance(number, Problem) or math.isnan(number) or 0 <= number < math.inf


@given(st.sampled_from(sorted(SUCCESS.words)), st.data())
def test_case_and_space_around_a_word_change_nothing(word, data):
    flips = data.draw(st.lists(st.booleans(), min_size=len(word), max_size=len(word)))
    spelled = "".join(c.upper() if flip else c for c, flip in zip(word, flips, strict=True))
    pad = data.draw(st.text(" \t\r\n\u00a0", max_size=3))
    assert target_code(pad + spelled + pad, SUCCESS) == target_code(word, SUCCESS)
