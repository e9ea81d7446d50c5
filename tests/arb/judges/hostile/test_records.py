"""Records say what was sent and what answered: parameters, served models, prompts. Replies asked again."""

import json
import sys
import time

import pytest

from arb.judges.endpoints.providers import omitted_params
from arb.judges.engine.cache import CallCache
from arb.judges.registry import find_judge, full_name, is_same_model
from arb.judges.run.folder import read_judgments, read_run
from arb.judges.types import ModelSettings, Reply
from tests.support import judge_runs
from tests.support.llm_server.chat import Scripted
from tests.support.llm_server.server import LLMServer
from tests.support.provider_server import ProviderServer, require_clients

PAPERS_MODEL = "gpt-4o-mini-2024-07-18"
LIMIT = 4


def invoke(command, server, folder, *arguments, judge="simplified-neither", model="m"):
    given = judge_runs.options(server, folder, "--limit", LIMIT, *arguments, judge=judge, model=model)
    return judge_runs.invoke(command, *given)


def run(server, folder, *arguments, **more):
    return invoke("run", server, folder, "--out", folder / "run", *arguments, **more)


def totals(folder) -> dict:
    return read_run(folder / "run")["totals"]


def replies(folder) -> list[dict]:
    return [call["reply"] for record in read_judgments(folder / "run") for call in record["calls"]]


@pytest.mark.parametrize("more", [(), ("--batch",)])
def test_a_parameter_that_was_not_sent_is_in_every_call_and_warned_about_once(more, tmp_path, monkeypatch):
    monkeypatch.setattr("arb.judges.run.batch.POLL_S", 0.05)
    with LLMServer("tags", unsupported={"temperature", "seed"}) as server:
        result = run(server, tmp_path, "--logprobs", *more)
        assert result.exit_code == 0, result.output
        assert [reply["dropped"] for reply in replies(tmp_path)] == [["seed", "temperature"]] * LIMIT
        assert totals(tmp_path)["dropped_params"] == {"judge": {"seed": LIMIT, "temperature": LIMIT}}
        warnings = [line for line in result.output.splitlines() if "was not sent" in line]
        assert [line.split()[1] for line in sorted(warnings)] == ["seed", "temperature"]
        run(server, tmp_path, "--logprobs", "--out", tmp_path / "other")  # from the cache
        calls = [call for record in read_judgments(tmp_path / "other") for call in record["calls"]]
        assert [call["reply"]["dropped"] for call in calls] == [["seed", "temperature"]] * LIMIT


def test_when_all_is_sent_nothing_is_recorded_as_dropped(tmp_path):
    with LLMServer("tags") as server:
        result = run(server, tmp_path)
        assert "was not sent" not in result.output
        assert totals(tmp_path)["dropped_params"] == {}
        assert totals(tmp_path)["served_models"] == {"judge": {"m": LIMIT}}
        assert all("dropped" not in reply for reply in replies(tmp_path))


@pytest.mark.parametrize(
    ("provider", "asked", "dropped"),
    [
        ("anthropic", {"seed": 0, "logprobs": True}, ("logprobs", "seed")),
        ("anthropic", {"seed": None}, ()),
        ("bedrock", {"seed": 1}, ("seed",)),
        ("gemini", {"seed": 1, "logprobs": True}, ("logprobs",)),
        ("openai-responses", {"seed": 1, "logprobs": True}, ("seed",)),
        ("openai", {"seed": 1, "logprobs": True}, ()),
    ],
)
def test_what_a_provider_never_takes_is_known_before_the_first_call(provider, asked, dropped):
    assert omitted_params(ModelSettings("m", provider, **asked)) == dropped


def test_a_limit_whose_both_names_are_refused_is_a_parameter_that_was_not_sent():
    model = ModelSettings("m", "any", seed=None)
    assert omitted_params(model, {"max_tokens"}) == ()
    assert omitted_params(model, {"max_tokens", "max_completion_tokens"}) == ("max_output_tokens",)


