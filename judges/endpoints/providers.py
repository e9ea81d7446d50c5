"""Who answers calls: names for well-known endpoints, the address and the key of each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import urlsplit

from judges.types import ModelSettings

LOCAL: Final = "transformers"
"""The provider that is no endpoint: the model runs in this process."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A kind of endpoint. ``base_url`` is None where the user must give one.

    ``output_limit``: which of its two names the longest reply is asked by at first. ``header_variables``:
    headers, each with the variable that it is sent from where that is set.
    """

    base_url: str | None
    key_variable: str | None
    needs_key: bool = True
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    header_variables: tuple[tuple[str, str], ...] = ()


PROVIDERS: Final[Mapping[str, Provider]] = MappingProxyType(
    {
        "openai": Provider(
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
            output_limit="max_completion_tokens",
            header_variables=(
                ("OpenAI-Organization", "OPENAI_ORG_ID"),
                ("OpenAI-Project", "OPENAI_PROJECT_ID"),
            ),
        ),
        "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
        "vllm": Provider("http://localhost:8000/v1", "VLLM_API_KEY", needs_key=False),
        "any": Provider(None, None, needs_key=False),
        LOCAL: Provider(None, None, needs_key=False),
    }
)
"""The names that ``--provider`` takes."""

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def address_of(model: ModelSettings) -> str | None:
    """Where a model is reached, as replies and runs are named by it: scheme, host, port and path.

    Two spellings of one place give the same text. A name, a password and a query are left out: they may be
    secrets. None for a model of this process, and where the provider needs an address that is absent.
    """
    provider = PROVIDERS.get(model.provider)
    address = model.base_url or (provider.base_url if provider is not None else None)
    return None if address is None or model.provider == LOCAL else normalize_address(address)


def normalize_address(address: str) -> str:
    parts = urlsplit(address.strip())
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:  # no port that can be: the call will say so
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    host = f"[{host}]" if ":" in host else host
    place = host if port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f"{host}:{port}"
    return parts._replace(netloc=place, path=parts.path.rstrip("/"), query="", fragment="").geturl()


@dataclass(frozen=True, slots=True)
class Access:
    """How an endpoint is reached. ``key`` is None where none is wanted; it is never shown."""

    base_url: str
    key: str | None
    output_limit: Literal["max_tokens", "max_completion_tokens"]
    headers: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"Access({self.base_url!r}, key {'given' if self.key else 'none'})"


def resolve_access(
    models: Mapping[str, ModelSettings], environment: Mapping[str, str] | None = None
) -> dict[str, Access]:
    """How the endpoint of each role is reached, local models aside.

    A variable that ``key_variable`` names must be set; a provider's own only where it needs a key. Raises
    OptionsError that lists all that is missing.
    """
    environment = os.environ if environment is None else environment
    found: dict[str, Access] = {}
    problems: dict[str, None] = {}
    for role, model in models.items():
        if model.provider == LOCAL:
            continue
        try:
            found[role] = _access(model, environment)
        except ValueError as problem:
            problems[str(problem)] = None
    if problems:
        from judges.types import OptionsError

        raise OptionsError("\n".join(problems))
    return found


def _access(model: ModelSettings, environment: Mapping[str, str]) -> Access:
    provider = PROVIDERS.get(model.provider)
    if provider is None:
        raise ValueError(f"no provider {model.provider!r}: use one of {', '.join(PROVIDERS)}")
    base_url = model.base_url or provider.base_url
    if base_url is None:
        raise ValueError(f"--provider {model.provider} needs the endpoint's address: give --base-url")
    if not base_url.startswith(("http://", "https://")):
        raise ValueError(f"--base-url {base_url}: an address begins with http:// or https://")
    variable = model.key_variable or provider.key_variable
    key = environment.get(variable, "").strip() if variable else ""
    if variable and not key and (provider.needs_key or model.key_variable):
        raise ValueError(
            f"{variable} is not set: {model.model} at {base_url} needs a key. Set that variable, or name "
            "another with --key-variable; for an endpoint without keys give --base-url and --provider any"
        )
    if not all("!" <= letter <= "~" for letter in key):
        raise ValueError(f"{variable} contains a space or a character that no key has; check its value")
    headers = ((name, environment.get(each, "").strip()) for name, each in provider.header_variables)
    return Access(base_url, key or None, provider.output_limit, tuple(each for each in headers if each[1]))
