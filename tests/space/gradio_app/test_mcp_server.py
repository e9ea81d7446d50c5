"""The MCP server, called by a real MCP client against a running Space."""

import asyncio
import base64
import json
import re
from importlib import import_module
from pathlib import Path

import httpx
import pydantic_core
import pytest
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from arb.core import __version__
from space.gradio_app.mcp_body import NOT_A_CALL
from space.gradio_app.mcp_server import MCP_BODY_BYTES
from space.web.body_limits import JSON_BYTES
from tests.space.gradio_app.conftest import DECLARED, HOST, running
from tests.support.submissions import SECRET_ANNOTATOR, settings_for

IS_MCP_1 = "isError" in CallToolResult.model_fields
REPOSITORY = Path(__file__).parents[3]
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"},
    },
}  # fmt: skip


def ask(space, *calls, headers=None):
    """The answers of an MCP session: each call is a method of ClientSession with its arguments."""

    async def asked():
        client_library = import_module("httpx" if IS_MCP_1 else "httpx2")
        async with (
            client_library.AsyncClient(headers=headers, timeout=300) as client,
            streamable_http_client(f"{space.url}/mcp", http_client=client) as streams,
            ClientSession(*streams[:2]) as session,
        ):
            await session.initialize()
            return [await getattr(session, name)(*arguments) for name, *arguments in calls]

    return asyncio.run(asked())


def tool(space, name: str, headers=None, **arguments):
    (result,) = ask(space, ("call_tool", name, arguments), headers=headers)
    return result


def failed(result) -> bool:
    return result.isError if IS_MCP_1 else result.is_error


def input_schema(tool) -> dict:
    return tool.inputSchema if IS_MCP_1 else tool.input_schema


def text_of(result) -> str:
    return "".join(part.text for part in result.content)


def value_of(result):
    assert not failed(result), text_of(result)
    return json.loads(text_of(result))


def test_the_tools_are_those_of_the_endpoints_with_types_and_descriptions(space):
    (listed,) = ask(space, ("list_tools",))
    tools = {each.name: each for each in listed.tools}
    assert set(tools) == {"check", "submit", "board", "judges"}
    assert all(each.description for each in tools.values())
    assert input_schema(tools["check"])["properties"]["split"]["enum"] == ["dev", "test"]
    assert set(input_schema(tools["submit"])["required"]) == {"content", *DECLARED}


def test_the_guide_names_the_tools_their_arguments_and_the_address(space):
    """docs/score.md: its table, the three clients' configurations and its example."""
    text = (REPOSITORY / "docs" / "score.md").read_text(encoding="utf-8")
    guide = text.partition("### For agents: MCP\n")[2].partition("### REST\n")[0]
    (listed,) = ask(space, ("list_tools",))
    tools = {each.name: input_schema(each) for each in listed.tools}
    named = dict(re.findall(r"^\| `(\w+)` \|.*\|([^|]*)\|$", guide, re.MULTILINE))
    assert named.keys() == tools.keys()
    for name, arguments in named.items():
        said, known = {*re.findall(r"`(\w+)`", arguments)}, tools[name].get("properties", {}).keys()
        assert said == known or ("…" in arguments and {*tools[name]["required"]} <= said <= known), name
    blocks = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", guide, re.M | re.S)]
    servers = [block["mcpServers"]["agent-reward-bench"] for block in blocks if "mcpServers" in block]
    addresses = [each.get("url") or each["args"][-1] for each in servers]
    assert addresses == ["http://127.0.0.1:7860/mcp"] * 3
    (call,) = (block["params"] for block in blocks if block.get("method") == "tools/call")
    found = value_of(tool(space, call["name"], **call["arguments"]))
    codes = {each["code"] for each in found["findings"]}
    assert found["acceptable"] is False and {"unknown_id", "missing_id"} <= codes


@pytest.mark.parametrize("content", ["{}\n", '{"trajectory_id": "x", "success": "maybe"}\n'])
def test_check_gives_what_rest_gives(space, content):
    found = value_of(tool(space, "check", content=content, split="dev"))
    rest = httpx.post(space.url + "/api/check?split=dev", files={"file": ("x", content.encode())}).json()
    assert {**found, "file": ""} == {**rest, "file": ""}


def test_a_file_in_base64_is_checked(space):
    content = base64.b64encode(space.valid()).decode()
    assert value_of(tool(space, "check", content=content, encoding="base64"))["acceptable"] is True
    assert "not base64" in text_of(tool(space, "check", content="é", encoding="base64"))


def test_judges_gives_what_rest_gives(space):
    assert value_of(tool(space, "judges")) == httpx.get(space.url + "/api/judges").json()


def test_only_submit_changes_anything_and_the_server_says_its_version(space):
    (listed,) = ask(space, ("list_tools",))
    read_only = {each.name: dump(each.annotations)["readOnlyHint"] for each in listed.tools}
    assert read_only == {"check": True, "submit": False, "board": True, "judges": True}
    answer = httpx.post(space.url + "/mcp", json=INITIALIZE, headers=HEADERS).json()
    assert answer["result"]["serverInfo"]["version"] == __version__


def dump(model) -> dict:
    return model.model_dump(by_alias=True)


