"""A judge of one's own, named by where it is.

One table of names: the paper's judges, their other names everywhere, and what each one is.
"""

import json
import pickle
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from arb.judges.__main__ import app
from arb.judges.catalog.aer import AerJudge
from arb.judges.catalog.nnetnav import NNetNavJudge
from arb.judges.catalog.official import with_official_prompts
from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.ensembles.cascade import Cascade
from arb.judges.ensembles.voting import SampledJudge
from arb.judges.registry import (
    CustomJudgeError,
    UnknownJudgeError,
    default_provider,
    entries,
    find_judge,
    full_name,
    is_address,
    key_of,
)
from arb.judges.types import Answer, AnyJudge, ModelSettings
from leaderboard.paper.published import read_published_files
from tests.support.judges import judged, judges, view


def test_a_judge_may_be_an_instance_in_a_module(monkeypatch, tmp_path):
    (tmp_path / "some_judges_of_mine.py").write_text(
        "from arb.judges.registry import ConstantJudge\nYES = ConstantJudge('Yes', True)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert judged(find_judge("some_judges_of_mine:YES"), None).answer == Answer("ok", success=True)


OWN = """from arb.judges.types import Wants
class J:
    name = inputs = source = prompts_hash = "J"
    calls = '1'
    wants = Wants()
    models = {models}
    def ask(self, view): ...
"""


@pytest.mark.parametrize(
    ("content", "attribute", "message"),
    [
        ("", "Judge", "defines no Judge"),
        ("x = (", "x", r"cannot be loaded \(SyntaxError"),
        ("raise SystemError('no')", "x", r"cannot be loaded \(SystemError: no"),
        ("class J:\n    def __init__(self, model): ...", "J", "without arguments"),
        ("class J:\n    name = 'J'\n    def ask(self, view): ...", "J", "lacks inputs, calls, source, wants"),
        (
            "class J:\n    @property\n    def name(self): raise ValueError('no name')",
            "J",
            r"odd\.py:J: odd\.py, in name, line 3: ValueError: no name",
        ),
        (
            "class J:\n    calls = property(lambda self: 1 / 0)\n    def judge_reward(self, reward): ...",
            "J",
            "J: lacks name;",
        ),
        (OWN.format(models="None"), "J", "J: models is not a dict such as"),
        (OWN.format(models="'gpt-4o'"), "J", "J: models is not a dict such as"),
        (OWN.format(models="{'judge': None}"), "J", "J: models is not a dict such as"),
        (
            OWN.format(models="{}").replace("calls = '1'", "calls = 1").replace("Wants()", "Wants('lst')"),
            "J",
            "J: calls is not a string; wants: use one of none, last, all for axtrees and screenshots",
        ),
        (OWN.format(models="{}").replace("Wants()", "'last'"), "J", "J: wants is not a Wants, such as"),
    ],
)
def test_the_message_says_what_is_wrong_with_a_custom_judge(tmp_path, content, attribute, message):
    path = tmp_path / "odd.py"
    path.write_text(content)
    with pytest.raises(CustomJudgeError, match=message):
        find_judge(f"{path}:{attribute}")


def test_a_missing_file_or_module_of_a_custom_judge_is_named(tmp_path):
    with pytest.raises(CustomJudgeError, match="there is no such file"):
        find_judge(f"{tmp_path / 'absent.py'}:J")
    with pytest.raises(CustomJudgeError, match="no_such_module_at_all"):
        find_judge("no_such_module_at_all:J")


@pytest.mark.parametrize("name", ["GPT-4o (A)", "WebJudge(o4-mini)", "x.py", "a b:c", ":c", "x.py:"])
def test_an_ordinary_name_is_no_address(name):
    assert not is_address(name)


PUBLISHED = [row for row in read_published_files().judges if row.row_id.startswith("paper/")]
SUFFIX = {"tree": " (A)", "screenshot": " (S)"}


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row.row_id)
def test_every_judge_of_the_paper_runs_under_its_name_and_each_alias(row):
    """Names are those of `leaderboard/published/judges.csv`, which the board shows."""
    title = row.judge + (SUFFIX[row.inputs] if row.group == "Simplified" else "")
    judge = find_judge(title)
    assert all(find_judge(name) == judge for name in (*row.aliases, row.row_id))
    if row.model is None:
        assert hasattr(judge, "judge_reward")
    else:
        assert all(model.endswith(row.model) for model in judge.models.values())
        assert judged(judge, view()).answer.success is True
    if isinstance(judge, SimplifiedJudge):
        assert (row.inputs == "tree", row.inputs == "screenshot") == (judge.has_axtree, judge.has_screenshot)


