"""Tests that records of each release can be upgraded, verified, shown, exported and restored.

`tests/support/make_old_database.py` makes the records of the next release.
"""

import json
import shutil
from pathlib import Path

import pytest
from sqlalchemy import inspect

from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.privacy.server_secret import SecretChanged
from submissions.records.backup import restore_from_folder
from submissions.records.event_log import events_after
from submissions.records.integrity import verify
from submissions.startup import open_service
from tests.submissions.records.test_database import differences
from tests.support.space_app import local_client

DATABASES = Path(__file__).parent / "databases"
RELEASES = sorted(folder.name for folder in DATABASES.iterdir())


@pytest.fixture(params=RELEASES)
def release(request, tmp_path) -> Path:
    """Return a copy of the records of a release."""
    return Path(shutil.copytree(DATABASES / request.param, tmp_path / request.param))


def settings_of(release: Path, **changes) -> Settings:
    return Settings(
        **{
            "suite": str(release / "suite" / "small"),
            "labels": "records",
            "state_dir": release / "records",
            "cache_dir": release / "cache",
            "database_url": None,
            "secret": None,
            **changes,
        }
    )


def shown_by(service: SubmissionsApp) -> dict:
    """Return what `make_old_database` recorded about the release."""
    with service.snapshot() as session:
        sent = {
            e.body["account"]: e.body["submission_id"] for e in events_after(session, kinds=["submitted"])
        }
    return {
        "label_version": service.label_version,
        "owners": {name: service.records.submission(sent[name], Actor(name)).report for name in sent},
        "rows": {row.judge: row.labels["success"]["overall"] for row in service.records.board().rows},
    }


def holds(now, before) -> bool:
    """Return whether everything that was shown before is shown now. More may be shown."""
    if isinstance(before, dict):
        return isinstance(now, dict) and all(
            name in now and holds(now[name], before[name]) for name in before
        )
    return now == before


def test_an_upgraded_database_verifies_and_shows_the_same_figures(release):
    service = open_service(settings_of(release))
    found = verify(service)
    # Two files, each scored under two label versions.
    assert (found.problems, found.files, found.scores) == ((), 2, 4)
    assert holds(shown_by(service), json.loads((release / "shown.json").read_text()))
    assert differences(service.engine) == []
    references = inspect(service.engine).get_foreign_keys("scores")
    assert [found["referred_table"] for found in references] == ["submissions"]
    page = local_client(service).get("/").text
    assert "Ada" in page and "Bob" not in page
    service.close()


def test_its_records_do_not_go_on_without_their_secret(release):
    (release / "records" / "secret").unlink()
    with pytest.raises(SecretChanged, match="made with is missing"):
        open_service(settings_of(release))
    assert not (release / "records" / "secret").exists()


def test_its_export_is_restored_with_its_secret_and_shows_the_same_figures(release, tmp_path):
    state = tmp_path / "restored"
    state.mkdir()
    shutil.copy(release / "records" / "secret", state)
    settings = settings_of(release, state_dir=state)
    assert restore_from_folder(settings, release / "backup").missing == ()
    service = open_service(settings)
    assert verify(service).problems == ()
    assert holds(shown_by(service), json.loads((release / "shown.json").read_text()))
    service.close()


def test_no_path_of_a_machine_is_in_it():
    for path in DATABASES.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(word in content for word in (b"/work/", b"/home/", b"/tmp/", b"/root/")), path.name
    size = sum(path.stat().st_size for path in DATABASES.rglob("*") if path.is_file())
    assert size < 300_000 * len(RELEASES)
