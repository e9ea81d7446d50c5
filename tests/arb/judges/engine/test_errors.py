import json
from types import SimpleNamespace

import aiohttp
import pytest
from hypothesis import given
from hypothesis.strategies import sampled_from, text

from arb.judges.endpoints.connection import classify
from arb.judges.engine.errors import CallFailed, classify_status
from arb.judges.engine.rate_limits import read_rate_limits


def openai_error(message, *, code=None, param=None, kind="invalid_request_error"):
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": code}})


TOO_LONG = [
    (
        400,
        openai_error(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 "
            "tokens. Please reduce the length of the messages.",
            code="context_length_exceeded",
            param="messages",
        ),
    ),
    # vLLM names a parameter in the same breath; a shorter prompt is what helps
    (
        400,
        openai_error(
            "'max_tokens' or 'max_completion_tokens' is too large: 1024. This model's maximum context length "
            "is 2048 tokens and your request has 1500 input tokens",
            code=400,
        ),
    ),
    (
        400,
        json.dumps(
            {"object": "error", "message": "This model's maximum context length is 4 tokens", "code": 400}
        ),
    ),
    (400, openai_error("prompt is too long: 210000 tokens > 200000 maximum")),
    (
        400,
        json.dumps(
            [{"error": {"code": 400, "message": "The input token count (9) exceeds the maximum (4)"}}]
        ),
    ),
    (422, openai_error("Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193")),
    (413, "<html>413 Request Entity Too Large</html>"),
    # a prompt larger than the account's tokens a minute: to wait helps nothing
    (
        429,
        openai_error("Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000."),
    ),
    (400, openai_error("Provider returned error")[:-2] + ', "metadata": {"raw": "prompt is too long"}}}'),
]

UNSUPPORTED = [
    ("max_tokens", 400, openai_error("Unsupported parameter: 'max_tokens' is not supported with this model. "
     "Use 'max_completion_tokens' instead.", code="unsupported_parameter", param="max_tokens")),
    ("temperature", 400, openai_error("Unsupported value: 'temperature' does not support 0 with this model.",
     code="unsupported_value", param="temperature")),
    ("seed", 400, openai_error("Unrecognized request argument supplied: seed")),
    ("seed", 422, json.dumps({"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"]}]})),
    ("max_completion_tokens", 400, openai_error("max_completion_tokens: Extra inputs are not permitted")),
    ("temperature", 400, openai_error("`temperature` is deprecated for this model.")),
    ("logprobs", 403, openai_error("You are not allowed to request logprobs from this model")),
    ("top_logprobs", 400, openai_error("'top_logprobs' is not supported", param="top_logprobs")),
]  # fmt: skip

FINAL = [
    (404, openai_error("The model `gpt-9` does not exist", code="model_not_found")),
    (400, openai_error("Invalid image.", code="invalid_image")),
    # a value, not the parameter, is wrong: to leave it out would ask something else
    (400, openai_error("max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
                       code="invalid_value", param="max_tokens")),
    # the user's own field is not left out behind their back
    (400, openai_error("Unsupported parameter: 'reasoning_effort'", code="unsupported_parameter",
                       param="reasoning_effort")),
    # a message that quotes a page of a bank
    (422, openai_error("body.messages: not a list: 'Payment failed: insufficient funds'")),
]  # fmt: skip


def google_quota(quota: str, *more, message="You exceeded your current quota, please check your plan"):
    """The body of Google's 429, as https://ai.google.dev/gemini-api/docs/rate-limits has it."""
    failure = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": quota}]}
    error = {"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": [failure, *more]}
    return json.dumps({"error": error})


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}
A_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
A_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
KEY_INVALID = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}

ACCOUNT = [
    (401, openai_error("Incorrect API key provided", code="invalid_api_key")),
    (401, "<html>Unauthorized</html>"),
    (402, openai_error("Insufficient credits")),
    (400, json.dumps({"error": {"code": 400, "message": "?", "details": [KEY_INVALID]}})),
    # no credit: a 429 that never passes
    (429, openai_error("You exceeded your current quota, please check your plan", code="insufficient_quota")),
    (429, openai_error("?", kind="insufficient_quota")),
    (429, openai_error("You exceeded your current quota, please check your plan")),
    (429, google_quota(A_DAY, RETRY_INFO)),
    # Anthropic has no code of its own for it
    (400, openai_error("Your credit balance is too low to access the Anthropic API.")),
]  # fmt: skip

