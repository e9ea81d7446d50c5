"""Tests of a Space with two suites: a made-up one with private labels, which is the default, and DevAI."""

import json
import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from starlette.routing import Mount

from arb.core.predictions.write import template
from arb.core.settings import Settings
from arb.core.suite import load_suite
from space.app import create_app
from space.suites import SuiteClosed
from space.web.suite_path import in_suite, under, with_prefix
from submissions.app import SubmissionsApp
from tests.space.gradio_app.conftest import DECLARED
from tests.space.test_permissions import routes_of
from tests.support.space_app import HOST, signed_in
from tests.support.submissions import FORM, counts, settings_for, verdicts, write_suite

PRIVATE = 'labels = "private"\ntitle = "Small"\n[rules]\nfiles_a_day = 1000\nfiles_a_year = 100000\n'
HTML = {"accept": "text/html"}
ADDRESSES = re.compile(r'\s(?:href|action|src|hx-get|hx-post)="(/[^"]*)"')
SHARED = re.compile(r"/(s/.*|bundles/.*|docs/|api(#.*)?|metrics|sign-in|sign-out|suites)")


def devai_file(answer: str = "yes") -> bytes:
    """A valid file for DevAI with one answer everywhere."""
    rows = [json.loads(line) for line in template(load_suite("devai"), "test", "jsonl").splitlines()]
    return "\n".join(json.dumps({**row, "satisfied": answer}) for row in rows).encode()


def post(client, address: str, content: bytes, **fields):
    form = {**FORM, "test_labels_used": "no", **fields}
    return client.post(address, data=form, files={"file": ("a.jsonl", content)})


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> Settings:
    folder = tmp_path_factory.mktemp("several")
    (write_suite(folder) / "suite.toml").write_text(PRIVATE)
    return settings_for(folder, folder / "state", suites=f"{folder / 'small'}, devai", maintainers="mia, moe")


@pytest.fixture(scope="module")
def client(settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), base_url=f"http://{HOST}", follow_redirects=False) as client:
        yield client


@pytest.fixture(scope="module")
def sent(client) -> dict[str, str]:
    """The id of a submission to each suite, by the suite's name."""
    answers = {
        "small": post(client, "/api/submissions", verdicts(load_suite(f"{client_suite(client)}"))),
        "devai": post(client, "/api/submissions?suite=devai", devai_file()),
    }
    assert {name: answer.json()["suite"] for name, answer in answers.items()} == {
        "small": "small", "devai": "devai",
    }  # fmt: skip
    return {name: answer.json()["submission_id"] for name, answer in answers.items()}


def client_suite(client) -> str:
    return client.app.state.services_by_suite.default.submissions.settings.suite


@pytest.mark.parametrize("path", ["/", "/compare", "/about", "/submit", "/labels", "/validate"])
def test_pages_under_the_prefix_are_those_of_the_suite_and_lead_to_its_pages(client, path):
    default, devai = client.get(path, headers=HTML), client.get(f"/s/devai{path}", headers=HTML)
    assert (default.status_code, devai.status_code) == (200, 200)
    assert "Small</title>" in default.text
    assert "DevAI</title>" in devai.text
    assert default.headers.get("etag", "") != devai.headers.get("etag")
    addresses = ADDRESSES.findall(devai.text)
    assert f"/s/devai{path}" in addresses
    assert [each for each in addresses if not SHARED.fullmatch(each)] == []
    assert not [each for each in ADDRESSES.findall(default.text) if each.startswith("/s/devai/") and each[9:]]


def test_links_for_maintainers_of_a_further_suite_lead_somewhere(client):
    signed = signed_in(client.app.state.services_by_suite.default.submissions, "moe")
    page = client.get("/s/devai/maintain", headers=HTML | signed)
    links = re.findall(r'\shref="(/[^"#]*)', page.text)
    assert "/metrics" in links  # the server has one page of metrics for all suites
    found = {link: client.get(link, headers=HTML | signed).status_code for link in links}
    assert [link for link, status in found.items() if status >= 400] == []


