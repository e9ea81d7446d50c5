"""A declaration in the name of whoever makes it."""

from submissions.accounts import Actor, is_same_name
from submissions.declaration import Declaration, DeclarationError, declare


def declare_as(actor: Actor | None, **fields) -> tuple[Declaration, Actor]:
    """The declaration and who makes it. The account is the name of the actor, whatever the form says.

    Without an actor (on one's own machine) the form's name is believed. Raises DeclarationError with every
    problem at once, also where the form names somebody else.
    """
    if actor is None:
        declaration = declare(**fields)
        return declaration, Actor(declaration.account)
    named = str(fields.get("account") or "").strip()
    problems = []
    if named and not is_same_name(named, actor.name):
        message = f"Your name: you are signed in as {actor.name}; leave it empty, or sign in as {named}"
        problems.append(("account", message))
    try:
        declaration = declare(**{**fields, "account": actor.name})
    except DeclarationError as error:
        raise DeclarationError([*problems, *error.problems]) from None
    if problems:
        raise DeclarationError(problems)
    return declaration, actor
