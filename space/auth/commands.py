"""The command `arb space token`."""

from typing import Annotated

import typer

from arb.core.cli import JsonOption, print_json, read_settings, stop
from arb.core.lazy import lazy_imports

with lazy_imports():
    from arb.core import console, judge_info
    from space.auth import access_tokens
    from submissions.records import database


def token(
    account: Annotated[str, typer.Argument(help="Name of the account.")],
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Revoke the account's tokens and end its sessions.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make an access token for an account of a Space outside the Hub.

    The token is shown once. Its holder signs in with it, or sends it as `Authorization: Bearer TOKEN`.
    """
    try:
        name = judge_info.checked_name("account", account)
        engine = database.open_database(read_settings().records_url())
    except (judge_info.DeclarationError, database.DatabaseUnavailable) as problem:
        stop(str(problem))
    tokens = access_tokens.AccessTokens(engine)
    found: dict[str, str | int] = {"account": name}
    if revoke:
        found["revoked"] = number = tokens.revoke(name)
        line = f"Revoked {console.counted(number, 'token')} of {name}."
    else:
        found["token"] = line = tokens.make(name)
    if as_json:
        print_json(found)
    else:
        typer.echo(line)