PER_MINUTE = [
    (google_quota(A_MINUTE, RETRY_INFO), 34.07),
    (google_quota(A_MINUTE), None),
    (f"[{google_quota(A_MINUTE, RETRY_INFO)}]", 34.07),
    # OpenRouter gives its provider's answer as a text
    (json.dumps({"error": {"code": 429, "message": "Provider returned error",
                           "metadata": {"raw": google_quota(A_MINUTE, RETRY_INFO)}}}), 34.07),
    (openai_error("You exceeded your current quota. Please retry in 2.5s."), 2.5),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), TOO_LONG)
def test_a_prompt_that_is_too_long_is_known_in_every_wording(status, body):
    assert classify_status(status, body).kind == "too_long"


@pytest.mark.parametrize(("parameter", "status", "body"), UNSUPPORTED)
def test_a_parameter_that_is_not_known_is_named(parameter, status, body):
    failure = classify_status(status, body)
    assert (failure.kind, failure.parameter) == ("unsupported_parameter", parameter)


@pytest.mark.parametrize(("status", "body"), ACCOUNT)
def test_an_account_without_credit_or_with_a_wrong_key_is_known_by_fields_before_words(status, body):
    assert classify_status(status, body).kind == "account"


@pytest.mark.parametrize(("body", "seconds"), PER_MINUTE)
def test_a_quota_per_minute_is_a_rate_limit_whatever_its_wording(body, seconds):
    failure = classify_status(429, body)
    assert (failure.kind, failure.retry_after_s) == ("rate_limit", seconds)


@pytest.mark.parametrize(("status", "body"), FINAL)
def test_the_rest_is_final(status, body):
    assert classify_status(status, body).kind == "final"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, openai_error("The prompt triggered Azure OpenAI's content management policy.",
                           code="content_filter")),
        (403, openai_error("Your chosen model requires moderation and your input was flagged", code=403)),
    ],
)  # fmt: skip
def test_a_prompt_that_a_filter_stops_is_refused(status, body):
    assert classify_status(status, body).kind == "refused"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 99999 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),  # long past
    ],
)
@pytest.mark.parametrize("status", [429, 503, 529])
def test_too_many_calls_and_overload_ask_for_fewer_with_the_wait_they_name(status, headers, seconds):
    failure = classify_status(status, openai_error("overloaded, slow down"), headers)
    assert (failure.kind, failure.retry_after_s) == ("rate_limit", seconds)


@pytest.mark.parametrize("status", [503, 529])
def test_a_server_that_is_not_there_asks_for_nothing_but_may_have_too_many_calls(status):
    failure = classify_status(status, "<html>Service Unavailable</html>")
    assert (failure.kind, failure.is_overload) == ("transient", True)
    assert classify_status(status, "<html>sorry</html>", {"retry-after": "3"}).kind == "rate_limit"


