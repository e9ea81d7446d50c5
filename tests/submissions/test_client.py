"""Tests of `arb submissions submit`: it submits once, reports every problem, and tries again."""

import httpx2
import pytest
from typer.testing import CliRunner

from submissions import client
from submissions.__main__ import app
from submissions.client import (
    SubmissionNotSent,
    local_address,
    may_carry_token,
    problems_in,
    send_submission,
)
from tests.support.submissions import verdicts

DECLARED = {"account": "Ann", "judge": "Alpha"}


@pytest.fixture
def file(tmp_path, service):
    path = tmp_path / "verdicts.jsonl"
    path.write_bytes(verdicts(service.suite))
    return path


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE_SECONDS", 0.0)


def client_that(*answers):
    """Return a client with the given responses, in order. An exception is raised instead of returned."""
    seen = []

    def answer(request):
        seen.append(request.read())
        found = answers[len(seen) - 1]
        if isinstance(found, Exception):
            raise found
        return found

    return httpx2.Client(transport=httpx2.MockTransport(answer)), seen


def test_a_file_goes_out_with_its_declaration(file):
    client, seen = client_that(httpx2.Response(201, json={"submission_id": "abc", "is_new": True}))
    sent = send_submission("http://space", file, DECLARED, client)
    assert (sent.is_accepted, sent.answer["submission_id"]) == (True, "abc")
    assert file.read_bytes() in seen[0]
    assert b'name="judge"\r\n\r\nAlpha' in seen[0]


def test_a_failed_way_is_tried_again_with_the_whole_file(file):
    fail = httpx2.ConnectError("refused")
    client, seen = client_that(fail, httpx2.Response(503), httpx2.Response(200, json={"is_new": False}))
    assert send_submission("http://space", file, DECLARED, client).is_accepted
    assert len(seen) == 3
    assert file.read_bytes() in seen[2]


def test_a_space_that_says_when_to_come_back_is_waited_for(file):
    slept, told = [], []
    closed = httpx2.Response(503, json={"detail": "restoring"}, headers={"Retry-After": "30"})
    client, seen = client_that(*[closed] * 6, httpx2.Response(201, json={"is_new": True}))
    sent = send_submission("http://space", file, DECLARED, client, say=told.append, sleep=slept.append)
    assert sent.is_accepted
    assert (len(seen), slept) == (7, [30.0] * 6)
    assert told[0] == "the Space answered 503: restoring; trying again in 30 s"


def test_a_space_that_stays_closed_is_waited_for_a_quarter_of_an_hour(file):
    slept = []
    closed = httpx2.Response(503, json={"detail": "restoring"}, headers={"Retry-After": "200"})
    client, _ = client_that(*[closed] * 9)
    with pytest.raises(SubmissionNotSent, match="the Space answered 503: restoring; try again later"):
        send_submission("http://space", file, DECLARED, client, sleep=slept.append)
    assert sum(slept) == 800  # a fifth pause would end after 1,000 s


def test_after_four_attempts_it_gives_up_with_what_to_do(file):
    client, seen = client_that(*[httpx2.ConnectError("refused")] * 4)
    with pytest.raises(SubmissionNotSent, match="cannot be reached: refused; check the address"):
        send_submission("http://space", file, DECLARED, client)
    assert len(seen) == 4


def test_a_refusal_is_not_sent_again_and_every_problem_is_told(file):
    answer = {"detail": "x", "fields": [{"field": "judge", "message": "fill it in"}]}
    client, seen = client_that(httpx2.Response(422, json=answer))
    sent = send_submission("http://space", file, DECLARED, client)
    assert (sent.is_accepted, problems_in(sent.answer), len(seen)) == (False, ["fill it in"], 1)


def test_what_answers_but_is_no_space_is_told_apart(file):
    client, _ = client_that(httpx2.Response(200, text="<html>"))
    with pytest.raises(SubmissionNotSent, match="is not a Space of this project"):
        send_submission("http://space", file, DECLARED, client)


def test_the_command_sends_nothing_while_something_is_wrong_and_says_all_of_it(tmp_path, suite_folder):
    bad = tmp_path / "bad.jsonl"
    bad.write_text("no json\n")
    done = CliRunner().invoke(
        app, ["submit", str(bad), "--suite", str(suite_folder / "small"), "--space", "http://127.0.0.1:9"]
    )
    assert done.exit_code == 1
    for said in (
        "nothing was sent", "\n  --account: fill it in", "\n  --judge: fill it in",
        "\n  --kind: choose one of 'LLM judge', ", "\n  --inputs: choose one of 'tree', ",
        "\n  --[no-]test-labels-used: say whether",
    ):  # fmt: skip
        assert said in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("host", "port", "address"),
    [
        ("127.0.0.1", 7861, "http://127.0.0.1:7861"),
        ("0.0.0.0", 7860, "http://127.0.0.1:7860"),
        ("::", 80, "http://[::1]:80"),
        ("[::1]", 80, "http://[::1]:80"),
        ("space.example", 443, "http://space.example:443"),
    ],
)
def test_a_space_is_reached_where_it_listens(host, port, address):
    assert local_address(host, port) == address


