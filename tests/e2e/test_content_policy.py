"""The content policy in a real browser: our pages work under it, and smuggled markup runs nothing."""

import pytest

from space.web.frame import PAGES

pytestmark = [pytest.mark.browser, pytest.mark.labels]

SMUGGLED = """<img src="/nowhere.png" onerror="window.hit = 1"><svg onload="window.hit = 1"></svg>
<a id="smuggled" href="javascript:window.hit = 1">x</a>"""


@pytest.mark.slow
@pytest.mark.parametrize("path", [page.path for page in PAGES])
def test_every_page_is_shown_without_a_word_in_the_console(page, space, path):
    answer = page.goto(space.url + path)
    assert answer.status == 200
    page.wait_for_selector("h1:visible")
    page.wait_for_load_state("networkidle")


@pytest.mark.slow
def test_swagger_ui_draws_the_api_without_a_word_in_the_console(page, space):
    page.goto(space.url + "/api")
    page.locator(".opblock-summary-control").first.click()
    page.locator(".responses-table").first.wait_for()
    page.wait_for_load_state("networkidle")


@pytest.mark.parametrize("path", ["/", "/about"])
def test_markup_that_got_into_a_page_runs_no_script(browser, space, path):
    context = browser.new_context()
    page = context.new_page()
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(space.url + path)
    page.wait_for_selector("h1:visible")
    page.evaluate(
        """html => {
            document.querySelector("h1").insertAdjacentHTML("afterend", html);
            const script = document.createElement("script");
            script.textContent = "window.hit = 1";
            document.head.append(script);
        }""",
        SMUGGLED,
    )
    page.wait_for_function("() => document.querySelector('img[src=\"/nowhere.png\"]').complete")  # it failed
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.locator("#smuggled").click()
    assert page.evaluate("window.hit") is None
    assert sum("Content Security Policy" in text for text in refused) >= 3
    context.close()
