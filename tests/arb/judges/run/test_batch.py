"""Runs by batches against a server with OpenAI's Batch API, whose progress is in the test's hand."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.cli.options import RunOptions
from arb.judges.run import batch_files
from arb.judges.run.batch import run_batch
from arb.judges.run.config import build_config
from arb.judges.run.folder import RunFolderError, read_judgments, read_run
from arb.judges.run.runner import Outcome, run_judge, run_local
from arb.judges.types import OptionsError
from tests.support.judge_runs import predictions
from tests.support.judges import assert_prompts_are_there
from tests.support.llm_server.chat import Request, Scripted
from tests.support.llm_server.errors import error_answer
from tests.support.llm_server.faults import FaultPlan
from tests.support.llm_server.scripts import judges
from tests.support.llm_server.server import LLMServer

REPOSITORY = Path(__file__).parents[4]


def options(server, folder: Path, judge: str, **more) -> RunOptions:
    given = {"suite": "sample", "split": "dev", "model": "gpt-4o", "provider": "any", "limit": 6}
    given |= {"base_url": server.base_url, "cache": folder / "cache", "price": ["gpt-4o=2.5,10"]}
    return RunOptions(judge=judge, **(given | more))


def run(server, folder: Path, judge: str = "AER-C", *, out: str = "run", **more) -> Outcome:
    return run_judge(
        build_config(options(server, folder, judge, **more)), folder / out, partial(run_batch, poll_s=0.01)
    )


def batches(folder: Path) -> list[dict]:
    return json.loads((folder / "run/batches.json").read_text())["batches"]


def moved_on(server, step: Callable[[str], object]) -> None:
    """From now on every open batch is moved by this step when it is looked at."""
    look = server.batches._batch

    def looked(batch_id: str, rest: list[str]):
        if not rest and server.batches.batches[batch_id].status not in ("completed", "failed", "expired"):
            step(batch_id)
        return look(batch_id, rest)

    server.batches.mode = "by_hand"
    server.batches._batch = looked


def by_the_prompt(request: Request) -> str:
    """As the script ``judges``, by what is asked alone: the bytes of a request and of a line differ."""
    asked = request.text + "".join(request.images)
    return judges(replace(request, key=hashlib.sha256(asked.encode()).hexdigest()))


@pytest.mark.slow
@pytest.mark.parametrize("judge", ["simplified-both", "AER-C", "NNetNav", "WebJudge (o4-mini)"])
def test_batches_give_the_verdicts_that_single_calls_give(judge, tmp_path):
    with LLMServer(by_the_prompt) as server:
        single = options(server, tmp_path, judge, cache=tmp_path / "other cache")
        run_judge(build_config(single), tmp_path / "single", run_local)
        calls = server.counts.calls
        outcome = run(server, tmp_path, judge)
        assert outcome.ended.how == "finished"
        by_batch, one_by_one = predictions(tmp_path), predictions(tmp_path, "single")
        for row in (*by_batch, *one_by_one):
            row.pop("cost_usd"), row.pop("latency_s", None)
        assert by_batch == one_by_one
        assert_prompts_are_there(tmp_path / "run")
        assert server.counts.calls == 2 * calls  # every call once more, none twice
        rounds = {"simplified-both": 1, "AER-C": 2, "NNetNav": 2, "WebJudge (o4-mini)": 3}[judge]
        assert len(server.batches.batches) == rounds


def test_a_judge_that_asks_no_model_needs_no_batch(tmp_path):
    chosen = ["always-successful", "--suite", "sample", "--split", "dev", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["run", *chosen, "--batch"])
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "batches.json").exists()


def test_a_batch_costs_half_where_the_table_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with LLMServer("judges") as server:
        outcome = run(server, tmp_path, "simplified-neither", provider="openai", price=None)
        whole = server.counts.usd(2.5, 10)
        assert outcome.totals["cost_usd"] == pytest.approx(whole / 2)
        assert read_run(tmp_path / "run")["spent_usd"] == pytest.approx(whole / 2)


@pytest.mark.parametrize(
    "behaviour", [{}, {"unsupported": ["n"]}, {"most_choices": 1}], ids=["taken", "refused", "unread"]
)
def test_samples_are_one_line_where_the_endpoint_takes_n(behaviour, tmp_path):
    def different(request: Request) -> str:
        text = f"because {request.choice} {request.attempt}"
        return f"<reasoning>{text}</reasoning><success>Successful</success>"

    with LLMServer(different, **behaviour) as server:
        outcome = run(server, tmp_path, "simplified-axtree", samples=3)
        assert outcome.totals["states"] == {"ok": 6}
        lines = [len(each["keys"]) for each in batches(tmp_path)]
        assert lines == {"": [6], "unsupported": [6, 18], "most_choices": [6, 12]}[next(iter(behaviour), "")]
        assert server.counts.answers.total() == 18
        assert outcome.totals["cost_usd"] == pytest.approx(server.counts.usd(2.5, 10))
        assert run(server, tmp_path, "simplified-axtree", samples=3, out="again").totals["calls"] == 18
        assert server.counts.answers.total() == 18


def test_large_batches_are_cut(tmp_path, monkeypatch):
    made = batch_files.BatchFiles
    monkeypatch.setattr("arb.judges.run.batch.BatchFiles", partial(made, most_lines=2))
    with LLMServer("judges") as server:
        assert run(server, tmp_path, "simplified-neither").ended.how == "finished"
        assert [len(batch.lines) for batch in server.batches.batches.values()] == [2, 2, 2]


def test_files_are_cut_by_their_size_too_and_leave_nothing_behind(tmp_path):
    with batch_files.BatchFiles(tmp_path, most_bytes=25) as files:
        for number in range(5):
            files.add("judge", str(number), b"0123456789")
        assert [entry.keys for entry in files.entries] == [["0", "1"], ["2", "3"], ["4"]]
        assert [files.path(entry).stat().st_size for entry in files.entries] == [20, 20, 10]
    assert list(tmp_path.iterdir()) == []


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_any_text_makes_a_line_of_utf_8(text):
    """Also with lone surrogates, which hypothesis draws here."""
    line = batch_files.batch_line("k", {"messages": [{"role": "user", "content": text}]})
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    said = json.loads(line.decode("utf-8"))["body"]["messages"][0]["content"]
    assert said == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.mark.slow
def test_ctrl_c_leaves_the_batches_and_the_same_command_collects_them_another_day(tmp_path):
    """Both days in processes of their own: nothing but the folder and the cache is carried over."""
    with LLMServer("judges", api_key="k") as server:
        server.batches.mode = "by_hand"
        command = [sys.executable, "-m", "arb", "judges", "run", "simplified-neither", "--suite", "sample"]
        command += ["--split", "dev", "--limit", "6", "--model", "m", "--base-url", server.base_url]
        command += ["--key-variable", "BATCH_KEY", "--batch"]
        command += ["--out", str(tmp_path / "run"), "--cache", str(tmp_path / "cache")]
        environment = os.environ | {"BATCH_KEY": "k"}
        first = subprocess.Popen(command, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: server.batches.batches)
        wait_until(lambda: batches(tmp_path)[0]["status"] == "waiting")
        first.send_signal(signal.SIGINT)
        said = first.communicate(timeout=300)[1]
        assert first.returncode == 130, said
        assert "batch_1: 6 calls submitted" in said
        assert "in batches (batch_1): 6 calls; run the same command again to collect them" in said
        assert predictions(tmp_path) == []
        server.batches.advance("batch_1")
        second = subprocess.run(
            command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300
        )
        assert second.returncode == 0, second.stderr
        assert len(predictions(tmp_path)) == 6
        assert len(server.batches.batches) == 1
        assert server.counts.calls == 6


def wait_until(holds: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if holds():
                return
        except (OSError, ValueError, IndexError, KeyError):
            pass
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)


@pytest.mark.parametrize("was_made", [True, False])
def test_a_batch_of_which_it_is_not_known_whether_it_was_made_is_looked_for(was_made, tmp_path, monkeypatch):
    """Killed before it heard of a batch that it had written down, a run neither forgets nor repeats it."""
    with LLMServer("judges") as server:
        create = server.batches._create

        def create_and_lose(asked):
            if was_made:
                create(asked)
            server.batches._create = create
            raise ValueError("lost")  # the server answers 400, which no client tries again

        server.batches._create = create_and_lose
        first = run(server, tmp_path, "simplified-neither")
        assert first.ended.how == "failing"
        assert [entry["status"] for entry in batches(tmp_path)] == ["handing in"]
        assert run(server, tmp_path, "simplified-neither").ended.how == "finished"
        assert len(server.batches.batches) == 1
        assert server.counts.calls == 6


def test_a_batch_that_is_answered_with_a_server_error_is_not_made_twice(tmp_path, monkeypatch):
    monkeypatch.setattr("arb.judges.endpoints.batch_client.FIRST_WAIT_S", 0.0)
    with LLMServer("judges") as server:
        create = server.batches._create

        def create_and_fail(asked):
            create(asked)
            server.batches._create = create
            return error_answer(500, "The server had an error.")

        server.batches._create = create_and_fail
        assert run(server, tmp_path, "simplified-neither").ended.how == "finished"
        assert len(server.batches.batches) == 1


def test_what_a_batch_left_undone_when_its_day_was_over_is_submitted_again(tmp_path):
    with LLMServer("judges") as server:

        def four_and_then_it_expires(batch_id):
            server.batches.advance(batch_id, 4)
            if batch_id == "batch_1":
                server.batches.expire(batch_id)

        moved_on(server, four_and_then_it_expires)
        assert run(server, tmp_path, "simplified-neither").ended.how == "finished"
        assert [len(batch.lines) for batch in server.batches.batches.values()] == [6, 2]
        assert server.counts.calls == 6
        assert {row["state"] for row in predictions(tmp_path)} == {"ok"}


def test_calls_that_never_come_through_end_as_errors_with_the_reason(tmp_path):
    with LLMServer("judges") as server:
        moved_on(server, lambda batch_id: server.batches.expire(batch_id))
        assert run(server, tmp_path, "simplified-neither").ended.how == "finished"
        assert len(server.batches.batches) == 3
        assert {row["state"] for row in predictions(tmp_path)} == {"error"}
        (call, *_) = next(iter(read_judgments(tmp_path / "run")))["calls"]
        assert "batch_expired" in call["reply"]["error"]


def test_a_batch_that_is_refused_as_a_whole_ends_the_run_with_its_reason_and_can_be_gone_on_with(tmp_path):
    with LLMServer("judges") as server:
        moved_on(server, lambda batch_id: server.batches.fail(batch_id, "Enqueued token limit reached."))
        outcome = run(server, tmp_path, "simplified-neither")
        assert outcome.ended.how == "failing"
        assert "Enqueued token limit reached." in outcome.ended.message
        assert predictions(tmp_path) == []
        moved_on(server, lambda batch_id: server.batches.advance(batch_id))
        assert run(server, tmp_path, "simplified-neither").ended.how == "finished"
        assert server.counts.calls == 6


def test_a_batch_stopped_at_the_endpoint_is_not_submitted_again_at_once(tmp_path):
    with LLMServer("judges") as server:

        def two_and_cancelled(batch_id):
            server.batches.advance(batch_id, 2)
            server.batches.cancel(batch_id)

        moved_on(server, two_and_cancelled)
        outcome = run(server, tmp_path, "simplified-neither")
        assert outcome.ended.how == "interrupted"
        assert "batch_1: was cancelled at the endpoint" in outcome.ended.message
        assert len(server.batches.batches) == 1
        moved_on(server, lambda batch_id: server.batches.advance(batch_id))
        assert run(server, tmp_path, "simplified-neither").ended.how == "finished"
        assert [len(batch.lines) for batch in server.batches.batches.values()] == [6, 4]


def test_lines_that_fail_in_passing_are_submitted_again_and_none_is_paid_twice(tmp_path):
    faults = {"rate_limit": 0.1, "server_error": 0.1, "reset": 0.1, "choices_null": 0.1, "cut_json": 0.1}
    with LLMServer("judges", faults=FaultPlan(faults, seed=4, at_most=2)) as server:
        assert run(server, tmp_path, "NNetNav").ended.how == "finished"
        assert len(server.batches.batches) > 2
        assert server.counts.paid_twice() == {}
        assert {row["state"] for row in predictions(tmp_path)} == {"ok"}


def test_a_refusal_for_too_many_calls_does_not_count_while_others_are_answered(tmp_path):
    unlucky = []

    def script(request: Request):
        unlucky.append(request.key)
        is_refused = request.key == unlucky[0] and request.attempt < 3
        return Scripted("<success>Successful</success>", fault="rate_limit" if is_refused else None)

    with LLMServer(script) as server:
        assert run(server, tmp_path, "simplified-neither").ended.how == "finished"
        # refused among others that were answered, then twice alone; three such refusals would be an error
        assert server.counts.statuses[429] == 3
        assert {row["state"] for row in predictions(tmp_path)} == {"ok"}


def test_a_prompt_that_is_too_long_is_submitted_shorter_once(tmp_path):
    """The second file holds the pruned trees; where those are too long as well, that is the state."""
    with LLMServer("judges") as server:
        run(server, tmp_path, "simplified-axtree", out="in full", cache=tmp_path / "other cache")
        full = sorted(row["input_tokens"] for row in predictions(tmp_path, "in full"))
        server.chat.max_input_tokens = full[2]  # the three longest prompts of six are too long
        server.reset_counts()
        assert run(server, tmp_path, "simplified-axtree").ended.how == "finished"
        records = list(read_judgments(tmp_path / "run"))
        replies = [call["reply"] for each in records for call in each["calls"]]
        states = [each["state"] for each in records]
        ended = sorted(zip(states, [reply.get("used_shorter", False) for reply in replies], strict=True))
        assert ended == [("ok", False)] * 3 + [("ok", True)] + [("too_long", True)] * 2
        assert [len(batch.lines) for batch in server.batches.batches.values()] == [6, 6, 3]
        assert server.counts.calls == 9  # six, and three shorter ones


def test_a_parameter_that_is_not_known_is_left_out_and_remembered(tmp_path):
    with LLMServer("judges", unsupported={"temperature", "max_tokens"}) as server:
        outcome = run(server, tmp_path, "simplified-neither")
        assert outcome.ended.how == "finished"
        assert {row["state"] for row in predictions(tmp_path)} == {"ok"}
        said = json.loads((tmp_path / "run/batches.json").read_text())
        assert sorted(said["dropped"]["judge"]) == ["max_tokens", "temperature"]
        handed_in = len(server.batches.batches)
        run(server, tmp_path, "simplified-neither", limit=8)
        assert len(server.batches.batches) == handed_in + 1  # the two others, without them from the start


def test_a_refusal_or_a_wrong_request_ends_in_its_state(tmp_path):
    def script(request: Request):
        return Scripted(None, refusal="I will not.") if request.key < "8" else "no tags at all"

    with LLMServer(script) as server:
        run(server, tmp_path, "simplified-neither")
        assert {row["state"] for row in predictions(tmp_path)} <= {"refused", "unparsed"}


def test_a_wrong_key_ends_the_run_with_the_message_of_the_endpoint(tmp_path):
    with LLMServer("judges", api_key="right") as server:
        outcome = run(server, tmp_path, "simplified-neither")
        assert outcome.ended.how == "failing"
        assert "401" in outcome.ended.message
        assert predictions(tmp_path) == []


def test_the_limit_on_dollars_holds_for_what_is_submitted(tmp_path):
    with LLMServer("judges") as server:
        dear = {"price": ["gpt-4o=100,300"], "limit": 12, "max_output_tokens": 200}
        outcome = run(server, tmp_path, "simplified-neither", max_usd=0.5, **dear)
        paid = server.counts.usd(100, 300)
        assert outcome.ended.how == "budget"
        assert 0 < paid <= 0.5
        assert "higher --max-usd" in outcome.ended.message
        assert 0 < len(predictions(tmp_path)) < 12
        assert run(server, tmp_path, "simplified-neither", max_usd=50.0, **dear).ended.how == "finished"
        assert server.counts.paid_twice() == {}


@pytest.mark.parametrize("provider", ["openrouter", "vllm"])
def test_a_provider_without_batches_is_refused(provider, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    with LLMServer("judges") as server, pytest.raises(OptionsError, match=f"--batch: {provider} has no"):
        run(server, tmp_path, provider=provider)


def test_a_list_of_batches_that_is_none_is_named(tmp_path):
    with LLMServer("judges") as server:
        run(server, tmp_path, limit=1)
        (tmp_path / "run/batches.json").write_text("[]")
        with pytest.raises(RunFolderError, match=r"batches\.json: cannot be read"):
            run(server, tmp_path)


def test_a_batch_without_an_output_limit_is_not_submitted_under_a_cap(tmp_path):
    with LLMServer("judges", unsupported={"max_tokens", "max_completion_tokens"}) as server:
        outcome = run(server, tmp_path, "simplified-neither", max_usd=5.0, price=["m=2.5,10"], model="m")
        assert outcome.ended.how == "budget"
        assert "accepts neither max_tokens nor max_completion_tokens" in outcome.ended.message
        assert server.counts.answers.total() == 0


def test_lines_that_an_empty_account_refuses_stay_open_for_the_same_command(tmp_path):
    with LLMServer("judges") as server:
        answer = server.chat.at_once

        def at_once(request):
            if server.counts.answers.total() < 3:
                return answer(request)
            return error_answer(429, "No credit.", code="insufficient_quota"), 0.0

        server.chat.at_once = at_once
        outcome = run(server, tmp_path, "simplified-neither")
        assert outcome.ended.how == "account"
        assert "the endpoint refuses the account (429: No credit.)" in outcome.ended.message
        assert [row["state"] for row in predictions(tmp_path)] == ["ok"] * 3
        del server.chat.at_once
        outcome = run(server, tmp_path, "simplified-neither")
        assert outcome.ended.how == "finished"
        assert {row["state"] for row in predictions(tmp_path)} == {"ok"}
        assert server.counts.paid_twice() == {}
