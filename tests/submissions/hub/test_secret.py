"""Tests that a service does not open with another secret than its records were made with."""

import json
import re
import shutil
from pathlib import Path

import pytest
from pydantic import SecretStr

from submissions.hub.mirror import OTHER_SECRET
from submissions.hub.repository import WRITER
from submissions.privacy.server_secret import SecretChanged, ServerSecret
from submissions.records.integrity import verify
from submissions.startup import open_service
from tests.submissions.hub.conftest import lose_the_disk
from tests.support.hub_threads import contents
from tests.support.submissions import log_of, send, verdicts
from tests.support.waiting import eventually

DATABASES = Path(__file__).parents[1] / "records" / "databases"
OTHER = SecretStr("9f7fb0f37f69a0704bf65f55484874f4")


def test_a_changed_secret_is_refused_at_the_start_with_what_to_do(settings):
    send(open_service(settings), verdicts(open_service(settings).suite))
    changed = settings.model_copy(update={"secret": OTHER})
    with pytest.raises(SecretChanged, match="not the one that these records were made with") as refused:
        open_service(changed)
    assert OTHER.get_secret_value() not in str(refused.value)
    accepted = re.search(r"ARB_ACCEPT_SECRET=(\w+)", str(refused.value))[1]
    with pytest.raises(SecretChanged):
        open_service(changed.model_copy(update={"accept_secret": "0" * 16}))
    assert len(open_service(changed.model_copy(update={"accept_secret": accepted})).records.board().rows) == 1
    assert (
        len(open_service(changed).records.board().rows) == 1
    )  # from now on, the new secret is the known one
    with pytest.raises(SecretChanged):
        open_service(settings)


def test_it_is_noticed_too_where_the_disk_was_lost_and_the_hub_has_the_records(hub, opened, crash):
    service = opened()
    send(service, verdicts(service.suite))
    lose_the_disk(service, crash)
    again = opened(secret=OTHER)
    eventually(lambda: again.intake.read_only_reason == OTHER_SECRET)
    assert again.records.board().rows == ()
    accepted = opened(secret=OTHER, accept_secret=ServerSecret.of(again.settings).check_value)
    eventually(lambda: accepted.intake.read_only_reason is None)
    assert len(accepted.records.board().rows) == 1


def test_a_secret_that_was_accepted_stays_accepted_where_the_disk_was_lost_again(hub, opened, crash):
    service = opened()
    send(service, verdicts(service.suite))
    accept = ServerSecret(OTHER.get_secret_value().encode()).check_value
    for changes in ({"secret": OTHER, "accept_secret": accept}, {"secret": OTHER}):
        lose_the_disk(service, crash)
        service = opened(**changes)
        eventually(lambda service=service: service.intake.read_only_reason is None)
        eventually(lambda service=service: service.durability.waiting() == 0)
        assert [event["kind"] for event in log_of(service)].count("secret_replaced") == 1
    lose_the_disk(service, crash)
    first = opened()
    eventually(lambda: first.intake.read_only_reason == OTHER_SECRET)


def test_records_of_7d56a80_that_only_the_hub_has_keep_their_figures(hub, opened, crash, tmp_path, caplog):
    """Keys are derived as when the records were made, although the database is new, at the first try."""
    release = Path(shutil.copytree(DATABASES / "7d56a80", tmp_path / "7d56a80"))
    old = {
        "suite": str(release / "suite" / "small"), "labels": "records", "cache_dir": release / "cache",
        "secret": SecretStr((release / "records" / "secret").read_text()),
    }  # fmt: skip
    old["state_dir"] = release / "records"
    service = opened(**old)
    eventually(lambda: service.intake.read_only_reason is None)
    eventually(lambda: service.durability.waiting() == 0)
    assert json.loads(contents(hub)[WRITER])["derivation"] == 1
    lose_the_disk(service, crash)
    restored = opened(**old)
    eventually(lambda: restored.intake.read_only_reason is None)
    shown = json.loads((release / "shown.json").read_text())
    assert restored.label_version == shown["label_version"]
    assert {row.judge: row.labels["success"]["overall"] for row in restored.records.board().rows} == shown[
        "rows"
    ]
    assert verify(restored).problems == ()
    assert "trying again" not in caplog.text
