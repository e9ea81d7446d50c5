"""Look up the providers of models, and the address, key and headers with which to call them."""

from __future__ import annotations

import importlib.util
import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from arb.core.files import install_command
from arb.core.plugins import leave_out, load_plugins
from arb.judges.types import ModelSettings, OptionsError

OutputLimit = Literal["max_tokens", "max_completion_tokens"]


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider of models, as named by ``--provider``.

    Attributes:
        base_url: The address. If it is None, the user must give it or set one of the ``address_variables``.
        key_variable: The environment variable with the key.
        needs_key: Whether the provider refuses calls without a key.
        output_limit: The name of the output limit to try first.
        header_variables: Environment variables with the values of request headers, by header name. Unset
            variables are ignored.
        address_variables: Environment variables to read the address from; the first that is set is used.
        address_form: A template of the address, with ``{}`` in place of the variable's value.
        library: The provider's name in any-llm; None if it accepts OpenAI's chat completions.
        needs: A module that any-llm needs for this provider.
        prompt_cache: The request field that controls the provider's prompt cache; None if there is none.
        never_takes: Parameters of a run that the provider's protocol does not have.
    """

    base_url: str | None = None
    key_variable: str | None = None
    needs_key: bool = True
    output_limit: OutputLimit = "max_tokens"
    header_variables: Mapping[str, str] = field(default_factory=dict)
    address_variables: Sequence[str] = ()
    address_form: str = "{}"
    library: str | None = None
    needs: str | None = None
    prompt_cache: Literal["cache_control", "prompt_cache_key"] | None = None
    never_takes: Sequence[str] = ()


def catalog_providers() -> dict[str, Provider]:
    """Return the providers that come with the code, by name."""
    table = tomllib.loads(Path(__file__).with_name("providers.toml").read_text(encoding="utf-8"))
    return {name: Provider(**fields) for name, fields in table.items()}


def find_providers() -> dict[str, Provider]:
    """Return the shipped providers and those of plugins (entry points ``arb.providers``), by name."""
    found: dict[str, Provider] = {}
    for name, loaded in load_plugins("arb.providers"):
        if isinstance(loaded, Provider):
            found.setdefault(name, loaded)
        elif loaded is catalog_providers:
            found |= catalog_providers()
        else:
            leave_out("arb.providers", name, f"{loaded!r} is not a Provider")
    return found


PROVIDERS: Final[Mapping[str, Provider]] = find_providers()
"""All providers, keyed by the names that ``--provider`` accepts."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def address_of(model: ModelSettings) -> str | None:
    """Return a model's address as recorded in cache keys and run folders, or None if it has no address.

    The address is normalized. User name, password and query are left out, since they may be secrets.
    """
    provider = PROVIDERS.get(model.provider)
    address = model.base_url or (provider.base_url if provider is not None else None)
    return None if address is None else normalize_address(address)


def endpoint_url(base_url: str, path: str) -> str:
    """Return the URL of a path below a base URL, with the query parameters of both."""
    base = urlsplit(base_url)
    path, _, query = path.partition("?")
    return base._replace(
        path=f"{base.path.rstrip('/')}/{path}", query="&".join(filter(None, (base.query, query))), fragment=""
    ).geturl()


def omitted_params(model: ModelSettings, unsupported: Collection[str] = ()) -> tuple[str, ...]:
    """Return the sorted names of parameters that a run sets but does not send to the model.

    These are parameters that the endpoint rejected (``unsupported``) or that the provider never accepts.
    """
    provider = PROVIDERS.get(model.provider)
    absent = {*unsupported, *(provider.never_takes if provider else ())}
    if absent.issuperset(("max_tokens", "max_completion_tokens")):
        absent.add("max_output_tokens")
    asked = {
        "logprobs": model.logprobs,
        "max_output_tokens": True,
        "seed": model.seed is not None,
        "temperature": model.temperature is not None,
        "top_logprobs": model.logprobs,
    }
    return tuple(name for name, is_asked in asked.items() if is_asked and name in absent)


def with_address(model: ModelSettings, environment: Mapping[str, str] | None = None) -> ModelSettings:
    """Return the settings. If they have no address, take it from the provider's environment variables."""
    provider = PROVIDERS.get(model.provider)
    if provider is None or model.base_url is not None:
        return model
    environment = os.environ if environment is None else environment
    values = (environment.get(name, "").strip().rstrip("/") for name in provider.address_variables)
    value = next(filter(None, values), None)
    return model if value is None else replace(model, base_url=provider.address_form.format(value))


