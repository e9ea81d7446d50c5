"""Labels from a private dataset repository: huggingface_hub's own client against a server on this machine."""

import pytest
from huggingface_hub.utils import close_session

from arb.core.settings import Settings
from leaderboard.labels.source import locate_labels
from tests.support.hub_server import running_hub
from tests.support.hub_server.answers import Account

REPOSITORY, FILE = "maintainer/labels", "data/annotations.csv"
CONTENT = b"annotator_name,benchmark\n"


@pytest.fixture
def hub(monkeypatch):
    with running_hub(monkeypatch) as found:
        found.repository(REPOSITORY, private=True)
        found.commit(REPOSITORY, {FILE: CONTENT})
        found.api.accounts["hf_of_another_user"] = Account("somebody")
        yield found


def stop(hub):
    """Take the Hub down, with the connections that the client has kept."""
    hub.__exit__()
    close_session()


@pytest.fixture
def hub_settings(hub, cache):
    def make(token="hf_maintainer", place="hub:maintainer/labels", **others) -> Settings:
        return Settings(labels=place, cache_dir=cache, hf_token=token, **others)

    return make


def test_labels_come_from_a_private_repository_with_the_token(hub, hub_settings):
    path = locate_labels(hub_settings())
    assert path.read_bytes() == CONTENT
    (asked,) = hub.requests("HEAD", "/datasets/maintainer/labels/resolve/main/data/annotations.csv")
    assert (asked.token, hub.served[FILE]) == ("hf_maintainer", len(CONTENT))


def test_another_file_and_revision_can_be_named(hub, hub_settings):
    revision = hub.commit(REPOSITORY, {"private/labels.csv": b"second"}).oid
    hub.commit(REPOSITORY, {"private/labels.csv": b"third"})
    settings = hub_settings(place=f"hub:{REPOSITORY}/private/labels.csv", labels_revision=revision)
    assert locate_labels(settings).read_bytes() == b"second"


def test_fetched_labels_lie_in_private_folders_and_not_in_the_shared_cache(
    hub_settings, cache, monkeypatch, tmp_path
):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "shared-cache"))
    path = locate_labels(hub_settings())
    assert path.is_relative_to(cache)
    assert cache.stat().st_mode & 0o777 == 0o700
    assert not (tmp_path / "shared-cache").exists()


@pytest.mark.parametrize(
    ("token", "status"), [(None, "401"), ("hf_revoked", "401"), ("hf_of_another_user", "404")]
)
def test_a_token_that_may_not_read_gets_nothing_even_where_another_token_left_a_copy(
    hub_settings, token, status, unavailable
):
    locate_labels(hub_settings())
    message = unavailable(hub_settings(token=token))
    assert message.startswith("labels from maintainer/labels, file data/annotations.csv: ")
    assert f"the Hub answered {status}" in message
    assert "HF_TOKEN may read it" in message
    assert "hf_" not in message


def test_the_machines_own_token_is_not_sent(hub, hub_settings, monkeypatch, unavailable):
    monkeypatch.setattr("huggingface_hub.utils._headers.get_token", lambda: "hf_maintainer")
    unavailable(hub_settings(token=None))
    assert {seen.token for seen in hub.seen} == {None}


def test_a_file_or_revision_that_is_not_there_is_said(hub_settings, unavailable):
    assert "file other.csv: the Hub answered 404" in unavailable(
        hub_settings(place="hub:maintainer/labels/other.csv")
    )
    assert "check the name, the revision" in unavailable(hub_settings(labels_revision="v9"))


def test_corrected_labels_are_fetched_again(hub, hub_settings):
    locate_labels(hub_settings())
    hub.commit(REPOSITORY, {FILE: b"corrected"})
    assert locate_labels(hub_settings()).read_bytes() == b"corrected"


def test_unchanged_labels_are_not_fetched_again(hub, hub_settings):
    locate_labels(hub_settings())
    locate_labels(hub_settings())
    assert hub.served[FILE] == len(CONTENT)


def test_without_a_network_the_copy_on_disk_is_used(hub, hub_settings):
    locate_labels(hub_settings())
    stop(hub)
    assert locate_labels(hub_settings()).read_bytes() == CONTENT


def test_without_a_network_and_a_copy_the_message_says_so(hub, hub_settings, unavailable):
    stop(hub)
    message = unavailable(hub_settings())
    assert "the Hub cannot be reached and no copy is cached; try again while online" in message


def test_without_fetching_only_the_copy_on_disk_is_used(hub, hub_settings, unavailable):
    assert "no copy is cached" in unavailable(hub_settings(), fetch=False)
    assert hub.seen == []
    locate_labels(hub_settings())
    asked = len(hub.seen)
    assert locate_labels(hub_settings(), fetch=False).read_bytes() == CONTENT
    assert len(hub.seen) == asked


def test_a_name_that_no_repository_can_have_is_said(hub, hub_settings, unavailable):
    message = unavailable(hub_settings(place="hub:maintainer/la bels"))
    assert "write ARB_LABELS=hub:OWNER/REPO[/FILE]" in message
    assert hub.seen == []
