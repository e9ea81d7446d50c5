"""The page that describes the REST answers: from the OpenAPI document, complete, in our own look."""

import re

import pytest
from fastapi.testclient import TestClient

from space.app import create_app
from space.look import Look
from space.rest_description import description_html, groups_of
from tests.submissions.synthetic import settings_for


@pytest.fixture(scope="module")
def client(suite_folder, tmp_path_factory):
    state = tmp_path_factory.mktemp("described") / "state"
    with TestClient(create_app(settings_for(suite_folder, state, checks_a_minute=3))) as client:
        yield client


@pytest.fixture(scope="module")
def document(client) -> dict:
    return client.get("/api/openapi.json").json()


def operations(document):
    return [each for group in groups_of(document).values() for each in group]


def test_every_operation_is_on_the_page_with_its_fields(client, document):
    text = client.get("/api").text
    for path, methods in document["paths"].items():
        for found in methods.values():
            assert f"<code>{path}</code>" in text, path
            for parameter in found.get("parameters", []):
                assert f"<code>{parameter['name']}</code>" in text
    for field in ("file", "judge", "kind", "test_labels_used"):
        assert f"<code>{field}</code><small>required</small>" in text


def test_every_operation_has_a_title_in_words_and_a_group_of_its_own(document):
    for each in operations(document):
        assert each.title and not each.title.endswith(".")
        assert each.title != each.title.title()  # FastAPI's own, made from the function's name
    assert "This Space" not in groups_of(document)


def test_a_form_tells_choices_and_what_is_required(document):
    (check,) = [each for each in operations(document) if each.path == "/api/check"]
    assert [(field.name, field.kind, field.is_required) for field in check.fields] == [
        ("split", "text", False), ("file", "file", True),
    ]  # fmt: skip
    assert check.fields[0].values == ("dev", "test") and "Default: test." in check.fields[0].said
    assert ("429", "Too often; Retry-After says in how many seconds to ask again.") in check.answers


def test_it_is_found_from_about_submit_and_every_foot(client):
    for page in ("/about", "/submit", "/"):
        assert 'href="/api"' in client.get(page).text


def test_it_fetches_nothing_from_elsewhere_and_is_kept_by_browsers(client):
    answer = client.get("/api")
    sources = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', answer.text)
    assert sources and all(source.startswith(("/look/", "data:")) for source in sources)
    assert client.get("/api", headers={"if-none-match": answer.headers["etag"]}).status_code == 304
    assert client.head("/api").status_code == 200
    assert not re.search(r"\bNone\b(?!-)|\{['{%]", answer.text.replace("If-None-Match", ""))


def test_what_a_route_says_is_escaped():
    said = {"summary": "<b>x</b>", "description": '`<i>` " {{7*7}}', "responses": {}}
    document = {"info": {"description": "<u>"}, "paths": {"/x": {"get": said}}}
    html = description_html(document, "N", Look(), ())
    assert "&lt;b&gt;x&lt;/b&gt;." in html and "<code>&lt;i&gt;</code>" in html and "{{7*7}}" in html
    assert "<b>" not in html and "<i>" not in html and "<u>" not in html


# The limit on checks, through the whole application


def test_the_fourth_check_in_a_minute_is_refused_with_when_to_come_back(client):
    answers = [client.post("/api/check?split=dev", files={"file": ("a.jsonl", b"{}")}) for _ in range(4)]
    # A window that ends between two of them may let a fourth through; a fifth and sixth it does not.
    answers += [client.post("/api/check", files={"file": ("a.jsonl", b"{}")}) for _ in range(2)]
    assert [answer.status_code for answer in answers[:3]] == [200, 200, 200]
    assert answers[-1].status_code == 429
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert "python -m submissions check" in answers[-1].json()["detail"]
