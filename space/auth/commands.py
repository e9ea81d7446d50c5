"""The command `python -m space token`. Heavy imports wait for the command."""

from typing import Annotated

import typer

from arb.core.cli import JsonOption, print_json, read_settings, stop


def token(
    account: Annotated[str, typer.Argument(help="The account's name.")],
    revoke: Annotated[bool, typer.Option("--revoke", help="End all tokens and sessions of it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make an access token for an account, for a Space off the Hub.

    It is shown once. Its holder signs in with it, or sends it as `Authorization: Bearer`.
    """
    from arb.core.judge_info import DeclarationError, account_name
    from space.auth.access_tokens import AccessTokens
    from submissions.records.database import DatabaseUnavailable, open_database

    try:
        name = account_name(account)
        engine = open_database(read_settings().records_url())
    except (DeclarationError, DatabaseUnavailable) as problem:
        stop(str(problem))
    tokens = AccessTokens(engine)
    if revoke:
        ended = tokens.revoke(name)
        found, line = {"account": name, "revoked": ended}, f"{ended} tokens of {name} are revoked"
    else:
        made = tokens.make(name)
        found, line = {"account": name, "token": made}, made
    print_json(found) if as_json else typer.echo(line)
