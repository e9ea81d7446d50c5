"""A synthetic suite and a service over it, as in the tests of submissions; names that mean harm."""

import os
import re

import pytest
from anyio.from_thread import start_blocking_portal
from fastapi.testclient import TestClient

from tests.submissions.conftest import service, settings, suite_folder
from tests.support.api_schemas import check_response

__all__ = ["service", "settings", "suite_folder"]

HOSTILE = (
    "<script>alert(1)</script>x",
    '"><img src=x onerror=alert(1)>',
    "{{7*7}} ${7*7} <%= 7*7 %> {% raw %}",
    "' onmouseover='alert(1)",
    "</td></table><iframe src=//evil.example>",
    "&lt;b&gt; &amp; x",
)


@pytest.fixture(scope="session", autouse=True)
def _test_clients_share_an_event_loop():
    """Else every request begins a thread and a loop of its own, which takes half of its time."""
    with start_blocking_portal() as portal, pytest.MonkeyPatch.context() as patched:
        patched.setattr(TestClient, "portal", portal)
        yield


@pytest.fixture(scope="session", autouse=True)
def _responses_fit_their_schemas():
    """Every JSON response that a test gets of the REST API is compared with its schema."""
    request = TestClient.request

    def checked(self, method, url, **options):
        response = request(self, method, url, **options)
        check_response(method, response.request.url.path, response)
        return response

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TestClient, "request", checked)
        yield


@pytest.fixture(autouse=True)
def _folder_for_uploads(monkeypatch):
    """Give the folder for uploads back to the module's application after a test that makes its own."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", os.environ["GRADIO_TEMP_DIR"])


@pytest.fixture(params=HOSTILE)
def hostile(request) -> str:
    """A text that would do something if it were taken for markup, an attribute or a template."""
    return request.param


def shown_text(html: str) -> str:
    """The text that a browser shows of it."""
    from html.parser import HTMLParser

    parts: list[str] = []
    parser = HTMLParser(convert_charrefs=True)
    parser.handle_data = parts.append
    parser.feed(html)
    parser.close()
    return re.sub(r"\s+", " ", "".join(parts))


def tags_and_attributes(html: str) -> set[tuple[str, str]]:
    """Every tag with each name of its attributes, as a browser reads them."""
    from html.parser import HTMLParser

    found: set[tuple[str, str]] = set()
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.update(
        {(tag, ""), *((tag, name) for name, _ in attributes)}
    )
    parser.feed(html)
    parser.close()
    return found
