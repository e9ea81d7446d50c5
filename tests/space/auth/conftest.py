"""A Hub with accounts, and an application that only signs people in."""

from datetime import date

import pytest
from fastapi import Depends, FastAPI, Request, Response
from fastapi.testclient import TestClient

from arb.core.settings import Settings
from arb.core.suite import SuiteRules
from space.auth.auth import Auth
from space.auth.oauth import build_auth_router, build_login
from space.web.frame import PageFrame
from space.web.responses import StaticAssets
from submissions.intake.accounts import Actor
from tests.submissions.conftest import postgres, postgres_url
from tests.support.hub_server.answers import Account
from tests.support.hub_server.server import running_hub

__all__ = ["postgres", "postgres_url"]

SPACE = "https://ada-board.hf.space"
OWN_HEADERS = {"origin": SPACE}
CLIENT = ("space-client", "space-secret")


@pytest.fixture
def hub(monkeypatch):
    """Yield a Hub on which Ada and Grace have access tokens, and the Space is a registered app."""
    with running_hub(monkeypatch) as hub:
        hub.api.accounts |= {
            "hf_ada_token": Account("ada"),
            "hf_grace_token": Account("grace", made_at="2026-11-01T00:00:00.000Z"),
        }
        hub.api.openid.apps[CLIENT[0]] = (CLIENT[1], f"{SPACE}/login/callback")
        hub.api.openid.reader = "ada"
        yield hub


@pytest.fixture
def space_settings(hub, tmp_path) -> Settings:
    """Return the settings that the Hub gives to a Space."""
    return Settings(
        state_dir=tmp_path / "state",
        secret="eab69819ef1c1cd52f14e04168d8698e",
        maintainers="grace",
        space_id="ada/board",
        space_host="ada-board.hf.space",
        oauth_client_id=CLIENT[0],
        oauth_client_secret=CLIENT[1],
        openid_provider_url=hub.url,
    )


def app_of(auth: Auth, rules: SuiteRules | None = None) -> FastAPI:
    """Return an application for signing in, with two routes that return the account."""
    app = FastAPI()
    page = PageFrame(StaticAssets(), auth.mode == "hub")
    app.include_router(build_auth_router(auth, page, rules or SuiteRules()))
    if auth.mode == "hub":
        app.mount("/login", build_login(auth, page))

    @app.post("/act")
    def act(actor: Actor = Depends(auth.require_actor)) -> str:  # noqa: B008
        return actor.name

    @app.get("/moderate")
    def moderate(request: Request) -> str:
        return auth.require_maintainer(request).name

    return app


def client_of(auth: Auth, base_url: str = SPACE, **options) -> TestClient:
    return TestClient(app_of(auth, **options), base_url=base_url, follow_redirects=False)


@pytest.fixture
def auth(space_settings) -> Auth:
    """Return the account that a request on the Space acts for."""
    return Auth(space_settings)


@pytest.fixture
def client(auth) -> TestClient:
    """Return a browser that is connected to the Space."""
    return client_of(auth)


@pytest.fixture
def local_client(tmp_path) -> TestClient:
    """Return a browser that is connected to a local server, where Grace is a maintainer."""
    settings = Settings(state_dir=tmp_path / "local", maintainers="Grace Hopper")
    return client_of(Auth(settings), "http://127.0.0.1:7860")


def session_cookie(auth: Auth, name: str = "ada") -> str:
    """Return the Cookie header of an account that signed in."""
    response = Response()
    auth.sign_in(response, Actor(name, since=date(2024, 5, 6), how="session"))
    return "; ".join(text.split(";")[0] for text in response.headers.getlist("set-cookie"))