def test_a_date_is_taken_from_the_servers_own_clock():
    headers = {"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}
    assert classify_status(429, "slow", headers).retry_after_s == 30


@pytest.mark.parametrize(
    ("status", "message", "code", "seconds"),
    [
        (429, "Rate limit reached for gpt-4o on tokens per min (TPM). Please try again in 6m0.5s.",
         "rate_limit_exceeded", 360.5),
        (429, "Please try again in 120ms. Visit the docs.", None, 0.12),
        (429, "Your requests have exceeded call rate limit. Please retry after 26 seconds.", "429", 26),
        (400, "Too many requests, please wait before trying again.", "ThrottlingException", None),
        (403, "slow", "rate_limit_exceeded", None),
        (529, "Overloaded", "overloaded_error", None),
        (503, "The model is overloaded. Please try again later.", None, None),
    ],
)  # fmt: skip
def test_limits_are_known_in_every_wording_with_the_wait_in_the_words(status, message, code, seconds):
    failure = classify_status(status, openai_error(message, code=code))
    assert (failure.kind, failure.retry_after_s) == ("rate_limit", seconds and pytest.approx(seconds))


OPENAI_HEADERS = {
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-remaining-requests": "499",
    "x-ratelimit-reset-requests": "120ms",
    "x-ratelimit-limit-tokens": "30000",
    "x-ratelimit-remaining-tokens": "28000",
    "x-ratelimit-reset-tokens": "1m4.5s",
}


@pytest.mark.parametrize(
    ("headers", "requests", "tokens"),
    [
        (OPENAI_HEADERS, (499, 500, 0.12), (28_000, 30_000, 64.5)),
        (
            {
                "anthropic-ratelimit-requests-limit": "50",
                "anthropic-ratelimit-requests-remaining": "49",
                "anthropic-ratelimit-requests-reset": "2026-11-22T05:00:10Z",
                "date": "Sun, 22 Nov 2026 05:00:00 GMT",
            },
            (49, 50, 10),
            None,
        ),
        ({"x-ratelimit-remaining-tokens": "28000"}, None, (28_000, None, None)),  # Azure
        (
            {"x-ratelimit-limit": "20", "x-ratelimit-remaining": "0", "x-ratelimit-reset": "17"},
            (0, 20, 17),
            None,
        ),
        ({"x-ratelimit-remaining-requests": "many"}, None, None),
        ({"x-ratelimit-remaining-requests": "-1"}, None, None),
        ({"x-ratelimit-remaining": "1", "x-ratelimit-reset": "soon"}, (1, None, None), None),
        ({}, None, None),
    ],
)
def test_what_is_left_is_read_from_the_headers_of_every_provider(headers, requests, tokens):
    found = read_rate_limits(headers)
    expected = None if requests is None and tokens is None else (requests, tokens)
    assert found == expected


def test_a_reset_as_a_point_in_time_is_counted_from_now(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    for reset in ("2000000030", "2000000030000"):
        limits = read_rate_limits({"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset})
        assert limits.requests.reset_s == 30


@given(text(), text(), sampled_from(["retry-after", "x-ratelimit-reset", "x-ratelimit-remaining", "date"]))
def test_whatever_stands_in_headers_and_words_is_read_or_left(value, words, name):
    headers = {"x-ratelimit-remaining": "3", "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", name: value}
    failure = classify_status(429, words, headers)
    assert failure.retry_after_s is None or 0 <= failure.retry_after_s < float("inf")
    limits = failure.rate_limits
    assert limits is None or 0 <= limits.requests.remaining < float("inf")


@pytest.mark.parametrize(
    ("status", "maybe_paid"),
    [(500, False), (502, True), (504, True), (524, True), (408, False), (409, False)],
)
def test_a_servers_own_failure_passes_and_behind_a_gateway_may_have_been_paid(status, maybe_paid):
    failure = classify_status(status, "<html>sorry</html>")
    assert (failure.kind, failure.maybe_paid) == ("transient", maybe_paid)
    assert "sorry" in failure.message


PLACE = SimpleNamespace(ssl=True, host="127.0.0.1", port=1)
ASKED = SimpleNamespace(real_url="http://127.0.0.1:1/v1")


@pytest.mark.parametrize(
    ("problem", "kind", "maybe_paid", "is_slow"),
    [
        (TimeoutError(), "transient", True, True),
        (aiohttp.SocketTimeoutError("Timeout on reading data"), "transient", True, True),
        (aiohttp.ConnectionTimeoutError("Connection timeout to host"), "transient", False, True),
        (aiohttp.ServerDisconnectedError(), "transient", True, False),
        (aiohttp.ClientOSError(104, "Connection reset by peer"), "transient", True, False),
        (aiohttp.ClientPayloadError("the body is cut off"), "transient", True, False),
        (aiohttp.ClientResponseError(ASKED, (), status=400, message="bad line"), "transient", True, False),
        (aiohttp.ClientConnectorError(PLACE, OSError(111, "refused")), "transient", False, False),
        (aiohttp.ClientHttpProxyError(ASKED, (), status=407, message="who?"), "transient", False, False),
        (aiohttp.InvalidURL("http://"), "final", False, False),
        (ZeroDivisionError("x"), "final", False, False),
    ],
)
def test_what_was_never_sent_is_not_paid(problem, kind, maybe_paid, is_slow):
    failure = classify(problem)
    assert (failure.kind, failure.maybe_paid, failure.is_slow) == (kind, maybe_paid, is_slow)
    assert failure.is_unreachable is (kind == "transient" and not maybe_paid)


def test_a_failure_stays_what_it_is_with_a_message_of_one_short_line():
    failure = CallFailed("too_long", "a\n  b" + "c" * 5_000)
    assert classify(failure) is failure
    assert str(failure).startswith("a bc") and len(str(failure)) == 600