def test_the_default_suite_has_the_same_pages_with_and_without_a_prefix(client):
    for path in ("/", "/about", "/api/board.json"):
        assert client.get(f"/s/small{path}", headers=HTML).content == client.get(path, headers=HTML).content


def test_the_masthead_offers_the_suites_only_if_there_are_several(client, settings, tmp_path):
    for path, current in (("/", "small"), ("/s/devai/", "devai")):
        menu = re.search(r'class="suite-menu".*?</details>', client.get(path, headers=HTML).text)[0]
        found = re.findall(r'href="(/s/.*?)"( aria-current="true")?>(.*?)</a>', menu)
        assert [(address, title) for address, _, title in found] == [
            ("/s/small/", "Small"),
            ("/s/devai/", "DevAI"),
        ]
        assert [bool(mark) for _, mark, _ in found] == [current == "small", current == "devai"]
    one = settings.model_copy(update={"suites": "", "state_dir": tmp_path / "state"})
    with TestClient(create_app(one)) as alone:
        assert "suite-menu" not in re.sub(r"<style>.*?</style>", "", alone.get("/").text, flags=re.S)
        assert alone.get("/s/devai/").status_code == 404


def test_rest_takes_the_suite_as_a_parameter_or_as_a_prefix(client, sent):
    by_parameter, by_prefix = client.get("/api/judges?suite=devai"), client.get("/s/devai/api/judges")
    assert by_parameter.content == by_prefix.content
    assert by_parameter.json()["suite"] == "devai"
    assert client.get("/api/judges").json()["suite"] == "small"
    assert client.get("/s/devai/api/judges?suite=small").json()["suite"] == "small"
    assert client.get("/readyz?suite=devai").json()["suite"] == "devai"
    tag = by_parameter.headers["etag"]
    assert client.get("/api/judges?suite=devai", headers={"if-none-match": tag}).status_code == 304
    assert client.get("/api/judges", headers={"if-none-match": tag}).status_code == 200


def test_the_openapi_document_declares_the_suite_of_every_route(client):
    paths = client.get("/api/openapi.json").json()["paths"]
    without = {
        f"{method} {path}"
        for path, operations in paths.items()
        for method, operation in operations.items()
        if "suite" not in [each["name"] for each in operation.get("parameters", ())]
    }
    assert without == {"get /healthz"}


@pytest.mark.parametrize("name", ["nope", "", '"><script>', "x" * 500])
def test_an_unknown_suite_is_a_404_that_names_the_suites(client, name):
    answer = client.get(f"/s/{name}/compare")
    assert (answer.status_code, answer.json()["detail"].partition(" here; ")[2]) == (
        404, "use one of small, devai",
    )  # fmt: skip
    page = client.get(f"/s/{name}/compare", headers=HTML)
    assert (page.status_code, "use one of small, devai" in page.text) == (404, True)
    assert "><script>" not in page.text.partition("<main")[2]
    if name:
        assert client.get("/api/judges", params={"suite": name}).status_code == 404
        assert post(client, f"/s/{name}/api/submissions", b"{}").status_code == 404


def test_records_of_the_suites_do_not_mix(client, settings, sent):
    suites = client.app.state.services_by_suite
    assert list(suites) == ["small", "devai"]
    for name in suites:
        assert counts(suites[name].submissions)["submissions"] == 1
        ada = signed_in(suites["small"].submissions, "Ada")
        for other, submission in sent.items():
            status = client.get(f"/s/{name}/api/submissions/{submission}", headers=ada).status_code
            assert status == (200 if other == name else 403), (name, other)
    assert "First judge" in [each["judge"] for each in client.get("/api/judges?suite=devai").json()["judges"]]
    assert client.get("/api/judges").json()["judges"] == []  # of private labels, until it is published
    assert (settings.state_dir / "suites" / "devai" / "records.sqlite").is_file()
    assert [path.name for path in (settings.state_dir / "suites" / "devai" / "files").glob("*/*")] != [
        path.name for path in (settings.state_dir / "files").glob("*/*")
    ]


