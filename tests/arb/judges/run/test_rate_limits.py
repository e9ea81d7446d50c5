"""Whole runs under limits: every trajectory is judged, or left for the same command."""

import signal

import pytest

from arb.judges.run.folder import read_judgments, read_run
from tests.arb.judges.run.test_runner import DEV, predictions, run, start, states
from tests.support.llm_server.chat import Scripted
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.server import LLMServer
from tests.support.waiting import eventually


@pytest.mark.slow
def test_a_run_that_only_gets_rate_limits_stops_gives_up_nothing_and_goes_on_later(tmp_path):
    with LLMServer(faults=FaultPlan({"rate_limit": 1.0})) as server:
        result = run(server, tmp_path, "--rate-limit-timeout", 1)
        assert result.exit_code == 4
        assert "the endpoint answered every call with a rate limit (429: Rate limit reached" in result.output
        assert "run the same command again later, or with a --rate-limit-timeout above" in result.output
    assert predictions(tmp_path) == []
    assert read_run(tmp_path / "run")["sessions"][-1]["ended"] == "limited"
    with LLMServer() as server:
        assert run(server, tmp_path).exit_code == 0
    assert states(tmp_path) == {"ok": 20}


@pytest.mark.slow
def test_what_was_answered_before_the_limit_is_kept(tmp_path):
    def script(request):
        text = "<success>Successful</success>"
        return text if server.counts.answers.total() < 7 else Scripted(text, fault="rate_limit")

    with LLMServer(script=script) as server:
        result = run(server, tmp_path, "--rate-limit-timeout", 1, "--max-in-flight", 2)
        assert result.exit_code == 4
        kept = server.counts.answers.total()
        assert states(tmp_path) == {"ok": kept} and 7 <= kept <= 8
    assert f"{kept} of 20 trajectories judged" in result.output


@pytest.mark.slow
def test_a_run_with_errors_ends_with_1_and_says_how_to_go_on(tmp_path):
    def script(request):
        is_broken = server.counts.tries.total() == 1 or request.attempt
        return Scripted("<success>Successful</success>", fault="cut_json" if is_broken else None)

    with LLMServer(script=script) as server:
        result = run(server, tmp_path, "--max-in-flight", 1)
        assert result.exit_code == 1
        assert states(tmp_path) == {"ok": 19, "error": 1}
        lines = [line for line in result.output.splitlines() if "--retry error" in line]
        assert len(lines) == 1
        assert lines[0].startswith("trajectories without an answer: 1, counted as not successful; to judge")
        server.chat.script = lambda request: "<success>Successful</success>"
        asked = server.counts.calls
        assert run(server, tmp_path).exit_code == 1  # nothing is left to judge, but the error still stands
        assert server.counts.calls == asked
        assert run(server, tmp_path, "--retry", "error").exit_code == 0
        assert server.counts.calls == asked + 1
    assert len(list(read_judgments(tmp_path / "run"))) == len(DEV)


@pytest.mark.slow
def test_ctrl_c_while_the_endpoint_asks_to_wait_ends_the_run_at_once(tmp_path):
    plan = FaultPlan({"rate_limit_retry_after": 1.0}, retry_after_s=600)
    with LLMServer(faults=plan) as server:
        process = start(server, tmp_path)
        eventually(lambda: server.counts.calls > 0 and server.counts.in_flight == 0, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "run the same command again to continue" in errors
    assert predictions(tmp_path) == []
