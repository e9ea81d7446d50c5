"""Signing in: the part of OpenID Connect that a Space needs, with one reader who is at the Hub now."""

import base64
import hashlib
import secrets
import time
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import parse_qs, unquote, urlencode

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from tests.support.hub_server.answers import Account, Answer, Request, as_json, refusal


@dataclass
class OpenId:
    """``reader`` is the account that is signed in at the Hub and lets every app see it; None lets no app.

    ``apps`` maps a client id to its secret and the addresses it may be sent back to. ``claims`` are put over
    those of the next identity tokens, to make bad ones.
    """

    reader: str | None = None
    apps: dict[str, tuple[str, str]] = field(default_factory=dict)
    claims: dict[str, object] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def key(self) -> RSAKey:
        return _key()

    def discovery(self, hub_url: str) -> Answer:
        return as_json(
            {
                "issuer": hub_url,
                "authorization_endpoint": f"{hub_url}/oauth/authorize",
                "token_endpoint": f"{hub_url}/oauth/token",
                "userinfo_endpoint": f"{hub_url}/oauth/userinfo",
                "jwks_uri": f"{hub_url}/oauth/jwks",
                "response_types_supported": ["code"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    def jwks(self) -> Answer:
        return as_json(KeySet([self.key]).as_dict(private=False))

    def authorize(self, request: Request) -> Answer:
        """Back to the app at once: the reader has nothing to click here."""
        asked = {name: values[0] for name, values in request.query.items()}
        _, address = self.apps.get(asked.get("client_id", ""), ("", None))
        if address is None or asked.get("redirect_uri") != address:
            raise refusal(400, "this app may not be sent back to that address")
        if self.reader is None:
            back = {"error": "access_denied", "state": asked["state"]}
        else:
            code = secrets.token_urlsafe(16)
            self.codes[code] = {**asked, "reader": self.reader}
            back = {"code": code, "state": asked["state"]}
        return Answer(302, {"Location": f"{address}?{urlencode(back)}"})

    def token(self, request: Request, hub_url: str, accounts: dict[str, Account]) -> Answer:
        """A token for a code that was given out once, to the app that it was given to."""
        form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
        asked = self.codes.pop(form.get("code", ""), None)
        client, _, secret = _basic(request).partition(":")
        challenge = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        is_right = (
            asked is not None
            and client == asked["client_id"]
            and secret == self.apps[client][0]
            and form.get("redirect_uri") == asked["redirect_uri"]
            and base64.urlsafe_b64encode(challenge).decode().rstrip("=") == asked.get("code_challenge")
        )
        if not is_right:
            return as_json({"error": "invalid_grant"}, 400)
        token = f"hf_oauth_{secrets.token_hex(16)}"
        accounts[token] = Account(asked["reader"], auth_type="app_token_as_user")
        now = int(time.time())
        claims = {
            "iss": hub_url, "aud": client, "sub": f"id-of-{asked['reader']}", "iat": now, "exp": now + 600,
            "nonce": asked.get("nonce"), "preferred_username": asked["reader"], **self.claims,
        }  # fmt: skip
        identity = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)
        return as_json(
            {"access_token": token, "token_type": "bearer", "expires_in": 28_800, "id_token": identity}
        )


@cache
def _key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"}, auto_kid=False)


def _basic(request: Request) -> str:
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    return unquote(base64.b64decode(value).decode()) if scheme.lower() == "basic" else ""


def _userinfo(api, request: Request) -> Answer:
    account = api.account(request)
    if account is None:
        raise refusal(401, "Invalid username or password.")
    return as_json({"sub": f"id-of-{account.name}", "preferred_username": account.name})


def _overview(api, request: Request, name: str) -> Answer:
    api.account(request)
    found = next((account for account in api.accounts.values() if account.name == name), None)
    if found is None or found.kind != "user":
        raise refusal(404, "This user does not exist")
    made = {"createdAt": found.made_at} if found.made_at else {}
    return as_json({"user": name, "fullname": name, "type": "user", "avatarUrl": "/none.svg", **made})


ROUTES = (
    (("GET",), r"/\.well-known/openid-configuration", lambda api, _: api.openid.discovery(api.hub_url)),
    (("GET",), "/oauth/jwks", lambda api, _: api.openid.jwks()),
    (("GET",), "/oauth/authorize", lambda api, request: api.openid.authorize(request)),
    (("POST",), "/oauth/token", lambda api, asked: api.openid.token(asked, api.hub_url, api.accounts)),
    (("GET",), "/oauth/userinfo", _userinfo),
    (("GET",), r"/api/users/(?P<name>[\w.-]+)/overview", _overview),
)
"""Of the Hub's routes those of people; each takes the HubApi and the request."""
