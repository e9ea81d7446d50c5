"""A list of judges to choose from that is as new as the page: it comes with the page's opening.

Gradio keeps the choices of a control from the start of the server; judges submitted since are in the opening
as JSON, and the browser hands them to the control without another trip to the server.
"""

import json
from collections.abc import Sequence

from leaderboard.board import Board
from space.row_names import choices_of
from space.templating import render


def choices_html(board: Board, element_id: str) -> str:
    """The rows of the board as JSON in an element that shows nothing."""
    return listed_html(choices_of(board), element_id)


def listed_html(choices: Sequence[tuple[str, str]], element_id: str) -> str:
    """Choices as (words, id) in the same way."""
    return render("fresh_choices.html", element_id=element_id, choices=choices)


def take_choices(page, dropdown, element_id: str) -> None:
    """Give the dropdown the choices that ``choices_html`` put into the page, when it opens.

    ``page`` is the Blocks being built. Without such an element the choices stay as they are.
    """
    js = (
        f"() => {{ const found = document.getElementById({json.dumps(element_id)}); "
        "const choices = found && JSON.parse(found.textContent); "
        "return choices ? {__type__: 'update', choices} : {__type__: 'update'}; }"
    )
    page.load(fn=None, js=js, outputs=dropdown, api_visibility="private", show_progress="hidden", queue=False)
