"""An account that dies stops the run; what was not judged stays open for the same command."""

import pytest

from arb.judges.run.folder import read_run
from tests.support.judge_runs import HELD_OUT, run, states
from tests.support.llm_server.errors import error_answer
from tests.support.llm_server.server import LLMServer
from tests.support.ports import hold_port, port_of

ANSWERED = 5
DEATHS = {
    "wrong key": (401, "Incorrect API key provided.", "invalid_api_key"),
    "no credit": (402, "Insufficient credits.", None),
    "no quota": (429, "You exceeded your current quota.", "insufficient_quota"),
    "Anthropic": (400, "Your credit balance is too low to access the Anthropic API.", None),
}


def kill_account(server: LLMServer, status: int, message: str, code: str | None) -> None:
    """Answer some calls, and then none."""
    chat, answer = server.chat, server.chat.at_once

    def at_once(request):
        if server.counts.answers.total() < ANSWERED:
            return answer(request)
        return chat._note(error_answer(status, message, code=code)), 0.0

    chat.at_once = at_once


@pytest.mark.parametrize("death", DEATHS)
def test_the_rest_is_not_asked_and_the_same_command_continues(tmp_path, death):
    with LLMServer() as server:
        kill_account(server, *DEATHS[death])
        result = run(server.base_url, tmp_path, "--max-in-flight", 4)
        assert result.exit_code == 5, result.output
        assert server.counts.calls <= ANSWERED + 2 * 4  # those under way, at the last answer and after it
        lines = [line for line in result.output.splitlines() if "refuses the account" in line]
        assert len(lines) == 1 and str(DEATHS[death][0]) in lines[0]
        assert f"of {HELD_OUT} trajectories judged" in result.output
        assert states(tmp_path) == {"ok": server.counts.answers.total()}
        assert read_run(tmp_path / "run")["sessions"][-1]["ended"] == "account"
        del server.chat.at_once
        assert run(server.base_url, tmp_path).exit_code == 0
        assert states(tmp_path) == {"ok": HELD_OUT}
        assert server.counts.paid_twice() == {}


@pytest.mark.slow
def test_an_address_where_nothing_listens_ends_the_run_after_a_few_tries(tmp_path):
    with hold_port() as held:
        result = run(f"http://127.0.0.1:{port_of(held)}/v1", tmp_path)
    assert result.exit_code == 1, result.output
    assert "the endpoint cannot be reached" in result.output and "--base-url" in result.output
    assert states(tmp_path) == {}
    attempts = sum(path.read_text().count('"attempt"') for path in (tmp_path / "cache").glob("*.jsonl"))
    assert attempts < HELD_OUT
    with LLMServer() as server:
        assert run(server.base_url, tmp_path / "another").exit_code == 0