@pytest.mark.slow
def test_a_typed_parameter_that_the_provider_never_takes_is_refused_unless_allowed(tmp_path, monkeypatch):
    require_clients("anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    given = ("--provider", "anthropic", "--seed", 7)
    with ProviderServer("<success>Successful</success>") as server:
        for command in (run, lambda *every: invoke("plan", *every)):
            refused = command(server, tmp_path, *given)
            assert refused.exit_code == 2
            assert "--seed: --provider anthropic never accepts it" in refused.output
            assert "--allow-dropped-params" in refused.output
        assert server.requests == []
        assert not (tmp_path / "run").exists()
        allowed = run(server, tmp_path, *given, "--allow-dropped-params")
        assert allowed.exit_code == 0, allowed.output
        assert len(server.requests) == LIMIT  # none was refused by the library first
        assert totals(tmp_path)["dropped_params"] == {"judge": {"seed": LIMIT}}
        assert totals(tmp_path)["served_models"] == {"judge": {"claude-x-20260101": LIMIT}}
        # The seed that every run has by default is recorded, and refuses no run.
        default = run(server, tmp_path, "--provider", "anthropic", "--out", tmp_path / "default")
        assert default.exit_code == 0
        assert default.output.count("seed was not sent") == 1


def served_by(name: str):
    return lambda request: Scripted("<success>Successful</success>", model=name)


def test_two_models_that_answer_one_run_give_a_warning(tmp_path):
    names = ["m", "m-quantized"]
    with LLMServer(lambda request: served_by(names[len(request.text) % 2])(request)) as server:
        result = run(server, tmp_path)
        served = totals(tmp_path)["served_models"]["judge"]
        assert sum(served.values()) == LIMIT
        assert set(served) == set(names)  # the sample's goals are of both lengths
        assert "judge: m was requested, but m and m-quantized answered" in result.output


def test_two_models_in_two_sessions_give_a_warning(tmp_path):
    name = ["m"]
    with LLMServer(lambda request: served_by(name[0])(request)) as server:
        assert "answered by" not in run(server, tmp_path, "--limit", 2).output
        name[0] = "m-2"
        result = run(server, tmp_path)
        assert totals(tmp_path)["served_models"] == {"judge": {"m": 2, "m-2": 2}}
        assert "judge: m was requested, but m and m-2 answered" in result.output


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-11-20", True),
        ("anthropic/claude-3.7-sonnet", "claude-3-7-sonnet-20250219", True),
        ("meta-llama/Llama-3.3-70B-Instruct", "llama-3.3-70b-instruct", True),
        ("gpt-4o-2024-11-20", "gpt-4o-2024-08-06", False),
        ("gpt-4o-2024-11-20", "gpt-4o", False),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", False),
    ],
)
def test_a_served_name_is_the_asked_one_when_only_a_date_or_the_owner_differs(asked, served, same):
    assert is_same_model(asked, served) is same


def test_no_paper_name_is_used_when_another_model_answered(official_settings, tmp_path):
    judge = find_judge("GPT-4o Mini (A)", prompts="official", settings=official_settings)
    models = {"judge": ModelSettings(PAPERS_MODEL)}
    assert full_name(judge, models, {"judge": [PAPERS_MODEL]}) == "GPT-4o Mini (A)"
    other = full_name(judge, models, {"judge": [PAPERS_MODEL, "qwen-7b"]})
    assert other == f"simplified-axtree · {PAPERS_MODEL} (answered by qwen-7b) · official wording"


def test_lines_run_and_export_of_another_model_bear_no_paper_name(official_settings, tmp_path, monkeypatch):
    monkeypatch.setenv("ARB_DATA_DIR", str(official_settings.data_dir))
    name = ["qwen-7b"]
    with LLMServer(lambda request: served_by(name[0])(request)) as server:
        given = {"judge": "gpt-4o-mini-noscreen", "model": PAPERS_MODEL}
        result = run(server, tmp_path, "--prompts", "official", **given)
        assert result.exit_code == 0, result.output
        judge = read_run(tmp_path / "run")["judge"]
        assert judge["released_folder"] is None
        assert "answered by qwen-7b" in judge["name"]
        assert {record["judge"] for record in read_judgments(tmp_path / "run")} == {judge["name"]}
        assert f"judge: {judge['name']}" in result.output
        name[0] = PAPERS_MODEL
        fresh = ("--out", tmp_path / "fresh", "--refresh")
        run(server, tmp_path, "--prompts", "official", *fresh, **given)
        assert read_run(tmp_path / "fresh")["judge"]["name"] == "GPT-4o Mini (A)"