@pytest.mark.parametrize(
    ("port", "option", "message"),
    [
        ("9", (), "http://127.0.0.1:9 cannot be reached"),
        ("9", ("--space", "http://127.0.0.1:8"), "http://127.0.0.1:8 cannot be reached"),
        ("0", (), "with ARB_PORT=0 the Space runs on a random port; pass the address"),
    ],
)
def test_the_command_finds_the_space_of_the_settings_unless_it_is_named(
    file, suite_folder, port, option, message
):
    options = options_for("", suite_folder)
    place = options.index("--space")
    options[place : place + 2] = ["--account", "Ann", *option]
    environment = {"ARB_HOST": "0.0.0.0", "ARB_PORT": port}
    done = CliRunner().invoke(app, ["submit", str(file), *options], env=environment)
    assert done.exit_code != 0
    assert message in done.output


# The token


UNSAFE = (
    "http://ada-board.hf.space", "http://localhost.evil.example", "http://192.168.1.2:7860",
    "ada-board.hf.space", "http://127.0.0.1@evil.example", "", "http://[::1",
)  # fmt: skip


@pytest.mark.parametrize(
    "space",
    ["https://ada-board.hf.space", "http://127.0.0.1:7860", "http://localhost:7860", "http://[::1]:1/"],
)
def test_a_token_goes_by_https_or_stays_on_this_machine(space):
    assert may_carry_token(space)


@pytest.mark.parametrize("space", UNSAFE)
def test_a_token_goes_nowhere_else_and_then_nothing_is_sent(file, space):
    client, seen = client_that()
    with pytest.raises(SubmissionNotSent, match="unencrypted"):
        send_submission(space, file, DECLARED, client, token="hf_mine")
    assert seen == []


def test_the_token_is_a_header_and_no_part_of_the_form(file):
    asked = []

    def answer(request):
        asked.append((request.headers.get("authorization"), request.read()))
        return httpx2.Response(201, json={"is_new": True})

    client = httpx2.Client(transport=httpx2.MockTransport(answer))
    send_submission("https://space.example", file, DECLARED, client, token="hf_mine")
    ((header, body),) = asked
    assert header == "Bearer hf_mine"
    assert b"hf_mine" not in body


def options_for(space: str, suite_folder) -> list[str]:
    return [
        "--suite", str(suite_folder / "small"), "--space", space, "--judge", "Alpha", "--kind", "LLM judge",
        "--inputs", "tree", "--no-test-labels-used",
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["option", "environment"])
def test_with_a_token_no_name_is_asked_for_and_the_token_is_never_printed(
    file, suite_folder, monkeypatch, way
):
    sent = []

    def send(space, path, declared, client=None, token=None, say=None):
        sent.append((declared["account"], token))
        raise SubmissionNotSent("nobody is there")

    monkeypatch.setattr(client, "send_submission", send)
    options = options_for("https://space.example", suite_folder)
    if way == "option":
        options += ["--token", "hf_mine"]
    else:
        monkeypatch.setenv("HF_TOKEN", "hf_mine")
    done = CliRunner().invoke(app, ["submit", str(file), *options])
    assert sent == [("", "hf_mine")]
    assert "hf_mine" not in done.output


def test_a_token_of_the_environment_is_not_sent_unencrypted(file, suite_folder, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_mine")
    done = CliRunner().invoke(app, ["submit", str(file), *options_for("http://space.example", suite_folder)])
    assert done.exit_code == 1
    assert "--account: fill it in" in done.output  # nobody is known there


def waiting(seconds: int = 2, status: int = 202) -> httpx2.Response:
    found = {"submission_id": "abc", "is_new": status == 202, "status": "waiting", "message": "It waits."}
    return httpx2.Response(status, json=found, headers={"Retry-After": str(seconds)})


def test_a_receipt_that_waits_is_followed_to_its_final_status(file):
    accepted = {"submission_id": "abc", "is_new": False, "status": "accepted", "message": "It is accepted."}
    client, seen = client_that(
        waiting(2),
        waiting(3, 200),
        httpx2.ConnectError("gone"),
        httpx2.Response(503),
        httpx2.Response(200, json=accepted),
    )
    slept, lines = [], []
    sent = send_submission("http://space", file, DECLARED, client, say=lines.append, sleep=slept.append)
    assert (sent.answer["status"], sent.answer["is_new"]) == ("accepted", True)
    assert slept == [2, 3, 3, 3]
    assert lines[0] == "It waits. Asking again in 2 s"
    assert len(seen) == 5


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_receipt_that_may_not_be_asked_for_stays_as_it_came(file, status):
    client, _ = client_that(waiting(), httpx2.Response(status, json={"detail": "sign in"}))
    sent = send_submission("http://space", file, DECLARED, client, sleep=lambda _: None)
    assert (sent.is_accepted, sent.answer["status"]) == (True, "waiting")


def test_a_record_that_never_lasts_is_not_waited_for_without_end(file):
    client, seen = client_that(waiting(300), *[waiting(300, 200)] * 9)
    sent = send_submission("http://space", file, DECLARED, client, sleep=lambda _: None)
    assert (sent.answer["status"], len(seen)) == ("waiting", 4)  # 900 s: three more questions


def test_too_many_requests_are_sent_again_later_and_a_used_up_quota_is_not(file):
    busy = httpx2.Response(429, json={"detail": "one address may ..."}, headers={"Retry-After": "7"})
    client, seen = client_that(busy, httpx2.Response(201, json={"status": "accepted"}))
    assert send_submission("http://space", file, DECLARED, client, sleep=lambda _: None).is_accepted
    answer = {"detail": "x", "next_at": "2027-01-01"}
    used_up = httpx2.Response(429, json=answer, headers={"Retry-After": "7"})
    client, seen = client_that(used_up)
    assert not send_submission("http://space", file, DECLARED, client).is_accepted
    assert len(seen) == 1
