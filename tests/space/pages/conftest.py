"""What the tests of several pages share: a suite with three judges, a maintainer, and the text of a page."""

import pytest

from space.web.query import link_to
from tests.support.space_app import local_client, public_with_three


@pytest.fixture
def settings(settings):
    """Grace is a maintainer."""
    return settings.model_copy(update={"maintainers": "Grace"})


@pytest.fixture
def public(tmp_path):
    """A service with public labels, and the ids of Alpha, Beta and Gamma."""
    return public_with_three(tmp_path)


def page_at(service, path, found=None, status=200, **choices) -> str:
    """The HTML of a page; ``found`` stands for the verdicts that are known."""
    answer = local_client(service, found).get(link_to(path, **choices))
    assert answer.status_code == status
    return answer.text
