"""Tests of verdicts that are read from the stored file of a submission."""

import io
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from submissions.scoring.verdicts import VerdictsUnavailable, read_stored_verdicts, verdict_cache
from tests.support.submissions import SECRET_ANNOTATOR, again, is_success, send, verdicts

# The service gives them


def test_the_verdicts_come_in_the_order_of_the_split_whatever_the_order_of_the_file(service):
    lines = verdicts(service.suite, misses=2).decode().splitlines()
    rows = [{**json.loads(line), "reasoning": f"because {place}"} for place, line in enumerate(lines)]
    content = "\n".join(json.dumps(row) for row in reversed(rows)).encode()
    found = service.records.verdicts(send(service, content).submission_id)
    test = service.suite.split("test")
    assert found.trajectory_ids == tuple(t.trajectory_id for t in test)
    # Trajectories 0, 3, 6, … are successes; the first two of them were missed.
    assert found.targets["success"].tolist() == [int(is_success(place) and place > 3) for place in range(30)]
    assert found.reasoning == tuple(f"because {place}" for place in range(30))
    assert "side_effect" not in found.targets and found.score is None


def test_every_column_of_the_file_is_there(service):
    extras = {"side_effect": True, "repetition": None, "score": 0.25, "cost_usd": 0.5, "latency_s": 2}
    found = service.records.verdicts(send(service, verdicts(service.suite, **extras)).submission_id)
    assert found.targets["side_effect"].tolist() == [1] * 30
    assert found.targets["repetition"].tolist() == [-1] * 30
    assert found.score.tolist() == [0.25] * 30
    assert (found.cost_usd.sum(), found.latency_s.sum()) == (15, 60)


def test_the_texts_of_a_parquet_file_are_there_too(service):
    rows = [json.loads(line) for line in verdicts(service.suite).splitlines()]
    buffer = io.BytesIO()
    pd.DataFrame([{**row, "reasoning": "<b>seen</b>"} for row in rows]).to_parquet(buffer)
    upload = service.intake.check(buffer.getvalue(), "verdicts.parquet", "test")
    assert upload.check.aligned.reasoning is None  # a check does not keep texts
    found = service.records.verdicts(send(service, buffer.getvalue()).submission_id)
    assert set(found.reasoning) == {"<b>seen</b>"}


def test_texts_that_are_too_many_cost_nobody_the_verdicts(service):
    rows = [json.loads(line) for line in verdicts(service.suite).splitlines()]
    buffer = io.BytesIO()
    # 30 rows of 2 MB each, all alike: some kB packed, 60 MB in memory, over what is unpacked.
    long = [{**row, "reasoning": f"{place}" + "x" * 2_000_000} for place, row in enumerate(rows)]
    pd.DataFrame(long).to_parquet(buffer, compression="zstd")
    found = service.records.verdicts(send(service, buffer.getvalue()).submission_id)
    assert found.targets["success"].sum() == 10
    assert found.reasoning is None


@pytest.mark.parametrize("submission_id", ["", "0" * 12, "../../etc", "a\x00b", "paper/aer-c", "é" * 12])
def test_an_id_that_is_in_no_record_is_a_key_error(service, submission_id):
    with pytest.raises(KeyError):
        service.records.verdicts(submission_id)


def test_a_missing_or_damaged_file_is_told_without_its_place(service, settings):
    receipt = send(service, verdicts(service.suite))
    kept = service.files.path(receipt.file_sha256)
    kept.write_bytes(kept.read_bytes().replace(b"true", b"null", 1))
    with pytest.raises(VerdictsUnavailable, match="missing or damaged on this server") as reason:
        again(service).records.verdicts(receipt.submission_id)
    assert str(settings.state_dir) not in str(reason.value)


def test_a_file_over_todays_size_limit_is_still_read(service):
    receipt = send(service, verdicts(service.suite))
    assert (
        again(service, max_upload_bytes=10).records.verdicts(receipt.submission_id).targets["success"].sum()
        == 10
    )


def test_a_file_that_does_not_fit_the_suite_any_more_is_told(service):
    with pytest.raises(VerdictsUnavailable, match="no longer fits the suite"):
        kept = service.files.keep(b'{"trajectory_id": "a/b/c", "success": true}\n')
        read_stored_verdicts(service, kept, "test")


# Cache


def test_texts_count_towards_the_bound_of_the_cache(service):
    kept = service.files.keep(verdicts(service.suite, reasoning="x" * 1000))  # 30 rows: over 30 kB
    cache = verdict_cache()
    cache.get("a", lambda: read_stored_verdicts(service, kept, "test"))
    assert 30_000 < cache.bytes < 60_000


# Labels for figures over many trajectories


def test_labels_for_figures_are_given_only_where_the_suite_says_that_they_are_public(service):
    assert service.suite.labels_are_public
    hidden = again(service)
    hidden.__dict__["suite"] = replace(service.suite, labels_are_public=False)
    assert hidden.labels_for_public_figures() is None
    labels = service.labels_for_public_figures()
    assert np.flatnonzero(labels.primary["success"] == 1).tolist() == list(range(0, 30, 3))
    assert SECRET_ANNOTATOR not in repr(labels)
    without = again(service, labels="none")
    assert without.labels_for_public_figures() is None
