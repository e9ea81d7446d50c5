"""Stored replies read again, without a call, give what the run gave; once changed, what they say now."""

import json
import threading
from collections import Counter

import pytest

from arb.judges.ensembles.threshold import Threshold, score_settings, write_threshold
from arb.judges.run.folder import read_run
from arb.judges.run.records import judgment_record
from arb.judges.run.reparse import VerdictOnly, reparse_record, reparsing_judge
from arb.judges.run.scheduler import Exchange, Judgment
from arb.judges.types import Answer, Call, Message, OptionsError, Reply
from tests.support import judge_runs
from tests.support.judge_runs import invoke
from tests.support.llm_server.scripts import judges as replies_of_judges
from tests.support.llm_server.scripts import share
from tests.support.llm_server.server import LLMServer

LIMIT = "12"


class Moods:
    """Answers judges as the script does, but other words the second and third time, and some no verdict."""

    def __init__(self):
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request):
        with self._lock:
            self._asked[request.key] += 1
            nth = self._asked[request.key]
        text = replies_of_judges(request)
        mood = share(f"{request.key}/{nth}")
        if mood < 0.15:
            return "I have no opinion on that page."
        if mood < 0.4:
            return text.replace("Unsuccessful", "**unsure**").replace("failure", "unsure")
        return text.replace("Successful", "yes") if mood < 0.6 else text


@pytest.fixture(scope="module")
def server():
    with LLMServer(script=Moods()) as running:
        yield running


def run(server, folder, *options):
    """A run over the sample's dev; its folder."""
    more = ("--limit", LIMIT, *options)
    done = judge_runs.run(server.base_url, folder, *more, judge=None, model="m-1", split="dev")
    assert done.exit_code == 0, done.output
    return folder / "run"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(autouse=True)