def test_a_file_of_one_suite_is_refused_by_the_other(client, settings):
    answer = post(client, "/s/devai/api/submissions", verdicts(load_suite(settings.suite)))
    assert answer.status_code == 422
    assert answer.json()["check"]["suite"] == "devai"


def test_pages_of_one_suite_show_no_trajectory_or_label_of_the_other(client, settings):
    sample = load_suite("sample").split("dev")[0].trajectory_id  # shown by the default suite, as an example
    own = load_suite(settings.suite).split("test")[0].trajectory_id
    assert client.get("/trajectories", params={"id": sample}, headers=HTML).status_code == 200
    for trajectory_id in (sample, own):
        for path in ("/s/devai/trajectories", "/s/devai/errors", "/s/devai/disputes"):
            assert client.get(path, params={"id": trajectory_id}, headers=HTML).status_code == 404
        answer = client.get("/s/devai/api/screenshot", params={"trajectory_id": trajectory_id, "num": "1"})
        assert answer.status_code == 404
    assert client.get("/s/devai/labels", headers=HTML).status_code == 200
    assert client.get("/s/devai/api/boards").status_code == 200  # its labels are public
    assert client.get("/api/boards").status_code == 404  # those of the default suite are not


def test_one_sign_in_counts_in_every_suite(client):
    answer = client.post(
        "/s/devai/sign-in", data={"name": "mia", "next": "/s/devai/mine"},
        headers={"sec-fetch-site": "same-origin"},
    )  # fmt: skip
    assert (answer.status_code, answer.headers["location"]) == (303, "/s/devai/mine")
    cookie = {"cookie": "; ".join(f"{name}={value}" for name, value in answer.cookies.items())}
    client.cookies.clear()
    for root in ("", "/s/devai"):
        found = client.get(f"{root}/api/me", headers=cookie).json()
        assert (found["name"], found["is_maintainer"]) == ("mia", True)
        assert client.get(f"{root}/maintain", headers={**HTML, **cookie}).status_code == 200
    ended = client.post(
        "/s/devai/api/sessions/end", json={}, headers={"sec-fetch-site": "same-origin", **cookie}
    )
    assert ended.json() == {"ended": 1}
    assert client.get("/api/me", headers=cookie).json()["name"] is None


def test_redirects_stay_in_the_suite(client):
    with under("/s/devai"):
        assert with_prefix("/annotate?item=1") == "/s/devai/annotate?item=1"
        for shared in (
            "/sign-in?next=/",
            "/s/small/",
            "//other.org/x",
            "/docs/a",
            "/api#x",
            "https://x.org/",
        ):
            assert with_prefix(shared) == shared
        assert in_suite('<a class="x" href="/judge?id=1">') == '<a class="x" href="/s/devai/judge?id=1">'
        assert in_suite('<p title="/judge">href="/judge"</p>') == '<p title="/judge">href="/judge"</p>'
        once = in_suite('<form action="/disputes">')
        assert in_suite(once) == once  # a page contains fragments that have their prefix
    assert with_prefix("/annotate") == "/annotate"


def posted(app) -> list[str]:
    """Every address that takes a body, with an example of each parameter."""
    routes = [route for route in app.routes if not isinstance(route, Mount)]
    methods = (line.partition(" ") for line in routes_of(routes))
    found = {re.sub(r"{.*?}", "a", path) for method, _, path in methods if method in ("POST", "PUT")}
    assert {"/api/submissions", "/api/check", "/validate", "/my-agent", "/api/annotate/answers"} <= found
    return sorted(path for path in found if not path.startswith(("/mcp", "/gradio_api")))  # not under /s/


