import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.predictions import cells
from arb.core.predictions.cells import Problem, target_code
from arb.core.predictions.raw import MISSING
from arb.core.suites.targets import default_targets

SUCCESS, SIDE_EFFECT, OPTIMALITY = default_targets()[:2] + default_targets()[3:]
TRUE = (True, 1, 1.0, "true", "TRUE", " Yes ", "1", "1.0", "y\u0065s")
FALSE = (False, 0, 0.0, -0.0, "false", "No", "0", "0.0", "\tno\n")
NONE = (None, "", "  ", "null", "NULL", "n/a", "N/A", "na", "None", "unsure", "Unsure")
PARTS = ("succ", "unsuccessful!", "yes no", "not successful", "truee", "t", "ok", "١")


def success(value: object):
    return target_code(value, SUCCESS)


def side_effect(value: object):
    return target_code(value, SIDE_EFFECT)


def optimality(value: object):
    return target_code(value, OPTIMALITY)


@pytest.mark.parametrize(
    ("meaning", "values", "expected"),
    [
        (success, TRUE, 1),
        (side_effect, TRUE, 1),
        (success, FALSE, 0),
        (side_effect, FALSE, 0),
        (success, NONE, -1),
        (side_effect, (*NONE, MISSING), -1),
        (success, ("Successful", "success"), 1),
        (success, ("Unsuccessful", "FAILURE"), 0),
        (optimality, (4, 4.0, "4", "4.0", "4. Completely Optimal", "completely  optimal"), 3),
        (optimality, (MISSING,), -1),
        (cells.probability, (0, "0"), 0.0),
        (cells.probability, (0.25, "0.25"), 0.25),
        (cells.probability, (0.5, ".5"), 0.5),
        (cells.probability, (" 1e-1 ",), 0.1),
        (cells.amount, (12_345.6,), 12_345.6),  # without an upper bound
        (cells.tokens, ("1106",), 1106.0),
        (cells.state, ("OK",), "ok"),
        (cells.state, ("too_long",), "too_long"),
        (cells.state, ("",), None),
        (cells.trajectory_id, (" a/b/c ",), " a/b/c "),
    ],
)
def test_a_cell_is_understood_in_the_words_people_use(meaning, values, expected):
    assert [meaning(value) for value in values] == [expected] * len(values)


@pytest.mark.parametrize(
    ("meaning", "values", "problem"),
    [
        (success, PARTS, cells.UNKNOWN_WORD),  # part of a word is no word
        (side_effect, ("Successful",), cells.UNKNOWN_WORD),  # the annotations' word for success alone
        (success, (2, 0.7, "0.7", -1, 10**400), cells.OUT_OF_RANGE),
        (success, (math.nan, "NaN"), cells.NAN),
        (success, (math.inf, "-Infinity"), cells.INFINITE),
        (success, ([True], {}), cells.WRONG_TYPE),
        (success, (b"\xff",), cells.NOT_UTF8),
        (optimality, (0, 5, 2.5), cells.OUT_OF_RANGE),
        (optimality, (True,), cells.WRONG_TYPE),
        (optimality, ("3. Completely Optimal",), cells.UNKNOWN_WORD),
        (cells.probability, (1.0000001, -0.1), cells.OUT_OF_RANGE),
        (cells.probability, (True, "85%", "0,5", "1_0"), cells.WRONG_TYPE),
        (cells.probability, ("nan",), cells.NAN),
        (cells.probability, ("1e999",), cells.INFINITE),
        (cells.amount, (-0.01,), cells.OUT_OF_RANGE),
        (cells.tokens, (0.5, 10**40), cells.OUT_OF_RANGE),
        (cells.state, ("fine",), cells.UNKNOWN_WORD),
        (cells.state, (1, True), cells.WRONG_TYPE),
        (cells.trajectory_id, ("  ", None), cells.EMPTY_ID),
        (cells.trajectory_id, (MISSING,), cells.ABSENT),
        (cells.trajectory_id, (7,), cells.WRONG_TYPE),
    ],
)
def test_a_cell_without_a_meaning_says_why(meaning, values, problem):
    assert all(meaning(value) is problem for value in values)


def test_a_number_that_is_not_there_is_nan():
    assert math.isnan(cells.probability(MISSING))


ANY_CELL = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.lists(st.integers()),
    st.dictionaries(st.text(), st.none()), st.just(MISSING),
    st.from_regex(r"[-+]?[0-9]*[.]?[0-9]*(e[0-9]+)?"),
)  # fmt: skip


@pytest.mark.slow
@given(ANY_CELL)
def test_any_cell_has_a_meaning_in_range_or_a_problem(value):
    verdict, success = target_code(value, SIDE_EFFECT), target_code(value, SUCCESS)
    assert isinstance(verdict, Problem) or verdict in (-1, 0, 1)
    assert isinstance(success, Problem) or success in (-1, 0, 1)
    grade = target_code(value, OPTIMALITY)
    assert isinstance(grade, Problem) or grade in range(-1, 4)
    score = cells.probability(value)
    assert isinstance(score, Problem) or math.isnan(score) or 0 <= score <= 1
    for meaning in (cells.amount, cells.tokens):
        number = meaning(value)
        assert isinstance(number, Problem) or math.isnan(number) or 0 <= number < math.inf


@given(st.sampled_from(sorted(SUCCESS.words)), st.data())
def test_case_and_space_around_a_word_change_nothing(word, data):
    flips = data.draw(st.lists(st.booleans(), min_size=len(word), max_size=len(word)))
    spelled = "".join(c.upper() if flip else c for c, flip in zip(word, flips, strict=True))
    pad = data.draw(st.text(" \t\r\n\u00a0", max_size=3))
    assert target_code(pad + spelled + pad, SUCCESS) == target_code(word, SUCCESS)
