"""The compare page: is A really better than B, and where?"""

from typing import Final

import gradio as gr

from dataset_script.vocabulary import LABEL_TITLES, LABELS
from leaderboard.compare import MOST
from leaderboard.differences import COMPARED_FIGURES
from space.address import Choosable, choices_in, wire_address
from space.compare_html import FIGURE_TITLES, ComparePages
from space.fresh_choices import choices_html, take_choices
from space.page import Opening, Services, place
from space.row_names import choices_of

ADDRESS: Final = (
    Choosable("judges", "many", []),
    Choosable("label", "one", "success", LABELS),
    Choosable("figure", "one", "precision", COMPARED_FIGURES),
)
"""What the address says; ids are looked up on the board, which changes."""

CHOICES: Final = "compare-choices"


def open_compare_page(services: Services, query: str) -> Opening:
    """What the page of an address shows at once."""
    chosen, _ = choices_in(query, ADDRESS)
    html = services.comparisons.get(chosen["judges"], chosen["label"], chosen["figure"])
    choices = choices_html(services.comparisons.board, CHOICES)
    parts = (("head", html.head), ("body", html.body + choices))
    return Opening("".join(f'<div data-part="compare-{name}">{part}</div>' for name, part in parts), html.key)


def build_compare_page(services: Services) -> None:
    """Lay the page out in the current Blocks; the controls redraw what the address opened with."""
    comparisons: ComparePages = services.comparisons
    head = place("compare-head", elem_id="compare-head")
    with gr.Row(elem_classes="controls"):
        judges = gr.Dropdown(
            choices_of(comparisons.board), value=[], multiselect=True, max_choices=MOST,
            label="Judges, two to five", elem_id="compare-judges", allow_custom_value=True, scale=3,
            min_width=320,
        )  # fmt: skip
        label = gr.Radio(
            [(title, key) for key, title in LABEL_TITLES.items()], value="success", label="Label",
            elem_id="compare-label", scale=2, min_width=320,
        )  # fmt: skip
        figure = gr.Dropdown(
            [(FIGURE_TITLES[key], key) for key in COMPARED_FIGURES], value="precision", label="Figure",
            elem_id="compare-figure", min_width=130,
        )  # fmt: skip
    body = place("compare-body", elem_id="compare-body")

    def draw(row_ids: list[str] | None, label: str, figure: str) -> tuple[str, str]:
        html = comparisons.get(row_ids or [], label, figure)
        return html.head, html.body

    page = gr.context.Context.root_block
    quiet = {"api_visibility": "private", "show_progress": "hidden", "trigger_mode": "always_last"}
    take_choices(page, judges, CHOICES)
    choices = {"judges": judges, "label": label, "figure": figure}
    wire_address(page, choices, {"judges": []}, any_text={"judges"})
    gr.on([choice.input for choice in choices.values()], draw, list(choices.values()), [head, body], **quiet)
