"""Tests of ``/api``: Swagger UI shows the REST API and loads nothing from other sites."""

import re

import pytest
from fastapi.testclient import TestClient

from arb.core import __version__
from space.api.schemas import response_schemas
from space.app import create_app
from tests.support.submissions import settings_for


@pytest.fixture(scope="module")
def client(suite_folder, tmp_path_factory):
    state = tmp_path_factory.mktemp("described") / "state"
    with TestClient(create_app(settings_for(suite_folder, state, checks_a_minute=3))) as client:
        yield client


def test_every_operation_has_a_tag_and_a_summary_of_its_own(client):
    for methods in client.get("/api/openapi.json").json()["paths"].values():
        for operation in methods.values():
            summary = operation["summary"]
            assert operation["tags"] and summary and not summary.endswith(".")
            assert summary != summary.title()  # FastAPI's own, made from the function's name


def document(client) -> dict:
    return client.get("/api/openapi.json").json()


@pytest.mark.slow
def test_the_document_is_valid_openapi(client):
    validate = pytest.importorskip("openapi_spec_validator").validate
    validate(document(client))


def test_every_operation_says_what_a_successful_response_has(client):
    for path, methods in document(client)["paths"].items():
        for method, operation in methods.items():
            for status, response in operation["responses"].items():
                if status.startswith("2"):
                    (content,) = response["content"].values()
                    assert content["schema"], (method, path)
    assert document(client)["info"]["version"] == __version__


def test_the_document_has_the_schemas_that_every_response_in_the_tests_is_compared_with(client):
    assert document(client)["components"]["schemas"].items() >= response_schemas().items()


def test_it_is_linked_from_about_submit_and_every_footer(client):
    for page in ("/about", "/submit", "/"):
        assert 'href="/api"' in client.get(page).text


def test_it_and_its_files_come_from_this_server(client):
    answer = client.get("/api")
    sources = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', answer.text)
    assert len(sources) == 3
    assert all(client.get(source).status_code == 200 for source in sources)
    assert "https://" not in answer.text
    assert client.head("/api").status_code == 200
    assert "unsafe-eval" not in answer.headers["content-security-policy"]


# The limit on checks, through the whole application


def test_the_fourth_check_in_a_minute_is_refused_with_when_to_come_back(client, within_a_minute):
    answers = [client.post("/api/check?split=dev", files={"file": ("a.jsonl", b"{}")}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert "arb submissions check" in answers[-1].json()["detail"]