@pytest.mark.parametrize(
    ("folder", "seen"), [("gpt-4o-mini", (True, True)), ("gpt-4o-mini-noscreen-noaxtree", (False, False))]
)
def test_a_released_folder_that_is_in_table_2_alone_names_the_judge_that_saw_what_the_release_says(
    folder, seen
):
    judge = find_judge(folder)
    assert (judge.has_axtree, judge.has_screenshot, judge.is_inverted) == (*seen, False)


@pytest.mark.labels
def test_a_name_of_the_released_runner_names_the_judge_that_it_ran(official_package):
    for name, said in official_package("judge.args").judge_args.items():
        judge = find_judge("rule-based" if name == "functional" else name)
        if isinstance(judge, SimplifiedJudge):
            shown = {"use_screenshot": judge.has_screenshot, "use_axtree": judge.has_axtree}
            assert said == {"provider": default_provider(judge.model), "model_name": judge.model, **shown}, (
                name
            )
        elif isinstance(judge, AerJudge | NNetNavJudge):
            assert set(judge.models.values()) == {said["model_name"]}


def test_no_name_stands_for_two_judges_and_each_finds_its_own():
    for entry in entries():
        for name in entry.names:
            assert find_judge(name) == entry.judge
            assert find_judge(name.upper().replace("-", "_")) == entry.judge


def test_every_judge_has_a_key_that_finds_it_and_samples_and_cascades_are_named_by_keys():
    keys = {entry.key: entry.judge for entry in entries()}
    assert len(keys) == len(entries()) and {"gpt-4o-mini-noscreen", "aer", "webjudge", "rule-based"} <= set(
        keys
    )
    assert all(find_judge(key) == judge and key_of(judge) == key for key, judge in keys.items())
    cheap, strong = find_judge("GPT-4o Mini (A)"), find_judge("GPT-4o (A)")
    assert key_of(SampledJudge(cheap, 3)) == "gpt-4o-mini-noscreen, 3 samples, majority"
    assert key_of(Cascade(cheap, strong)) == "gpt-4o-mini-noscreen then gpt-4o-noscreen"
    assert key_of(SimpleNamespace(name="GPT-4o Mini (A)")) == "GPT-4o Mini (A)"  # not the catalogue's


def test_every_family_is_there_for_any_model_with_success_asked_first_or_last():
    for kind in ("axtree", "screenshot", "both", "neither"):
        plain, inverted = find_judge(f"simplified-{kind}"), find_judge(f"simplified-{kind}-inverted")
        assert (plain.is_inverted, inverted.is_inverted) == (False, True)
        assert plain.wants == inverted.wants


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("GPT-4o", "'GPT-4o (A)'"),
        ("aer-b", "'AER-C'"),
        ("gpt-4o-axtre", "'GPT-4o (A)'"),
        ("zzzzzz", "judges list"),
    ],
)
def test_a_name_that_is_nobodys_is_answered_with_the_near_ones_and_where_names_are(name, near):
    with pytest.raises(UnknownJudgeError, match=re.escape(near)):
        find_judge(name)


def test_compat_is_for_nnetnav_alone():
    assert find_judge("nnetnav", compat=True).is_compat
    with pytest.raises(UnknownJudgeError, match="--compat works only with NNetNav"):
        find_judge("GPT-4o (A)", compat=True)


@pytest.mark.parametrize("judge", judges().values(), ids=lambda judge: judge.name)
def test_a_judge_goes_to_another_process_and_back(judge):
    assert pickle.loads(pickle.dumps(judge)) == judge


@pytest.mark.parametrize("judge", judges().values(), ids=lambda judge: judge.name)
def test_the_number_of_calls_is_the_listed_one(judge):
    if hasattr(judge, "judge_reward"):
        assert judge.calls == "0"
        return
    shown = view(actions=4)  # five steps, five screenshots
    promised = {"n": 5, "n + 2": 5 + 2, "1 to 8": 1}  # the reply answers at once
    made = len(judged(judge, shown).calls)
    assert made == (promised.get(judge.calls) or int(judge.calls))


