"""A run in the released layout reads back, by the reader of that layout, to the same verdicts."""

import json

import pytest
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.run.export import folder_name
from arb.judges.run.folder import RunFolder
from arb.judges.run.records import judgment_record
from arb.judges.run.scheduler import Exchange, Judgment
from arb.judges.types import Answer, Call, Message, Reply
from dataset_script.sources.released import ReleasedSource

TAGS = "<success>{}</success>\n<side>No</side>\n<optimal>2. Suboptimal</optimal>\n<loop>Yes</loop>"
YES, NO = TAGS.format("Successful"), TAGS.format("Unsuccessful")
ID = "webarena/GenericAgent-gpt-4o-2024-11-20/webarena.{}"


def answered(answer: Answer, *replies: Reply, number: int = 1, reward=None) -> dict:
    call = Call("verdict", (Message("user", "a prompt"),))
    exchanges = tuple(Exchange(call, reply, 0) for reply in replies)
    return judgment_record(Judgment(ID.format(number), answer, exchanges, reward=reward), "a judge")


def run_of(folder, records, judge="GPT-4o (A)", released="gpt-4o-noscreen", models=("judge",)):
    configuration = {
        "suite": "sample",
        "split": "dev",
        "judge": judge,
        "models": {role: {"model": "m-1", "provider": "vllm", "temperature": 0.0} for role in models},
    }
    with RunFolder(folder, configuration) as opened:
        opened.append(records)
        args = {"use_screenshot": False, "use_axtree": True, "invert_sys_prompt": False}
        opened.update_run(
            {"judge": {"released_folder": released, "asks_models": bool(models), "judge_args": args}}
        )
    return folder


def exported(run, out, *arguments):
    command = ["export", str(run), "--released-layout", "--out", str(out), *arguments]
    result = CliRunner().invoke(app, command)
    (out / "cleaned").mkdir(
        parents=True, exist_ok=True
    )  # what makes a folder a source in the released layout
    source = ReleasedSource(out)
    files = source.list_judgments().files
    return result, {file.trajectory_id: source.read_judgment(file) for file in files}


def test_every_verdict_and_every_state_reads_back(tmp_path):
    labels = {"side_effect": False, "repetition": True, "optimality": 2}
    records = [
        answered(Answer("ok", True, **labels), Reply(YES, key="k"), number=1),
        answered(Answer("ok", False, **labels), Reply(NO, key="k"), number=2),
        answered(Answer("unparsed"), Reply("The page has changed", key="k"), number=3),
        answered(Answer("refused"), Reply(None, refusal="no", key="k"), number=4),
        answered(Answer("refused"), Reply(None, "refused", error="400: flagged", key="k"), number=5),
        answered(Answer("truncated"), Reply("<reasoning>so", finish_reason="length", key="k"), number=6),
        answered(Answer("error"), Reply(None, "error", error="503", key="k"), number=7),
        answered(Answer("error"), Reply("", key="k"), number=8),
    ]
    result, read = exported(run_of(tmp_path / "run", records), tmp_path / "out")
    assert result.exit_code == 0, result.output
    said = {name: (each.state, each.success, each.side_effect) for name, each in read.items()}
    assert said == {
        ID.format(1): ("ok", True, False),
        ID.format(2): ("ok", False, False),
        ID.format(3): ("unparsed", None, None),
        ID.format(4): ("refused", None, None),
        ID.format(5): ("refused", None, None),
        ID.format(6): ("truncated", None, None),
        ID.format(7): ("error", None, None),
        ID.format(8): ("error", None, None),
    }
    one = read[ID.format(1)]
    assert (one.judge, one.model, one.has_axtree, one.has_screenshot) == (
        "gpt-4o-noscreen",
        "m-1",
        True,
        False,
    )
    assert (one.repetition, one.optimality, one.reply) == (True, 2, YES)


