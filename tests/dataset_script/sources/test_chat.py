"""Chat messages with tool calls in the forms of OpenAI and Anthropic, written by hand."""

import base64
import json
import re
from pathlib import Path

import pytest
from hypothesis import given

from dataset_script.sources import open_source
from dataset_script.sources.chat import ChatSource
from dataset_script.sources.problems import SourceError, UnusableFileError
from tests.support.json_values import WITH_FOLDER, mutated, read_or_refused
from tests.support.sources import ids, read_one, write_json

PNG = b"\x89PNG\r\n\x1a\n and more"
BASE64 = base64.b64encode(PNG).decode()
PICTURE = f"data:image/png;base64,{BASE64}"
ARGUMENTS = {"town": "Ålesund"}

COMPLETIONS = {
    "model": "gpt-x",
    "messages": [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": [{"type": "text", "text": "Find the town."}]},
        {
            "role": "assistant",
            "content": "I look it up.",
            "reasoning_content": "It may be listed.",
            "tool_calls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "look", "arguments": json.dumps(ARGUMENTS)},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "a",
            "content": [
                {"type": "text", "text": "A list."},
                {"type": "image_url", "image_url": {"url": PICTURE}},
            ],
        },
        {"role": "assistant", "content": "It is Ålesund."},
    ],
}
RESPONSES = {
    "model": "gpt-x",
    "instructions": "You are an agent.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "Find the town."}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "It may be listed."}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look it up."}],
        },
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": json.dumps(ARGUMENTS)},
        {
            "type": "function_call_output",
            "call_id": "a",
            "output": [
                {"type": "input_text", "text": "A list."},
                {"type": "input_image", "image_url": PICTURE},
            ],
        },
    ],
    "output": [
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "It is Ålesund."}],
        }
    ],
}
ANTHROPIC = {
    "model": "gpt-x",
    "system": "You are an agent.",
    "messages": [
        {"role": "user", "content": "Find the town."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "It may be listed.", "signature": "x"},
                {"type": "text", "text": "I look it up."},
                {"type": "tool_use", "id": "a", "name": "look", "input": ARGUMENTS},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "a",
                    "content": [
                        {"type": "text", "text": "A list."},
                        {
                            "type": "image",
                            "source": {"type": "base64", "media_type": "image/png", "data": BASE64},
                        },
                    ],
                }
            ],
        },
    ],
    "response": {
        "role": "assistant",
        "type": "message",
        "content": [{"type": "text", "text": "It is Ålesund."}],
    },
}


def talk(*messages):
    return {"messages": [{"role": "user", "content": "Do it."}, *messages]}


def assistant(content=None, *calls):
    listed = [
        {"id": str(n), "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": content, "tool_calls": listed}


@pytest.mark.parametrize(
    "record", [COMPLETIONS, RESPONSES, ANTHROPIC], ids=["completions", "responses", "anthropic"]
)
def test_the_three_apis_give_the_same_run(tmp_path, record):
    recording, notes = read_one(write_json(tmp_path, record, "logs/solver/7.json").parents[1])
    assert (recording.trajectory_id, recording.model) == ("chat/solver/7", "gpt-x")
    assert (recording.goal, recording.answer, notes) == ("Find the town.", "It is Ålesund.", [])
    first, last = recording.steps
    assert (first.action, first.reasoning) == ('look(town="Ålesund")', "It may be listed.\n\nI look it up.")
    assert (last.action, last.text, last.screenshot, last.reasoning) == (None, "A list.", PNG, None)
    assert "You are an agent" not in repr(recording)


def test_a_run_per_line_has_the_names_next_to_its_messages(tmp_path):
    lines = [
        {"task_id": "æ", "agent": "one", "benchmark": "towns", **talk(assistant("a"))},
        {"id": 7, **talk(assistant("b"))},
        talk(assistant("c")),
        {"id": "resp_1", "object": "response", "input": "Do it.", "output": RESPONSES["output"]},
    ]
    path = tmp_path / "two.jsonl"
    path.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    source = open_source(tmp_path)
    assert ids(source) == ["towns/one/æ", "chat/two/7", "chat/two/3", "chat/two/4"]
    assert [source.read(file)[0].answer for file in source.list_runs().files] == [
        "a",
        "b",
        "c",
        "It is Ålesund.",
    ]
    write_json(tmp_path, lines, "array.json")
    path.unlink()
    assert ids(open_source(tmp_path)) == ["towns/one/æ", "chat/array/7", "chat/array/3", "chat/array/4"]


@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_a_file_of_messages_without_an_object_around_them_is_one_run(tmp_path, ending):
    path, messages = tmp_path / f"agent/task.{ending}", COMPLETIONS["messages"]
    path.parent.mkdir()
    lines = "\n".join(map(json.dumps, messages)) if ending == "jsonl" else json.dumps(messages, indent=1)
    path.write_text(f"\ufeff{lines}", encoding="utf-8")
    recording, _ = read_one(path)
    assert (recording.trajectory_id, recording.answer) == ("chat/agent/task", "It is Ålesund.")
    assert len(recording.steps) == 2


def test_a_file_called_messages_is_named_after_its_folder(tmp_path):
    write_json(tmp_path, COMPLETIONS["messages"], "solver/task-1/interact_messages.json")
    assert ids(open_source(tmp_path)) == ["chat/solver/task-1"]


def test_a_line_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path):
    good = json.dumps(talk(assistant("a")))
    (tmp_path / "x.jsonl").write_text(f'{good}\n{{"messages": [\n{{"reward": 1}}\n{good}\n')
    source = open_source(tmp_path)
    problems = {}
    for file in source.list_runs().files:
        try:
            source.read(file)
        except UnusableFileError as error:
            problems[file.name] = error.code
    assert problems == {"x.jsonl#2": "not_json", "x.jsonl#3": "not_a_trajectory"}
    assert ids(source) == ["chat/x/1", "chat/x/2", "chat/x/3", "chat/x/4"]


