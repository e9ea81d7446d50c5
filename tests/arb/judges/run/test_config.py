"""From options to the models of a run."""

import re

import pytest

from arb.judges.catalog.official import with_official_prompts
from arb.judges.cli.options import RunOptions
from arb.judges.endpoints.providers import address_of
from arb.judges.ensembles.cascade import Cascade
from arb.judges.registry import find_judge
from arb.judges.run import run_facts
from arb.judges.run.config import build_config
from arb.judges.run.judge_options import build_judge, build_models, refuse_unused
from arb.judges.run.run_facts import judge_facts
from arb.judges.types import ModelSettings, OptionsError


def models(judge="aer-c", **options) -> dict[str, ModelSettings]:
    chosen = RunOptions(judge=judge, split="dev", **options)
    return build_models(chosen, build_judge(chosen))


def configuration(**options) -> dict:
    chosen = RunOptions(split="dev", suite="sample", **options)
    return build_config(chosen, will_run=False).configuration("d" * 64)


def test_a_judges_own_model_is_asked_where_the_paper_asked_it():
    assert models("claude-3.7-sonnet-noscreen")["judge"].provider == "openrouter"
    assert models("gpt-4o-noscreen")["judge"].provider == "openai"
    moved = models("claude-3.7-sonnet-noscreen", base_url="http://127.0.0.1:1/v1")["judge"]
    assert (moved.provider, moved.base_url) == ("any", "http://127.0.0.1:1/v1")


def test_a_model_is_that_of_the_role_else_of_all_else_the_judges_own():
    own = models()
    assert set(own) == {"judge", "captioner"}
    given = models(model="m", model_of=["captioner=vllm:c"], base_url="http://127.0.0.1:1/v1")
    assert (given["judge"].model, given["judge"].provider) == ("m", "any")
    assert (given["captioner"].model, given["captioner"].provider) == ("c", "vllm")
    assert given["captioner"].base_url is None  # the address was given for another provider


def test_an_address_that_no_model_uses_is_refused():
    with pytest.raises(OptionsError, match=r"no model uses it, because each names its provider \(openai\)"):
        models(model="openai:m", provider="any", base_url="http://127.0.0.1:1/v1")


def test_a_colon_in_a_models_name_is_no_provider_unless_it_is_one():
    assert models(model="qwen2.5:7b")["judge"].model == "qwen2.5:7b"


def test_the_paper_settings_hold_where_nothing_is_given():
    asked = models()["judge"]
    assert (asked.temperature, asked.seed, asked.max_output_tokens) == (0.0, 0, 1024)


def test_other_fields_of_the_request_are_read_as_json():
    assert models(extra=['reasoning_effort="low"', "top_k=3"])["judge"].extra == {
        "reasoning_effort": "low",
        "top_k": 3,
    }


def test_a_form_of_the_reply_goes_with_the_calls_of_the_judge_that_has_one():
    form = models("simplified-axtree", structured_output=True)["judge"].extra["response_format"]
    assert form["json_schema"]["schema"]["required"] == ["reasoning", "success", "side", "optimal", "loop"]
    sampled = models("simplified-axtree", structured_output=True, samples=2)["judge"]
    assert sampled.extra["response_format"] == form
    both = models(None, cascade="simplified-axtree,aer-v", structured_output=True)
    assert {role: "response_format" in each.extra for role, each in both.items()} == {
        "cheap.judge": True,
        "strong.judge": False,
    }
    assert "response_format" not in models("simplified-axtree")["judge"].extra
    with pytest.raises(OptionsError, match="only with the simplified judges, not with AER-C"):
        models("aer-c", structured_output=True)


def test_an_address_that_the_environment_names_belongs_to_the_run(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://mine.openai.azure.com")
    asked = models(model="azure:my-deployment")
    assert address_of(asked["judge"]) == "https://mine.openai.azure.com/openai/v1"


def test_how_long_a_model_shall_think_is_in_the_configuration_where_it_is_asked_for():
    for given, known in (({}, {}), ({"reasoning_effort": "low", "prompt_cache": "system"}, {"low"})):
        made = configuration(judge="gpt-4o-noscreen", **given)
        model = made["models"]["judge"]
        assert {model["reasoning_effort"]} - {None} == set(known)
        assert "prompt_cache" not in model


def test_the_configuration_has_what_verdicts_depend_on_with_the_address_and_without_secrets():
    options = {"base_url": "http://u:secret@h/v1", "key_variable": "MY_KEY"}
    said = configuration(judge="aer-c", **options)
    assert "secret" not in str(said) and "MY_KEY" not in str(said)
    assert said["models"]["captioner"]["temperature"] == 0.0
    assert said["models"]["judge"]["address"] == "http://h/v1"
    assert address_of(models(**options)["judge"]) == "http://h/v1"


def test_the_released_folder_of_a_judge_is_known_where_there_is_one():
    def folder(name):
        return judge_facts(None, name)["released_folder"]

    assert folder("AER-C") == "aer"
    assert folder("Claude 3.7 S. (S)") == "claude-3.7-sonnet-noaxtree"
    assert folder("Rule-based") == "functional"
    assert folder("simplified-axtree") is None


def test_the_versions_name_the_commit_of_a_checkout_and_none_elsewhere(tmp_path, monkeypatch):
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", run_facts.versions()["commit"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", run_facts.versions()["project"])
    monkeypatch.setattr(run_facts, "ROOT", tmp_path)
    run_facts._commit.cache_clear()
    assert run_facts.versions()["commit"] is None
    run_facts._commit.cache_clear()