@lru_cache
def normalize_address(address: str) -> str:
    parts = urlsplit(address.strip())
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:  # an invalid port, for which the call will fail with a message
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    host = f"[{host}]" if ":" in host else host
    place = host if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{port}"
    return parts._replace(netloc=place, path=parts.path.rstrip("/"), query="", fragment="").geturl()


@dataclass(frozen=True, slots=True)
class EndpointAccess:
    """The address, key and headers of an endpoint.

    ``own_headers`` are the headers that the user gave. Their values and the key are never shown. ``library``
    is the provider's name in any-llm, or None if any-llm is not used.
    """

    base_url: str
    key: str | None = field(repr=False)
    output_limit: OutputLimit
    headers: tuple[tuple[str, str], ...] = ()
    library: str | None = None
    own_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def resolve_access(
    models: Mapping[str, ModelSettings], environment: Mapping[str, str] | None = None
) -> dict[str, EndpointAccess]:
    """Return the address, key and headers for each role. Raises OptionsError, which lists all problems.

    The environment variable of the key must be set if the user named it, or if the provider needs a key.
    """
    environment = os.environ if environment is None else environment
    found: dict[str, EndpointAccess] = {}
    problems: dict[str, None] = {}
    for role, model in models.items():
        try:
            _check_wishes(model)
            found[role] = _access(model, environment)
        except ValueError as problem:
            problems[str(problem)] = None
    if problems:
        raise OptionsError("\n".join(problems))
    return found


def _access(model: ModelSettings, environment: Mapping[str, str]) -> EndpointAccess:
    provider = PROVIDERS.get(model.provider)
    if provider is None:
        raise ValueError(f"there is no provider {model.provider!r}; use one of {', '.join(PROVIDERS)}")
    base_url = model.base_url or provider.base_url
    if base_url is None:
        variables = " or ".join(provider.address_variables)
        hint = f", or set {variables}" if variables else ""
        raise ValueError(f"--provider {model.provider} needs the endpoint's address: give --base-url{hint}")
    if not base_url.startswith(("http://", "https://")):
        raise ValueError(f"--base-url {base_url}: the address has to begin with http:// or https://")
    variable = model.key_variable or provider.key_variable
    key = environment.get(variable, "").strip() if variable else ""
    if variable and not key and (provider.needs_key or model.key_variable):
        raise ValueError(
            f"{variable} is not set: {model.model} at {base_url} needs a key. Set that variable, or name "
            "another with --key-variable; for an endpoint without keys give --base-url and --provider any"
        )
    if not all("!" <= letter <= "~" for letter in key):
        raise ValueError(f"{variable} contains a space or another character that no key has; correct it")
    headers = ((name, environment.get(each, "").strip()) for name, each in provider.header_variables.items())
    own_headers = model.header
    if model.provider == "azure" and key and "api-version=" in urlsplit(base_url).query:
        own_headers = (("api-key", key), *own_headers)  # Azure's dated API versions require this header
    return EndpointAccess(
        base_url,
        key or None,
        provider.output_limit,
        tuple(each for each in headers if each[1]),
        provider.library,
        own_headers,
    )


def _check_wishes(model: ModelSettings) -> None:
    """Raise ValueError if the provider would ignore an option, or if a library is missing."""
    provider = PROVIDERS.get(model.provider)
    if provider is None:
        return
    if model.header and provider.library is not None:
        raise ValueError(
            f"--header cannot be used with --provider {model.provider}; leave it out, or name an "
            "OpenAI-compatible endpoint with --base-url"
        )
    if model.prompt_cache and provider.prompt_cache is None:
        raise ValueError(
            f"--prompt-cache cannot be used with --provider {model.provider}, which has no such setting "
            "(Gemini, vLLM and others cache prompts by themselves); leave it out"
        )
    for module in filter(None, (provider.library and "any_llm", provider.needs)):
        if not _is_installed(module):
            raise ValueError(
                f"--provider {model.provider} needs {module}, which is not installed: "
                f"{install_command('providers')}"
            )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False
