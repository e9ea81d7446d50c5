"""`judges show`: of one judgment every message that was sent, as it was sent, and every reply."""

import base64
import hashlib
import json
import re
import shutil

import pytest

from arb.core.suite import load_suite
from arb.judges.run.folder import PROMPTS
from tests.support.judge_runs import invoke, options
from tests.support.llm_server.server import LLMServer

ID = load_suite("sample").split("dev")[0].trajectory_id


def run(server, folder, judge):
    return invoke("run", *options(server, folder, "--limit", 1, "--out", folder / "run", judge=judge))


@pytest.fixture(scope="module")
def webjudge(tmp_path_factory):
    """A run of one trajectory, and the bodies of its calls."""
    folder = tmp_path_factory.mktemp("webjudge")
    with LLMServer() as server:
        assert run(server, folder, "webjudge").exit_code == 0
        return folder / "run", list(server.chat.bodies)


def sent_part(part: dict) -> dict:
    """A part of a message as the endpoint got it, a picture by its SHA-256."""
    if part["type"] == "text":
        return part
    kind, _, encoded = part["image_url"]["url"].removeprefix("data:").partition(";base64,")
    name = hashlib.sha256(base64.b64decode(encoded)).hexdigest()
    return {"url": f"sha256:{name}", "detail": part["image_url"]["detail"], "kind": kind}


def shown_part(part: dict) -> dict:
    return part if part["type"] == "text" else {**part["image_url"], "kind": part["media_type"]}


def comparable(messages: list[dict], part_of) -> list[tuple]:
    return [
        (role, content if isinstance(content, str) else list(map(part_of, content)))
        for role, content in map(dict.values, messages)
    ]


def test_the_messages_are_those_that_the_endpoint_got_call_for_call(webjudge):
    folder, bodies = webjudge
    shown = json.loads(invoke("show", folder, ID, "--json").stdout)
    assert (shown["trajectory_id"], shown["state"]) == (ID, "ok")
    sent = [comparable(body["messages"], sent_part) for body in bodies]
    stored = [comparable(call["messages"], shown_part) for call in shown["calls"]]
    assert {*map(json.dumps, stored)} == {*map(json.dumps, sent)}  # equal screenshots are rated by one call
    assert json.dumps(stored[-1]) == json.dumps(sent[-1])
    assert [call["purpose"] for call in shown["calls"]][:2] == ["key points", "rating"]
    assert all(call["reply"]["text"] for call in shown["calls"])


def test_in_the_terminal_every_message_and_reply_stands_in_order(webjudge):
    folder, _ = webjudge
    lines = invoke("show", folder, ID.upper()).stdout
    assert lines.startswith(f"{ID}: ok, success ")
    assert "judge: webjudge-style · m · own wording" in lines
    last = lines[lines.rindex("=====") :]
    assert "verdict, sent to judge" in last
    assert last.index("--- system") < last.index("--- user") < last.index("--- reply: ok")
    assert "[picture sha256:" in lines and "image/jpeg" in lines and "detail high" in lines


def test_the_pictures_that_were_sent_are_found_in_the_recorded_runs(webjudge, tmp_path):
    folder, _ = webjudge
    result = invoke("show", folder, ID, "--pictures", tmp_path / "p")
    written = {each.stem: each for each in (tmp_path / "p").iterdir()}
    assert f"wrote {len(written)} of {len(written)} pictures" in result.stderr and written
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() == name for name, path in written.items())
    assert {path.suffix for path in written.values()} == {".jpeg"}


def test_an_id_that_is_not_judged_and_a_folder_that_is_no_run_are_said(webjudge, tmp_path):
    folder, _ = webjudge
    assert "has no judgment of it; use an id" in invoke("show", folder, "a/b/c").output
    assert invoke("show", tmp_path, ID).exit_code == 2


def test_a_damaged_prompt_is_an_error_and_no_other_text(webjudge, tmp_path):
    folder, _ = webjudge
    for path in folder.glob("*.json*"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    stored = (tmp_path / PROMPTS).read_text()
    (tmp_path / PROMPTS).write_text(re.sub(r'"zlib":"e.{9}', '"zlib":"eAHzKk1JTV', stored))
    result = invoke("show", tmp_path, ID)
    assert result.exit_code == 2 and "is damaged" in result.output


def test_the_shorter_prompt_is_shown_where_it_was_sent_and_exported_as_pruned(tmp_path):
    with LLMServer(script="tags", max_input_tokens=600) as server:
        result = run(server, tmp_path, "simplified-axtree")
        assert result.exit_code == 1, result.output  # its only trajectory is too long
        sent = server.chat.bodies[-1]["messages"]
    (call,) = json.loads(invoke("show", tmp_path / "run", ID, "--json").stdout)["calls"]
    assert call["messages"] == sent and call["reply"]["used_shorter"]
    invoke("export", tmp_path / "run", "--released-layout", "--out", tmp_path / "out")
    (file,) = (tmp_path / "out").rglob("*.json")
    assert json.loads(file.read_text())["chat_messages"] == {"pruned": sent}


def test_a_run_without_its_prompts_shows_replies_and_says_what_is_missing(webjudge, tmp_path):
    folder = shutil.copytree(webjudge[0], tmp_path / "run")
    (folder / PROMPTS).unlink()
    done = invoke("show", folder, ID)
    assert done.exit_code == 0, done.output
    assert "the prompt is not stored: the run's prompts.jsonl is missing" in done.stdout
    assert "--- reply: " in done.stdout