def test_a_failed_judgment_is_an_error_file_as_in_the_release(tmp_path):
    failed = answered(Answer("too_long"), Reply(None, "too_long", error="400: too long", key="k"))
    exported(run_of(tmp_path / "run", [failed]), tmp_path / "out")
    place = tmp_path / "out/judgments/webarena/GenericAgent-gpt-4o-2024-11-20/gpt-4o-noscreen"
    assert [path.name for path in place.iterdir()] == ["webarena.1_error.json"]
    assert json.loads((place / "webarena.1_error.json").read_text())["error"] == "400: too long"


def test_of_several_samples_the_first_that_says_what_was_decided_is_given(tmp_path):
    sampled = answered(Answer("ok", False), Reply(YES, key="1"), Reply(NO, key="2"), Reply(NO, key="3"))
    result, read = exported(run_of(tmp_path / "run", [sampled]), tmp_path / "out")
    assert result.exit_code == 0
    assert read[ID.format(1)].success is False


def test_a_verdict_that_no_reply_says_is_left_out_and_named(tmp_path):
    made = answered(Answer("ok", True), Reply(NO, key="1"))  # by a threshold, for instance
    result, read = exported(run_of(tmp_path / "run", [made]), tmp_path / "out")
    assert result.exit_code == 1
    assert ID.format(1) in result.output
    assert read == {}


def test_what_failed_half_way_is_an_error_file_though_some_replies_came(tmp_path):
    broken = answered(
        Answer("error"), Reply("a page", key="1"), Reply(None, "error", error="503: overloaded", key="2")
    )
    result, read = exported(run_of(tmp_path / "run", [broken]), tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert read[ID.format(1)].state == "error"


@pytest.mark.parametrize("name", ["../elsewhere", "..", "a/b", ""])
def test_a_judges_folder_stays_where_it_belongs(tmp_path, name):
    run = run_of(tmp_path / "run", [answered(Answer("ok", True), Reply(YES, key="k"))], released=None)
    result, _ = exported(run, tmp_path / "out", "--judge-folder", name)
    assert (result.exit_code == 2) is bool(name)  # an empty one is none: the judge's name is taken
    assert not (tmp_path / "elsewhere").exists()


def test_the_rule_based_judgments_are_given_by_their_rewards(tmp_path):
    records = [
        answered(Answer("ok", True), number=1, reward=1.0),
        answered(Answer("ok", False), number=2, reward=0.5),
        answered(Answer("error"), number=3),
        answered(Answer("error"), number=4, reward=1.0) | {"problem": "KeyError: 'x'"},
    ]
    run = run_of(tmp_path / "run", records, "Rule-based", "functional", models=())
    result, read = exported(run, tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert [(each.state, each.success) for each in read.values()] == [
        ("ok", True),
        ("ok", False),
        ("error", None),
        ("error", None),
    ]


def test_a_judge_without_replies_cannot_be_exported(tmp_path):
    run = run_of(tmp_path / "run", [answered(Answer("ok", True))], "always-successful", None, models=())
    result, _ = exported(run, tmp_path / "out")
    assert result.exit_code == 2
    assert "calls no model" in result.output


def test_exported_again_a_judgment_that_failed_before_replaces_its_error_file(tmp_path):
    failed = answered(Answer("error"), Reply(None, "error", error="503", key="k"))
    exported(run_of(tmp_path / "one", [failed]), tmp_path / "out")
    _, read = exported(
        run_of(tmp_path / "two", [answered(Answer("ok", True), Reply(YES, key="k"))]), tmp_path / "out"
    )
    assert [each.state for each in read.values()] == ["ok"]


@pytest.mark.parametrize(
    ("name", "folder"), [("GPT-4o (A), 3 samples", "gpt-4o-a-3-samples"), ("../..", "judge"), ("é", "judge")]
)
def test_a_judges_name_makes_a_harmless_folder(name, folder):
    assert folder_name(name) == folder


def test_a_folder_that_is_no_run_is_an_error(tmp_path):
    result = CliRunner().invoke(app, ["export", str(tmp_path), "--released-layout", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "run.json" in result.output
