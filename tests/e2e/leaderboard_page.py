"""Where things are on the leaderboard page, for its tests."""

ROWS = "#board-table tbody.judges tr"
PAPER_ROWS = "#board-table tbody.judges tr.published"


def open_board(page, space) -> None:
    """The page with its table and, drawn to the end, its plot."""
    page.goto(space.url)
    page.wait_for_selector(PAPER_ROWS)
    page.wait_for_selector("gradio-app #board-table")
    page.locator("#plot-near").scroll_into_view_if_needed()  # the plot is asked for when it comes near
    page.wait_for_selector("#precision-recall .js-plotly-plot")
