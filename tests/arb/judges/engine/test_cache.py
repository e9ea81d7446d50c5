"""Replies on disk: found again by what was asked, whole after any death, shared between processes."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.judges.engine.cache import CallCache, call_key
from arb.judges.types import Image, Message, ModelSettings, Reply, TokenProbability, Tool, ToolCall

MODEL = ModelSettings("a-model")
MESSAGES = (Message("user", "Did it work?"),)
REPLIES = st.builds(
    Reply,
    text=st.none() | st.text() | st.just("half a pair \ud83d and a line\n end"),
    state=st.sampled_from(["ok", "refused"]),
    finish_reason=st.none() | st.just("length"),
    input_tokens=st.none() | st.integers(0, 10**9),
    cost_usd=st.none() | st.floats(0, 10),
    latency_s=st.none() | st.floats(0, 10),
    used_shorter=st.booleans(),
    logprobs=st.none()
    | st.lists(
        st.builds(
            TokenProbability,
            st.text(),
            st.floats(-20, 0),
            st.lists(st.tuples(st.text(), st.floats(-20, 0)), max_size=2).map(tuple),
        ),
        max_size=3,
    ).map(tuple),
)


def key_of(number: int) -> str:
    return call_key(MODEL, MESSAGES, 16, number)


@given(REPLIES)
def test_a_reply_comes_back_as_it_was_but_for_being_from_the_cache(tmp_path_factory, reply):
    folder = tmp_path_factory.mktemp("cache")
    cache = CallCache(folder)
    cache.put(key_of(1), reply)
    expected = replace(reply, key=key_of(1), is_from_cache=True)
    assert cache.get(key_of(1)) == expected
    assert CallCache(folder).get(key_of(1)) == expected


@pytest.mark.parametrize(
    "changed",
    [
        (replace(MODEL, model="another"), MESSAGES, 16, 0),
        (replace(MODEL, provider="vllm"), MESSAGES, 16, 0),
        (replace(MODEL, temperature=0.5), MESSAGES, 16, 0),
        (replace(MODEL, temperature=None), MESSAGES, 16, 0),
        (replace(MODEL, seed=None), MESSAGES, 16, 0),
        (replace(MODEL, logprobs=True), MESSAGES, 16, 0),
        (replace(MODEL, extra={"reasoning_effort": "low"}), MESSAGES, 16, 0),
        (replace(MODEL, reasoning_effort="low"), MESSAGES, 16, 0),
        (MODEL, (Message("system", "Did it work?"),), 16, 0),
        (MODEL, (Message("user", ("Did it work?", Image(b"png", "image/png", 1, 1))),), 16, 0),
        (MODEL, MESSAGES, 17, 0),
        (MODEL, MESSAGES, 16, 1),
    ],
)
def test_another_model_parameter_message_or_sample_is_another_call(changed):
    assert call_key(*changed) != call_key(MODEL, MESSAGES, 16, 0)


def test_a_picture_counts_by_its_bytes_and_how_it_is_sent():
    def key(content=b"png", media_type="image/png", detail="auto"):
        picture = Image(content, media_type, 1, 1, detail)
        return call_key(MODEL, (Message("user", ("look", picture)),), 16, 0)

    assert key() == key()
    assert len({key(), key(content=b"gnp"), key(media_type="image/webp"), key(detail="low")}) == 4


def test_messages_cut_into_different_parts_have_different_keys():
    def key(*contents):
        return call_key(MODEL, tuple(Message("user", content) for content in contents), 16, 0)

    same_words = [("ab",), (("a", "b"),), ("a", "b"), (("ab", ""),), ("a\ntext 1\nb",), ("ab \ud83d",)]
    assert len({key(*contents) for contents in same_words}) == len(same_words)


@pytest.mark.parametrize("address", ["http://h:9/v1", "https://h/v1", "http://h/v2", "http://other/v1"])
def test_the_same_model_behind_another_address_is_another_call(address):
    here, there = (replace(MODEL, base_url=each) for each in ("http://h/v1", address))
    assert call_key(here, MESSAGES, 16, 0) != call_key(there, MESSAGES, 16, 0)


def test_what_a_provider_keeps_of_a_prompt_changes_no_reply_and_no_key():
    assert call_key(replace(MODEL, prompt_cache="prompt"), MESSAGES, 16, 0) == call_key(
        MODEL, MESSAGES, 16, 0
    )


def test_another_spelling_of_the_address_or_another_key_is_the_same_call():
    usual = replace(MODEL, provider="openai")
    spelled = replace(usual, base_url="https://user:pass@API.openai.com:443/v1/?tag=a", key_variable="OTHER")
    assert call_key(spelled, MESSAGES, 16, 0) == call_key(usual, MESSAGES, 16, 0)


def test_no_picture_and_no_prompt_is_in_the_cache(tmp_path):
    cache = CallCache(tmp_path)
    messages = (Message("user", ("a prompt", Image(b"picture bytes", "image/png", 1, 1))),)
    cache.put(call_key(MODEL, messages, 16, 0), Reply("yes"))
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"picture" not in written and b"a prompt" not in written and b"yes" in written


@pytest.mark.slow
def test_a_segment_cut_at_any_byte_gives_every_answer_before_the_cut_and_can_be_gone_on_with(tmp_path):
    cache = CallCache(tmp_path)
    for number in range(3):
        cache.put(key_of(number), Reply(f"reply {number}"))
    cache.close()
    (path,) = tmp_path.glob("segment-*")
    content = path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content)):
        path.write_bytes(content[:cut])
        again = CallCache(tmp_path)
        whole = sum(end <= cut for end in ends)
        assert [again.get(key_of(n)) is not None for n in range(3)] == [n < whole for n in range(3)]
        again.put(key_of(9), Reply("later"))
        again.close()
        reread = CallCache(tmp_path)
        assert len(reread) == whole + 1
        assert reread.get(key_of(9)).text == "later"
        assert len(list(tmp_path.glob("segment-*"))) == 1


def test_a_line_that_a_failing_disk_spoilt_is_asked_again_and_takes_no_other_with_it(tmp_path):
    cache = CallCache(tmp_path)
    cache.put(key_of(1), Reply("first"))
    cache.put(key_of(2), Reply("second"))
    (path,) = tmp_path.glob("segment-*")
    path.write_bytes(path.read_bytes().replace(b"first", b'"}\x00}}'))
    assert CallCache(tmp_path).get(key_of(1)) is None
    assert cache.get(key_of(1)) is None
    assert CallCache(tmp_path).get(key_of(2)).text == "second"


def test_two_caches_on_one_folder_write_apart_and_find_each_others_answers(tmp_path):
    first, second = CallCache(tmp_path), CallCache(tmp_path)
    first.put(key_of(1), Reply("one"))
    second.put(key_of(2), Reply("two"))
    assert len(list(tmp_path.glob("segment-*"))) == 2
    first.refresh()
    second.refresh()
    assert (first.get(key_of(2)).text, second.get(key_of(1)).text) == ("two", "one")


def test_a_segment_that_is_gone_on_with_keeps_what_was_added_to_it_since_it_was_read(tmp_path):
    late = CallCache(tmp_path)
    first = CallCache(tmp_path)
    first.put(key_of(1), Reply("one"))
    first.close()
    late.put(key_of(2), Reply("two"))  # in the same segment
    assert len(list(tmp_path.glob("segment-*"))) == 1
    assert (late.get(key_of(1)).text, late.get(key_of(2)).text) == ("one", "two")


WRITER = """
import sys
from pathlib import Path
from arb.judges.types import Reply
from arb.judges.engine.cache import CallCache
cache = CallCache(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), 10**9, 2):
    cache.put(f"{number:064x}", Reply("x" * (number % 300)))
    print(number, flush=True)
