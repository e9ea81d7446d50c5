"""Tests of the frame of all pages: menu, styles, scripts by content, ETags, errors, escaping."""

import re

import pytest
from fastapi import FastAPI, Request, Response
from fastapi.testclient import TestClient
from jinja2 import UndefinedError

from arb.core.suites.profile import OPTIONAL_PAGES, SuiteProfile
from space.web.frame import FOLDER, PAGES, PageFrame, markdown, render
from space.web.responses import STATIC, StaticAssets
from tests.space.conftest import shown_text, tags_and_attributes

TEMPLATE = "frame/problem.html"
OURS = SuiteProfile(
    "Our Bench",
    links=(("paper", "https://example.org/paper"), ("contact", "mailto:ada@example.org")),
    pages=frozenset(OPTIONAL_PAGES),
)


@pytest.fixture
def content() -> dict:
    """Return the content of the page, which a test may change."""
    return {"message": "first", "made": 0}


@pytest.fixture
def client(content) -> TestClient:
    app, static = FastAPI(), StaticAssets()
    pages = PageFrame(static, profile=OURS)
    app.include_router(static.router())

    def values() -> dict:
        content["made"] += 1
        return {"heading": "Heading", "message": content["message"]}

    @app.get("/about")
    def cached(request: Request) -> Response:
        return pages.cached(request, content["message"], TEMPLATE, "About", "/about", values)

    @app.get("/private")
    def answer() -> Response:
        return pages.answer(TEMPLATE, "Private", "/private", **values())

    @app.get("/missing")
    def missing() -> Response:
        return pages.problem("Not Found", "Not Found.", 404)

    return TestClient(app)


# The frame


def test_a_page_has_its_content_its_menu_and_its_style_before_any_script_has_run(client):
    page = client.get("/about").text
    assert "<title>About · Our Bench</title>" in page
    assert '<a href="/about" aria-current="page">About</a>' in page
    assert page.index("<style>") < page.index("body {") < page.index("</style>") < page.index("<body")
    assert 'rel="stylesheet"' not in page  # browsers paint nothing until such a file has arrived
    assert '<p class="lead">first</p>' in page


def test_the_menu_has_seven_pages_and_marks_no_other_as_current(client):
    page = client.get("/about").text
    wide = page[page.index('class="wide-menu"') : page.index("</nav>")]
    in_menu = [entry.title for entry in PAGES if not entry.below]
    assert in_menu == ["Leaderboard", "Compare", "My agent", "Trajectories", "Labels", "About", "Submit"]
    for entry in PAGES:
        assert (f'href="{entry.path}"' in page) == (entry.title in in_menu), entry.path
    assert re.findall(r'href="([^"]*)"', wide) == [
        "/",
        "/compare",
        "/my-agent",
        "/trajectories",
        "/labels",
        "/about",
    ]
    assert wide.count("aria-current") == 1


def test_a_page_outside_the_menu_marks_the_page_that_leads_to_it():
    pages = PageFrame(StaticAssets())
    html = pages.html(TEMPLATE, "Disputes", "/disputes", heading="H", message="M")
    assert '<a href="/labels" class="is-above">Labels</a>' in html and 'aria-current="' not in html
    assert {entry.below for entry in PAGES} <= {"", *(entry.path for entry in PAGES if not entry.below)}


def test_the_suites_links_stand_at_the_foot_of_every_page(client):
    foot = client.get("/about").text.partition("<footer")[2]
    assert '<a href="https://example.org/paper" rel="noopener" target="_blank">Paper</a>' in foot
    assert '<a href="mailto:ada@example.org" rel="noopener" target="_blank">Contact</a>' in foot


def test_no_page_leads_to_one_that_is_switched_off():
    pages = PageFrame(StaticAssets(), profile=SuiteProfile("Ours", pages=frozenset()))
    html = pages.html(TEMPLATE, "About", "/about", heading="H", message="M")
    links = set(re.findall(r'href="(/[a-z]*)"', html))
    assert {"/", "/about", "/mine"} <= links
    assert not links & {f"/{name}" for name in OPTIONAL_PAGES}


OWN_PAGES = {
    "compare": {"compare"}, "trajectories": {"trajectories"}, "submit": {"submit"},
    "labels/disputes.html": {"disputes", "trajectories", "labels"}, "labels/versions.html": {"labels"},
    "judge/errors.html": {"errors", "trajectories"}, "about/paper.html": {"paper"},
    "agent/success_rates.html": {"rates"}, "agent/my_agent.html": {"rates"},
    "judge/validate.html": {"validate"},
}  # fmt: skip
"""Where a template leads to a page that is there as the template's own page is: by its path."""
TO_A_PAGE = re.compile(r"""(?:href|action)="/([a-z]+)[^a-z/]|link_to\('/([a-z]+)'""")


def test_a_template_leads_to_a_page_that_may_be_off_only_where_it_is_served():
    found = []
    for path in FOLDER.rglob("*.html"):
        name = path.relative_to(FOLDER).as_posix()
        own = next((pages for start, pages in OWN_PAGES.items() if name.startswith(start)), set())
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            for target in {first or second for first, second in TO_A_PAGE.findall(line)}:
                is_checked = f"serves('/{target}')" in line or f"page.path == '/{target}'" in line
                if target in set(OPTIONAL_PAGES) - own and not is_checked:
                    found.append(f"{name}:{number} leads to /{target}")
    assert found == []