def test_a_final_call_holds_the_answer_and_what_follows_it_is_not_read(tmp_path):
    calls = ("submit", {"answer": "12"}), ("save", {})
    write_json(tmp_path, talk(assistant("Done.", *calls), {"role": "tool", "content": "saved"}), "a.json")
    recording, _ = read_one(tmp_path)
    assert (recording.answer, [step.action for step in recording.steps]) == ("12", ["save()", None])
    write_json(tmp_path, talk(assistant("12"), {"role": "user", "content": "CORRECT"}), "a.json")
    recording, _ = read_one(tmp_path)
    assert (recording.answer, len(recording.steps)) == ("12", 1)
    assert "CORRECT" not in repr(recording)


def test_errors_files_and_pictures_that_are_elsewhere_are_told_apart(tmp_path):
    (tmp_path / "screen.png").write_bytes(PNG)
    pictures = [
        {"type": "image_url", "image_url": {"url": url}}
        for url in ("screen.png", "https://x.org/a.png", "../b.png")
    ]
    failed = {"type": "tool_result", "tool_use_id": "0", "is_error": True, "content": "no such page"}
    write_json(
        tmp_path,
        talk(
            assistant(None, ("open", {})),
            {"role": "user", "content": [failed, *pictures]},
            assistant("I give up."),
        ),
        "a.json",
    )
    recording, notes = read_one(tmp_path)
    assert recording.steps[1].last_action_error == recording.steps[1].text == "no such page"
    assert recording.steps[1].screenshot == tmp_path / "screen.png"
    assert [note.code for note in notes] == ["missing_screenshot", "missing_screenshot"]


