"""What a Space has beside its files: variables that its members read, secrets nobody reads, volumes."""

from dataclasses import dataclass, field
from typing import Any

from tests.support.hub_server.answers import Answer, Request, as_json, refusal
from tests.support.hub_server.repository import Repository, content_of

PREFIX = "spaces/"
"""Of a Space's name among the repositories: a dataset may have the same name."""
SDKS = ("gradio", "docker", "streamlit", "static")


@dataclass
class SpaceRepository(Repository):
    sdk: str = "gradio"
    variables: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    volumes: list[dict[str, Any]] | None = None

    def __post_init__(self):
        super().__post_init__()
        card = f"---\ntitle: {self.repo_id.split('/')[-1]}\nsdk: {self.sdk}\n---\n"
        self.commit({"README.md": content_of("README.md", card.encode())}, "initial commit", "hub")


def created(asked: dict, repo: str, private: bool) -> SpaceRepository:
    if asked.get("sdk") not in SDKS:
        raise refusal(400, '"sdk" is required')
    return SpaceRepository(repo, private, sdk=asked["sdk"])


def read_variables(api, request: Request, repo: str) -> Answer:
    space = api.writable(request, repo)
    return as_json({name: {"value": value} for name, value in space.variables.items()})


def set_variable(api, request: Request, repo: str) -> Answer:
    space, asked = api.writable(request, repo), request.json()
    space.variables[asked["key"]] = asked["value"]
    return read_variables(api, request, repo)


def remove_variable(api, request: Request, repo: str) -> Answer:
    space, asked = api.writable(request, repo), request.json()
    space.variables.pop(asked["key"], None)
    return read_variables(api, request, repo)


def read_secrets(api, request: Request, repo: str) -> Answer:
    return as_json({name: {} for name in api.writable(request, repo).secrets})


def runtime(api, request: Request, repo: str) -> Answer:
    space = api.writable(request, repo)
    volumes = {} if space.volumes is None else {"volumes": space.volumes}
    return as_json({"stage": "RUNNING", "hardware": {"current": "cpu-basic"}, "replicas": 1, **volumes})


def set_volumes(api, request: Request, repo: str) -> Answer:
    space = api.writable(request, repo)
    space.volumes = request.json()["volumes"]
    return as_json({"success": True})


NAME = r"(?P<repo>[\w.-]+/[\w.-]+)"
API = rf"/api/(?P<kind>spaces)/{NAME}"
ROUTES = (
    (("GET",), f"{API}/variables", read_variables),
    (("POST",), f"{API}/variables", set_variable),
    (("DELETE",), f"{API}/variables", remove_variable),
    (("GET",), f"{API}/secrets", read_secrets),
    (("GET",), f"{API}/runtime", runtime),
    (("PUT",), f"{API}/volumes", set_volumes),
)
