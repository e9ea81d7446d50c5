"""One table of names: the paper's judges, their other names everywhere, and what each one is."""

import json
import pickle
import re

import pytest
from typer.testing import CliRunner

from judges.__main__ import app
from judges.aer import AerJudge
from judges.nnetnav import NNetNavJudge
from judges.registry import UnknownJudgeError, default_provider, entries, find_judge
from judges.simplified import SimplifiedJudge
from leaderboard.published_files import read_published_files
from tests.judges.shown import judged, judges, view

PUBLISHED = [row for row in read_published_files().judges if row.row_id.startswith("paper/")]
RELEASED_FOLDERS = {  # whether the judge of the folder saw tree and screenshot, from the release
    "claude-3.7-sonnet-noscreen": (True, False),
    "claude-3.7-sonnet-noaxtree": (False, True),
    "gpt-4o-noscreen": (True, False),
    "gpt-4o-noaxtree": (False, True),
    "gpt-4o-mini": (True, True),
    "gpt-4o-mini-noaxtree": (False, True),
    "gpt-4o-mini-noscreen": (True, False),
    "gpt-4o-mini-noscreen-noaxtree": (False, False),
    "qwen-2.5-vl-noaxtree": (False, True),
    "qwen-2.5-vl-noscreen": (True, False),
    "llama-3.3-70b-noscreen": (True, False),
}
SUFFIX = {("tree",): " (A)", ("screenshot",): " (S)"}


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.row_id)
def test_every_judge_of_the_paper_runs_under_its_name_and_each_alias(row):
    """Names are those of `leaderboard/published/judges.csv`, which the board shows."""
    title = row.judge + (SUFFIX[row.inputs] if row.kind == "Simplified" else "")
    judge = find_judge(title)
    assert all(find_judge(name) == judge for name in (*row.aliases, row.row_id))
    if row.model is None:
        assert hasattr(judge, "judge_reward")
    else:
        assert all(model.endswith(row.model) for model in judge.models.values())
        assert judged(judge, view()).answer.success is True
    if isinstance(judge, SimplifiedJudge):
        assert (row.inputs == ("tree",), row.inputs == ("screenshot",)) == (
            judge.has_axtree,
            judge.has_screenshot,
        )


@pytest.mark.parametrize(("folder", "seen"), RELEASED_FOLDERS.items())
def test_a_released_folder_names_the_judge_that_saw_what_the_release_says(folder, seen):
    judge = find_judge(folder)
    assert (judge.has_axtree, judge.has_screenshot, judge.is_inverted) == (*seen, False)


@pytest.mark.labels
def test_a_name_of_the_released_runner_names_the_judge_that_it_ran(official_package):
    for name, said in official_package("judge.args").judge_args.items():
        judge = find_judge("rule-based" if name == "functional" else name)
        if isinstance(judge, SimplifiedJudge):
            shown = {"use_screenshot": judge.has_screenshot, "use_axtree": judge.has_axtree}
            assert said == {
                "provider": default_provider(judge.model),
                "model_name": judge.model,
                **shown,
            }, name
        elif isinstance(judge, AerJudge | NNetNavJudge):
            assert set(judge.models.values()) == {said["model_name"]}


def test_no_name_stands_for_two_judges_and_each_finds_its_own():
    for entry in entries():
        for name in entry.names:
            assert find_judge(name) == entry.judge
            assert find_judge(name.upper().replace("-", "_")) == entry.judge


def test_every_family_is_there_for_any_model_with_success_asked_first_or_last():
    for kind in ("axtree", "screenshot", "both", "neither"):
        plain, inverted = find_judge(f"simplified-{kind}"), find_judge(f"simplified-{kind}-inverted")
        assert (plain.is_inverted, inverted.is_inverted) == (False, True)
        assert plain.wants == inverted.wants


@pytest.mark.parametrize(
    ("name", "near"), [("GPT-4o", "'GPT-4o (A)'"), ("aer-b", "'AER-C'"), ("gpt-4o-axtre", "'GPT-4o (A)'")]
)
def test_a_name_that_is_nobodys_is_answered_with_the_near_ones(name, near):
    with pytest.raises(UnknownJudgeError, match=re.escape(near)):
        find_judge(name)


def test_a_name_near_to_none_is_answered_with_where_names_are():
    with pytest.raises(UnknownJudgeError, match="judges list"):
        find_judge("zzzzzz")


def test_compat_is_for_nnetnav_alone():
    assert find_judge("nnetnav", compat=True).is_compat
    with pytest.raises(UnknownJudgeError, match="--compat is for NNetNav"):
        find_judge("GPT-4o (A)", compat=True)


@pytest.mark.parametrize("judge", judges().values(), ids=lambda judge: judge.name)
def test_a_judge_goes_to_another_process_and_back(judge):
    assert pickle.loads(pickle.dumps(judge)) == judge


@pytest.mark.parametrize("judge", judges().values(), ids=lambda judge: judge.name)
def test_the_number_of_calls_is_the_one_that_is_told(judge):
    if hasattr(judge, "judge_reward"):
        assert judge.calls == "0"
        return
    shown = view(actions=4)  # five steps, five screenshots
    promised = {"n": 5, "n + 2, n up to 50": 5 + 2}
    made = len(judged(judge, shown).calls)
    assert made == (promised.get(judge.calls) or int(judge.calls))


def test_the_list_has_every_judge_with_what_it_sees_its_calls_its_model_and_its_source():
    told = CliRunner().invoke(app, ["list"]).output
    listed = json.loads(CliRunner().invoke(app, ["list", "--json"]).output)
    assert [row["name"] for row in listed] == list(judges())
    for row in listed:
        assert all(word in told for word in (row["name"], row["calls"], row["source"], *row["aliases"]))
        assert all(model in told for model in row["models"].values())


def test_prompts_hashes_tell_prompts_apart():
    hashes = [find_judge(name).prompts_hash for name in ("gpt-4o-axtree", "aer-c", "nnetnav", "webjudge")]
    assert len({*hashes}) == 4 and all(re.fullmatch("[0-9a-f]{64}", each) for each in hashes)
