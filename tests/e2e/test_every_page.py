"""Every page, desktop and phone, light and dark: no error, no failed request, no axe finding but minor ones.

Whole-page pictures are kept in test-results/screenshots/ for people to look at.
"""

from urllib.parse import urljoin, urlsplit

import httpx
import pytest

from space.web.frame import PAGES
from tests.support.browsing import (
    COLOURS,
    GRAVE,
    SMALL_TARGETS,
    WIDTHS,
    every_form,
    faults,
    keep_picture,
    sign_in,
    wait_for_theme,
)

pytestmark = [pytest.mark.browser, pytest.mark.labels, pytest.mark.shared, pytest.mark.slow]

ADDRESSES = {
    "Leaderboard": ["/", "/?label=side_effect&figure=recall"],
    "Judge": ["/judge?id=paper/gpt-4o-tree", "/judge"],
    "Compare": ["/compare?judges=paper/gpt-4o-tree,paper/claude-3.7-sonnet-screenshot", "/compare"],
    "My agent": ["/my-agent"],
    "My judge": ["/validate"],
    "Rates": ["/rates?benchmark=webarena", "/rates?benchmark=workarena%2B%2B"],
    "Trajectories": ["/trajectories", "/trajectories?split=dev"],
    "Errors": ["/errors"],
    "Labels": ["/labels"],
    "All suites": ["/suites"],
    "Disputes": ["/disputes"],
    "Paper": ["/paper?table=8"],
    "About": ["/about"],
    "Submit": ["/submit"],
}

OF_AN_ACCOUNT = ("/mine", "/maintain", "/annotate", "/discuss")
OUTSIDE_THE_MENU = ("/sign-in",)


def story_address(space) -> str:
    """The address of a sample trajectory."""
    from arb.core.suite import load_suite

    return f"/trajectories?id={load_suite('sample').split('dev')[0].trajectory_id}"


def addresses(space) -> list[str]:
    compare = ",".join(list(space.ids.values())[:3])
    scored = space.ids["Scored"]
    own = [
        f"/judge?id={scored}",
        f"/compare?judges={compare}",
        story_address(space),
        f"/errors?judge={scored}",
    ]
    return [*(address for listed in ADDRESSES.values() for address in listed), *own, *OUTSIDE_THE_MENU]


def open_page(page, url: str) -> list[str]:
    """Open an address and wait until all of it is there; gives the requests that failed."""
    failed = []

    def on_response(response) -> None:
        if response.status >= 400:
            failed.append(f"{response.status} {response.url}")

    page.on("response", on_response)
    page.goto(url)
    page.wait_for_selector("h1:visible")
    page.wait_for_load_state("networkidle")
    page.remove_listener("response", on_response)
    return failed


def test_every_page_of_the_table_is_walked():
    assert set(ADDRESSES) == {page.title for page in PAGES}


@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_stands_without_a_fault(judged_space, page, width):
    page.set_viewport_size({"width": WIDTHS[width], "height": 900})
    found = []

    def walk(addresses: list[str]) -> None:
        for address in addresses:
            impacts = (*GRAVE, "moderate")
            failed = open_page(page, judged_space.url + address)
            found.extend(f"{address}: {request}" for request in failed)
            name = address.strip("/").split("?")[0].replace("/", "-") or "leaderboard"
            found.extend(f"{address}: {small} is under 24 pixels" for small in page.evaluate(SMALL_TARGETS))
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)
                wait_for_theme(page, dark=theme == "dark")
                only = {} if theme == "light" else {"runOnly": COLOURS}
                found.extend(f"{address}, {theme}: {fault}" for fault in faults(page, impacts, **only))
                keep_picture(page, f"{name}-{width}-{theme}")

    walk(addresses(judged_space))
    sign_in(page, judged_space, "Grace")  # a maintainer, who has submitted nothing and annotates nothing
    walk([*OF_AN_ACCOUNT, f"/mine/{judged_space.ids['Scored']}"])
    sign_in(page, judged_space, "Ada")
    walk(["/mine", f"/errors?judge={judged_space.ids['Scored']}"])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", ["/nowhere", "/judge?id=none", "/trajectories?id=none", "/mine"])
def test_a_page_that_refuses_stands_without_a_fault(judged_space, browser, path):
    page = browser.new_context().new_page()  # Chromium writes a 404 into the console
    for form in every_form(page):
        page.goto(judged_space.url + path)
        page.wait_for_selector("h1:visible")
        assert faults(page) == [], form
    page.context.close()


def leads_somewhere(link: str, status: int) -> bool:
    """Whether it is a page; those of the account menu, hidden before one signs in, say that one has to."""
    return status < 400 or (urlsplit(link).path in OF_AN_ACCOUNT and status in (401, 403))


def test_links_between_pages_lead_somewhere(judged_space, page):
    found = {}
    for address in addresses(judged_space):
        open_page(page, judged_space.url + address)
        for link in page.eval_on_selector_all("a[href]", "links => links.map(link => link.href)"):
            target = urlsplit(urljoin(judged_space.url, link))
            if target.netloc == urlsplit(judged_space.url).netloc:
                found.setdefault(target._replace(fragment="").geturl(), address)
    assert len(found) > 20
    with httpx.Client(timeout=300) as client:
        lost = [
            f"{link}, on {where}"
            for link, where in sorted(found.items())
            if not leads_somewhere(link, client.get(link).status_code)
        ]
    assert not lost, "\n".join(lost)
