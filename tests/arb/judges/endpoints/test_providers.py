import asyncio

import pytest

from arb.judges.endpoints import providers
from arb.judges.endpoints.providers import address_of, resolve_access, with_address
from arb.judges.run.runner import open_endpoints
from arb.judges.types import Message, ModelSettings, OptionsError, Request
from tests.support.provider_server import ProviderServer


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
    with pytest.raises(OptionsError, match="localhost:8000: the address has to begin with http"):
        resolve_access({"judge": ModelSettings("m", provider="any", base_url="localhost:8000")}, {})


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


def test_an_address_is_the_providers_own_where_none_is_typed():
    assert address_of(ModelSettings("m")) == "https://api.openai.com/v1"
    assert address_of(ModelSettings("m", provider="any")) is None


def test_an_address_is_made_of_what_the_environment_says_of_the_provider():
    environment = {
        "AZURE_OPENAI_ENDPOINT": "https://mine.openai.azure.com/",
        "AWS_DEFAULT_REGION": "eu-west-3",
    }

    def address(provider, **more):
        return with_address(ModelSettings("m", provider=provider, **more), environment).base_url

    assert address("azure") == "https://mine.openai.azure.com/openai/v1"
    assert address("azure", base_url="https://proxy/v1") == "https://proxy/v1"
    assert address("bedrock") == "https://bedrock-runtime.eu-west-3.amazonaws.com"
    assert address("anthropic") is None  # its own
    with pytest.raises(OptionsError, match="give --base-url, or set AZURE_OPENAI_ENDPOINT"):
        resolve_access({"judge": ModelSettings("m", provider="azure")}, {"AZURE_OPENAI_API_KEY": "k"})


def test_azure_is_asked_at_its_v1_api_with_its_key():
    async def ask(server):
        model = ModelSettings("my-deployment", provider="azure")
        model = with_address(model, {"AZURE_OPENAI_ENDPOINT": server.base_url})
        async with open_endpoints({"judge": model}, {"AZURE_OPENAI_API_KEY": "secret"}) as endpoints:
            return await endpoints["judge"].attempt(Request(model, (Message("user", "?"),), 9))

    with ProviderServer("fine") as server:
        assert asyncio.run(ask(server)).text == "fine"
        (request,), (body,) = server.requests, server.bodies
    assert request.path == "/openai/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer secret"
    assert (body["model"], body["max_completion_tokens"]) == ("my-deployment", 9)


@pytest.mark.parametrize(
    ("provider", "wish", "said"),
    [
        ("gemini", {"prompt_cache": "system"}, "--prompt-cache cannot be used with --provider gemini"),
        ("vllm", {"prompt_cache": "prompt"}, "--prompt-cache cannot be used with --provider vllm"),
    ],
)
def test_what_a_provider_would_leave_out_without_a_word_is_refused(provider, wish, said, monkeypatch):
    monkeypatch.setattr(providers, "_is_installed", lambda module: True)
    with pytest.raises(OptionsError) as problem:
        resolve_access({"judge": ModelSettings("m", provider=provider, **wish)}, {"GEMINI_API_KEY": "k"})
    assert str(problem.value).startswith(said)


@pytest.mark.parametrize(
    ("provider", "module"),
    [
        ("anthropic", "any_llm"),
        ("gemini", "google.genai"),
        ("bedrock", "boto3"),
        ("openai-responses", "any_llm"),
    ],
)
def test_a_library_that_is_absent_is_named_with_the_extra_that_brings_it(provider, module, monkeypatch):
    monkeypatch.setattr(providers, "_is_installed", lambda name: name != module)
    with pytest.raises(OptionsError, match=rf"needs {module}, .*: pip install '\.\[providers\]'"):
        resolve_access({"judge": ModelSettings("m", provider=provider)}, {})


def test_a_module_is_looked_for_without_an_import():
    assert providers._is_installed("json.decoder")
    assert not providers._is_installed("no_such_package.part")