def test_refresh_asks_again_once_and_stores_the_new_reply(tmp_path):
    verdict = ["Successful"]
    with LLMServer(lambda request: f"<success>{verdict[0]}</success>") as server:
        run(server, tmp_path)
        verdict[0] = "Unsuccessful"
        run(server, tmp_path, "--out", tmp_path / "cached")
        assert server.counts.calls == LIMIT
        again = ("--out", tmp_path / "again", "--refresh")
        run(server, tmp_path, *again, "--limit", 2)
        assert server.counts.calls == LIMIT + 2
        run(server, tmp_path, *again)  # continues: what this run asked is not asked again
        assert server.counts.calls == LIMIT + LIMIT
        told = {
            out: {record["answer"]["success"] for record in read_judgments(tmp_path / out)}
            for out in ("cached", "again")
        }
        assert told == {"cached": {True}, "again": {False}}
        run(server, tmp_path, "--out", tmp_path / "later")  # the newest reply is the one in the cache
        assert server.counts.calls == 2 * LIMIT
        assert {record["answer"]["success"] for record in read_judgments(tmp_path / "later")} == {False}


def test_a_refresh_that_was_killed_continues_with_the_replies_that_it_paid(tmp_path):
    """The replies of a killed run are in the cache, though no trajectory was finished with them."""
    with LLMServer("tags") as server:
        run(server, tmp_path)
        again = ("--out", tmp_path / "again", "--refresh")
        run(server, tmp_path, *again)
        for name in ("judgments.jsonl", "predictions.jsonl"):  # as after a kill before anything was written
            (tmp_path / "again" / name).write_bytes(b"")
        assert run(server, tmp_path, *again).exit_code == 0
        assert server.counts.calls == 2 * LIMIT


def test_a_finished_folder_cannot_be_refreshed(tmp_path):
    with LLMServer("tags") as server:
        run(server, tmp_path)
        refused = run(server, tmp_path, "--refresh")
        assert (refused.exit_code, server.counts.calls) == (2, LIMIT)
        assert "--refresh: every trajectory in" in refused.output
        assert "use another --out" in " ".join(refused.output.split())


def test_replies_expire(tmp_path, monkeypatch):
    with LLMServer("tags") as server:
        run(server, tmp_path)
        for days, calls in ((30, LIMIT), (1, 2 * LIMIT)):
            now = time.time() + 2 * 86_400
            with monkeypatch.context() as later:
                later.setattr("arb.judges.run.config.time.time", lambda now=now: now)
                run(server, tmp_path, "--out", tmp_path / f"{days}", "--cache-days", days)
            assert server.counts.calls == calls


def test_a_plan_counts_what_a_refresh_will_pay_again(tmp_path):
    with LLMServer("tags") as server:
        run(server, tmp_path)
        for more, calls in (((), 0), (("--refresh",), LIMIT), (("--cache-days", 1), 0)):
            made = json.loads(invoke("plan", server, tmp_path, *more, "--json").stdout)
            assert made["calls"] == calls
        refused = invoke("plan", server, tmp_path, "--refresh", "--pilot", 1)
        assert (refused.exit_code, server.counts.calls) == (2, LIMIT)
        assert "--pilot and --refresh" in refused.output


def test_a_reply_without_a_date_is_too_old_for_any_limit(tmp_path):
    cache = CallCache(tmp_path)
    cache.put("aa" * 32, Reply("old"))
    cache.close()
    (segment,) = tmp_path.glob("segment-*")
    line = json.loads(segment.read_bytes())
    del line["at"]
    segment.write_text(json.dumps(line, separators=(",", ":")) + "\n")
    assert CallCache(tmp_path).get("aa" * 32).text == "old"
    assert CallCache(tmp_path, not_before=1.0).get("aa" * 32) is None


