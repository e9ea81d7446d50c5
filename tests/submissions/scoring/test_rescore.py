"""A new label version: everything is scored again, old scores stay, ranks before and after are told."""

import pytest

from submissions.intake.accounts import Actor
from submissions.scoring.rescore import rescore, rescorings
from submissions.service import SubmissionService
from tests.support.submissions import send, verdicts

MAINTAINER = Actor("Mia", is_maintainer=True)


@pytest.fixture
def corrected(service, suite_folder, tmp_path):
    """The same records, under labels in which the first six test trajectories have the other success."""
    lines = (suite_folder / "labels.csv").read_text().splitlines()
    swap = {"Successful": "Unsuccessful", "Unsuccessful": "Successful"}
    for place in range(1, 7):
        cells = lines[place].split(",")
        cells[5] = swap[cells[5]]
        lines[place] = ",".join(cells)
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    changed = service.settings.model_copy(update={"labels": f"csv:{tmp_path / 'labels.csv'}"})
    return SubmissionService(changed)


def test_ranks_before_and_after_are_recorded_once_and_old_scores_stay(service, corrected):
    # Before: Right has 10 TP of 10; Noisy has 10 TP and 5 FP, precision 10/15.
    right = send(service, verdicts(service.suite), judge="Right").submission_id
    noisy = send(service, verdicts(service.suite, false_alarms=5), judge="Noisy").submission_id
    before = service.board()
    assert [row.id for row in before.rows] == [right, noisy]

    found = rescore(corrected, MAINTAINER)
    # After: of the first six, places 0 and 3 were positive and are negative, the other four the other way.
    # Right calls 0, 3, 6, … positive: 8 TP of 10. Noisy calls 0 to 6 and 7 too: of its 15, 0 and 3 are wrong
    # and of its five false alarms (1, 2, 4, 5, 7) four are right: TP = 8 + 4 = 12 of 15. 0.8 ties with 0.8,
    # and the recall decides: 8 of 12 positives against 12 of 12.
    assert found.scored == 2
    assert (found.before, found.after) == (service.label_version, corrected.label_version)
    assert {c.id: (c.before, c.after) for c in found.changes} == {right: (1, 2), noisy: (2, 1)}
    assert corrected.board_under(service.label_version).to_bytes() == before.to_bytes()

    assert rescore(corrected, MAINTAINER).scored == 0
    (record,) = rescorings(corrected)
    assert record.actor == "Mia"
    assert record.body["ranks"] == {right: [1, 2], noisy: [2, 1]}


def test_the_first_version_has_nothing_before_it(service):
    send(service, verdicts(service.suite))
    found = rescore(service, MAINTAINER)
    assert (found.before, found.scored) == (None, 0)
    assert rescorings(service) == []
