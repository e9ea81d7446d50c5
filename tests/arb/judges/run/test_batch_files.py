"""Lines of a batch's result files: each is a reply, a failure of a known kind, or said to be unreadable."""

import json

import pytest
from hypothesis import given

from arb.judges.engine.errors import CallFailed
from arb.judges.run.batch_files import result_of
from arb.judges.types import Reply
from tests.support.json_values import ANY_JSON


def line(response=None, error=None, custom_id="k") -> str:
    return json.dumps({"id": "b", "custom_id": custom_id, "response": response, "error": error})


def completion(text: str | None, finish_reason: str = "stop") -> dict:
    return {
        "choices": [{"message": {"content": text}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3},
    }


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (line({"status_code": 429, "body": {"error": {"message": "slow down"}}}), "rate_limit"),
        (line({"status_code": 500, "body": {"error": {"message": "oops"}}}), "transient"),
        (line({"status_code": 200, "body": '{"choices": [{"mess'}), "transient"),  # cut JSON, as a text
        (line({"status_code": 200, "body": completion(None)}), "transient"),
        (line(None, {"code": "batch_expired", "message": "too late"}), "transient"),
        (line(None, None), "transient"),
        (
            line(
                {"status_code": 400, "body": {"error": {"code": "context_length_exceeded", "message": "-"}}}
            ),
            "too_long",
        ),
        (line({"status_code": 404, "body": {"error": {"message": "no such model"}}}), "final"),
    ],
)
def test_failures_have_their_kind(said, kind):
    _, failure = result_of(said)
    assert isinstance(failure, CallFailed)
    assert failure.kind == kind


@pytest.mark.parametrize("said", ["", "{", "[]", "{}", '{"custom_id": 3}', "null"])
def test_a_line_that_names_no_call_is_unreadable(said):
    assert result_of(said) is None


@given(response=ANY_JSON, error=ANY_JSON)
def test_whatever_stands_in_a_line_it_is_a_reply_or_a_failure(response, error):
    key, result = result_of(line(response, error))
    assert key == "k"
    assert isinstance(result, Reply | CallFailed)


@given(status=ANY_JSON, body=ANY_JSON)
def test_whatever_the_answer_is_it_is_a_reply_or_a_failure(status, body):
    assert isinstance(result_of(line({"status_code": status, "body": body}))[1], Reply | CallFailed)