def test_of_two_replies_to_a_call_the_newer_counts_whatever_their_files_are_called(tmp_path):
    for name, text, at in (("b", "older", 1.0), ("a", "newer", 2.0)):
        cache = CallCache(tmp_path / name)
        cache.put("aa" * 32, Reply(text))
        cache.close()
        (segment,) = (tmp_path / name).glob("segment-*")
        line = json.loads(segment.read_bytes()) | {"at": at}
        (tmp_path / "both").mkdir(exist_ok=True)
        target = tmp_path / "both" / f"segment-{name}-1.jsonl"
        target.write_text(json.dumps(line, separators=(",", ":")) + "\n")
    assert CallCache(tmp_path / "both").get("aa" * 32).text == "newer"


JUDGE = """
from arb.judges.types import Answer, Call, Message, Wants
from WORDING import QUESTION, LAST


class Mine:
    name, inputs, calls, source, prompts_hash = "mine", "goal", "2", "my own", ""
    wants, models = Wants(), {"judge": "m"}

    def ask(self, view):
        (first,) = yield [Call("draft", (Message("user", QUESTION + view.goal),))]
        (second,) = yield [Call("verdict", (Message("user", LAST + (first.text or "")),))]
        return Answer("ok", success="Successful" in second.text)
"""


WORDING = {"QUESTION": "Is it done?\\n", "LAST": "Say Successful.\\n"}


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a judge's wording into a file next to the judge's own, as another version of it."""
    module = f"wording_of_{tmp_path.name}"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "mine.py").write_text(JUDGE.replace("WORDING", module))

    def written(words):
        source = "".join(f'{name} = "{text}"\n' for name, text in words.items())
        (tmp_path / f"{module}.py").write_text(source)
        sys.modules.pop(module, None)

    return written


@pytest.mark.parametrize("changed", ["QUESTION", "LAST"])
def test_a_judge_in_several_files_starts_a_new_run_when_its_wording_changes(changed, write, tmp_path):
    wording = WORDING
    with LLMServer(lambda request: "Successful") as server:
        given = {"judge": f"{tmp_path / 'mine.py'}:Mine"}
        write(wording)
        run(server, tmp_path, **given)
        first = totals(tmp_path)["prompts_sha256"]
        asked = server.counts.calls
        assert run(server, tmp_path, **given).exit_code == 0
        assert server.counts.calls == asked
        write(wording | {changed: "Really?\\n"})
        result = run(server, tmp_path, **given)
        assert result.exit_code == 0, result.output
        assert "the prompts" in result.output
        assert (tmp_path / "run-2" / "predictions.jsonl").exists()
        assert totals(tmp_path)["prompts_sha256"] == first
        second = read_run(tmp_path / "run-2")["totals"]["prompts_sha256"]
        assert second != first
        asked = server.counts.calls
        assert run(server, tmp_path, **given).exit_code == 0  # continues in run-2
        assert server.counts.calls == asked
        assert not (tmp_path / "run-3").exists()
        write(wording | {changed: "Truly?\\n"})
        assert run(server, tmp_path, **given).exit_code == 0
        assert (tmp_path / "run-3" / "predictions.jsonl").exists()


def test_the_digest_of_the_prompts_does_not_depend_on_the_order_of_the_replies(tmp_path):
    with LLMServer("tags") as server:
        run(server, tmp_path, "--max-in-flight", 1)
        run(server, tmp_path, "--out", tmp_path / "other", "--max-in-flight", 4)
        other = read_run(tmp_path / "other")["totals"]["prompts_sha256"]
        assert totals(tmp_path)["prompts_sha256"] == other
        assert len(other) == 64


def test_a_certificate_says_what_was_not_sent_and_what_answered(tmp_path):
    def script(request):
        return Scripted("<success>Successful</success>", model="m-2026-01-01")

    with LLMServer(script, unsupported={"seed"}) as server:
        out = tmp_path / "certificate"
        more = ("--out", out, "--repeats", 1, "--without-probes")
        result = invoke("certify", server, tmp_path, *more)
        assert result.exit_code in (0, 1), result.output
        measured = json.loads((out / "certificate.json").read_bytes())["measured"]
        assert measured["dropped_params"] == {"judge": {"seed": LIMIT}}
        assert measured["served_models"] == {"judge": {"m-2026-01-01": LIMIT}}
        assert len(measured["prompts_sha256"]) == 64
        text = (out / "certificate.md").read_text()
        assert "m-2026-01-01" in text
        assert "seed" in text
