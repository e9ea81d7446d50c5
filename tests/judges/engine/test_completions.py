import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.base import Image, Message, ModelSettings, Reply, TokenProbability
from judges.engine.completions import encoded, parse_reply, request_body
from judges.engine.errors import CallFailed

ASKED = (Message("user", "Was it done?"),)


def body(model=None, **how):
    return request_body(model or ModelSettings("m"), ASKED, 99, **how)


def completion(**changed):
    message = {"role": "assistant", "content": "Status: success"} | changed.pop("message", {})
    choice = {"index": 0, "message": message, "finish_reason": "stop"} | changed.pop("choice", {})
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return json.dumps({"model": "m-1", "choices": [choice], "usage": usage} | changed)


def test_a_request_has_the_settings_and_nothing_that_was_not_asked_for():
    assert body() == {
        "model": "m",
        "messages": [{"role": "user", "content": "Was it done?"}],
        "max_tokens": 99,
        "temperature": 0.0,
        "seed": 0,
    }
    bare = body(ModelSettings("m", temperature=None, seed=None))
    assert set(bare) == {"model", "messages", "max_tokens"}


@pytest.mark.parametrize(
    ("output_limit", "unsupported_params", "used"),
    [
        ("max_tokens", set(), "max_tokens"),
        ("max_completion_tokens", set(), "max_completion_tokens"),
        ("max_tokens", {"max_tokens"}, "max_completion_tokens"),
        ("max_completion_tokens", {"max_completion_tokens"}, "max_tokens"),
        ("max_tokens", {"max_tokens", "max_completion_tokens"}, None),
    ],
)
def test_the_longest_reply_goes_by_the_name_that_is_known(output_limit, unsupported_params, used):
    names = {"max_tokens", "max_completion_tokens"} & set(
        body(output_limit=output_limit, unsupported_params=unsupported_params)
    )
    assert names == ({used} if used else set())


def test_dropped_parameters_are_left_out():
    model = ModelSettings("m", logprobs=True)
    assert body(model)["top_logprobs"] == 5
    left = body(model, unsupported_params={"temperature", "seed", "logprobs"})
    assert set(left) == {"model", "messages", "max_tokens"}


def test_the_users_own_fields_come_last_and_may_name_the_longest_reply_themselves():
    model = ModelSettings("m", extra={"max_completion_tokens": 5, "temperature": 1, "top_p": 0.5})
    own = body(model)
    assert (own["max_completion_tokens"], own["temperature"], own["top_p"]) == (5, 1, 0.5)
    assert "max_tokens" not in own


def test_pictures_go_as_data_addresses_in_their_place_and_detail_only_where_chosen():
    pictures = [Image(b"ab", "image/png", 1, 1), Image(b"cd", "image/webp", 1, 1, "low")]
    asked = (Message("user", ("first", *pictures, "last")),)
    parts = request_body(ModelSettings("m"), asked, 9)["messages"][0]["content"]
    assert [part.get("text") for part in parts] == ["first", None, None, "last"]
    assert parts[1]["image_url"] == {"url": "data:image/png;base64," + base64.b64encode(b"ab").decode()}
    assert parts[2]["image_url"]["detail"] == "low"


def test_a_reply_is_read_with_all_that_came_with_it():
    logprobs = {
        "content": [
            {
                "token": "success",
                "logprob": -0.1,
                "top_logprobs": [
                    {"token": "success", "logprob": -0.1},
                    {"token": "failure", "logprob": -2.3},
                ],
            }
        ]
    }
    assert parse_reply(completion(choice={"logprobs": logprobs}), 0.5) == Reply(
        text="Status: success",
        finish_reason="stop",
        input_tokens=7,
        output_tokens=3,
        latency_s=0.5,
        model="m-1",
        logprobs=(TokenProbability("success", -0.1, (("failure", -2.3),)),),
    )


