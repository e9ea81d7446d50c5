"""Exit codes and messages of runs that came to nothing, or whose cache cannot be used."""

import json

import pytest

from tests.support.judge_runs import invoke
from tests.support.llm_server.server import LLMServer

READABLE = "<success>Successful</success>"


def options(server, folder, *more):
    given = ("simplified-axtree", "--suite", "sample", "--split", "dev", "--limit", 4, "--model", "m")
    return (*given, "--base-url", server.base_url, "--out", folder / "run", *more)


def test_a_run_without_a_single_verdict_ends_with_1_and_says_what_to_do(tmp_path):
    with LLMServer(lambda request: "I would rather not say.") as server:
        done = invoke("run", *options(server, tmp_path, "--cache", tmp_path / "cache", "--json"))
    assert done.exit_code == 1
    assert json.loads(done.stdout)["totals"]["states"] == {"unparsed": 4}
    assert "no trajectory has a verdict (4 unparsed); read the replies with `arb judges show" in done.stderr


def test_one_verdict_among_others_is_enough(tmp_path):
    with LLMServer(lambda request: READABLE if server.counts.calls == 1 else "no") as server:
        given = options(server, tmp_path, "--cache", tmp_path / "cache", "--max-in-flight", 1)
        done = invoke("run", *given)
    assert done.exit_code == 0 and "no trajectory has a verdict" not in done.output


@pytest.mark.parametrize("command", ["run", "run --batch", "certify", "probe"])
def test_a_cache_that_cannot_be_opened_is_one_message_and_nothing_is_paid(tmp_path, command):
    (tmp_path / "file").write_text("")
    with LLMServer() as server:
        name, *more = command.split()
        done = invoke(name, *options(server, tmp_path, "--cache", tmp_path / "file" / "cache", *more))
        assert server.counts.calls == 0
    assert done.exit_code == 2, done.output
    assert "--cache" in done.stderr and f"{tmp_path}/file is a file, not a folder" in done.stderr
    assert isinstance(done.exception, SystemExit)


def test_a_cache_that_cannot_be_written_is_one_message(tmp_path, monkeypatch):
    monkeypatch.setattr("arb.judges.run.config.os.access", lambda path, mode: False)
    with LLMServer() as server:
        done = invoke("run", *options(server, tmp_path, "--cache", tmp_path / "cache"))
        assert server.counts.calls == 0
    assert done.exit_code == 2 and "is not writable" in done.stderr


def test_a_private_cache_that_cannot_be_made_is_one_message(tmp_path):
    (tmp_path / "file").write_text("")
    with LLMServer() as server:
        private, given = str(tmp_path / "file" / "private"), options(server, tmp_path)
        done = invoke("run", *given, ARB_CACHE_DIR=private)
        planned = invoke("plan", *given[:-2], ARB_CACHE_DIR=private)
    for each in (done, planned):
        assert (each.exit_code, type(each.exception)) == (2, SystemExit) and "ARB_CACHE_DIR" in each.stderr