def test_the_list_has_every_judge_with_what_it_sees_its_calls_its_model_and_its_source():
    told = CliRunner().invoke(app, ["list"]).output
    listed = json.loads(CliRunner().invoke(app, ["list", "--json"]).output)
    assert [row["name"] for row in listed] == list(judges())
    for row in listed:
        assert all(word in told for word in (row["name"], row["calls"], row["source"], *row["aliases"]))
        assert all(model in told for model in row["models"].values())


def test_different_prompts_have_different_hashes():
    hashes = [find_judge(name).prompts_hash for name in ("gpt-4o-axtree", "aer-c", "nnetnav", "webjudge")]
    assert len({*hashes}) == 4 and all(re.fullmatch("[0-9a-f]{64}", each) for each in hashes)


def named(judge: AnyJudge, model: str | None = None) -> str:
    """Its name in a run with this model in every role; with its own where none is given."""
    return full_name(judge, {role: ModelSettings(model or own) for role, own in judge.models.items()})


@pytest.mark.parametrize(
    ("judge", "model", "name"),
    [
        ("simplified-axtree", "my-model", "simplified-axtree · my-model · own wording"),
        ("simplified-both-inverted", "m", "simplified-both-inverted · m · own wording"),
        ("GPT-4o (A)", None, "simplified-axtree · gpt-4o-2024-11-20 · own wording"),
        ("Qwen2.5-VL (S)", "m", "simplified-screenshot · m · own wording"),
        ("GPT-4o Mini (neither)", "m", "simplified-neither · m · own wording"),
        ("AER-C", "m", "aer-c · m · own wording"),
        ("AER-V", "m", "aer-v · m · own wording"),
        ("NNetNav", "m", "nnetnav · m · own wording"),
        ("webjudge", None, "webjudge-style · o4-mini-2025-04-16 · own wording"),
    ],
)
def test_with_another_model_or_wording_a_judge_has_no_name_of_the_paper(judge, model, name):
    assert named(find_judge(judge), model) == name


def test_a_judge_whose_replies_have_a_fixed_form_says_so_and_has_no_name_of_the_paper(official_settings):
    official = find_judge("GPT-4o (A)", prompts="official", settings=official_settings)
    assert named(replace(official, is_structured=True)) == (
        "simplified-axtree · gpt-4o-2024-11-20 · official wording, structured output"
    )


def test_with_the_papers_model_and_the_official_wording_a_judge_has_the_papers_name(official_settings):
    def official(name):
        return find_judge(name, prompts="official", settings=official_settings)

    templates = {"system": "text"}
    webjudge = with_official_prompts(find_judge("webjudge"), templates, "a checkout")
    for name in ("GPT-4o (A)", "Claude 3.7 S. (S)", "GPT-4o Mini (A+S)", "AER-C", "NNetNav"):
        assert named(official(name)) == name
    assert named(webjudge) == "WebJudge (o4-mini)"
    assert named(webjudge, "m") == "webjudge · m · official wording"
    assert named(official("AER-C"), "m") == "aer-c · m · official wording"
    assert named(official("simplified-both")) == "simplified-both · gpt-4o-2024-11-20 · official wording"


def test_samples_cascades_and_several_models_are_in_the_full_name():
    aer, cheap = find_judge("AER-C"), find_judge("simplified-neither")
    asked = {"judge": ModelSettings("m"), "captioner": ModelSettings("c")}
    assert full_name(aer, asked) == "aer-c · m + c · own wording"
    assert full_name(SampledJudge(aer, 3), asked) == "aer-c · m + c · own wording, 3 samples, majority"
    roles = {"cheap.judge": ModelSettings("a"), "strong.judge": ModelSettings("b")}
    assert full_name(Cascade(cheap, find_judge("aer-v")), roles) == (
        "simplified-neither · a · own wording then aer-v · b · own wording"
    )


def test_a_judge_without_a_model_keeps_its_name_and_one_of_your_own_cannot_take_the_papers():
    assert named(find_judge("always-successful")) == "always-successful"
    assert full_name(find_judge("Rule-based"), {}) == "Rule-based"
    own = SimpleNamespace(name="my judge", models={"judge": "m"})
    assert named(own) == "my judge"
    assert named(SimpleNamespace(name="AER-C", models={"judge": "m"})) == "AER-C · m · own judge"
