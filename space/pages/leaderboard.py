"""The leaderboard page: which judge can be trusted, and how surely.

Heading, controls and the filled table come with the page, prepared as bytes (``space/board_pages.py``), and
``static/board.js`` keeps them at the reader's choice. The plot is Gradio's, asked for when it comes near.
"""

import gradio as gr
from gradio.components.plot import PlotData

from space.page import Opening, Services, part, place

WHEN_NEAR = "window.arbBoard?.watchPlot(element, (query) => trigger('change', { query }));"


def build_leaderboard_page(services: Services) -> None:
    """Lay the page out in the current Blocks."""
    place("board")
    with gr.Row(elem_id="board-plots", equal_height=False):
        with gr.Column(scale=3, min_width=320):
            part("<h2>Precision and recall</h2>")
            near = gr.HTML("", elem_id="plot-near", apply_default_css=False, js_on_load=WHEN_NEAR)
            plot = gr.Plot(show_label=False, container=False, elem_id="precision-recall")
        with gr.Column(scale=2, min_width=280):
            place("reading")
    place("history")

    def draw(event: gr.EventData) -> PlotData:
        return PlotData(type="plotly", plot=services.boards.plot(str(event.query)))

    near.change(
        draw, None, plot, api_visibility="private", show_progress="hidden", trigger_mode="always_last",
        concurrency_limit=8,
    )  # fmt: skip


def open_leaderboard(services: Services, query: str) -> Opening:
    """What the page shows at once: everything but the plot."""
    return Opening(*services.boards.opening(query))
