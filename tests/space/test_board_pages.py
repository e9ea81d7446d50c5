import json
import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from space.board_choice import choice_in, controls, options_of
from space.board_html import SHORT
from space.board_pages import BoardPages, build_board_router
from space.board_view import Choice
from tests.space.boards import board, cell, label, row, second_annotator
from tests.space.conftest import shown_text
from tests.submissions.synthetic import SECRET_ANNOTATOR, send, verdicts


@pytest.fixture
def boards(service) -> BoardPages:
    send(service, verdicts(service.suite, misses=1), judge="Alpha", kind="Rule-based", inputs="tree")
    send(service, verdicts(service.suite, misses=2, false_alarms=4), judge="Beta", kind="Ensemble")
    return BoardPages(service)


@pytest.fixture
def client(boards) -> TestClient:
    app = FastAPI()
    app.include_router(build_board_router(boards))
    return TestClient(app)


# What an address chooses


def test_an_address_makes_a_choice_and_nonsense_in_it_does_not():
    options = options_of(board(row("A", label(cell(9, 1, 1, 9), (1, 1, 1)), kind="Ensemble", inputs="tree")))
    query = "label=repetition&figure=recall&kind=Ensemble&inputs=tree&from=scored,published&q=abc&every=1"
    assert choice_in(query, options) == Choice(
        "repetition", "recall", "abc", ("Ensemble",), ("published", "scored"), True, "", ("tree",)
    )
    assert choice_in("label=x&figure=y&kind=z&agent=q&from=w&every=7", options) == Choice()


def test_menus_offer_what_the_board_has(service):
    by_agent = {"some-agent": cell(5, 1, 1, 5)}
    found = label(cell(9, 1, 1, 9), (1, 1, 1))
    options = options_of(board(row("A", {**found, "by_agent": by_agent}, kind="Human"), second_annotator()))
    assert options.agents == {"some-agent": "some-agent"}
    assert list(options.kinds) == ["Human"]
    assert "reference" not in options.provenances
    assert [control.name for control in controls(options)] == [
        "label", "figure", "agent", "kind", "inputs", "from", "q", "every",
    ]  # fmt: skip


# The page


def test_the_page_opens_with_the_filled_table_at_the_choice_of_its_address(boards):
    html, _ = boards.opening("")
    assert {"Alpha", "Beta"} <= set(re.findall(r'class="name" href="[^"]*">([^<]*)<', html))
    html, _ = boards.opening("kind=Ensemble&figure=recall")
    assert re.findall(r'class="name" href="[^"]*">([^<]*)<', html) == ["Beta"]
    assert '<option value="recall" selected>' in html
    assert re.search(r'name="kind" value="Ensemble" checked', html)
    assert [*re.findall(r'data-part="(\w+)"', html)] == ["board", "reading", "history"]


def test_a_page_has_another_tag_for_another_board_and_another_choice_only(boards, service):
    html, tag = boards.opening("")
    assert boards.opening("figure=precision&unknown=1") == (html, tag)
    assert boards.opening("figure=recall")[1] != tag
    send(service, verdicts(service.suite), judge="Gamma")
    newer, newer_tag = boards.opening("")
    assert newer_tag != tag
    assert "Gamma" in newer


def test_a_page_is_rendered_once_for_a_board_and_a_choice(boards, monkeypatch):
    rendered = []
    monkeypatch.setattr("space.board_pages.page_html", lambda *arguments: rendered.append(1) or "page")
    for query in ("figure=f1", "figure=f1&x=1", "figure=f1"):
        boards.opening(query)
    assert len(rendered) == 1


def test_the_parts_that_a_choice_changes_are_an_answer_of_their_own(client):
    answer = client.get("/parts/board?figure=recall")
    assert answer.status_code == 200
    assert re.findall(r'<section data-region="(\w+)"', answer.text) == ["board", "reading", "history"]
    assert "board-form" not in re.sub(r'form="board-form"', "", answer.text)
    etag = answer.headers["etag"]
    assert client.get("/parts/board?figure=recall", headers={"If-None-Match": etag}).status_code == 304
    assert client.get("/parts/board?figure=f1", headers={"If-None-Match": etag}).status_code == 200


def test_the_plot_shows_the_rows_that_the_address_chooses(boards):
    def drawn(query: str) -> list[str]:
        traces = json.loads(boards.plot(query))["data"]
        return [name for trace in traces for name in trace.get("customdata", [])]

    assert len(drawn("")) == 2
    (only,) = drawn("kind=Ensemble")
    assert only.startswith("<b>Beta")


@pytest.mark.parametrize(
    "query", ["label=%00", "q=" + "x" * 5000, "&" * 3000, "agent=../../etc/passwd", "kind=,,,"]
)
def test_no_address_is_an_error(client, query):
    assert client.get(f"/parts/board?{query}").status_code == 200


def test_nothing_of_the_labels_is_in_page_parts_or_plot(boards, settings):
    for text in (boards.opening("")[0], boards.plot("")):
        for hidden in ("webarena.3", "counts_by_task", SECRET_ANNOTATOR, settings.labels):
            assert hidden not in text


def test_hostile_search_words_stay_text_in_the_form(boards, hostile):
    from urllib.parse import quote

    html, _ = boards.opening(f"q={quote(hostile[:80])}")
    assert "No judge to show" in shown_text(html)
    assert f"value={hostile[:80]}" not in html
    assert "<script>alert" not in html
    assert "onerror=alert(1)>" not in html


# The table's rarer states


def test_a_filter_that_fits_nothing_says_how_to_clear_it_and_an_empty_board_how_to_begin(boards, service):
    assert "Clear what is chosen above" in boards.opening("q=nobody")[0]
    assert "Clear what is chosen above" not in boards.opening("label=side_effect")[0]
    assert "submit</a> the first verdicts" in boards.opening("label=side_effect")[0]


def test_a_long_table_shows_its_first_rows_and_offers_the_rest():
    from space.board_html import table_html

    def rows(count: int):
        return [
            row(f"J{n}", label(cell(50, 50, 20, 20), (n + 1, 1, count)), id=f"j{n}") for n in range(count)
        ]

    html = table_html(board(*rows(2 * SHORT)), Choice())
    assert f"Show all {2 * SHORT}" in html
    assert html.count("data-row=") == 2 * SHORT  # all are there: they sort and are found
    assert "Show all" not in table_html(board(*rows(SHORT)), Choice())
