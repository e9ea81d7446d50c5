"""The leaderboard's address: what it chooses, sorting, tags of the answer, the form."""

import re
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from space.pages.leaderboard.query import (
    MOST_ROWS,
    PAGE_ROWS,
    LeaderboardQuery,
    address_of_choice,
    choice_in,
    options_of,
    widen,
)
from space.pages.leaderboard.table import view_board
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at
from tests.support.boards import board, cell, label, row
from tests.support.leaderboard_client import leaderboard_client, rows_html, table_html
from tests.support.submissions import send, verdicts, with_rules


@pytest.fixture
def client(service) -> TestClient:
    send(service, verdicts(service.suite, misses=1), judge="Alpha", kind="Rule-based", inputs="tree")
    send(service, verdicts(service.suite, misses=2, false_alarms=4), judge="Beta", kind="Ensemble")
    return leaderboard_client(service)


def names(html: str) -> list[str]:
    """The judges of the table, from the top."""
    return re.findall(r'class="name" href="[^"]*"[^>]*>([^<(]*[^<( ])(?: \([^<]*\))?<', html)


def test_the_page_says_where_keyboard_and_touch_users_find_the_counts(service, client):
    page = client.get("/").text
    assert "Each judge's page and the CSV file have them as text." in shown_text(page)
    link = re.search(r'class="name" href="(/judge[^"]*)"', page)[1]
    assert 'data-heading="TP"' not in page and 'data-heading="TP"' in page_at(service, link)


# What an address chooses


def test_an_address_makes_a_choice_and_nonsense_in_it_does_not():
    ours = row("A", label(cell(9, 1, 1, 9), (1, 1, 1)), kind="Ensemble", inputs="tree")
    options = options_of(board(ours, row("B", label(cell(9, 1, 1, 9)), "published")))
    query = (
        "label=repetition&figure=recall&kind=Ensemble&inputs=tree&from=scored,published&q=abc&every=1"
        "&sort=-cost"
    )
    expected = LeaderboardQuery(
        "repetition", "recall", "abc", ("Ensemble",), ("published", "scored"), True, "", ("tree",), "-cost"
    )
    assert choice_in(query, options, 2) == (expected, [])
    nonsense = "label=x&figure=y&kind=z&agent=q&from=w&every=7&sort=s"
    assert choice_in(nonsense, options, 2) == (
        LeaderboardQuery(), ["label", "figure", "agent", "kind", "from", "every", "sort"],
    )  # fmt: skip


def test_the_address_of_a_choice_gives_that_choice_and_leaves_defaults_out():
    options = options_of(board(row("A", label(cell(9, 1, 1, 9), (1, 1, 1)), kind="Ensemble", inputs="tree")))
    choice = LeaderboardQuery(
        "repetition", "f1", "a b", ("Ensemble",), ("scored",), True, "", ("tree",), "-recall"
    )
    assert choice_in(address_of_choice(choice).partition("?")[2], options, 1) == (choice, [])
    assert address_of_choice(LeaderboardQuery()) == "/"
    assert address_of_choice(LeaderboardQuery(search="x"), sort="judge") == "/?q=x&sort=judge"


# Sorting, which is in the address beside the filters


def three_judges():
    """Precision 90, 50, 60; recall 45, 50, 90; costs 2 and 1 dollars, one not known."""
    return board(
        row("A", label(cell(9, 1, 11, 9), (1, 1, 3), webarena=cell(1, 1, 0, 0)), id="a",
            cost={"usd_per_1000": 2.0, "rows": 1, "of": 1}),
        row("b", label(cell(5, 5, 5, 5), (3, 3, 3)), id="b", cost={"usd_per_1000": 1.0, "rows": 1, "of": 1}),
        row("C", label(cell(9, 6, 1, 4), (2, 2, 3), webarena=cell(3, 1, 0, 0)), id="c"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("", ["a", "c", "b"]),
        ("rank", ["a", "c", "b"]),
        ("-rank", ["b", "c", "a"]),
        ("judge", ["a", "b", "c"]),
        ("-judge", ["c", "b", "a"]),
        ("-figure", ["a", "c", "b"]),
        ("precision", ["b", "c", "a"]),
        ("-recall", ["c", "b", "a"]),
        ("cost", ["b", "a", "c"]),  # what is not known stays last
        ("-cost", ["a", "b", "c"]),
        ("-webarena", ["c", "a", "b"]),
    ],
)
def test_a_column_sorts_as_numbers_both_ways(sort, order):
    found = three_judges()
    assert sort in ("", *options_of(found)["sort"])
    assert [view.row.id for view in view_board(found, LeaderboardQuery(sort=sort)).rows] == order