def test_text_in_parts_is_one_text_and_its_spaces_stay():
    parts = [{"type": "text", "text": " a"}, {"type": "thinking"}, {"type": "text", "text": "b\n"}]
    assert parse_reply(completion(message={"content": parts})).text == " ab\n"


def test_half_a_character_where_a_reply_was_cut_can_still_be_written():
    raw = completion(message={"content": "fine \U0001f600 \ud83d"})
    assert parse_reply(raw).text == "fine \U0001f600 \ufffd"
    assert parse_reply(completion(message={"content": "C:\\udir"})).text == "C:\\udir"


def test_a_reply_cut_for_its_length_is_a_reply_even_with_no_text_at_all():
    reply = parse_reply(completion(message={"content": None}, choice={"finish_reason": "length"}))
    assert (reply.state, reply.text, reply.finish_reason) == ("ok", None, "length")


@pytest.mark.parametrize(
    "refused",
    [
        {"message": {"content": None}, "choice": {"finish_reason": "content_filter"}},
        {"message": {"content": None, "refusal": "I cannot judge that."}},
        {"message": {"content": "Status: succ"}, "choice": {"finish_reason": "content_filter"}},
    ],
)
def test_refusals_are_told_apart_and_what_was_said_is_kept(refused):
    reply = parse_reply(completion(**refused))
    assert reply.state == "refused"
    assert (reply.text, reply.refusal) == (
        refused["message"]["content"],
        refused["message"].get("refusal"),
    )
    assert reply.output_tokens == 3


@pytest.mark.parametrize(
    ("raw", "counted"),
    [
        (completion(choices=None), (7, 3)),
        (completion(choices=[]), (7, 3)),
        (completion(choices=[None]), (7, 3)),
        (completion(choice={"message": None}), (7, 3)),
        (completion(message={"content": None}), (7, 3)),
        (completion(message={"content": " \n"}), (7, 3)),
        (completion(choices=None, usage={"prompt_tokens": "7"}), (None, None)),
        (completion()[:-20], (None, None)),
        ("", (None, None)),
        ("[1]", (None, None)),
        ("[" * 100_000, (None, None)),
        (completion(error={"message": "the provider broke", "code": "x"}), (7, 3)),
    ],
)
def test_an_answer_without_a_reply_may_go_well_another_time_and_keeps_what_came(raw, counted):
    with pytest.raises(CallFailed) as failed:
        parse_reply(raw)
    failure = failed.value
    assert (failure.kind, failure.maybe_paid, failure.raw) == ("transient", True, raw)
    assert (failure.input_tokens, failure.output_tokens) == counted


def test_an_error_inside_of_a_good_answer_is_read_by_its_own_status():
    with pytest.raises(CallFailed) as failed:
        parse_reply(json.dumps({"error": {"message": "slower", "code": 429}}))
    assert failed.value.kind == "rate_limit"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(["model", "choices", "usage", "error", "choice", "message", "content", "refusal",
                     "finish_reason", "logprobs"]),
    json_values,
)  # fmt: skip
def test_whatever_an_endpoint_puts_anywhere_there_is_a_reply_or_a_failure(place, value):
    if place in ("content", "refusal"):
        raw = completion(message={place: value})
    elif place in ("finish_reason", "logprobs"):
        raw = completion(choice={place: value})
    elif place == "message":
        raw = completion(choice={"message": value})
    elif place == "choice":
        raw = completion(choices=[value])
    else:
        raw = completion(**{place: value})
    try:
        reply = parse_reply(raw)
    except CallFailed:
        return
    assert reply.state in ("ok", "refused")
    assert reply.text is None or isinstance(reply.text, str)


@pytest.mark.parametrize("text", ["a tree", "é \U0001f600", "half a pair \ud83d", '"quoted" \\ \n'])
def test_a_body_is_sent_as_the_json_that_it_is_whatever_stands_in_a_page(text):
    body = request_body(ModelSettings("m", extra={"top_k": 3}), (Message("user", text),), 16)
    assert json.loads(encoded(body)) == body
