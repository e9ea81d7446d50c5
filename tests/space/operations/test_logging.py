"""Tests of logs: request ids, log lines, uncaught exceptions, and what a log never contains."""

import errno
import io
import json
import logging

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from starlette.datastructures import Headers

from arb.core.settings import Settings
from space.operations.logging import HEADER, RequestLog, configure_logs, path_for_log, request_id_of
from space.operations.metrics import Metrics

PLANTED = "webarena.17-is-Successful"


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def client(metrics):
    app = FastAPI()

    @app.get("/things/{thing}")
    def thing(thing: str, request: Request):
        logging.getLogger("space.inside").warning("inside")
        return {"thing": thing}

    @app.post("/fails")
    async def fails(request: Request):
        raise ValueError(PLANTED)

    app.add_middleware(RequestLog, metrics=metrics)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def test_every_answer_has_an_id_of_its_own(client):
    ids = [client.get(path).headers[HEADER] for path in ("/things/1", "/things/1", "/nowhere")]
    assert len(set(ids)) == 3
    assert all(len(each) == 16 for each in ids)


@pytest.mark.parametrize("given_id", ["a", "9f.2-b_C", "x" * 64])
def test_a_short_plain_id_of_a_proxy_is_taken(client, given_id):
    assert client.get("/things/1", headers={HEADER: given_id}).headers[HEADER] == given_id


@given(st.text(alphabet=st.characters(max_codepoint=255), max_size=100))
def test_whatever_a_client_sends_the_id_is_a_short_plain_word(text):
    found = request_id_of(Headers(raw=[(b"x-request-id", text.encode("latin-1"))]))
    assert 1 <= len(found) <= 64
    assert all(letter.isascii() and (letter.isalnum() or letter in "._-") for letter in found)


def test_a_request_is_one_line_with_its_path_and_without_its_query(client, caplog):
    with caplog.at_level(logging.INFO):
        client.get("/things/7?token=hf_secret&code=abc")
    (record,) = [r for r in caplog.records if r.name == "space.requests"]
    assert (record.method, record.path, record.status) == ("GET", "/things/7", 200)
    assert record.ms >= 0
    assert "hf_secret" not in str(vars(record)) and "abc" not in str(vars(record))


def test_what_nobody_caught_is_a_500_with_the_id_and_nothing_else(client, caplog, metrics):
    answer = client.post("/fails?x=1", content=PLANTED)
    assert answer.status_code == 500
    assert answer.json()["request_id"] == answer.headers[HEADER]
    assert PLANTED not in answer.text and "ValueError" not in answer.text
    assert 'arb_failures_total{where="request"} 1.0' in metrics.text().decode()
    (line,) = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert line.exc_info[0] is ValueError


def test_a_line_from_inside_a_request_has_its_id(client):
    import structlog

    seen = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(structlog.contextvars.get_contextvars().get("request_id"))
    inside = logging.getLogger("space.inside")
    inside.addHandler(handler)
    try:
        answer = client.get("/things/1")
    finally:
        inside.removeHandler(handler)
    assert seen == [answer.headers[HEADER]]
    assert "request_id" not in structlog.contextvars.get_contextvars()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/gradio_api/file=/tmp/gradio/ab/my-verdicts.jsonl", "/gradio_api/file=…"),
        ("/gradio_api/upload", "/gradio_api/upload…"),
        ("/a\nb\x1b[31m", "/a?b?[31m"),
        ("/" + "x" * 500, "/" + "x" * 199 + "…"),
        ("/api/board.json", "/api/board.json"),
    ],
)
def test_the_path_in_a_log_is_short_on_one_line_and_names_no_file(path, text):
    assert path_for_log(path) == text


def test_durations_are_counted_by_route_and_not_by_address(client, metrics):
    for path in ("/things/1", "/things/2", "/nowhere/1", "/nowhere/2"):
        client.get(path)
    client.request("BREW", "/things/1")
    text = metrics.text().decode()
    assert 'arb_request_seconds_count{method="GET",route="/things/{thing}",status="2xx"} 2.0' in text
    assert 'arb_request_seconds_count{method="GET",route="other",status="4xx"} 2.0' in text
    assert "nowhere" not in text and "BREW" not in text


TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def logged():
    """Set up logs for settings, and return the lines so far. Restores the loggers afterwards."""
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    names = ("uvicorn", "uvicorn.error", "uvicorn.access", "httpx")
    kept = {name: (logging.getLogger(name).handlers[:], logging.getLogger(name).level) for name in names}
    stream = io.StringIO()

    def lines(**settings) -> list[dict]:
        if settings or not stream.getvalue():
            configure_logs(Settings(**settings), stream)
        return [json.loads(line) for line in stream.getvalue().splitlines()]

    yield lines
    root.handlers[:], root.level = before
    for name, (handlers, level) in kept.items():
        logging.getLogger(name).handlers[:] = handlers
        logging.getLogger(name).setLevel(level)


def test_a_line_is_one_json_object_with_time_level_and_logger(logged):
    logged()
    logging.getLogger("space.x").warning("two\nlines of %s", "words")
    (line,) = logged()
    assert line["event"] == "two\nlines of words"
    assert (line["level"], line["logger"]) == ("warning", "space.x")
    assert line["at"].endswith("Z")


@pytest.mark.parametrize(
    "said",
    [
        f"Authorization: Bearer {TOKEN}", f"the token {TOKEN}.", "x-key: bearer abc.def-123",
        "my metrics token m3", "signed with a-server-secret", "hf_oauth_eyJhbGciOiJFZERTQSJ9.abc-def_1",
    ],
)  # fmt: skip
def test_no_token_and_no_secret_gets_into_a_line(logged, said):
    logged(
        secret=SecretStr("a-server-secret"), metrics_token=SecretStr("m3"), hf_token=SecretStr("plain-one")
    )
    logging.getLogger("x").error(said)
    text = json.dumps(logged())
    assert "[hidden]" in text
    for hidden in (TOKEN, "abc.def-123", "a-server-secret", " m3", "eyJhbGci"):
        assert hidden not in text


def test_an_exception_is_logged_by_type_and_place_without_what_it_says(logged):
    logged()

    def score():
        try:
            raise KeyError("webarena.17 is Successful")
        except KeyError as error:
            raise ValueError("row 3: label true") from error

    try:
        score()
    except ValueError:
        logging.getLogger("x").exception("scoring failed")
    (line,) = logged()
    assert line["exception"][0] == "builtins.ValueError"
    assert "builtins.KeyError" in line["exception"]
    assert any("test_logging.py" in place and place.endswith(" score") for place in line["exception"])
    assert "Successful" not in json.dumps(line) and "label true" not in json.dumps(line)


def test_a_full_disk_is_named_in_the_log_without_the_file(logged):
    logged()
    try:
        raise OSError(errno.ENOSPC, "label true", "/srv/state/files/ab")
    except OSError:
        logging.getLogger("x").exception("submitting failed")
    (line,) = logged()
    assert line["exception"][0] == "builtins.OSError: No space left on device"
    assert "label true" not in json.dumps(line) and "/srv" not in json.dumps(line)


def test_the_servers_own_log_goes_the_same_way(logged):
    logging.getLogger("uvicorn.error").addHandler(logging.NullHandler())
    logged()
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    (line,) = logged()
    assert line["logger"] == "uvicorn.error"


def test_addresses_that_a_client_of_ours_asks_are_not_logged(logged):
    logged()
    logging.getLogger("httpx").info("HTTP Request: GET https://hub/x?X-Amz-Signature=abc")
    assert logged() == []


def test_a_very_long_text_is_cut(logged):
    logged()
    logging.getLogger("x").warning("y" * 100_000)
    (line,) = logged()
    assert len(line["event"]) <= 2_001


def test_a_terminal_gets_words_and_a_space_json_even_there(logged):
    logged()  # for its putting back
    for settings, is_json in ((Settings(), False), (Settings(space_id="a/b"), True)):
        terminal = Terminal()
        configure_logs(settings, terminal)
        logging.getLogger("space.x").info("hello")
        text = terminal.getvalue()
        assert text.startswith("{") is is_json and "hello" in text


def test_a_format_that_is_asked_for_is_used_and_text_leaves_out_warnings_of_libraries(logged):
    logged()  # for its putting back
    for log_format, is_json in (("text", False), ("json", True)):
        stream = Terminal() if is_json else io.StringIO()
        configure_logs(Settings(), stream, log_format)
        logging.getLogger("gradio.blocks").warning("SSR mode is not supported")
        logging.getLogger("gradio.blocks").error("broken")
        logging.getLogger("space.x").warning("slow")
        lines = stream.getvalue().splitlines()
        assert [line.startswith("{") for line in lines] == [is_json] * (3 if is_json else 2)
        assert ("SSR" in stream.getvalue()) is is_json
