"""Tests that limits and scores stay exact with two servers that share a database but no disk."""

import multiprocessing
import shutil
from collections import Counter

import pytest

from submissions.app import SubmissionsApp
from submissions.errors import RateLimited
from submissions.records.backup import export_to_folder, restore_from_folder
from submissions.records.integrity import verify
from submissions.scoring import scorer
from tests.support.submissions import send, verdicts, with_rules

ACCOUNTS, FILES = ("Ada", "Bob", "Eve"), 5


def serve(settings, together, told) -> None:
    """Send all files of all accounts, as another process does at the same time; return the accepted ones."""
    service = with_rules(SubmissionsApp(settings), files_a_day=2)
    together.wait(timeout=300)
    for misses in range(FILES):
        for account in ACCOUNTS:
            try:
                receipt = send(service, verdicts(service.suite, misses=misses), account=account)
                told.put((account, receipt.submission_id, receipt.is_new))
            except RateLimited:
                told.put((account, None, False))


@pytest.mark.slow
def test_two_processes_never_take_more_than_the_limit_and_score_each_file_once(own_settings, tmp_path):
    context = multiprocessing.get_context("spawn")
    together, told = context.Barrier(2), context.Queue()
    replicas = [
        context.Process(
            target=serve,
            args=(own_settings.model_copy(update={"state_dir": tmp_path / name}), together, told),
        )
        for name in ("one", "two")
    ]
    for replica in replicas:
        replica.start()
    found = [told.get(timeout=300) for _ in range(2 * FILES * len(ACCOUNTS))]
    for replica in replicas:
        replica.join(timeout=300)
        assert replica.exitcode == 0

    # Each account has exactly two submissions, each made by one of the two processes.
    taken = {(account, name) for account, name, _ in found if name}
    assert Counter(account for account, _ in taken) == dict.fromkeys(ACCOUNTS, 2)
    assert sum(is_new for _, _, is_new in found) == 2 * len(ACCOUNTS)
    service = with_rules(SubmissionsApp(own_settings), files_a_day=2)
    assert {row.id for row in service.records.board().rows} == {name for _, name in taken}
    assert {service.records.quota(account).left_today for account in ACCOUNTS} == {0}


def test_a_file_outlives_the_disk_of_the_replica_that_took_it(own_settings, tmp_path):
    """Scoring, verdicts, `verify`, export and restore each work on another replica with an empty disk."""
    one = SubmissionsApp(own_settings.model_copy(update={"state_dir": tmp_path / "one"}))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scorer, "record_score", lambda *_: None)  # killed
        receipt = send(one, verdicts(one.suite, misses=2))
    shutil.rmtree(tmp_path / "one", ignore_errors=True)
    two = SubmissionsApp(own_settings.model_copy(update={"state_dir": tmp_path / "two"}))
    assert two.intake.finish_scoring() == 1
    assert two.records.verdicts(receipt.submission_id).rows == len(two.suite.split("test"))
    assert verify(two).problems == ()
    assert export_to_folder(two, tmp_path / "backup").missing == ()
    target = own_settings.model_copy(
        update={"database_url": f"sqlite:///{tmp_path / 'restored.sqlite'}", "state_dir": tmp_path / "three"}
    )
    assert restore_from_folder(target, tmp_path / "backup").missing == ()
    shutil.rmtree(tmp_path / "three", ignore_errors=True)
    restored = SubmissionsApp(target)
    assert verify(restored).problems == ()
    assert restored.records.board().to_bytes() == two.records.board().to_bytes()
