"""Label sets one after another: a correction is a new version, with its reason; old ones can be scored."""

import csv
import io
import logging

import pytest

from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from submissions.errors import PermissionDenied, SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.versions import published_versions
from submissions.scoring.rescore import publish
from tests.support.submissions import again, send, verdicts, with_rules

MIA = Actor("Mia", is_maintainer=True)


@pytest.fixture
def released(suite_folder) -> bytes:
    return (suite_folder / "labels.csv").read_bytes()


def corrected(released: bytes, place: int, **answers: str) -> bytes:
    """The same file with other answers in one row of test (they stand first, in the order of the split)."""
    rows = list(csv.DictReader(io.StringIO(released.decode())))
    rows[place] |= answers
    output = io.StringIO()
    writer = csv.DictWriter(output, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    return output.getvalue().encode()


@pytest.fixture
def serving(service):
    """A service whose labels are those published among its records; none yet."""
    return again(service, labels="records")


def test_before_the_first_set_nothing_can_be_submitted(serving):
    assert "labels of small cannot be read" in serving.intake.read_only_reason
    assert published_versions(serving.engine, "small") == []


def test_an_older_version_can_still_be_served_and_scored(serving, released):
    first = publish(serving, released, MIA, "first")
    fixed = corrected(released, 0, trajectory_success="Unsuccessful")
    publish(serving, fixed, MIA, "second")
    old = again(serving, labels=f"records:{first.version}")
    assert old.label_version == first.version
    receipt = send(old, verdicts(old.suite))
    assert receipt.label_version == first.version
    assert again(serving).intake.finish_scoring() == 1  # under the newest
    missing = again(serving, labels="records:000000000000")
    assert missing.label_version is None


def test_a_set_that_cannot_be_used_is_refused_by_row_and_field_without_a_label(serving, released):
    bad = corrected(released, 4, trajectory_success="Perhaps-secret", trajectory_looping="Maybe-secret")
    with pytest.raises(SubmissionError) as refused:
        publish(serving, bad, MIA, "first")
    assert "row 6, trajectory_success" in str(refused.value)
    assert "row 6, trajectory_looping" in str(refused.value)
    assert "secret" not in str(refused.value).lower()
    assert published_versions(serving.engine, "small") == []


def test_only_maintainers_publish_and_they_say_why(serving, released):
    with pytest.raises(PermissionDenied, match="only maintainers"):
        publish(serving, released, Actor("Ada"), "because")
    with pytest.raises(SubmissionError, match="say what changed and why"):
        publish(serving, released, MIA, "  ")


def test_the_record_of_a_set_holds_counts_and_neither_a_label_nor_an_id(serving, released):
    from submissions.records.database import snapshot
    from submissions.records.event_log import events_after

    publish(serving, released, MIA, "first")
    with snapshot(serving.engine) as session:
        (record,) = events_after(session, kinds=["labels_published"])
    assert record.body.keys() == {
        "suite", "version", "file_sha256", "why", "labelled", "changes", "guidelines_sha256",
    }  # fmt: skip
    assert not any(t.trajectory_id.encode() in record.line() for t in serving.suite.trajectories)


def test_the_version_of_hidden_labels_is_keyed(service, released, tmp_path):
    hidden = with_rules(again(service, labels="records"), is_public=False)
    elsewhere = again(service, labels="records", state_dir=tmp_path / "other", secret=None)
    elsewhere = with_rules(elsewhere, is_public=False)
    versions = {publish(each, released, MIA, "first").version for each in (hidden, elsewhere)}
    assert len(versions) == 2  # the same labels, two secrets


def test_a_suite_without_a_dev_split_is_no_reason_for_a_warning(tmp_path, caplog):
    service = SubmissionsApp(Settings(suite="devai", state_dir=tmp_path))
    assert service.labels.dev is None and service.labels.test is not None
    assert service.labels.why_none("dev") == "the suite devai has no dev split"
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