def test_a_page_is_made_once_for_each_content(client, content):
    first = client.get("/about").text
    client.get("/about")
    assert content["made"] == 1
    content["message"] = "second"
    assert client.get("/about").text == first.replace("first", "second")


def test_a_page_of_one_reader_is_stored_by_no_cache(client):
    answer = client.get("/private")
    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers


def test_what_is_missing_is_a_page_of_the_frame(client):
    answer = client.get("/missing")
    assert answer.status_code == 404
    assert "There is no such page" in shown_text(answer.text)
    assert 'class="masthead"' in answer.text


def test_hostile_words_stay_text(client, content, hostile):
    harmless = tags_and_attributes(client.get("/private").text)
    content["message"] = hostile
    page = client.get("/private").text
    assert hostile in shown_text(page)
    assert tags_and_attributes(page) == harmless


# Style and scripts


def test_a_page_gets_the_common_files_and_its_own(tmp_path):
    for name in ("style.css", "judge.css", "judge.js", "theme.js", "other.js", "forms.js"):
        (tmp_path / name).write_text(f"/* {name} */")
    static = StaticAssets(tmp_path)
    app = FastAPI()
    app.include_router(static.router())
    client = TestClient(app)

    def texts(addresses) -> list[str]:
        return [client.get(address).text for address in addresses]

    assert static.style(["htmx", "judge"]) == "/* style.css */\n/* judge.css */"
    assert texts(static.scripts(["htmx", "judge"])) == ["/* theme.js */\n/* forms.js */", "/* judge.js */"]
    assert texts(static.scripts(["judge"])) == ["/* theme.js */", "/* judge.js */"]
    assert static.style() == "/* style.css */"
    assert "immutable" in client.get(static.scripts()[0]).headers["cache-control"]
    assert client.get("/bundles/0000.js").status_code == 404


def test_scripts_are_named_by_their_content(tmp_path):
    (tmp_path / "judge.js").write_text("1;")
    (tmp_path / "theme.js").write_text("1;")
    first = StaticAssets(tmp_path)
    assert first.scripts(["judge"]) == StaticAssets(tmp_path).scripts(["judge"])
    (tmp_path / "judge.js").write_text("2;")
    common, own = StaticAssets(tmp_path).scripts(["judge"])
    assert common == first.scripts()[0]
    assert own != first.scripts(["judge"])[1]


def test_our_styles_have_balanced_braces_and_stay_inside_their_element():
    for file in STATIC.glob("*.css"):
        text = file.read_text(encoding="utf-8")
        assert text.count("{") == text.count("}"), file.name
        assert "</" not in text, file.name


def test_every_asset_that_a_template_names_is_there():
    for template in FOLDER.rglob("*.html"):
        for names in re.findall(r"set assets = \[([^\]]*)\]", template.read_text(encoding="utf-8")):
            for name in re.findall(r'"(\w+)"', names):
                if name != "htmx":
                    assert [*STATIC.glob(f"{name}.css"), *STATIC.glob(f"{name}.js")], (template.name, name)


def test_htmx_makes_no_functions_of_texts_and_asks_no_other_site():
    head = (FOLDER / "frame/head.html").read_text(encoding="utf-8")
    assert '"allowEval":false' in head
    assert '"selfRequestsOnly":true' in head


def test_no_template_has_a_handler_in_an_attribute():
    for template in FOLDER.rglob("*.html"):
        text = template.read_text(encoding="utf-8")
        assert not re.search(r"<[^>]*\s(on[a-z]+|hx-on[^=]*)=", text), template.name


# Templates


def test_what_is_put_into_a_template_is_escaped(hostile):
    html = render("submit/problems.html", title=hostile, problems=[hostile, hostile])
    assert shown_text(html).count(hostile) == 3
    assert tags_and_attributes(html) == tags_and_attributes(
        render("submit/problems.html", title="harmless", problems=["a", "b"])
    )


def test_markdown_makes_lists_and_links_and_no_tag_picture_or_script_of_its_writer(hostile):
    html = markdown("- Look at the **end**, see [the rules](https://example.org/rules)")
    assert "<li>Look at the <strong>end</strong>" in html and 'href="https://example.org/rules"' in html
    text = f"{hostile}\n\n![x](https://example.org/x.png) [y](javascript:alert(1))"
    assert {tag for tag, _ in tags_and_attributes(markdown(text))} <= {"p", "a", "em"}
    assert not [address for address in re.findall(r'href="([^"]*)"', markdown(text)) if "alert" in address]


def test_a_value_that_a_template_needs_and_does_not_get_is_an_error():
    with pytest.raises(UndefinedError):
        render("submit/problems.html", title="no problems given")


def test_no_template_turns_escaping_off():
    templates = {
        path.name: path.read_text(encoding="utf-8").replace(" ", "") for path in FOLDER.rglob("*.html")
    }
    assert templates
    assert [name for name, text in templates.items() if "|safe" in text or "autoescape" in text] == []
