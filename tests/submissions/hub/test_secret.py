"""Opening a service: another secret than the one that the records were made with is noticed."""

import re
import shutil

import pytest
from pydantic import SecretStr

from submissions.hub.mirror import OTHER_SECRET
from submissions.privacy.server_secret import SecretChanged, ServerSecret
from submissions.startup import open_service
from tests.support.submissions import send, verdicts
from tests.support.waiting import eventually

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
    assert len(open_service(changed.model_copy(update={"accept_secret": accepted})).board().rows) == 1
    assert len(open_service(changed).board().rows) == 1  # from now on it is the known one
    with pytest.raises(SecretChanged):
        open_service(settings)


def test_it_is_noticed_too_where_the_disk_was_lost_and_the_hub_has_the_records(hub, opened, crash):
    service = opened()
    send(service, verdicts(service.suite))
    crash(service)
    service.engine.dispose()
    shutil.rmtree(service.settings.state_dir)
    again = opened(secret=OTHER)
    eventually(lambda: again.read_only_reason == OTHER_SECRET)
    assert again.board().rows == ()
    accepted = opened(secret=OTHER, accept_secret=ServerSecret.of(again.settings).check_value)
    eventually(lambda: accepted.read_only_reason is None)
    assert len(accepted.board().rows) == 1
