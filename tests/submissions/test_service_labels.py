import logging

import pytest

from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.scoring import scorer
from tests.support.submissions import SECRET_ANNOTATOR, again, counts, send, verdicts, write_suite

# Missing labels


@pytest.mark.parametrize("damage", ["missing", "word", "foreign id", "not text"])
def test_why_private_labels_cannot_be_read_is_for_the_log_only(service, tmp_path, caplog, damage):
    send(service, verdicts(service.suite))
    folder = tmp_path / "very-private-place"
    write_suite(folder)
    path = folder / "labels.csv"
    content = path.read_text()
    if damage == "missing":
        path.unlink()
    elif damage == "word":
        path.write_text(content.replace(",Successful,", ",Perhaps,"))
    elif damage == "foreign id":
        path.write_text(content.replace("webarena.3,", "webarena.unheard-of,"))
    else:
        path.write_bytes(b"\xff\xfe\x00" * 100)
    broken = again(service, labels=f"csv:{path}")
    with caplog.at_level(logging.WARNING):
        reason = broken.intake.read_only_reason
    assert reason == ("the labels of small cannot be read; the Space's log has the details")
    assert "test labels of small cannot be used" in caplog.text
    # The log lists all words that an answer may be, but not which one a row has.
    for secret in ("Perhaps", SECRET_ANNOTATOR, "very-private-place"):
        assert secret not in caplog.text
    assert len(broken.records.board().rows) == 1


def test_the_place_of_a_misspelt_label_source_stays_off_the_pages(service):
    broken = again(service, labels="csw:/srv/private/labels.csv")
    assert "private" not in broken.intake.read_only_reason
    with pytest.raises(SubmissionError) as raised:
        send(broken, verdicts(service.suite))
    assert "private" not in str(raised.value)


# New labels


@pytest.fixture
def relabelled(service, tmp_path) -> Settings:
    """Return settings in which one test label is corrected."""
    write_suite(tmp_path / "corrected")
    path = tmp_path / "corrected" / "labels.csv"
    path.write_text(path.read_text().replace(",Unsuccessful,", ",Successful,", 1))
    return service.settings.model_copy(update={"labels": f"csv:{path}"})


def test_new_labels_score_every_submission_anew_and_keep_the_old_scores(service, relabelled):
    receipt = send(service, verdicts(service.suite))
    old = service.records.board()
    corrected = SubmissionsApp(relabelled)
    assert corrected.label_version != service.label_version
    assert corrected.records.board().rows == ()  # it is scored in the next line
    assert corrected.intake.finish_scoring() == 1
    (row,) = corrected.records.board().rows
    # One more positive, which every file misses: recall 10/11.
    assert row.labels["success"]["overall"]["recall"] == 10 / 11
    assert counts(service)["scores"] == 2
    assert row.id == receipt.submission_id
    assert again(service).records.board().to_bytes() == old.to_bytes()


def test_without_labels_the_board_stands_on_the_newest_full_label_version(service, relabelled, monkeypatch):
    for misses in (1, 2):
        send(service, verdicts(service.suite, misses=misses))
    old = service.records.board().to_bytes()
    corrected = SubmissionsApp(relabelled)

    score, budget = scorer.record_score, iter((True,))
    with monkeypatch.context() as patched:
        broken = lambda *arguments: score(*arguments) if next(budget, False) else 1 / 0  # noqa: E731
        patched.setattr(scorer, "record_score", broken)
        with pytest.raises(ZeroDivisionError):
            corrected.intake.finish_scoring()
    without = service.settings.model_copy(update={"labels": "none"})
    assert SubmissionsApp(without).records.board().to_bytes() == old  # the re-scoring was interrupted

    SubmissionsApp(relabelled).intake.finish_scoring()
    assert (
        SubmissionsApp(without).records.board().to_bytes()
        == SubmissionsApp(relabelled).records.board().to_bytes()
    )