def _key(monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("ARB_CACHE_DIR", str(tmp_path / "private"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("simplified-axtree",),
        ("AER-C",),
        ("NNetNav",),
        ("WebJudge (o4-mini)",),
        ("simplified-neither", "--samples", "3", "--vote", "all"),
        ("--cascade", "simplified-neither,AER-V"),
        ("--cascade", "simplified-neither,simplified-both", "--cascade-trusts-yes", "--logprobs"),
        ("--cascade", "simplified-neither,AER-V", "--samples", "2", "--vote", "any"),
    ],
    ids=" ".join,
)
def test_a_run_read_again_gives_its_own_predictions(server, tmp_path, options):
    folder = run(server, tmp_path, *options)
    before = server.counts.calls
    done = invoke("reparse", folder, "--out", tmp_path / "again.jsonl", "--cache", tmp_path / "cache")
    assert done.exit_code == 0, done.output
    assert lines(tmp_path / "again.jsonl") == lines(folder / "predictions.jsonl")
    assert "0 of them have a different verdict" in done.output
    assert server.counts.calls == before
    assert len({(row["state"], row["success"]) for row in lines(folder / "predictions.jsonl")}) > 1


def test_a_threshold_chosen_on_dev_decides_a_later_run_and_its_replies_read_again(server, tmp_path):
    scored = run(server, tmp_path, "simplified-axtree", "--logprobs")
    frozen = tmp_path / "t.json"
    value, settings = 0.5, score_settings(read_run(scored)["configuration"])
    write_threshold(
        frozen, Threshold("sample", "dev", "v", "simplified-axtree", "f1", value, {}, None, settings, {})
    )
    (tmp_path / "later").mkdir()
    paid = server.counts.calls
    folder = run(server, tmp_path / "later", "simplified-axtree", "--logprobs", "--threshold", frozen)
    for row in lines(folder / "predictions.jsonl"):
        if row["state"] == "ok":
            assert row["success"] == (row["score"] >= value)
    assert server.counts.calls >= paid
    again = ("reparse", folder, "--out", tmp_path / "again.jsonl", "--cache")
    done = invoke(*again, tmp_path / "later" / "cache")
    assert done.exit_code == 0, done.output
    assert lines(tmp_path / "again.jsonl") == lines(folder / "predictions.jsonl")
    done = invoke(*again, tmp_path / "none")
    assert done.exit_code == 2
    assert "--cache" in done.output
    more = ("--threshold", frozen, "--out", tmp_path / "other")
    done = judge_runs.run(server.base_url, tmp_path, *more, model="m-2", split="dev")
    assert done.exit_code == 2
    assert "models.judge.model: m-1 there, m-2 now" in done.output


def test_what_is_read_is_the_stored_reply(server, tmp_path):
    folder = run(server, tmp_path, "simplified-neither")
    records = lines(folder / "judgments.jsonl")
    records[0]["calls"][0]["reply"]["text"] = "Success: **Unsuccessful**\nLoop: yes"
    records[0]["answer"] = {"success": True}
    (folder / "judgments.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    done = invoke("reparse", folder, "--out", tmp_path / "again.jsonl")
    first, *others = lines(tmp_path / "again.jsonl")
    assert (first["state"], first["success"], first["repetition"]) == ("ok", False, True)
    assert others == lines(folder / "predictions.jsonl")[1:]
    assert "1 of them have a different verdict" in done.output


def record(answer, *calls):
    exchanges = tuple(
        Exchange(Call(purpose, (Message("user", "?"),), role=role), reply, stage)
        for stage, (purpose, role, reply) in enumerate(calls)
    )
    return judgment_record(Judgment("a/b/c", answer, exchanges), "a judge")


def test_where_the_strong_judge_was_never_asked_no_answer_is_invented():
    judge = reparsing_judge({"judge": "…", "cascade": "simplified-neither,AER-C", "samples": 1})
    said_no = record(
        Answer("ok", False), ("verdict", "cheap.judge", Reply("<success>Unsuccessful</success>"))
    )
    assert reparse_record(said_no, judge)["answer"]["success"] is False
    says_yes = record(Answer("ok", False), ("verdict", "cheap.judge", Reply("<success>Successful</success>")))
    assert reparse_record(says_yes, judge) is None


def test_a_judge_that_never_came_to_its_verdict_counts_as_it_did():
    judge = reparsing_judge({"judge": "…", "cascade": "AER-C,simplified-both", "samples": 1})
    failed = record(
        Answer("ok", True),
        ("caption", "cheap.captioner", Reply(None, "error", error="503")),
        ("verdict", "strong.judge", Reply("<success>Successful</success>")),
    )
    assert reparse_record(failed, judge)["answer"]["success"] is True
    alone = record(Answer("error"), ("caption", "captioner", Reply(None, "error", error="503")))
    assert reparse_record(alone, VerdictOnly("status"))["state"] == "error"
    unseen = record(Answer("error"))
    assert reparse_record(unseen, VerdictOnly("status")) == unseen


def test_a_judge_that_failed_after_its_reply_stays_an_error_when_the_reply_is_read_again():
    paid = record(Answer("error"), ("verdict", "judge", Reply("<success>Successful</success>")))
    assert reparse_record(paid, VerdictOnly("tags"))["answer"]["success"] is True
    failed = {**paid, "problem": "mine.py, in ask, line 9: KeyError: 'x'"}
    assert reparse_record(failed, VerdictOnly("tags")) == failed


@pytest.mark.parametrize(
    ("name", "form"),
    [("GPT-4o (A)", "tags"), ("AER-V", "status"), ("nnetnav", "rating"), ("WebJudge-7B", "status")],
)
def test_the_registry_says_how_a_judge_answers(name, form):
    assert reparsing_judge({"judge": name}).form == form


@pytest.mark.parametrize(("name", "said"), [("my own", "--form"), ("Rule-based", "calls no model")])
def test_a_judge_whose_form_is_not_known_is_refused(name, said):
    with pytest.raises(OptionsError, match=said):
        reparsing_judge({"judge": name})
    assert reparsing_judge({"judge": "my own"}, "rating").form == "rating"


def test_released_judgments_become_a_prediction_file(server, tmp_path):
    folder = run(server, tmp_path, "GPT-4o Mini (A)")
    released = tmp_path / "released"
    assert invoke("export", folder, "--released-layout", "--out", released).exit_code == 0
    command = ("reparse", released / "judgments", "--split", "dev", "--suite", "sample")
    done = invoke(*command, "--out", tmp_path / "again.jsonl")
    assert done.exit_code == 0, done.output
    expected = {row["trajectory_id"]: row for row in lines(folder / "predictions.jsonl")}
    absent = 0
    for row in lines(tmp_path / "again.jsonl"):
        there = expected.get(row["trajectory_id"], {"state": "error", "success": None})
        absent += row["trajectory_id"] not in expected
        assert (row["state"], row["success"]) == (there["state"], there["success"])
        assert row.get("side_effect") == there.get("side_effect")
    assert absent > 0
    assert f"without a judgment: {absent:,} trajectories" in done.output
    checked = invoke(*command, "--judge", "aer", "--out", tmp_path / "none.jsonl")
    assert checked.exit_code == 2
    assert "with --judge: simplified-axtree-m-1-own-wording" in checked.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--split", "dev"), "neither run.json nor judgments/"),
        ((), "--split"),
        (("--split", "dev", "--form", "tags"), "--form: cannot be used with released judgments"),
    ],
)
def test_what_cannot_be_read_ends_with_one_line(tmp_path, arguments, said):
    done = invoke("reparse", tmp_path, "--suite", "sample", "--out", tmp_path / "o.jsonl", *arguments)
    assert done.exit_code == 2
    assert said in done.output
    assert not (tmp_path / "o.jsonl").exists()