def test_board_gives_the_best_judges_by_a_metric(space):
    for misses in (2, 3, 4):
        content = space.valid(false_alarms=misses).decode()
        declared = {**DECLARED, "judge": f"j{misses}"}
        value_of(tool(space, "submit", content=content, **declared, account=f"Ada {misses}"))
    rest = httpx.get(space.url + "/api/board.json").json()
    ranked = sorted(
        (row for row in rest["rows"] if row["labels"]["success"]["rank"]),
        key=lambda row: row["labels"]["success"]["rank"]["place"],
    )
    found = value_of(tool(space, "board"))
    assert [row["id"] for row in found["rows"]][: len(ranked)] == [row["id"] for row in ranked]
    assert (found["suite"], found["label"], found["metric"]) == (rest["suite"], "success", "precision")
    assert found["board_digest"] == rest["digest"]
    first, score = found["rows"][0], ranked[0]["labels"]["success"]
    assert first["precision"] == round(score["overall"]["precision"], 3)
    apart = {"n_separated": score["n_separated"]}
    assert first["rank"] == {**score["rank"], **apart}
    limited = value_of(tool(space, "board", limit=1, suite=rest["suite"], metric="recall"))
    assert (len(limited["rows"]), limited["n_rows"], limited["metric"]) == (1, found["n_rows"], "recall")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"suite": "other"}, "suite: there is no suite 'other' here; use one of small"),
        ({"metric": "speed"}, "metric"),
        ({"label": "luck"}, "label"),
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
    ],
)
def test_board_refuses_other_arguments(space, arguments, said):
    refused = tool(space, "board", **arguments)
    assert failed(refused)
    assert said in text_of(refused)


def test_a_file_is_submitted_under_a_name_and_its_problems_are_named(space):
    content = space.valid(false_alarms=1).decode()
    found = value_of(tool(space, "submit", content=content, **DECLARED, account="Ada"))
    assert found["submission_id"] in [row["id"] for row in value_of(tool(space, "board"))["rows"]]
    refused = tool(space, "submit", content=content, **DECLARED)
    assert failed(refused)
    assert "Your name: fill it in" in text_of(refused)
    refused = tool(space, "submit", content="{}", **DECLARED, account="Ada")
    assert failed(refused)
    assert "the file is not valid" in text_of(refused)


def test_a_file_over_the_limit_is_refused(space):
    refused = tool(space, "check", content="x" * 100_001)
    assert failed(refused)
    assert "more than 100,000 bytes" in text_of(refused)
    body = json.dumps({**INITIALIZE, "padding": "x" * MCP_BODY_BYTES})
    assert httpx.post(space.url + "/mcp", content=body, headers=HEADERS).status_code == 413


HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "judges.evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1.evil.example"}, 403),
        ({"content-type": "text/plain"}, 400),
    ],
)
def test_pages_of_other_sites_reach_no_tool(space, headers, status):
    answer = httpx.post(space.url + "/mcp", json=INITIALIZE, headers={**HEADERS, **headers})
    assert answer.status_code == status


def test_errors_of_ours_and_labels_stay_hidden(space):
    for name, arguments in (("check", {"content": "{}", "split": "train"}), ("board", {}), ("nothing", {})):
        text = text_of(tool(space, name, **arguments))
        for hidden in ("Traceback", "site-packages", str(space.settings.state_dir), SECRET_ANNOTATOR):
            assert hidden not in text


def test_checks_are_counted_by_address(suite_folder, tmp_path, within_a_minute):
    settings = settings_for(suite_folder, tmp_path / "state", checks_a_minute=2)
    with running(settings, tmp_path / "files") as space:
        calls = [("call_tool", "check", {"content": "{}"})] * 3
        first, second, third = ask(space, *calls)
        assert not failed(first) and not failed(second)
        assert failed(third)
        assert "try again in" in text_of(third)
        assert httpx.post(space.url + "/api/check", files={"file": b"{}"}).status_code == 429


def test_on_a_space_a_token_says_who_submits(space_on_the_hub):
    content = space_on_the_hub.valid().decode()
    headers = {"host": HOST, "authorization": "Bearer hf_token_of_ada"}
    found = value_of(tool(space_on_the_hub, "submit", headers, content=content, **DECLARED))
    assert found["account"] == "ada"
    refused = tool(space_on_the_hub, "submit", {"host": HOST}, content=content, **DECLARED, account="ada")
    assert failed(refused)
    assert "you are not signed in" in text_of(refused)


LONG = "x" * 9_000
"""More than a body may hold beyond the file."""


def long_body(**changes) -> bytes:
    """Return a call of check whose body is long."""
    params = {"name": "check", "arguments": {"content": LONG}, **changes.pop("params", {})}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **changes}
    return json.dumps(call).encode()


def test_the_file_of_a_long_call_reaches_the_tool_but_not_the_server_of_mcp(space, monkeypatch):
    parser = "json.loads" if IS_MCP_1 else "pydantic_core.from_json"
    parsed, parse = [], json.loads if IS_MCP_1 else pydantic_core.from_json

    def noted(body, **options):
        if isinstance(body, bytes) and b'"method"' in body:  # a call, not an answer
            parsed.append(len(body))
        return parse(body, **options)

    monkeypatch.setattr(parser, noted)
    lines = "".join(f'{{"trajectory_id": "x{number}"}}\n' for number in range(1_000))
    assert value_of(tool(space, "check", content=lines, split="dev"))["rows"] == 1_000
    assert max(parsed) < JSON_BYTES < len(lines)


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b"{}," * 500_000 + b"{}]",
        b"[" * 1_000_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "x": ' + b"[" * 100_000,
        long_body(method="initialize"),
        long_body(params={"name": "board"}),
        long_body(params={"arguments": {"content": [{}] * 5_000}}),
        long_body(params={"arguments": {"content": "", "judge": LONG}}),
        long_body(params={"arguments": {"judge": LONG}}),
        long_body(params={"_meta": [{}] * 5_000}),
        b'{"jsonrpc": "2.0", "id": 1, "x": "' + b"\xff" * 9_000 + b'"}',
    ],
)
def test_other_long_bodies_are_refused_in_one_sentence(space, body):
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    answer = httpx.post(space.url + "/mcp", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"] == {"code": -32600, "message": NOT_A_CALL}
