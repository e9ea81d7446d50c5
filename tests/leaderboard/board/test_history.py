from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from leaderboard.board.history import board_history
from tests.support.boards import board, cell, label, row, second_annotator


def scored(name: str, day: str, precision: int, recall_misses: int = 20, **changes):
    """A scored row of this day with ``precision`` right of 100 called."""
    found = label(cell(precision, 100 - precision, recall_misses, 50), (1, 1, 1))
    return row(name, found, id=f"{name} {day} {precision}", date=f"{day}T12:00:00+00:00", **changes)


def published(name: str, day: str, precision: int):
    known = {"protocol": "as in the paper", "split": "test"}
    row = scored(name, day, precision)
    return replace(row, provenance="published", account="", id=name, date=day, **known)


def told(history):
    return [(c.day, c.row.judge, c.before, c.after, c.judges) for c in history.changes]


def lines(history):
    return {line.row.judge: line.places for line in history.lines}


def test_a_judge_that_comes_in_moves_those_below_it_down():
    history = board_history(
        board(
            published("A", "2025-01-01", 80), published("B", "2025-01-01", 60), scored("C", "2025-02-01", 70)
        ),
        "success",
    )
    assert history.days == ("2025-01-01", "2025-02-01")
    assert lines(history) == {
        "A": (("2025-01-01", 1),),
        "C": (("2025-02-01", 2),),
        "B": (("2025-01-01", 2), ("2025-02-01", 3)),
    }
    assert told(history)[2:] == [("2025-02-01", "C", None, 2, 3)]


def test_lines_come_in_todays_order_with_the_row_that_stands_for_the_judge_today():
    history = board_history(
        board(scored("A", "2025-01-01", 50), scored("B", "2025-01-01", 60), scored("A", "2025-01-02", 70)),
        "success",
    )
    assert [(line.row.id, line.places) for line in history.lines] == [
        ("A 2025-01-02 70", (("2025-01-01", 2), ("2025-01-02", 1))),
        ("B 2025-01-01 60", (("2025-01-01", 1), ("2025-01-02", 2))),
    ]
    assert told(history)[-1] == ("2025-01-02", "A", 2, 1, 2)


def test_a_submission_that_is_not_better_changes_nothing():
    rows = [scored("A", "2025-01-01", 70), scored("B", "2025-01-01", 60), scored("A", "2025-01-02", 65)]
    history = board_history(board(*rows), "success")
    assert lines(history) == {"A": (("2025-01-01", 1),), "B": (("2025-01-01", 2),)}
    assert "2025-01-02" not in {change.day for change in history.changes}


def test_a_better_submission_without_a_better_place_is_a_change_that_stays():
    rows = [scored("A", "2025-01-01", 60), scored("B", "2025-01-01", 90), scored("A", "2025-01-02", 80)]
    assert told(board_history(board(*rows), "success"))[-1] == ("2025-01-02", "A", 2, 2, 2)


def test_a_row_without_a_date_has_no_history():
    undated = replace(published("B", "2025-01-01", 60), date="")
    history = board_history(board(published("A", "2025-01-01", 80), undated), "success")
    assert history.days == ("2025-01-01",) and lines(history) == {"A": (("2025-01-01", 1),)}


def test_what_is_not_ranked_has_no_history():
    boast = replace(scored("Boast", "2025-01-01", 99), provenance="self-reported", evidence="unique counts")
    never = row("Never", label(cell(0, 0, 50, 50), None), date="2025-01-01T00:00:00+00:00")
    history = board_history(board(boast, never, second_annotator()), "success")
    assert (history.days, history.lines, history.changes) == ((), (), ())


def test_each_label_has_its_own_history():
    looping = row("A", None, labels={"repetition": label(cell(3, 1, 1, 5), (1, 1, 1))}, date="2025-03-01")
    found = board(looping, scored("B", "2025-01-01", 50))
    assert board_history(found, "repetition").days == ("2025-03-01",)
    assert board_history(found, "success").days == ("2025-01-01",)


@given(
    st.lists(
        st.tuples(st.sampled_from("ABCD"), st.integers(1, 5), st.integers(1, 99)), min_size=1, max_size=12,
        unique=True,
    )
)  # fmt: skip
def test_on_every_day_each_judge_has_one_rank_and_the_last_ranks_are_the_boards(entries):
    rows = [scored(name, f"2025-01-0{day}", precision) for name, day, precision in entries]
    history = board_history(board(*rows), "success")
    for day in history.days:
        standing = [
            place
            for line in history.lines
            if (place := next((p for d, p in reversed(line.places) if d <= day), None)) is not None
        ]
        assert sorted(standing) == list(range(1, len(standing) + 1))
    best = {name: max(p for n, _, p in entries if n == name) for name, _, _ in entries}
    values = [best[line.row.judge] for line in history.lines]
    assert values == sorted(best.values(), reverse=True)
    assert [line.places[-1][1] for line in history.lines] == list(range(1, len(best) + 1))
