import pytest

from judges.endpoints.providers import LOCAL, address_of, resolve_access
from judges.types import ModelSettings, OptionsError


def test_a_provider_has_its_address_and_its_own_key():
    access = resolve_access({"judge": ModelSettings("gpt-4o")}, {"OPENAI_API_KEY": "secret"})["judge"]
    assert (access.base_url, access.key) == ("https://api.openai.com/v1", "secret")
    assert access.output_limit == "max_completion_tokens"


def test_openai_gets_the_organisation_and_project_and_no_other_provider_is():
    environment = {"OPENAI_API_KEY": "secret", "OPENAI_ORG_ID": " org-1 ", "OPENAI_PROJECT_ID": ""}
    models = {"judge": ModelSettings("m"), "captioner": ModelSettings("m", provider="vllm")}
    access = resolve_access(models, environment)
    assert access["judge"].headers == (("OpenAI-Organization", "org-1"),)
    assert access["captioner"].headers == ()


def test_all_that_is_missing_is_listed_at_once_and_once():
    models = {
        "judge": ModelSettings("gpt-4o"),
        "captioner": ModelSettings("gpt-4o"),
        "strong.judge": ModelSettings("m", provider="any"),
        "cheap.judge": ModelSettings("m", provider="vllm", key_variable="MINE"),
    }
    with pytest.raises(OptionsError) as problem:
        resolve_access(models, {"OPENAI_API_KEY": "  "})
    first, second, third = str(problem.value).split("\n")
    assert first.startswith("OPENAI_API_KEY is not set: gpt-4o")
    assert second == "--provider any needs the endpoint's address: give --base-url"
    assert third.startswith("MINE is not set")


def test_a_server_of_ones_own_needs_no_key_and_is_given_no_other_ones():
    model = ModelSettings("m", provider="any", base_url="http://10.0.0.1/v1")
    assert resolve_access({"judge": model}, {"OPENAI_API_KEY": "secret"})["judge"].key is None
    assert resolve_access({"judge": ModelSettings("m", provider="vllm")}, {})["judge"].key is None


def test_an_address_without_a_scheme_is_refused():
    with pytest.raises(OptionsError, match="localhost:8000: an address begins with http"):
        resolve_access({"judge": ModelSettings("m", provider="any", base_url="localhost:8000")}, {})


def test_a_local_model_is_reached_nowhere():
    assert resolve_access({"judge": ModelSettings("m", provider=LOCAL)}, {}) == {}


def test_a_key_that_cannot_be_one_is_named_and_not_shown():
    with pytest.raises(OptionsError, match="OPENAI_API_KEY contains a space") as problem:
        resolve_access({"judge": ModelSettings("gpt-4o")}, {"OPENAI_API_KEY": "sk-1\nsk-2"})
    assert "sk-" not in str(problem.value)


def test_a_key_is_not_shown():
    access = resolve_access({"judge": ModelSettings("gpt-4o")}, {"OPENAI_API_KEY": "secret"})["judge"]
    assert "secret" not in repr(access)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("HTTP://Host:80/v1/", "http://host/v1"),
        ("https://host:443/v1", "https://host/v1"),
        ("https://host:80/v1", "https://host:80/v1"),
        ("http://name:password@host:8000/v1?key=secret#part", "http://host:8000/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://name:password@host:port/v1", "http://host:port/v1"),
        ("http://host", "http://host"),
    ],
)
def test_spellings_of_an_address_are_one_and_have_no_secrets(typed, meant):
    assert address_of(ModelSettings("m", provider="any", base_url=typed)) == meant


def test_an_address_is_the_providers_own_where_none_is_typed_and_a_local_model_has_none():
    assert address_of(ModelSettings("m")) == "https://api.openai.com/v1"
    assert address_of(ModelSettings("m", provider="transformers")) is None
    assert address_of(ModelSettings("m", provider="any")) is None
