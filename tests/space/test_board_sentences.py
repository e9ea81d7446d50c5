import pytest

from space.board_sentences import sentences
from tests.space.boards import board, cell, label, row, second_annotator


def judge(name: str, precision: int, rank, **changes):
    """A judge with this precision of 100 called, 150 positives, and a small benchmark."""
    overall = cell(precision, 100 - precision, 150 - precision, 50)
    return row(
        name, label(overall, rank, assistantbench=cell(2, 1, 3, 40), webarena=cell(30, 2, 20, 60)), **changes
    )


def test_the_largest_tie_is_told_with_its_ends_its_width_and_its_places():
    found = sentences(
        board(
            judge("Alpha", 90, (1, 1, 1)), judge("Beta", 80, (2, 2, 4)), judge("Gamma", 77, (3, 2, 4)),
            judge("Delta", 74, (4, 2, 4), inputs=""),
        ),
        "success",
    )  # fmt: skip
    assert found[0] == (
        "From Beta (tree) to Delta, 3 judges lie within 6.0 points of precision, and the test set cannot "
        "order them: the rank of each may be anything from 2 to 4."
    )


def test_of_ties_of_one_size_the_higher_is_told():
    ranks = [(1, 1, 2), (2, 1, 2), (3, 3, 4), (4, 3, 4)]
    judges = [
        judge(name, 90 - 10 * n, rank) for n, (name, rank) in enumerate(zip("ABCD", ranks, strict=True))
    ]
    assert sentences(board(*judges), "success")[0].startswith("From A (tree) to B (tree), 2 judges")


def test_judges_that_are_all_separated_are_said_to_be():
    judges = [judge("A", 90, (1, 1, 1)), judge("B", 50, (2, 2, 2))]
    assert sentences(board(*judges), "success")[0] == "Every judge here is separated from its neighbours."


def test_ranges_that_overlap_without_being_the_same_are_not_called_separated():
    # A and B tie, B and C tie, A and C do not: every range is another one.
    judges = [judge("A", 90, (1, 1, 2)), judge("B", 80, (2, 1, 3)), judge("C", 70, (3, 2, 3))]
    assert sentences(board(*judges), "success")[0] == "The test set leaves the ranks of 3 of 3 judges open."


def test_one_judge_alone_has_no_neighbours_to_speak_of():
    found = sentences(board(judge("A", 90, (1, 1, 1))), "success")
    assert found[0].startswith("A (tree) leads")


def test_the_first_judge_is_told_in_words_of_its_figures():
    # 90 of 100 called are; 90 of 150 found: 40 of 100 missed
    found = sentences(board(judge("A", 90, (1, 1, 1))), "success")
    assert (
        found[0]
        == "A (tree) leads: of 100 trajectories called successful, 90 are; it misses 40 of 100 successes."
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [("side_effect", "said to have a side effect"), ("repetition", "said to repeat")],
)
def test_each_label_has_its_own_words(name, words):
    looping = row("A", None, labels={name: label(cell(90, 10, 60, 50), (1, 1, 1))})
    assert f"of 100 trajectories {words}, 90 are" in sentences(board(looping), name)[0]


def test_the_benchmark_with_the_fewest_positives_is_named_with_its_counts():
    found = sentences(board(judge("A", 90, (1, 1, 1))), "success")
    # 2 + 3 positives in 2 + 1 + 3 + 40 runs
    assert "AssistantBench has 5 successes in 46 trajectories: read its column as counts" in found[1]


def test_the_human_reference_is_told_with_its_runs():
    found = sentences(board(judge("A", 90, (1, 1, 1)), second_annotator()), "success")
    # 11/13 on 11 + 2 + 2 + 91 runs
    assert "on 106 trajectories, reaches a precision of 84.6: about there" in found[-1]


def test_a_board_without_the_human_reference_says_nothing_of_it():
    assert not any("second expert" in s for s in sentences(board(judge("A", 90, (1, 1, 1))), "success"))


def test_self_reported_judges_are_not_told_among_the_ranked():
    told = sentences(
        board(judge("A", 90, (1, 1, 1)), judge("Boast", 99, None, provenance="self-reported")), "success"
    )
    assert not any("Boast" in sentence for sentence in told)


@pytest.mark.parametrize("name", ["success", "side_effect", "repetition"])
def test_a_board_without_ranked_judges_says_so(name):
    assert sentences(board(second_annotator()), name) == ["No judge is ranked on this label yet."]


def test_an_undefined_recall_is_not_put_into_words():
    nothing_to_find = row("A", label(cell(0, 10, 0, 50), (1, 1, 1)))
    assert not any("misses" in sentence for sentence in sentences(board(nothing_to_find), "success"))
