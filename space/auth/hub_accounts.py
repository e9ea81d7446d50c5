"""Asking the Hub: whose token this is, and since when an account is there."""

import logging
from datetime import date, datetime
from typing import Any, Final

import httpx2

from space.web.http_errors import HubUnavailable, InvalidToken

logger = logging.getLogger(__name__)
TRY_LATER: Final = "the Hub cannot confirm the token at the moment; nothing was done, try again in a minute"


class HubAccounts:
    """The two questions, over huggingface_hub. Blocking: ask in a thread."""

    def name_of(self, token: str) -> str:
        """The account that a token belongs to. Raises InvalidToken, HubUnavailable without the token.

        Only a token that its owner made for use by hand counts. One that an app got by signing its users in
        would let whoever runs that app act here as each of them.
        """
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError

        try:
            found = HfApi().whoami(token)
        except HfHubHTTPError as error:
            if error.response.status_code in (401, 403):
                raise InvalidToken(
                    "the Hub does not accept this token: it is mistyped, expired or revoked; make another at "
                    "https://huggingface.co/settings/tokens"
                ) from None
            logger.warning("the Hub answers whoami with %d", error.response.status_code)
            raise HubUnavailable(TRY_LATER) from None
        except (httpx2.HTTPError, OSError, ValueError) as error:
            logger.warning("whoami failed: %s", type(error).__name__)
            raise HubUnavailable(TRY_LATER) from None
        return _person(found)

    def made_on(self, name: str) -> date | None:
        """The day on which an account was made; None where the Hub does not say, or not now."""
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HfHubHTTPError

        try:
            overview = HfApi().get_user_overview(name, token=False)
        except (HfHubHTTPError, httpx2.HTTPError, OSError, ValueError) as error:
            logger.warning("the Hub did not say when %r was made: %s", name, type(error).__name__)
            return None
        return _day(getattr(overview, "createdAt", None))


def _person(found: Any) -> str:
    auth = (found.get("auth") if isinstance(found, dict) else None) or {}
    if "accessToken" not in auth or auth.get("type", "access_token") != "access_token":
        raise InvalidToken(
            "this token was given to an app and is not for use by hand; make an access token at "
            "https://huggingface.co/settings/tokens"
        )
    if found.get("type") != "user" or not isinstance(found.get("name"), str):
        raise InvalidToken("this token belongs to no person: use one of your own account")
    return found["name"]


def _day(text: Any) -> date | None:
    try:
        return datetime.fromisoformat(text).date()
    except (TypeError, ValueError):
        return None
