"""Where things are on the leaderboard page, for its tests."""

ROWS = "#board-table tbody.judges tr"
PAPER_ROWS = "#board-table tbody.judges tr.published"


def open_board(page, space) -> None:
    """The page with its table and plot."""
    page.goto(space.url)
    page.wait_for_selector(PAPER_ROWS)
    page.wait_for_selector("#precision-recall")
