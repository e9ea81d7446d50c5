"""A judge's own page: what it is, how good and where, at what cost, and how to check and cite it."""

from typing import Final

import gradio as gr

from dataset_script.vocabulary import LABEL_TITLES, LABELS
from space.address import Choosable, choices_in, wire_address
from space.fresh_choices import choices_html, take_choices
from space.judge_html import JudgePages
from space.page import Opening, Services, place
from space.row_names import choices_of

ADDRESS: Final = (
    Choosable("id", "one", ""),
    Choosable("label", "one", "success", LABELS),
)
"""What the address says; an id is looked up on the board, which changes."""

CHOICES: Final = "judge-choices"


def open_judge_page(services: Services, query: str) -> Opening:
    """What the page of an address shows at once."""
    chosen, _ = choices_in(query, ADDRESS)
    html = services.judges.get(chosen["id"], chosen["label"])
    choices = choices_html(services.judges.board, CHOICES)
    parts = (("head", html.head), ("body", html.body + choices))
    return Opening("".join(f'<div data-part="judge-{name}">{part}</div>' for name, part in parts), html.key)


def build_judge_page(services: Services) -> None:
    """Lay the page out in the current Blocks; the controls redraw what the address opened with."""
    judges: JudgePages = services.judges
    head = place("judge-head", elem_id="judge-head")
    with gr.Row(elem_classes="controls"):
        judge = gr.Dropdown(
            choices_of(judges.board), value=None, label="Judge", elem_id="judge", allow_custom_value=True,
            min_width=260,
        )  # fmt: skip
        label = gr.Radio(
            [(title, key) for key, title in LABEL_TITLES.items()], value="success", label="Label",
            elem_id="judge-label", min_width=320,
        )  # fmt: skip
    body = place("judge-body", elem_id="judge-body")

    def draw(row_id: str | None, chosen: str) -> tuple[str, str]:
        html = judges.get(row_id or "", chosen)
        return html.head, html.body

    page = gr.context.Context.root_block
    quiet = {"api_visibility": "private", "show_progress": "hidden", "trigger_mode": "always_last"}
    take_choices(page, judge, CHOICES)
    wire_address(page, {"id": judge, "label": label}, {"id": ""}, any_text={"id"})
    gr.on([judge.input, label.input], draw, [judge, label], [head, body], **quiet)