def test_a_heading_leads_to_the_other_direction_and_keeps_the_filters():
    html = table_html(three_judges(), LeaderboardQuery(kinds=("LLM judge",), sort="-recall"))
    headings = dict(re.findall(r'id="sort-(\w+)" href="([^"]*)"', html))
    assert headings["recall"] == "/?kind=LLM%20judge&amp;sort=recall"
    assert headings["f1"] == "/?kind=LLM%20judge&amp;sort=-f1"
    assert headings["rank"] == "/?kind=LLM%20judge&amp;sort=rank"
    assert re.findall(r'aria-sort="(\w+)"><a class="sorter" id="sort-(\w+)"', html) == [
        ("descending", "recall")
    ]


# The page


def test_the_page_comes_with_the_filled_table_at_the_choice_of_its_address(client):
    assert set(names(client.get("/").text)) == {"Alpha", "Beta"}
    html = client.get("/?kind=Ensemble&figure=recall").text
    assert names(html) == ["Beta"]
    assert '<option value="recall" selected>' in html
    assert re.search(r'name="kind" value="Ensemble" checked', html)


def test_the_same_board_and_choice_give_the_same_tag_and_others_another_one(client, service):
    etag = client.get("/").headers["etag"]
    known = {"If-None-Match": etag}
    assert client.get("/?figure=precision&unknown=1", headers=known).status_code == 304
    assert client.get("/?figure=recall", headers=known).status_code == 200
    send(service, verdicts(service.suite), judge="Gamma")
    newer = client.get("/", headers=known)
    assert newer.status_code == 200
    assert "Gamma" in newer.text


def test_the_plot_in_the_page_shows_the_rows_that_the_address_chooses(client):
    points = re.compile(r'class="point [\w-]+"[^>]*><title>(\w+)')
    assert set(points.findall(client.get("/").text)) == {"Alpha", "Beta"}
    assert points.findall(client.get("/?kind=Ensemble").text) == ["Beta"]


@pytest.mark.parametrize(
    "query", ["label=%00", "q=" + "x" * 5000, "&" * 3000, "agent=../../etc/passwd", "kind=,,,", "sort=%00"]
)
def test_any_address_gets_a_board_with_a_422_if_a_value_is_invalid(client, query):
    answer = client.get(f"/?{query}")
    assert answer.status_code == (422 if "invalid value" in answer.text else 200)
    assert 'id="board-table"' in answer.text


def test_hostile_search_words_stay_text_in_the_form(client, hostile):
    html = client.get(f"/?q={quote(hostile[:80])}").text
    assert "There is no judge to show" in shown_text(html)
    assert f"value={hostile[:80]}" not in html
    assert "<script>alert" not in html
    assert "onerror=alert(1)>" not in html


# The table's rarer states


def test_a_filter_that_fits_nothing_says_how_to_clear_it_and_an_empty_board_how_to_begin(client):
    assert "Clear the filters" in client.get("/?q=nobody").text
    empty = client.get("/?label=side_effect").text
    assert "Clear the filters" not in empty
    assert "submit</a> the first verdicts" in empty


def test_a_row_that_cannot_be_compared_says_so_beside_its_name():
    found = label(cell(9, 1, 1, 9))
    unknown = row("A", found, "self-reported", split=None, protocol=None)
    text = shown_text(table_html(board(unknown), LeaderboardQuery()))
    assert "not ranked" in text
    assert "LLM judge · reported without split or protocol" in text
    tuned = row("A", found, "published", test_labels_used=True)
    assert "LLM judge · tuned on test" in shown_text(table_html(board(tuned), LeaderboardQuery()))


# More rows than the page opens with


def rows_of(count: int):
    """A board of so many judges, the first of them with the highest precision."""
    return board(
        *(
            row(
                f"J{n}",
                label(cell(count - n, n + 1, 20, 20), (n + 1, 1, count)),
                id=f"j{n}",
                cost={"usd_per_1000": n + 1.0, "rows": 1, "of": 1},
            )
            for n in range(count)
        )
    )


LONG = rows_of(250)


def numbers(html: str) -> list[int]:
    """The judges of the table by their numbers."""
    return [int(found) for found in re.findall(r'data-row="j(\d+)"', html)]


@pytest.mark.parametrize(
    ("rows", "n_rows", "expected"),
    [
        ((1, PAGE_ROWS), 250, (1, 100)),
        ((1, PAGE_ROWS), 0, (1, 100)),
        ((101, 200), 250, (101, 200)),
        ((150, 201), 250, (101, 300)),  # whole steps
        ((901, 999), 250, (201, 300)),  # beyond the end: the last step
        ((1, 5_000), 5_000, (1, MOST_ROWS)),
        ((2_950, 5_000), 5_000, (2_901, 2_900 + MOST_ROWS)),
    ],
)
def test_an_address_shows_whole_steps_of_rows_and_not_too_many(rows, n_rows, expected):
    assert widen(rows, n_rows) == expected


