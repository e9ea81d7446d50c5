"""A declaration in the name of whoever makes it."""

from submissions.accounts import Actor, is_same_name
from submissions.declaration import Declaration, DeclarationError, declare


def declare_as(actor: Actor | None, **fields) -> tuple[Declaration, Actor]:
    """The declaration and who makes it. An actor's own name is the account, whatever the form says of it.

    Without an actor (on one's own machine) the form's name is believed. Raises DeclarationError with every
    problem at once, also where the form names somebody else.
    """
    if actor is None:
        declaration = declare(**fields)
        return declaration, Actor(declaration.account)
    said = str(fields.get("account") or "").strip()
    problems = []
    if said and not is_same_name(said, actor.name):
        message = f"Your name: you are signed in as {actor.name}; leave it empty, or sign in as {said}"
        problems.append(("account", message))
    try:
        declaration = declare(**{**fields, "account": actor.name})
    except DeclarationError as error:
        raise DeclarationError([*problems, *error.problems]) from None
    if problems:
        raise DeclarationError(problems)
    return declaration, actor
