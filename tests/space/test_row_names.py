from hypothesis import given
from hypothesis import strategies as st

from space.row_names import choices_of, distinct_names, short_name
from tests.space.boards import board, cell, label, row

SUCCESS = label(cell(1, 1, 1, 1))


def made(judge="GPT-4o", provenance="scored", **changes):
    return row(judge, SUCCESS, provenance, **{"id": f"{judge}-{len(changes)}", **changes})


def test_a_name_tells_the_judge_and_what_it_sees():
    assert short_name(made(inputs="tree")) == "GPT-4o (tree)"
    assert short_name(made(inputs="")) == "GPT-4o"


def test_names_are_as_short_as_they_can_be_and_still_differ():
    tree, screenshot = made(inputs="tree", id="1"), made(inputs="screenshot", id="2")
    assert distinct_names([tree, screenshot]) == ("GPT-4o (tree)", "GPT-4o (screenshot)")
    paper = made(inputs="tree", id="paper/x", provenance="published")
    assert distinct_names([tree, paper]) == ("GPT-4o (tree), by ada", "GPT-4o (tree), paper")
    later = made(inputs="tree", id="3", date="2026-03-04T00:00:00")
    assert distinct_names([tree, later]) == (
        "GPT-4o (tree), by ada, 2026-01-02",
        "GPT-4o (tree), by ada, 2026-03-04",
    )
    same_day = made(inputs="tree", id="4")
    assert distinct_names([tree, same_day]) == ("GPT-4o (tree), 1", "GPT-4o (tree), 4")


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.sampled_from("12")), max_size=8))
def test_no_two_names_are_alike(spelled):
    rows = [
        made(judge, account=account, inputs=inputs, id=str(place))
        for place, (judge, account, inputs) in enumerate(spelled)
    ]
    names = distinct_names(rows)
    assert len(names) == len(set(names)) == len(rows)


def test_choices_tell_submissions_of_one_judge_apart():
    first, second = made(id="aaaaaaaaaaaa"), made(id="bbbbbbbbbbbb", date="2026-03-04T00:00:00")
    other = made("Other", id="cccccccccccc")
    assert choices_of(board(first, second, other)) == [
        ("GPT-4o (tree) · by ada · 2026-01-02 · aaaaaa", "aaaaaaaaaaaa"),
        ("GPT-4o (tree) · by ada · 2026-03-04 · bbbbbb", "bbbbbbbbbbbb"),
        ("Other (tree) · by ada", "cccccccccccc"),
    ]
