"""The board as plain files: every row, nothing that runs, links that lead somewhere."""

import json
import re
from html.parser import HTMLParser

import pytest

from leaderboard.board import Board
from leaderboard.static_site.site import page_name, places, site_files
from tests.space.boards import cell, label, row

HOSTILE = "<script>alert(1)</script>&\"'"


@pytest.fixture
def board() -> Board:
    found = label(
        # TP 30, FP 10: precision 0.75; recall 30 / 50 = 0.6
        cell(tp=30, fp=10, fn=20, tn=40, ci=[0.6, 0.85]), rank=(1, 1, 2),
        webarena=cell(tp=3, fp=1, fn=4, tn=2),
    )  # fmt: skip
    rows = (
        row("Ours", found, id="0123456789ab", marks=("verified",)),
        row(HOSTILE, label(cell(tp=1, fp=1, fn=1, tn=1), rank=(2, 1, 2)), id="paper/../x",
            link="javascript:1", account=HOSTILE, authors=HOSTILE, note=HOSTILE),
        row("Always yes", label(cell(tp=50, fp=50, fn=0, tn=0)), provenance="reference", id="reference/yes"),
    )  # fmt: skip
    return Board("small", "abc123", rows)


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag, attributes) -> None:
        self.tags.add(tag)
        self.found += [value for name, value in attributes if name in ("href", "src")]


def links_of(html: bytes) -> Links:
    parser = Links()
    parser.feed(html.decode())
    return parser


def test_every_row_stands_in_the_table_with_its_figures(board):
    html = site_files(board)["index.html"].decode()
    assert "75.0" in html and "60.0 to 85.0" in html and "1 to 2" in html
    assert html.count('<th scope="row">') == 3
    assert '<tr class="reference">' in html
    # 7 positive labels on WebArena: marked, with the count.
    assert 'class="few" title="7 positive labels"' in html


def test_what_strangers_wrote_is_text_and_no_script_is_anywhere(board):
    for name, content in site_files(board).items():
        if name.endswith(".html"):
            found = links_of(content)
            assert "script" not in found.tags
            assert b"<script" not in content
            assert not any(link.startswith("javascript") for link in found.found)


def test_every_link_within_the_site_leads_to_one_of_its_files(board):
    files = site_files(board)
    for name, content in files.items():
        if not name.endswith(".html"):
            continue
        inside = [link for link in links_of(content).found if not re.match(r"https?://", link)]
        assert inside
        for link in inside:
            target = re.sub(r"^judges/\.\./", "", f"judges/{link}") if name.startswith("judges/") else link
            assert target in files, (name, link)


def test_the_data_are_those_of_the_board(board):
    files = site_files(board)
    assert json.loads(files["board.json"])["digest"] == board.digest
    assert len(files["board.csv"].splitlines()) == 1 + 3


def test_the_same_board_gives_the_same_bytes(board):
    assert site_files(board) == site_files(board)


@pytest.mark.parametrize("row_id", ["paper/../x", "..", "", "a b", "ä"])
def test_no_row_id_leads_out_of_the_folder(row_id):
    assert re.fullmatch(r"[0-9a-f]{16}", page_name(row_id))


def test_a_tie_is_a_range_of_places():
    assert places({"place": 2, "low": 1, "high": 3}) == "1 to 3"
    assert places({"place": 2, "low": 2, "high": 2}) == "2"
    assert places(None) == ""
