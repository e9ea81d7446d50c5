"""The ceiling on the board: made from the labels that are served, and only where these are public."""

import csv
import io

import pytest

from leaderboard.published_rows import SECOND_ANNOTATOR
from submissions.accounts import Actor
from submissions.publishing_labels import publish
from submissions.rescoring import rescore
from submissions.service import SubmissionService
from tests.submissions.recorded import again
from tests.submissions.synthetic import send, verdicts, with_rules

MIA = Actor("Mia", is_maintainer=True)


def with_doubles(released: bytes, **differing: str) -> bytes:
    """The same file with a second annotation of the first six test trajectories, the first of them differing.

    Success is true at places 0 and 3 of the six.
    """
    rows = list(csv.DictReader(io.StringIO(released.decode())))
    doubles = [{**row, "annotator_name": "Second"} for row in rows[:6]]
    doubles[0] |= differing
    output = io.StringIO()
    writer = csv.DictWriter(output, rows[0].keys())
    writer.writeheader()
    writer.writerows([*rows, *doubles])
    return output.getvalue().encode()


@pytest.fixture
def doubled(suite_folder) -> bytes:
    return with_doubles((suite_folder / "labels.csv").read_bytes(), trajectory_success="Unsuccessful")


@pytest.fixture
def serving(service, doubled) -> SubmissionService:
    found = again(service, labels="records")
    publish(found, doubled, MIA, "with second annotations")
    return found


def ceiling_of(board):
    return next((row for row in board.rows if row.id == SECOND_ANNOTATOR), None)


def test_second_annotations_are_a_reference_row_with_intervals(serving):
    row = ceiling_of(serving.board())
    cell = row.labels["success"]["overall"]
    # Of places 0 and 3 the second annotator finds 3; the other four are failures to both.
    assert [cell[name] for name in ("tp", "fp", "fn", "tn")] == [1, 0, 1, 4]
    assert row.labels["success"]["intervals"] == "tasks"
    assert (row.provenance, row.labels["success"]["rank"]) == ("reference", None)
    assert row.date[:10] == serving.clock().date().isoformat()


def test_it_follows_the_labels_that_are_served(serving, suite_folder):
    send(serving, verdicts(serving.suite))
    before = serving.label_version
    publish(serving, with_doubles((suite_folder / "labels.csv").read_bytes()), MIA, "looked again")
    rescore(serving, MIA)
    assert ceiling_of(serving.board()).labels["success"]["overall"]["fn"] == 0
    assert ceiling_of(serving.board_under(before)) is None  # those labels are not the ones at hand


def test_the_board_is_the_same_bytes_whoever_makes_it(serving):
    assert serving.board().to_bytes() == again(serving).board().to_bytes()


def test_without_doubles_there_is_no_such_row(service):
    assert ceiling_of(service.board()) is None


def test_where_labels_are_private_there_is_no_such_row(serving):
    private = with_rules(again(serving), is_public=False)
    assert private.label_version is not None
    assert ceiling_of(private.board()) is None
