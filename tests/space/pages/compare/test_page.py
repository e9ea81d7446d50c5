import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from space.pages.compare.page import examples
from space.pages.trajectories.dataset import Explorer
from space.verdicts import JudgeVerdicts
from space.web.query import link_to
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at
from tests.support.boards import second_annotator
from tests.support.space_app import (
    local_client,
    make_public,
    private_service,
    public_service,
    send_three,
)
from tests.support.submissions import SECRET_ANNOTATOR, send, verdicts


def page_of(service, judges, label="success", figure="precision", found=None) -> str:
    """The page between menu and foot."""
    html = page_at(service, "/compare", found, judges=judges, label=label, figure=figure)
    return re.search(r"<main.*?</main>", html, re.S)[0]


def test_two_judges_are_compared_on_the_same_tasks(public):
    service, ids = public
    html = page_of(service, [ids["Beta"], ids["Gamma"]], "success", "precision")
    text = shown_text(html)
    assert "Is Beta (tree) better than Gamma (tree)?" in text
    # 8/12 - 10/30
    assert "+33.3" in text
    # On a benchmark on which a judge is never wrong, no resample differs, and two intervals are combined.
    assert "Every interval not marked with ≈ is paired" in text
    # Gamma always says yes, Beta to 12 of 30. Beta is wrong on 2 + 4 runs, Gamma on 20, both on 4.
    assert "40.0" in text
    assert "Both judges are wrong on 4 trajectories, with 4 false alarms and 0 misses" in text


def test_three_judges_vote(public):
    service, ids = public
    text = shown_text(page_of(service, list(ids.values()), "success", "precision"))
    # Beta misses the first two of 10 successes, Alpha the first: all three find 8, and share no false alarm.
    assert "All 3 say yes (unanimous)100.0" in text
    assert "At least 2 of 3 (majority)" in text
    assert "How do these 3 judges differ?" in page_of(service, list(ids.values()), "success", "f1")


def test_the_second_annotator_is_said_to_have_seen_other_trajectories(public, monkeypatch):
    service, ids = public
    board = service.records.board()
    human = second_annotator()
    told = "saw only the trajectories that two experts annotated"
    assert told not in page_of(service, [ids["Beta"], ids["Gamma"]])
    with_human = replace(board, rows=(*board.rows, human))
    monkeypatch.setattr(type(service.records), "board", lambda _: with_human)
    assert told in page_of(service, [ids["Beta"], human.id])


def test_no_label_and_no_trajectory_is_on_the_page(public):
    service, ids = public
    html = page_of(service, list(ids.values()), "success", "precision")
    for hidden in (
        "webarena.3",
        "agent-a/",
        "counts_by_task",
        SECRET_ANNOTATOR,
        str(service.settings.state_dir),
    ):
        assert hidden not in html


def test_on_a_suite_with_private_labels_nothing_is_told_by_trajectory(tmp_path):
    service = private_service(tmp_path)
    ids = send_three(service)
    make_public(service, ids.values())
    html = page_of(service, list(ids.values()), "success", "precision")
    text = shown_text(html)
    assert "The labels of this suite are private" in text
    assert "No interval here is paired" in text
    for told in ("Ensembles", "Error overlap", "McNemar's test asks"):
        assert told not in text


def test_without_a_choice_the_best_judges_are_compared_and_nothing_is_empty(public):
    service, ids = public
    html = page_of(service, [])
    assert "Is one judge really better than another?" in html
    assert "Choose two to five judges. As an example" in html
    for row_id in ids.values():
        assert f'<option value="{row_id}" selected>' in html
    assert f'href="/compare?judges={ids["Alpha"]},{ids["Beta"]}"' in html


def test_the_default_prefers_judges_with_verdicts(public):
    service, _ = public
    board = service.records.board()
    printed = [replace(row, provenance="published", id=f"paper/{row.judge}") for row in board.rows[:1]]
    renamed = [replace(row, judge=f"{row.judge} of a paper") for row in printed]
    assert [row.judge for row in examples([*renamed, *board.rows])] == ["Alpha", "Beta", "Gamma"]


def test_one_choice_is_compared_with_the_first_of_the_board(public):
    service, ids = public
    board = service.records.board()
    found = examples(board.ranking("success"), [board.row(ids["Gamma"])])
    assert [row.judge for row in found] == ["Gamma", "Alpha", "Beta"]
    text = shown_text(page_of(service, [ids["Gamma"]]))
    assert "Only one judge was chosen. It is compared with Alpha (tree), Beta (tree)." in text