"""


@pytest.mark.slow
def test_two_writers_killed_at_any_moment_lose_no_answer_that_was_kept(tmp_path):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(first)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[4],
        )
        for first in (0, 1)
    ]
    begun = [writer.stdout.readline().strip() for writer in writers for _ in range(3)]
    time.sleep(0.2)  # wherever in their work they are then
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
    said = [line for writer in writers for line in writer.communicate()[0].split("\n")]
    cache = CallCache(tmp_path)
    kept = [int(line) for line in [*begun, *said[:-1]] if line]
    assert len(kept) > 2
    assert all(cache.get(f"{number:064x}").text == "x" * (number % 300) for number in kept)


CLAIMER = """
import sys
from pathlib import Path
from arb.judges.engine.cache import CallCache
cache = CallCache(Path(sys.argv[1]))
print(cache.claim(sys.argv[2]), flush=True)
sys.stdin.readline()
cache.release(sys.argv[2])
print("released", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def other_process(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", CLAIMER, str(tmp_path), key_of(1)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[4],
    )
    yield process
    process.kill()
    process.communicate()


def test_a_call_that_another_process_has_under_way_cannot_be_claimed_until_it_is_given_up(
    tmp_path, other_process
):
    cache = CallCache(tmp_path)
    assert other_process.stdout.readline() == "True\n"
    assert not cache.claim(key_of(1))
    assert cache.claim(key_of(2))
    other_process.stdin.write("\n")
    other_process.stdin.flush()
    assert other_process.stdout.readline() == "released\n"
    assert cache.claim(key_of(1))


def test_a_claim_ends_with_the_process_that_was_killed(tmp_path, other_process):
    cache = CallCache(tmp_path)
    assert other_process.stdout.readline() == "True\n"
    assert not cache.claim(key_of(1))
    other_process.kill()
    other_process.wait()
    assert cache.claim(key_of(1))


def test_where_no_cluster_ran_nothing_of_its_answers_is_imported(tmp_path):
    code = (
        "import sys; from pathlib import Path\n"
        "from arb.judges.engine.cache import CallCache\n"
        "found = CallCache(Path(sys.argv[1])).get('00' * 32)\n"
        "print(found, {'numpy', 'fsspec', 'pyarrow'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "cache")]
    done = subprocess.run(command, cwd=Path(__file__).parents[4], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None set()"


TOOL = Tool("open_step", "Show a step.", {"type": "object", "properties": {"n": {"type": "integer"}}})


def test_tools_and_calls_of_tools_are_part_of_the_key():
    said = Message("assistant", "", (ToolCall("a", "open_step", '{"n": 1}'),))
    conversations = [
        MESSAGES,
        (*MESSAGES, said),
        (*MESSAGES, replace(said, tool_calls=(replace(said.tool_calls[0], id="b"),))),
        (*MESSAGES, said, Message("tool", "x", tool_call_id="a")),
        (*MESSAGES, said, Message("tool", "x", tool_call_id="b")),
    ]
    keys = {call_key(MODEL, each, 16, 0, tools) for each in conversations for tools in ((), (TOOL,))}
    assert len(keys) == 2 * len(conversations)


def test_calls_of_tools_are_stored_with_what_the_provider_wants_back(tmp_path):
    kept = {"call": {"extra_content": {"google": {"thought_signature": "s"}}}}
    reply = Reply("look", tool_calls=(ToolCall("a", "open_step", '{"n": 1}', kept),))
    cache = CallCache(tmp_path)
    cache.put(key_of(0), reply)
    cache.close()
    found = CallCache(tmp_path).get(key_of(0))
    assert found.tool_calls == reply.tool_calls