@pytest.mark.slow
def test_every_limit_on_bodies_holds_under_the_prefix(settings, tmp_path):
    changed = settings.model_copy(update={"max_upload_bytes": 20_000, "state_dir": tmp_path / "state"})
    form = {"content-type": "multipart/form-data; boundary=x", **signed_in(SubmissionsApp(changed), "Ada")}
    sent = {
        "too large": (b"x" * 100_000, form),
        "of another site": (b"x", {**form, "sec-fetch-site": "cross-site"}),
        "of another type": (b"x=1", {**form, "content-type": "application/x-www-form-urlencoded"}),
    }
    with TestClient(create_app(changed), base_url=f"http://{HOST}") as client:
        for path in posted(client.app):
            method = "PUT" if path == "/api/annotate/answers" else "POST"
            for name, (content, headers) in sent.items():
                if method == "PUT" and name == "too large":
                    content = b"x" * 3_000_000  # annotators may send many answers at once
                plain = client.request(method, path, content=content, headers=headers)
                assert plain.status_code == 413 or name != "too large", path
                for root in ("/s/devai", "/s/small"):
                    found = client.request(method, root + path, content=content, headers=headers)
                    is_off = root == "/s/devai" and not load_suite("devai").profile.serves(path)
                    if not (is_off and found.status_code == 404):
                        assert found.status_code == plain.status_code, (root, path, name)


def test_requests_to_all_suites_count_together(settings, tmp_path, within_a_minute):
    changed = settings.model_copy(update={"checks_a_minute": 3, "state_dir": tmp_path / "state"})
    with TestClient(create_app(changed)) as client:
        roots = ("", "/s/devai", "/s/nope", "/s/devai", "")
        statuses = [post(client, f"{root}/api/check", b"{}").status_code for root in roots]
        assert statuses == [200, 200, 404, 429, 429]


def test_only_the_pages_and_the_rest_api_are_under_the_prefix(client):
    for path in ("/gradio_api/info", "/config", "/mcp", "/metrics", "/gradio.js", "/monitoring", "/docs/"):
        assert client.get(f"/s/devai{path}").status_code in (404, 405) or path == "/gradio.js", path
    upload = client.post("/s/devai/gradio_api/upload", files={"files": ("a.jsonl", b"{}")})
    assert upload.status_code == 404
    assert client.get("/s/devai/s/devai/").status_code == 404


def test_allow_names_the_methods_of_all_routes_at_an_address_of_a_further_suite(client):
    for address in ("/api/maintain/labels", "/s/small/api/maintain/labels"):  # GET and POST are two routes
        refused = client.delete(address)
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, POST"), address


def test_a_restart_keeps_the_records_of_every_suite(client, settings, sent):
    with TestClient(create_app(settings), base_url=f"http://{HOST}") as again:
        for name in ("small", "devai"):
            assert counts(again.app.state.services_by_suite[name].submissions)["submissions"] == 1
        before, after = client.get("/api/board.json?suite=devai"), again.get("/api/board.json?suite=devai")
        assert before.content == after.content


def test_further_suites_are_opened_at_their_first_use(settings, tmp_path):
    changed = settings.model_copy(update={"state_dir": tmp_path / "state"})
    with TestClient(create_app(changed)) as client:
        suites = client.app.state.services_by_suite
        client.get("/", headers=HTML)
        assert [each.submissions.suite.name for each in suites.opened] == ["small"]
        client.get("/s/devai/", headers=HTML)
        assert [each.submissions.suite.name for each in suites.opened] == ["small", "devai"]


def test_a_suite_that_cannot_be_opened_does_not_stop_the_others(settings, tmp_path):
    state = tmp_path / "state"
    (state / "suites").mkdir(parents=True)
    (state / "suites" / "devai").write_text("a file instead of a folder")
    with TestClient(create_app(settings.model_copy(update={"state_dir": state}))) as client:
        for _ in range(2):
            answer = client.get("/api/judges?suite=devai")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "30")
            assert answer.json()["detail"].startswith("the suite devai cannot be opened now")
        assert client.get("/api/judges").status_code == 200
        with pytest.raises(SuiteClosed):
            client.app.state.services_by_suite["devai"]


def test_declared_fields_of_the_tools_and_endpoints_include_the_suite(client):
    named = client.get("/gradio_api/info").json()["named_endpoints"]
    for name in ("/check", "/submit", "/board", "/judges"):
        last = named[name]["parameters"][-1]
        assert (last["parameter_name"], last["parameter_has_default"]) == ("suite", True), name
    assert set(DECLARED) < {each["parameter_name"] for each in named["/submit"]["parameters"]}
