import re
from itertools import pairwise

import pytest

from leaderboard.history import board_history
from space.history_view import DATE_WIDTH, LEFT, RIGHT, SHOWN_CHANGES, SHOWN_LINES, WIDTH, view_history
from tests.space.boards import board, cell, label, row


def judge(name: str, day: str, precision: int, **changes):
    found = label(cell(precision, 100 - precision, 20, 50), (1, 1, 1))
    return row(name, found, id=f"{name} {day}", date=f"{day}T00:00:00+00:00", **changes)


def view(*rows):
    return view_history(board_history(board(*rows), "success"))


def test_a_board_without_ranked_judges_says_when_its_history_begins():
    found = view()
    assert "No judge is ranked on this label yet" in found.sentence
    assert (found.lines, found.changes) == ((), ())


def test_one_day_is_a_sentence_and_no_plot():
    found = view(judge("A", "2025-04-11", 80), judge("B", "2025-04-11", 70))
    assert found.sentence.startswith("All ranks date from 11 Apr 2025, when the board began with 2 judges.")
    assert (found.lines, found.changes) == ((), ())


def test_the_sentence_counts_the_days_and_the_leaders():
    rows = [judge("A", "2025-04-11", 60), judge("B", "2026-01-02", 70), judge("C", "2026-01-03", 50)]
    found = view(*rows)
    assert "began on 11 Apr 2025 with 1 judge and has changed on 2 days since" in found.sentence
    assert found.sentence.endswith("2 of today's judges have led it.")  # A until January, then B


def test_lines_run_from_the_first_day_of_a_judge_to_the_last_day_of_all():
    found = view(judge("A", "2025-04-11", 60), judge("B", "2026-01-02", 70))
    first, second = found.lines
    assert (first.name, second.name) == ("B", "A")
    assert first.start[0] > second.start[0] == LEFT
    assert {line.end[0] for line in found.lines} == {WIDTH - RIGHT}
    assert first.end[1] < second.end[1]
    assert second.start[1] == first.end[1]  # where A stood, B stands now
    assert second.hover == "A: rank 1 from 11 Apr 2025, 2 from 2 Jan 2026"


def test_changes_are_told_newest_first_and_the_first_day_is_no_change():
    rows = [judge("A", "2025-04-11", 60), judge("B", "2026-01-02", 70), judge("A", "2026-01-03", 90)]
    rows.append(judge("A", "2026-01-04", 95))
    told = [(day, name, what) for day, _, name, what in view(*rows).changes]
    assert told == [
        ("4 Jan 2026", "A", "has a better submission and stays at rank 1"),
        ("3 Jan 2026", "A", "moved from rank 2 to 1 of 2"),
        ("2 Jan 2026", "B", "entered at rank 1 of 2"),
    ]


def test_a_long_history_shows_the_first_places_and_the_latest_changes():
    rows = [judge(f"J{n}", f"2026-01-{n + 1:02}", 40 + n) for n in range(25)]
    found = view(*rows)
    assert len(found.lines) == SHOWN_LINES
    assert [line.name for line in found.lines] == [f"J{24 - n}" for n in range(SHOWN_LINES)]
    assert len(found.changes) == SHOWN_CHANGES
    assert found.more_changes == 24 - SHOWN_CHANGES
    for line in found.lines:
        across = [float(x) for x in re.findall(r"(?:M|H|,[\d.]+ )([\d.]+)", line.path)]
        assert across == sorted(across)  # no line runs back in time
        numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", line.path)]
        assert min(numbers) >= 0
        assert max(numbers) <= max(found.width, found.height)


@pytest.mark.parametrize("days", [2, 3, 9, 60, 300])
def test_dates_stand_clear_of_each_other_and_days_in_their_order(days):
    rows = [
        judge(f"J{n}", f"{2024 + n // 336}-{n // 28 % 12 + 1:02}-{n % 28 + 1:02}", 30) for n in range(days)
    ]
    places = [x for x, _ in view(*rows).days]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (LEFT, WIDTH - RIGHT)
    assert all(b - a >= DATE_WIDTH for a, b in pairwise(places))
