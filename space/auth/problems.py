"""Why somebody may not do something now. REST answers them as they are; a page shows ``detail``."""

from fastapi import HTTPException

HOW_TO_SIGN_IN = (
    "sign in on the page with Hugging Face, or send an access token: Authorization: Bearer hf_…, made at "
    "https://huggingface.co/settings/tokens"
)


class NotAllowedHere(HTTPException):
    """The common kind of what follows: ``status_code`` and ``detail``, one sentence for people."""


class NotSignedIn(NotAllowedHere):
    """Nobody is known to be acting (401)."""

    def __init__(self, detail: str = f"nobody is signed in: {HOW_TO_SIGN_IN}") -> None:
        super().__init__(401, detail, headers={"WWW-Authenticate": "Bearer"})


class TokenRefused(NotSignedIn):
    """A token that the Hub does not take, or that names no person (401)."""


class HubSilent(NotAllowedHere):
    """The Hub could not say whose token it is; nobody is taken at their word (503)."""

    def __init__(self, detail: str) -> None:
        super().__init__(503, detail, headers={"Retry-After": "60"})


class NotAMaintainer(NotAllowedHere):
    """Somebody is signed in, but is not among the maintainers (403)."""

    def __init__(self, name: str) -> None:
        super().__init__(403, f"only a maintainer may do this, and {name} is none (ARB_MAINTAINERS)")
