"""A hostile endpoint and a run that is killed: nothing is lost, and nothing is paid twice."""

import pytest

from bench.hostile import BY_CHANCE, BY_RULE, Books, main
from tests.support.llm_server.faults import FAULTS


def test_every_fault_but_a_reply_that_was_cut_is_among_those_of_the_command():
    assert set(BY_CHANCE) | set(BY_RULE) == set(FAULTS) - {"length"}
    assert len(BY_CHANCE) + len(BY_RULE) >= 12


def test_the_books_allow_a_second_answer_for_each_that_was_lost_and_no_other():
    books = Books()
    books.answered.update({"lost once": 2, "paid twice": 2, "once": 1})
    books.lost.update({"lost once": 1})
    assert books.paid_again() == {"paid twice": 2}


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["webjudge", "nnetnav"])
def test_under_every_fault_and_ten_kills_answers_are_those_of_a_clean_run_and_none_is_paid_twice(
    judge, capsys
):
    assert main(["--judge", judge, "--seed", "1"]) == 0, capsys.readouterr().out
    assert "killed 10 times" in capsys.readouterr().out