def test_replies_may_be_as_long_as_the_released_code_lets_them_unless_an_option_says_otherwise():
    """NNetNav's descriptions of changes 2,048 tokens, other replies 1,024, a reasoning WebJudge's 8,192."""
    assert {role: model.max_output_tokens for role, model in models("nnetnav").items()} == {
        "judge": 1024,
        "describer": 2048,
    }
    assert models("webjudge")["judge"].max_output_tokens == 8192
    assert models("WebJudge-7B")["judge"].max_output_tokens == 1024
    both = models(None, cascade="simplified-axtree,NNetNav", samples=2)
    assert (both["cheap.judge"].max_output_tokens, both["strong.describer"].max_output_tokens) == (1024, 2048)
    assert {model.max_output_tokens for model in models("nnetnav", max_output_tokens=77).values()} == {77}


def pictures_of(judge, **options) -> dict:
    return configuration(judge=judge, **options)["images"]


def test_pictures_are_sent_as_recorded_and_webjudges_as_its_authors_send_them():
    recorded = {"max_side": None, "format": None, "detail": "auto", "quality": None}
    assert pictures_of("aer-v") == recorded
    authors = {"max_side": None, "format": "jpeg", "detail": "high", "quality": 75}
    assert pictures_of("webjudge", samples=2) == authors
    assert pictures_of(None, cascade="simplified-both,webjudge") == authors
    assert pictures_of("webjudge", image_format="jpeg") == authors
    told = pictures_of("webjudge", image_format="webp", image_detail="low", max_image_side=99)
    assert told == {"max_side": 99, "format": "webp", "detail": "low", "quality": None}


def test_a_checkout_that_no_judge_reads_its_prompts_from_is_refused(tmp_path):
    refusal = pytest.raises(OptionsError, match="--prompts-from needs --prompts official and WebJudge")
    with refusal:
        configuration(judge="webjudge", prompts_from=tmp_path)
    aer = with_official_prompts(find_judge("aer-v"), {}, "a package")  # AER's prompts come from the package
    with refusal:
        refuse_unused(RunOptions(prompts="official", prompts_from=tmp_path), aer, {})


def test_a_checkout_is_used_if_one_judge_of_a_cascade_reads_its_prompts_from_it(tmp_path):
    cheap, strong = find_judge("aer-v"), with_official_prompts(find_judge("webjudge"), {}, "a checkout")
    options = RunOptions(prompts="official", prompts_from=tmp_path)
    refuse_unused(options, Cascade(cheap, strong), {})


def test_a_price_of_a_model_that_the_run_does_not_use_is_refused_with_the_models_that_it_uses():
    asked = {"judge": "aer-c", "model": "GPT-x"}
    with pytest.raises(
        OptionsError, match=r"^--price gtp-x=1,2: .* uses only GPT-x; correct the name or leave it out$"
    ):
        configuration(**asked, price=["gpt-x=1,2", "gtp-x=1,2"])
    configuration(**asked, price=["gpt-X=1,2"])  # upper and lower case do not matter
    with pytest.raises(OptionsError, match=r"--price m=1,2: Rule-based calls no model; correct the name or"):
        configuration(judge="rule-based", price=["m=1,2"])


@pytest.mark.parametrize("vote", ["any", "majority"])
def test_a_vote_without_samples_is_refused(vote):
    with pytest.raises(OptionsError, match=f"--vote {vote} needs --samples; add --samples N, or leave out"):
        configuration(judge="aer-v", vote=vote)
    assert configuration(judge="aer-v", vote=vote, samples=2)["vote"] == vote
    assert configuration(judge="aer-v", samples=2)["vote"] == "majority"
