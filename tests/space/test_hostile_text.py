"""Tests that texts of submitters are shown as text on every page and in every response, never as markup."""

import csv
import io
import json
import re

import pytest
from fastapi.testclient import TestClient

from space.app import create_app
from space.web.frame import PAGES
from submissions.app import SubmissionsApp
from tests.space.conftest import HOSTILE, shown_text, tags_and_attributes
from tests.support.submissions import declaration, settings_for, verdicts

FORMULA = "=HYPERLINK(1)"
MARKDOWN = "![x](https://evil.example/x.png) [x](javascript:alert(1)) `x` <b>x</b>"
RIGHT_TO_LEFT = "\u05d0\u05d1 [\u05d2] \u0639 1"
TEXTS = (*HOSTILE, FORMULA, MARKDOWN, RIGHT_TO_LEFT)
LINKS = ("https://example.org/?a=&quot;&lt;x", "https://example.org/{{7*7}}${7*7}?x=%22onload=")


def filled(settings, texts) -> dict[str, str]:
    """Submit a judge for each text, with the text in every field, and return the ids of the submissions."""
    service, ids = SubmissionsApp(settings), {}
    for place, text in enumerate(texts):
        fields = {"account": text[:80], "judge": text[:80], "model": text, "authors": text}
        content = verdicts(service.suite, misses=place % 3, reasoning=text, false_alarms=place % 4)
        upload = service.intake.check(content, f"{text}.jsonl", "test")
        declared = declaration(**fields, link=LINKS[place % len(LINKS)])
        ids[text] = service.intake.submit(upload, declared).receipt.submission_id
    return ids


def client_of(settings) -> TestClient:
    return TestClient(create_app(settings), raise_server_exceptions=False)


@pytest.fixture(scope="module")
def places(suite_folder, tmp_path_factory):
    """Return settings of two Spaces: one with hostile texts, one with as many harmless texts."""
    folders = (tmp_path_factory.mktemp("hostile"), tmp_path_factory.mktemp("harmless"))
    return [settings_for(suite_folder, folder / "state") for folder in folders]


@pytest.fixture(scope="module")
def ids(places) -> tuple[list[str], list[str]]:
    hostile, harmless = places
    plain = [f"harmless text {place}" for place in range(len(TEXTS))]
    return list(filled(hostile, TEXTS).values()), list(filled(harmless, plain).values())


@pytest.fixture(scope="module")
def clients(places, ids):
    hostile, harmless = map(client_of, places)
    with hostile, harmless:
        yield hostile, harmless


def addresses(ids) -> list[str]:
    """Return every page, the pages of each judge, and comparisons of all judges."""
    judges = [f"/judge?id={found}" for found in ids]
    pages = [page.path for page in PAGES if page.path != "/paper"]  # which other suites do not have
    return [*pages, *judges, *(f"/compare?judges={','.join(ids[n : n + 5])}" for n in range(0, len(ids), 5))]


@pytest.mark.slow
def test_no_page_has_a_tag_or_an_attribute_that_somebody_wrote(clients, ids):
    hostile, harmless = clients
    for bad, good in zip(*map(addresses, ids), strict=True):
        found, usual = hostile.get(bad), harmless.get(good)
        assert (found.status_code, usual.status_code) == (200, 200), bad
        assert tags_and_attributes(found.text) <= tags_and_attributes(usual.text), bad


def test_every_text_is_shown_as_it_was_written(clients, ids):
    hostile, _ = clients
    answer = hostile.get("/api/board.json")
    assert answer.headers["content-type"].startswith("application/json")
    judges = [text[:80].strip() for text in TEXTS]
    assert {row["judge"] for row in answer.json()["rows"]} >= set(judges)
    board = shown_text(hostile.get("/").text)
    for judge, found in zip(judges, ids[0], strict=True):
        assert judge in board
        assert judge in shown_text(hostile.get(f"/judge?id={found}").text)
        assert judge in shown_text(hostile.get(f"/compare?judges={found},{ids[0][0]},{ids[0][1]}").text)


def test_no_script_of_a_page_holds_what_closes_it(clients, ids):
    # JSON in a script element: a text with </script> would end it, even within quotes.
    hostile, _ = clients
    for address in addresses(ids[0]):
        for script in re.findall(r"<script[^>]*>(.*?)</script", hostile.get(address).text, re.S):
            assert "<script>alert" not in script, address
            assert "</td>" not in script, address


def test_no_cell_of_the_csv_is_a_formula(clients):
    hostile, _ = clients
    answer = hostile.get("/api/board.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert f"'{FORMULA}" in {row["judge"] for row in rows}
    for row in rows:
        for name in ("judge", "account", "model", "authors", "link"):
            assert not row[name].startswith(("=", "+", "-", "@", "\t", "\r"))


def test_what_is_written_into_an_address_is_not_markup_either(clients, ids):
    # People also write into a page by sending a link to somebody.
    hostile, _ = clients
    usual = set().union(*(tags_and_attributes(hostile.get(a).text) for a in addresses(ids[0])))
    for page in PAGES:
        for name in ("id", "ids", "search", "label", "split", "benchmark", "sort", "task"):
            for text in HOSTILE[:2]:
                answer = hostile.get(page.path, params={name: text}, headers={"Accept": "text/html"})
                assert answer.headers["content-type"].startswith("text/html"), (page.path, name)
                assert answer.status_code in (200, 404, 422), (page.path, name)
                assert tags_and_attributes(answer.text) <= usual, (page.path, name)


def test_a_receipt_of_hostile_texts_is_json(clients, places):
    hostile, _ = clients
    suite = SubmissionsApp(places[0]).suite
    form = {"judge": f"{MARKDOWN[:60]} again", "account": "<b>somebody</b>", "kind": "Other"}
    form |= {"inputs": "other", "test_labels_used": "no", "authors": TEXTS[0], "model": TEXTS[1]}
    files = {"file": ("<img src=x onerror=alert(1)>.jsonl", verdicts(suite, misses=5))}
    answer = hostile.post("/api/submissions", files=files, data=form)
    assert answer.headers["content-type"] == "application/json"
    assert answer.status_code == 201, answer.text
    assert json.loads(answer.text)["judge"] == form["judge"]
