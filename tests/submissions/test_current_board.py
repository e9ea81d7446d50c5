import threading

import pytest
from sqlalchemy import text

from submissions.current_board import CurrentBoard
from submissions.database import Changes, open_database, snapshot


@pytest.fixture
def engine(tmp_path):
    opened = open_database(f"sqlite:///{tmp_path / 'records.sqlite'}")
    yield opened
    opened.dispose()


def add_account(engine, name: str) -> None:
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO accounts (name, created_at) VALUES (:name, '2026-01-01')"), {"name": name}
        )


def count_accounts(session) -> int:
    return session.execute(text("SELECT count(*) FROM accounts")).scalar_one()


@pytest.fixture
def boards(engine):
    """A board of the number of accounts, and the list of those that were made."""
    made = []

    def make(session, state):
        made.append(state)
        return f"board {state}"

    return CurrentBoard(engine, count_accounts, make), made


def test_a_change_is_seen_whoever_made_it_and_nothing_else(engine, tmp_path):
    changes = Changes(engine)
    first = changes.seen()
    with snapshot(engine) as session:
        assert count_accounts(session) == 0
    assert changes.seen() == first
    add_account(engine, "here")
    second = changes.seen()
    assert second != first
    elsewhere = open_database(f"sqlite:///{tmp_path / 'records.sqlite'}")
    add_account(elsewhere, "another process")
    assert changes.seen() != second


def test_where_changes_cannot_be_told_that_is_said():
    assert Changes(open_database("sqlite://")).seen() is None


def test_a_board_is_at_hand_once_it_was_made_and_until_something_is_recorded(engine, boards):
    board, made = boards
    assert board.at_hand() is None
    assert board.get() == board.at_hand() == "board 0"
    add_account(engine, "Ada")
    assert board.at_hand() is None
    assert board.get() == board.at_hand() == "board 1"
    assert made == [0, 1]


def test_a_change_that_a_board_does_not_stand_on_makes_no_new_one(engine, boards):
    board, made = boards
    board.get()
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE unrelated (id INTEGER)")
    assert board.get() == "board 0"
    assert made == [0]


def test_nobody_waits_for_a_board_at_hand_while_one_is_made(engine):
    making, go_on = threading.Event(), threading.Event()

    def make(session, state):
        making.set()
        assert go_on.wait(timeout=20)
        return "made"

    board = CurrentBoard(engine, count_accounts, make)
    thread = threading.Thread(target=board.get)
    thread.start()
    assert making.wait(timeout=20)
    assert board.at_hand() is None
    go_on.set()
    thread.join(timeout=20)
    assert board.at_hand() == "made"


def test_a_board_that_could_not_be_made_is_tried_again(engine):
    outcomes = iter([ValueError("no"), "made"])

    def make(session, state):
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    board = CurrentBoard(engine, count_accounts, make)
    with pytest.raises(ValueError, match="no"):
        board.get()
    assert board.get() == "made"
