"""The named endpoints, called by the real gradio_client against a running Space."""

import json
import uuid
from pathlib import Path

import httpx
import pytest
from gradio_client import Client, handle_file
from gradio_client.exceptions import AppError

from tests.space.gradio_app.conftest import DECLARED, running
from tests.support.submissions import SECRET_ANNOTATOR, TASKS, settings_for


@pytest.fixture(scope="module")
def client(space):
    return Client(space.url, verbose=False)


def over_rest(space, path: str, **form) -> httpx.Response:
    file = (Path(path).name, Path(path).read_bytes())
    return httpx.post(space.url + form.pop("to"), files={"file": file}, data=form)


@pytest.mark.parametrize("split", ["test", "dev"])
@pytest.mark.parametrize("content", [b"{}\n", b"%PDF-1.7", b'{"trajectory_id": "x", "success": "maybe"}\n'])
def test_check_gives_what_rest_gives(space, client, content, split):
    path = space.file(content, "my.jsonl")
    found = client.predict(handle_file(path), split, api_name="/check")
    assert found == over_rest(space, path, to=f"/api/check?split={split}").json()


def test_board_and_judges_give_what_rest_gives(space, client):
    assert client.predict(api_name="/board") == httpx.get(space.url + "/api/board.json").json()
    assert client.predict(api_name="/judges") == httpx.get(space.url + "/api/judges").json()


def test_a_file_is_submitted_under_a_name_and_sent_again_it_is_one_submission(space, client):
    path = space.file(space.valid(misses=1))
    first = client.predict(handle_file(path), **DECLARED, account="Ada", api_name="/submit")
    again = client.predict(handle_file(path), **DECLARED, account="Ada", api_name="/submit")
    rest = over_rest(space, path, to="/api/submissions", account="Ada", **DECLARED)
    assert rest.status_code == 200
    assert first["submission_id"] == again["submission_id"] == rest.json()["submission_id"]
    assert again == rest.json()
    rows = client.predict(api_name="/board")["rows"]
    assert [row["judge"] for row in rows if row["id"] == first["submission_id"]] == ["My judge"]


def test_every_problem_of_a_declaration_is_in_the_error(space, client):
    path = space.file(space.valid(misses=2))
    with pytest.raises(AppError) as refused:
        client.predict(
            handle_file(path), **{**DECLARED, "judge": "", "kind": "Oracle"}, link="javascript:x",
            api_name="/submit",
        )  # fmt: skip
    for said in (
        "Your name: fill it in",
        "Name of the judge: fill it in",
        "Kind: choose one of",
        "Link: is not",
    ):
        assert said in str(refused.value)


def test_a_file_with_errors_is_not_submitted_and_its_errors_are_named(space, client):
    before = client.predict(api_name="/board")
    path = space.file(b'{"trajectory_id": "x", "success": "maybe"}\n')
    with pytest.raises(AppError, match="the file is not valid") as refused:
        client.predict(handle_file(path), **DECLARED, account="Ada", api_name="/submit")
    assert "'maybe'" in str(refused.value)
    assert client.predict(api_name="/board") == before


def test_another_split_is_refused(space, client):
    with pytest.raises(AppError, match="choose dev or test"):
        client.predict(handle_file(space.file(b"{}\n")), "train", api_name="/check")


def call(space, name: str, *data, **headers) -> dict:
    """What a stranger may send: any data, without gradio_client, which would upload the file first."""
    config = httpx.get(space.url + "/config").json()
    (event,) = [each["id"] for each in config["dependencies"] if each["api_name"] == name]
    session = uuid.uuid4().hex
    body = {"fn_index": event, "data": list(data), "session_hash": session}
    httpx.post(space.url + "/gradio_api/queue/join", json=body, headers=headers).raise_for_status()
    stream = httpx.get(f"{space.url}/gradio_api/queue/data?session_hash={session}", timeout=120).text
    messages = [json.loads(line[5:]) for line in stream.splitlines() if line.startswith("data:")]
    (done,) = [message for message in messages if message["msg"] == "process_completed"]
    return done


@pytest.mark.parametrize("meta", [{}, {"meta": {"_type": "gradio.FileData"}}])
@pytest.mark.parametrize(
    "sent", ["/etc/passwd", "records", "uploads/../../state", "http://127.0.0.1:9/x", 7, None]
)
def test_no_path_but_that_of_an_upload_is_read(space, meta, sent):
    path = str(space.settings.state_dir / "records.sqlite") if sent == "records" else sent
    if sent == "uploads/../../state":
        path = f"{space.folder}/uploads/../../state/records.sqlite"
    done = call(space, "check", {"path": path, **meta}, "test")
    assert not done["success"]
    assert "root:" not in json.dumps(done)
    assert str(space.settings.state_dir) not in json.dumps(done)


def test_a_page_of_another_site_submits_nothing(space):
    uploaded = httpx.post(
        space.url + "/gradio_api/upload", files={"files": ("a.jsonl", space.valid(misses=3))}
    )
    file = {"path": uploaded.json()[0], "meta": {"_type": "gradio.FileData"}}
    data = (file, *DECLARED.values(), "Mallory", "", "", "")
    done = call(space, "submit", *data, **{"sec-fetch-site": "cross-site"})
    assert done["output"]["error"] == "a page of another site may not submit here; open /submit instead"


def test_endpoints_are_typed_and_described_and_no_event_of_the_page_is_one(space):
    named = httpx.get(space.url + "/gradio_api/info").json()["named_endpoints"]
    assert set(named) == {"/check", "/submit", "/board", "/judges"}
    assert all(endpoint["description"] for endpoint in named.values())
    assert [each["parameter_name"] for each in named["/check"]["parameters"]] == ["file", "split", "suite"]
    kinds = {each["parameter_name"]: each["type"] for each in named["/submit"]["parameters"]}
    assert "LLM judge" in json.dumps(kinds["kind"])


def test_no_answer_gives_away_labels(space, client):
    client.predict(handle_file(space.file(space.valid(misses=4))), "test", api_name="/check")
    for answer in (client.predict(api_name="/board"), httpx.get(space.url + "/config").json()):
        text = json.dumps(answer)
        hidden = [
            "counts_by_task",
            SECRET_ANNOTATOR,
            str(space.settings.state_dir),
            *(task for _, task in TASKS),
        ]
        assert [word for word in hidden if word in text] == []


def test_checks_are_counted_by_address(suite_folder, tmp_path, within_a_minute):
    settings = settings_for(suite_folder, tmp_path / "state", checks_a_minute=2)
    with running(settings, tmp_path / "files") as space:
        for _ in range(2):
            assert not call(space, "check", {"path": "x"}, "test")["success"]
        assert "try again in" in call(space, "check", {"path": "x"}, "test")["output"]["error"]
        assert httpx.post(space.url + "/api/check", files={"file": b"{}"}).status_code == 429


def test_on_a_space_a_token_says_who_submits(space_on_the_hub):
    space = space_on_the_hub
    path = space.file(space.valid())
    known = Client(space.url, token="hf_token_of_ada", verbose=False)
    found = known.predict(handle_file(path), **DECLARED, api_name="/submit")
    assert found["account"] == "ada"
    for token in (None, "hf_nobody_knows_it"):
        stranger = Client(space.url, token=token or False, verbose=False)
        with pytest.raises(AppError, match=r"sign in|token"):
            stranger.predict(handle_file(path), **DECLARED, account="ada", api_name="/submit")
