"""What a log line holds, and what none ever holds."""

import io
import json
import logging

import pytest
from pydantic import SecretStr

from dataset_script.settings import Settings
from space.operations.logs import configure_logs

TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def logged():
    """Set logs up for settings; gives the lines written so far. Puts the loggers back afterwards."""
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


def test_an_exception_is_told_by_type_and_place_without_what_it_says(logged):
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
    assert any("test_logs.py" in place and place.endswith(" score") for place in line["exception"])
    assert "Successful" not in json.dumps(line) and "label true" not in json.dumps(line)


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
