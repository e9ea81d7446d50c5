"""The documentation in Chromium, as the Space serves it: every page without a fault, and search."""

import threading
from collections.abc import Iterator
from urllib.parse import unquote, urldefrag

import pytest
import uvicorn
from starlette.applications import Starlette

from space.api.docs import Documentation
from tests.support.browsing import COLOURS, GRAVE, WIDTHS, faults, wait_for_theme

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def docs(docs_site) -> Iterator[str]:
    """The address of the built documentation, under the policy that the Space sends."""
    app = Starlette()
    app.mount("/docs", Documentation(docs_site, on_space=False))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/docs"
    server.should_exit = True
    thread.join()


SEARCH = ".md-search__input"


def test_every_page_stands_without_a_fault(docs, docs_site, page):
    """Each page is loaded once. All but the content is the same on every page, and looked at on the first.
    Of what axe looks at, colours alone depend on the theme, and what scrolls on the width. The theme that is
    chosen on a page is the one that the next page begins with.
    """
    names = sorted(path.relative_to(docs_site).as_posix() for path in docs_site.rglob("*.html"))
    impacts = (*GRAVE, "moderate")
    found, failed, links, anchors, is_dark = [], [], set(), set(), True
    page.on("response", lambda answer: answer.status < 400 or failed.append(f"{answer.status} {answer.url}"))
    page.emulate_media(color_scheme="dark")  # the first page follows the system, the others what was chosen
    for name in names:
        page.set_viewport_size({"width": WIDTHS["desktop"], "height": 900})
        page.goto(f"{docs}/{name}")
        page.wait_for_selector("[data-md-component=search][aria-label]", state="attached")
        links |= {
            (link, name) for link in page.eval_on_selector_all("a", "all => all.map(each => each.href)")
        }
        ids = page.eval_on_selector_all("[id]", "all => all.map(each => each.id)")
        anchors |= {f"{docs}/{name}#{anchor}" for anchor in ids}
        is_first = name == names[0]
        within = "html" if is_first else ".md-content"
        wait_for_theme(page, is_dark)
        found += [f"{name}, {is_dark=}: {fault}" for fault in faults(page, impacts, within, runOnly=COLOURS)]
        page.locator(".md-header__option label:visible").click()
        is_dark = not is_dark
        wait_for_theme(page, is_dark)
        found += [f"{name}, {is_dark=}: {fault}" for fault in faults(page, impacts, within)]
        page.set_viewport_size({"width": WIDTHS["phone"], "height": 900})
        options = {} if is_first else {"runOnly": ["scrollable-region-focusable"]}
        found += [f"{name}, phone: {fault}" for fault in faults(page, impacts, within, **options)]
    assert not found + failed, "\n".join(found + failed)
    here = {(urldefrag(link), name) for link, name in links if link.startswith(docs)}
    lost = [
        f"{link.geturl()}, on {name}"
        for link, name in here
        if link.fragment and unquote(link.geturl()) not in anchors
    ]
    files = {link.url.removeprefix(f"{docs}/") for link, _ in here}
    lost += [name for name in files if not (docs_site / unquote(name)).exists()]
    assert len(here) > 100 and not lost, "\n".join(sorted(lost))


@pytest.mark.parametrize("width", WIDTHS)
def test_search_finds_a_section_and_asks_nobody_else(docs, page, width):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.set_viewport_size({"width": WIDTHS[width], "height": 900})
    page.goto(f"{docs}/index.html")
    page.locator(f"{SEARCH}:visible, label.md-header__button[for=__search]:visible").first.click()
    page.locator(SEARCH).press_sequentially("Krippendorff")
    page.locator(".md-search-result__link[href*='read_the_board.html#']").first.wait_for()
    assert all(url.startswith((docs, "blob:", "data:")) for url in asked), asked
