"""The page that describes the REST API: complete, short, in our own frame."""

import re

import pytest
from fastapi.testclient import TestClient
from markupsafe import Markup

from space.api.docs import operations_of, with_code
from space.app import create_app
from tests.support.submissions import settings_for


@pytest.fixture(scope="module")
def client(suite_folder, tmp_path_factory):
    state = tmp_path_factory.mktemp("described") / "state"
    with TestClient(create_app(settings_for(suite_folder, state, checks_a_minute=3))) as client:
        yield client


@pytest.fixture(scope="module")
def document(client) -> dict:
    return client.get("/api/openapi.json").json()


def operation(document, method, path):
    (found,) = [each for each in operations_of(document) if (each.method, each.path) == (method, path)]
    return found


def test_every_operation_is_on_the_page_with_its_parameters_and_the_fields_of_its_body(client, document):
    text = client.get("/api").text
    for path, methods in document["paths"].items():
        for found in methods.values():
            assert f"<code>{path}</code>" in text, path
            for parameter in found.get("parameters", []):
                assert f"<code>{parameter['name']}</code>" in text
    for field in ("file", "judge", "kind", "test_labels_used", "to", "reason", "trajectory_id"):
        assert f"<code>{field}</code><small>required</small>" in text


def test_it_is_collapsed_by_tag_and_by_operation(client, document):
    text = client.get("/api").text
    n_tags = len({each.tag for each in operations_of(document)})
    assert text.count('<details class="tag">') == n_tags > 5
    assert text.count('<details class="operation"') == len(operations_of(document))


def test_every_operation_has_a_summary_and_a_tag(document):
    for each in operations_of(document):
        summary = each.details["summary"]
        assert summary and not summary.endswith(".")
        assert summary != summary.title()  # FastAPI's own, made from the function's name


def test_a_form_lists_choices_and_what_is_required(document):
    check = operation(document, "POST", "/api/check")
    assert [(field.name, field.place, field.type, field.is_required) for field in check.fields] == [
        ("split", "address", "text", False), ("file", "form", "file", True),
    ]  # fmt: skip
    estimate = operation(document, "POST", "/api/estimate")
    assert [(field.name, field.type) for field in estimate.fields] == [
        ("verdicts", "file, again for more"), ("labels", "file"), ("draw", "file"),
    ]  # fmt: skip
    assert check.fields[0].values == ["dev", "test"]
    assert check.fields[0].schema["default"] == "test"
    assert ("429", "Too many requests; Retry-After says how many seconds to wait.") in check.answers
    submit = operation(document, "POST", "/api/submissions")
    required = {field.name for field in submit.fields if field.is_required}
    assert required == {"file", "judge", "kind", "inputs", "test_labels_used"}


def test_a_json_body_lists_its_fields(document):
    rename = operation(document, "POST", "/api/judges/rename")
    assert [(field.name, field.place, field.is_required) for field in rename.fields] == [
        ("judge", "JSON", True), ("to", "JSON", True), ("account", "JSON", False),
    ]  # fmt: skip


def test_it_is_linked_from_about_submit_and_every_footer(client):
    for page in ("/about", "/submit", "/"):
        assert 'href="/api"' in client.get(page).text


def test_it_fetches_nothing_from_elsewhere_and_is_cached_by_browsers(client):
    answer = client.get("/api")
    sources = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"', answer.text)
    assert sources and all(source.startswith(("/bundles/", "data:")) for source in sources)
    assert client.get("/api", headers={"if-none-match": answer.headers["etag"]}).status_code == 304
    assert client.head("/api").status_code == 200
    assert "unsafe-eval" not in answer.headers["content-security-policy"]
    assert not re.search(r"\bNone\b(?!-)|\{['{%]", answer.text.replace("If-None-Match", ""))


def test_what_a_route_says_is_escaped():
    html = with_code('<b>x</b> `<i>` " {{7*7}}\n  ``two``')
    assert html == Markup("&lt;b&gt;x&lt;/b&gt; <code>&lt;i&gt;</code> &#34; {{7*7}} <code>two</code>")


# The limit on checks, through the whole application


def test_the_fourth_check_in_a_minute_is_refused_with_when_to_come_back(client, within_a_minute):
    answers = [client.post("/api/check?split=dev", files={"file": ("a.jsonl", b"{}")}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert "python -m submissions check" in answers[-1].json()["detail"]
