"""The board as CSV and as a site of plain files: nothing that runs, and never over somebody's own files."""

import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.board.board import Board
from leaderboard.board.export import (
    FORMULA_SIGNS,
    FolderTaken,
    inert,
    page_name,
    site_files,
    write_static_site,
)
from tests.support.boards import cell, label, row


def test_a_site_is_written_and_replaced_whole(board, tmp_path):
    folder = tmp_path / "public" / "site"
    first = replace(board, rows=board.rows[:1])
    # index, style, JSON, CSV, and a page for the judge
    assert write_static_site(first, folder) == 5
    second = replace(board, rows=board.rows[:2])
    assert write_static_site(second, folder) == 6
    assert (folder / "board.json").read_bytes() == second.to_bytes()
    assert len(list((folder / "judges").iterdir())) == 2
    assert [path.name for path in folder.parent.iterdir()] == ["site"]


def test_files_of_others_are_not_replaced_by_a_site(board, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FolderTaken, match="contains other files"):
        write_static_site(board, tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    with pytest.raises(FolderTaken):
        write_static_site(board, tmp_path / "thesis.tex")


def test_a_write_that_fails_leaves_nothing(board, tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_static_site(board, tmp_path / "site")
    assert list(tmp_path.glob("*site*")) == []


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("x;=1+1", "x;'=1+1"),
        ("Ada; @Bob", "Ada; '@Bob"),
        ("https://x.org/;=A1", "https://x.org/;'=A1"),
        ('x;"=1', "x;\"'=1"),
        ("=1;-1", "'=1;'-1"),
    ],
)
def test_a_sign_after_a_semicolon_begins_a_cell_where_the_comma_is_the_decimal_mark(text, safe):
    assert inert(text) == safe


MARKS = st.text(st.sampled_from([*FORMULA_SIGNS, *"; \t\r\n,\"'ab|"]), max_size=12)


@given(st.lists(MARKS, min_size=1, max_size=4), st.sampled_from(",;"))
def test_no_cell_begins_with_a_sign_whichever_delimiter_is_taken_for_one(texts, delimiter):
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(["label", 1, *map(inert, texts)])
    cells = next(csv.reader(io.StringIO(out.getvalue(), newline=""), delimiter=","))
    if delimiter != ",":  # as a spreadsheet splits it that knows no quotes within a cell
        cells = out.getvalue().replace('"', "").split(delimiter)
    assert not [cell for cell in cells if cell.lstrip().startswith(FORMULA_SIGNS)]


HOSTILE = "<script>alert(1)</script>&\"'"


@pytest.fixture
def board() -> Board:
    found = label(
        # TP 30, FP 10: precision 0.75; recall 30 / 50 = 0.6
        cell(tp=30, fp=10, fn=20, tn=40, ci=[0.6, 0.85]), rank=(1, 1, 2),
        webarena=cell(tp=3, fp=1, fn=4, tn=2), workarena=cell(tp=27, fp=9, fn=16, tn=38),
        apart=["paper/../x"],
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


def test_every_row_is_in_the_table_with_its_metrics(board):
    html = site_files(board)["index.html"].decode()
    assert "75.0" in html and "60.0 to 85.0" in html and "1 to 2" in html
    assert html.count('<th scope="row">') == 3
    assert '<tr class="reference">' in html
    # 7 positive labels on WebArena: marked, with the count.
    assert 'class="few" title="7 positive labels"' in html
    assert '<th scope="col">WebArena</th>' in html


def test_the_only_benchmark_has_no_column(board):
    ours = board.rows[0]
    score = ours.score("success")
    one = {**score, "by_benchmark": {"webarena": score["by_benchmark"]["webarena"]}}
    rows = (replace(ours, labels={**ours.labels, "success": one}), *board.rows[1:])
    assert "WebArena" not in site_files(replace(board, rows=rows))["index.html"].decode()


def test_a_row_says_from_whom_it_is_separated_or_why_it_has_no_rank(board):
    files = site_files(board)
    ours = re.sub(r"<[^>]*>|\s+", " ", files["judges/0123456789ab.html"].decode())
    assert "Rank 1 to 2, separated from 1 judge: &lt;script&gt;" in re.sub(" +", " ", ours)
    index = files["index.html"].decode()
    assert "<td>not ranked<small>a reference, not a judge</small></td>" in index
    assert (
        "<p>Not ranked: a reference, not a judge.</p>"
        in files[f"judges/{page_name('reference/yes')}.html"].decode()
    )
    lines = list(csv.DictReader(io.StringIO(files["board.csv"].decode())))
    assert [(line["n_separated"], line["separated_from"]) for line in lines] == [
        ("1", "paper/../x"), ("0", ""), ("", ""),
    ]  # fmt: skip


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


@pytest.mark.parametrize("row_id", ["paper/../x", "..", "", "a b", "ä"])
def test_no_row_id_leads_out_of_the_folder(row_id):
    assert re.fullmatch(r"[0-9a-f]{16}", page_name(row_id))
