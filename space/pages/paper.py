"""The paper page: its tables computed here, beside the printed figures."""

import hashlib

import gradio as gr

from dataset_script.suite import OFFICIAL
from leaderboard.paper_tables.make import TABLES
from space.address import Choosable, choices_in, wire_address
from space.page import Opening, Services, place
from space.paper_source import PaperTables
from space.paper_view import show_table
from space.templating import render

FIRST = 1


def build_paper_page(services: Services) -> None:
    """Lay the page out in the current Blocks."""
    place("paper-head")
    with gr.Row(elem_classes="controls"):
        number = gr.Radio(
            [(f"Table {known}", str(known)) for known in TABLES], value=str(FIRST), label="Table",
            elem_id="paper-table",
        )  # fmt: skip
    body = place("paper-body", elem_id="paper-body")

    def draw(chosen: str) -> str:
        return body_html(services.paper, chosen)

    page = gr.context.Context.root_block
    wire_address(page, {"table": number})
    number.input(
        draw, number, body, api_visibility="private", show_progress="hidden", trigger_mode="always_last"
    )


def open_paper(services: Services, query: str) -> Opening:
    """The page as its address says, before Gradio is there."""
    spec = [Choosable("table", "one", str(FIRST), tuple(map(str, TABLES)))]
    chosen, _ = choices_in(query, spec)
    head = render("paper_head.html", is_official=services.submissions.suite.name == OFFICIAL)
    html = (
        f'<div data-part="paper-head">{head}</div>'
        f'<div data-part="paper-body">{body_html(services.paper, chosen["table"])}</div>'
    )
    return Opening(html, hashlib.sha256(html.encode()).hexdigest())


def body_html(tables: PaperTables, number: str) -> str:
    """The table with this number; the first one for a number that is none."""
    known = int(number) if number in map(str, TABLES) else FIRST
    return render("paper_body.html", shown=show_table(tables.get(known)))