def test_an_empty_board_says_so(tmp_path):
    html = page_of(public_service(tmp_path), [])
    assert "the board has fewer than two judges" in html
    assert "<table" not in html


@pytest.mark.parametrize("figure", ["precision", "recall", "f1", "accuracy", "kappa"])
def test_every_figure_can_be_compared(public, figure):
    service, ids = public
    assert "Side by side" in page_of(service, list(ids.values()), "success", figure)


def test_ids_that_are_not_on_the_board_are_told(public):
    service, ids = public
    html = page_of(service, [ids["Alpha"], "<script>", ids["Beta"], "gone"], "success", "precision")
    assert "Judges left out because they are not on the board: 2." in html
    assert "Is Alpha" in html
    assert "<script>" not in html


def test_more_than_five_are_cut_and_told(public):
    service, ids = public
    more = [
        send(service, verdicts(service.suite, false_alarms=n), judge=f"J{n}").submission_id for n in (5, 6, 7)
    ]
    html = page_of(service, [*ids.values(), *more], "success", "precision")
    assert "6 judges were chosen; the first 5 are compared." in html
    assert "How do these 5 judges differ?" in html


def test_a_judge_that_does_not_answer_the_label_is_left_out_and_named(public):
    service, ids = public
    answering = [
        send(service, verdicts(service.suite, side_effect=answer), judge=name).submission_id
        for name, answer in (("Yes", True), ("No", False))
    ]
    html = page_of(service, [ids["Alpha"], *answering], "side_effect", "recall")
    assert "Left out because they give no verdicts on side effect: Alpha (tree)." in html
    assert "Is Yes (tree) better than No (tree)?" in html


def test_a_lost_file_leaves_the_comparison_by_counts(public):
    service, ids = public
    row = next(row for row in service.records.board().rows if row.id == ids["Beta"])
    service.files.path(row.file_sha256).unlink()
    text = shown_text(page_of(service, [ids["Alpha"], ids["Beta"]], "success", "precision"))
    assert "No interval here is paired" in text
    assert "verdicts not known, only counts" in text


def test_a_comparison_is_made_once_for_a_board(public, monkeypatch):
    service, ids = public
    client, address = local_client(service), link_to("/compare", judges=[ids["Alpha"], ids["Beta"]])
    first = client.get(address)
    with monkeypatch.context() as patched:
        patched.setattr("space.pages.compare.page.compare", None)  # would fail if it were called
        assert client.get(address).headers["etag"] == first.headers["etag"]
    send(service, verdicts(service.suite, misses=5), judge="New")
    assert client.get(address).headers["etag"] != first.headers["etag"]


class DevVerdicts(JudgeVerdicts):
    """Dev verdicts as a dataset may carry them: runs 0, 3 and 6 of the eight succeeded."""

    def __init__(self, service, **called: tuple[int, ...]) -> None:
        super().__init__(service, Explorer(service.settings, service))
        self._found = {name: np.isin(np.arange(8), runs).astype(np.int8) for name, runs in called.items()}

    def by_judge(self, split):
        return {name: SimpleNamespace(answers=column) for name, column in self._found.items()}


def test_votes_on_dev_are_scored_from_the_verdicts_that_the_dataset_carries(public):
    service, ids = public
    found = DevVerdicts(service, **{ids["Alpha"]: (0, 3, 1), ids["Beta"]: (0, 6, 1)})
    html = page_of(service, list(ids.values()), "success", "precision", found)
    text = shown_text(html)
    section = text[text.index("Ensembles on dev") :]
    # Both say yes on 0 and 1: one of two is right. At least one on 0, 1, 3 and 6: three of four. Each alone
    # on three, two of them rightly.
    at_least_one, both, alone = (
        section.index(words) for words in ("At least 1 of 2", "Both say yes", "Single judges")
    )
    assert "75.0" in section[at_least_one:both]
    assert "50.0" in section[both:alone]
    assert section[alone:].count("66.7") >= 2


def test_one_judge_with_verdicts_on_dev_makes_no_vote(public):
    service, ids = public
    found = DevVerdicts(service, **{ids["Alpha"]: (0, 3, 1)})
    for label in ("success", "repetition"):
        html = page_of(service, list(ids.values()), label, "precision", found)
        assert "on dev" not in shown_text(html)