@pytest.mark.parametrize("rows", ["0-9", "9-1", "1", "-1-5", "a-b", "1-1e3", "1-" + "9" * 40, "١-٢", ""])
def test_rows_that_are_no_range_are_refused_and_the_first_are_shown(rows):
    choice, refused = choice_in(f"rows={quote(rows)}", options_of(LONG), len(LONG.rows))
    assert (choice.rows, refused) == ((1, PAGE_ROWS), ["rows"])


def test_a_long_table_opens_with_its_first_rows_and_a_plain_link_leads_to_the_next():
    html = table_html(LONG, LeaderboardQuery(search="j"))
    assert numbers(html) == list(range(100))
    assert "100 of 250 judges" in shown_text(html)
    assert '<a href="/?q=j&amp;rows=101-200#board" rel="nofollow">Rows 101 to 200</a>' in html
    assert '<a class="button small" href="/?q=j&amp;rows=1-250" rel="nofollow">Show all 250</a>' in html
    last = table_html(LONG, LeaderboardQuery(search="j", rows=(201, 300)))
    assert numbers(last) == list(range(200, 250))
    assert "201 to 250 of 250 judges" in shown_text(last)
    assert 'href="/?q=j&amp;rows=101-200#board" rel="nofollow">Rows 101 to 200</a>' in last
    assert "Rows 251" not in last


def test_search_and_sorting_are_over_all_rows_and_begin_with_the_first_again():
    assert numbers(table_html(LONG, LeaderboardQuery(search="J249"))) == [249]
    html = table_html(LONG, LeaderboardQuery(sort="precision", rows=(101, 200)))
    assert numbers(html) == list(range(149, 49, -1))  # from the lowest up: 249 to 150 are the first hundred
    assert 'id="sort-recall" href="/?sort=-recall"' in html


def test_the_rows_that_follow_come_alone_with_the_new_count():
    html = rows_html(LONG, LeaderboardQuery(rows=(1, 200)), after=100)
    assert numbers(html) == list(range(100, 200))
    assert html.lstrip().startswith("<tr")
    assert 'hx-swap-oob="true">200 of 250 judges</p>' in html
    assert 'hx-get="/board/rows?after=200&amp;rows=1-300"' in html
    last = rows_html(LONG, LeaderboardQuery(rows=(1, 300)), after=200)
    assert numbers(last) == list(range(200, 250))
    assert 'hx-swap-oob="true">250 judges</p>' in last
    assert "/board/rows" not in last


@pytest.mark.slow
def test_every_row_of_a_large_board_is_reached_by_scrolling_and_once():
    large = rows_of(1_250)
    html, found = table_html(large, LeaderboardQuery()), []
    while True:
        found += numbers(html)
        following = re.search(r'hx-get="/board/rows\?after=(\d+)&amp;rows=(\d+)-(\d+)"', html)
        if following is None:
            break
        after, first, last = map(int, following.groups())
        assert last - first < MOST_ROWS
        html = rows_html(large, LeaderboardQuery(rows=(first, last)), after)
    assert found == list(range(1_250))


def test_the_route_of_rows_takes_the_choice_of_the_page(client):
    assert names(client.get("/board/rows?kind=Ensemble").text) == ["Beta"]
    assert names(client.get("/board/rows?after=1").text) == ["Beta"]
    assert client.get("/board/rows?after=1.5&rows=x&label=none").status_code == 200
    assert client.get("/board/rows?after=nan").status_code == 200
    tagged = client.get("/board/rows", headers={"If-None-Match": client.get("/board/rows").headers["etag"]})
    assert tagged.status_code == 304


# From a figure to its errors


def test_a_figure_opens_the_errors_that_it_counts(client, service):
    row_id = next(row.id for row in service.records.board().rows if row.judge == "Beta")
    line = re.search(rf'<tr class="scored" data-row="{row_id}">.*?</tr>', client.get("/").text, re.S)[0]
    kinds = {m[2]: m[1] for m in re.finditer(r'class="behind" href="([^"]*)">([^<]*)<', line)}
    # Beta: TP 8, FP 4, FN 2: precision 66.7 % counts false positives, recall 80.0 % false negatives, F1 both
    address = f"/errors?judge={row_id}&amp;split=test"
    assert kinds == {"66.7": f"{address}&amp;kind=fp", "80.0": f"{address}&amp;kind=fn", "72.7": address}
    assert "Click a linked number to see the errors" in client.get("/").text
    assert 'class="behind"' not in client.get("/?label=repetition").text


def test_no_figure_of_private_labels_opens_errors(service):
    private = with_rules(service, is_public=False)
    send(private, verdicts(private.suite, misses=1))
    assert 'class="behind"' not in leaderboard_client(private).get("/").text