def test_tools_of_the_provider_are_actions_with_their_results(tmp_path):
    output = [
        {"type": "web_search_call", "action": {"type": "search", "query": "towns"}},
        {"type": "code_interpreter_call", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
        {"type": "computer_call", "call_id": "c", "action": {"type": "click", "x": 1}},
        {
            "type": "computer_call_output",
            "call_id": "c",
            "output": {"type": "computer_screenshot", "image_url": PICTURE},
        },
        *RESPONSES["output"],
    ]
    write_json(tmp_path, {"input": "Do it.", "output": output}, "a.json")
    recording, _ = read_one(tmp_path)
    assert [step.action for step in recording.steps] == [
        'web_search(type="search", query="towns")\ncode_interpreter(code="1+1")',
        'computer(type="click", x=1)',
        None,
    ]
    assert [step.text for step in recording.steps] == [None, "2", None]
    assert recording.steps[2].screenshot == PNG
    assert (recording.goal, recording.answer) == ("Do it.", "It is Ålesund.")


def test_a_response_that_is_also_the_last_message_counts_once(tmp_path):
    record = {**talk(assistant("12")), "response": {"choices": [{"message": assistant("12")}]}}
    write_json(tmp_path, record, "a.json")
    assert len(read_one(tmp_path)[0].steps) == 1


def test_a_logged_call_of_an_api_is_a_run(tmp_path):
    call = {"request": {"model": "gpt-x", **talk()}, "response": {"choices": [{"message": assistant("12")}]}}
    batch = {
        "custom_id": "t",
        "body": talk(),
        "response": {"body": {"choices": [{"message": assistant("13")}]}},
    }
    (tmp_path / "calls.jsonl").write_text(f"{json.dumps(call)}\n{json.dumps(batch)}")
    source = open_source(tmp_path)
    first, second = (source.read(file)[0] for file in source.list_runs().files)
    assert (first.goal, first.answer, first.model) == ("Do it.", "12", "gpt-x")
    assert (second.trajectory_id, second.goal, second.answer) == ("chat/calls/t", "Do it.", "13")


def test_the_reward_is_kept_apart(tmp_path):
    for reward, kept in ((1, 1.0), (True, 1.0), (10**400, None), ("1", None)):
        write_json(tmp_path, {**talk(assistant("12")), "reward": reward}, "a.json")
        assert read_one(tmp_path)[0].cum_reward == kept


@pytest.mark.parametrize(
    "content",
    [
        {"messages": []},
        {"role": "user"},
        [{"role": "x"}],
        {"messages": [{"role": 1}]},
        "text",
        {"input": "Do it."},
    ],
)
def test_other_json_is_not_chat(tmp_path, content):
    write_json(tmp_path, content, "a.json")
    assert not ChatSource.recognises(tmp_path)


def test_a_run_without_the_agent_is_refused(tmp_path):
    write_json(tmp_path, talk(), "a.json")
    with pytest.raises(UnusableFileError, match="has no message of the agent"):
        read_one(tmp_path)


@WITH_FOLDER
@given(mutated([COMPLETIONS, RESPONSES, ANTHROPIC]))
def test_messages_of_any_form_are_read_or_refused(tmp_path, records):
    (tmp_path / "a.json").unlink(missing_ok=True)
    write_json(tmp_path, records, "a.json")
    read_or_refused(ChatSource(tmp_path))


NEAREST = {
    "otel": ({"resourceSpans": []}, "spans of OpenTelemetry"),
    "sharegpt": (
        [{"id": 1, "conversations": [{"from": "human", "value": "x"}]}],
        "ShareGPT; convert them: jq -c",
    ),
    "codex": ({"timestamp": "t", "type": "session_meta", "payload": {}}, "session of Codex"),
    "claude": ({"parentUuid": None, "sessionId": "s", "type": "user"}, "session of Claude Code"),
    "langchain": ([{"type": "human", "content": "x"}], "convert_to_openai_messages"),
    "gemini": ({"contents": [{"role": "user", "parts": [{"text": "x"}]}]}, "in the form of Gemini"),
    "swe": (
        {"trajectory": [{"action": "ls", "observation": "x"}], "history": []},
        "jq '{messages: .history}'",
    ),
    "other": (
        {"question": "x", "steps": []},
        "a.json has the keys question, steps; the nearest format is chat",
    ),
}


@pytest.mark.parametrize(("content", "says"), NEAREST.values(), ids=NEAREST)
def test_a_file_of_another_form_is_named_with_the_nearest_format_and_how_to_convert_it(
    tmp_path, content, says
):
    write_json(tmp_path, content, "a.json")
    with pytest.raises(SourceError) as refused:
        open_source(tmp_path)
    message = str(refused.value)
    assert "contains no runs in a known format; " in message
    assert "a.json " in message
    assert says in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.zip", b"PK\x03\x04", "unpack it"),
        ("episodes.pkl.gz", b"\x1f\x8b", "checkpoint of AndroidWorld"),
        ("labels.csv", b"trajectory_id,success\nx,1\n", "is a table, not recorded runs; give labels"),
        ("cut.json", b'{"messages": [{"role"', "is not complete JSON"),
        ("run.log", b"Step 1: click", "has an unknown form; the nearest format is chat messages"),
    ],
)
def test_files_that_are_not_json_are_named_too(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=f"{name} .*{says}"):
        open_source(tmp_path)


def test_the_example_of_the_documentation_is_read(tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "data.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(example.splitlines()) <= 10
    path = tmp_path / "logs" / "solver" / "7.json"
    path.parent.mkdir(parents=True)
    path.write_text(example.replace("iVBORw0KGgo…", BASE64), encoding="utf-8")
    recording, notes = read_one(tmp_path / "logs")
    assert (recording.trajectory_id, recording.answer, notes) == ("chat/solver/7", "Bergen", [])
    assert [step.action for step in recording.steps] == ["look_up(number=7)", None]
    assert (recording.steps[1].text, recording.steps[1].screenshot) == ("Town 7 is Bergen.", PNG)
