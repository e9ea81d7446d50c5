"""What several tests do in a browser: open a page, fill in its form, keep a picture of it."""

import json
import os
import zlib
from collections.abc import Iterator
from importlib.resources import files

from playwright.sync_api import expect

from tests.support.running_space import REPOSITORY

AXE = files("axe_playwright_python").joinpath("axe.min.js")
GRAVE = ("serious", "critical")
COLOURS = ["color-contrast", "link-in-text-block"]
"""What axe looks at that depends on the theme: a second theme need not be looked at for more."""
LIKE_EACH_OTHER = 3
"""Of texts that look alike, axe measures the colours of so many: contrast takes most of its time."""
VIOLATIONS = """async ([within, options, colours, most]) => {
  const found = options ? (await axe.run(within, options)).violations : [];
  if (!colours) return found;
  const backgrounds = new Map(), seen = new Map();
  // Backgrounds, opacities and layers of an element and of all around it.
  const background = (each) => {
    if (!each) return "";
    if (!backgrounds.has(each)) {
      const style = getComputedStyle(each);
      const own = [style.backgroundColor, style.backgroundImage, style.opacity].join();
      const layer = ["absolute", "fixed", "sticky"].includes(style.position) ? backgrounds.size : "";
      const isClear = own === "rgba(0, 0, 0, 0),none,1" && layer === "";
      backgrounds.set(each, background(each.parentElement) + (isClear ? "" : `${own},${layer};`));
    }
    return backgrounds.get(each);
  };
  const look = (each) => {
    const style = getComputedStyle(each);
    return [background(each), style.color, style.fontSize, style.fontWeight, style.textShadow,
      style.textDecorationLine, each.closest(":disabled, [aria-disabled=true]") !== null].join("|");
  };
  const include = [...document.querySelector(within).querySelectorAll("*")].filter((each) => {
    const hasText = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!hasText && !each.matches("input, select, textarea")) return false;
    const box = each.getBoundingClientRect();
    if (!each.checkVisibility({ visibilityProperty: true }) || box.width < 2 || box.height < 2) return false;
    const key = look(each) + (each.tagName === "A" ? look(each.parentElement) : each.tagName);
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return seen.get(key) <= most;
  });
  const only = { resultTypes: ["violations"], runOnly: colours };
  return include.length ? [...found, ...(await axe.run({ include }, only)).violations] : found;
}"""
"""What axe finds within a selector: by its ``options``, if any, and by the rules of colours, if any."""
STILL = """() => Promise.allSettled(document.getAnimations()
    .filter(each => each.effect.getComputedTiming().endTime !== Infinity).map(each => each.finished))"""
"""Waits until every animation and transition that ends has ended."""
WIDTHS = {"desktop": 1280, "phone": 390}
PICTURES = REPOSITORY / "test-results" / "screenshots"
ROWS = "#board-table tbody.judges tr"
PAPER_ROWS = "#board-table tbody.judges tr.published"


PATIENCE_MS = 90_000
"""How long a browser test waits for what it asserts: a busy machine is slow, not wrong."""
SLOW_NETWORK = {"offline": False, "latency": 150, "downloadThroughput": 100_000, "uploadThroughput": 100_000}
"""Milliseconds and bytes a second, so that a document arrives in parts."""


def make_patient(browser) -> None:
    """Give every context of the browser, and every `expect`, this patience.

    With ``SLOW_BROWSER=8`` in the environment pages get an eighth of the processor and a slow network: what
    does not wait for what it asserts fails there, and not only once in a hundred runs of a busy machine.
    """
    slowness = float(os.environ.get("SLOW_BROWSER", "1"))
    make_context = browser.new_context
    expect.set_options(timeout=PATIENCE_MS)

    def new_context(**options):
        context = make_context(**options)
        context.set_default_timeout(PATIENCE_MS)
        make_page = context.new_page

        def new_page():
            page = make_page()
            session = context.new_cdp_session(page)
            session.send("Emulation.setCPUThrottlingRate", {"rate": slowness})
            session.send("Network.enable")
            session.send("Network.emulateNetworkConditions", SLOW_NETWORK)
            return page

        if slowness > 1:
            context.new_page = new_page
        return context

    browser.new_context = new_context


SMALL_TARGETS = """() => {
  const found = [];
  const all = "a[href], button, input:not([type=hidden]), select, summary";
  for (const each of document.querySelectorAll(all)) {
    const target = each.closest("label:has(input)") ?? each;
    // Gradio's parts are not ours, and the place of a point in a plot is what it says.
    if (each.closest("svg, gradio-app, .skip-link, .strip") || !each.checkVisibility()) continue;
    const text = each.closest("p, li, dd, td, th, small");
    if (each.tagName === "A" && text && text.innerText.trim() !== each.innerText.trim()) continue;
    // The size of a number in a table is that of its line of text.
    if (each.closest("td, th") && getComputedStyle(each).display === "inline") continue;
    target.scrollIntoView({ block: "center", inline: "center" });
    const box = target.getClientRects()[0];
    if (!box || box.width < 2) continue;
    const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
    const places = [[-11, 0], [11, 0], [0, -11], [0, 11]];
    const hits = places.map(([dx, dy]) => document.elementFromPoint(x + dx, y + dy));
    // A smaller target is fine if no other one is within these 24 pixels.
    const is_other = (hit) => hit && !target.contains(hit) && hit.closest(all);
    if (hits.some(is_other)) found.push(`${each.tagName} ${each.innerText || each.name}`);
  }
  scrollTo(0, 0);
  return found;
}"""
"""Links and controls outside lines of text that have another one within 24 pixels (WCAG 2.5.8)."""


def keep_picture(page, name: str) -> None:
    """The whole page as a picture, for people to look at after the tests."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    # As PNG a long page takes up to 3 s of a processor, as JPEG a fifth of that.
    page.screenshot(path=PICTURES / f"{name}.jpg", type="jpeg", quality=80, full_page=True)


IS_DARK = """() => getComputedStyle(document.body).backgroundColor.match(/[0-9.]+/g).slice(0, 3)
    .reduce((sum, part) => sum + Number(part), 0) < 3 * 128"""


def wait_for_theme(page, dark: bool) -> None:
    """Wait until the page is dark, or light."""
    page.wait_for_function(IS_DARK if dark else f"() => !({IS_DARK})()")


def click_and_read(button) -> str:
    """The text that a button takes when it is clicked, be it only for a moment."""
    watch = button.evaluate_handle(
        """button => ({ said: new Promise(done => new MutationObserver(() => done(button.textContent))
            .observe(button, { childList: true, characterData: true, subtree: true })) })"""
    )
    button.click()
    return watch.evaluate("watch => watch.said")


def open_board(page, space) -> None:
    """The page with its table and plot."""
    page.goto(space.url)
    page.wait_for_selector(PAPER_ROWS)
    page.wait_for_selector("#precision-recall")


def open_form(page, space, query: str = "") -> None:
    """The page with its form drawn and its split set."""
    page.goto(space.url + "/submit" + query)
    page.locator("#submit-form.is-ready").wait_for()
    page.locator("#prediction-file input[type=file]").wait_for(state="attached")


def drop(page, space, file) -> None:
    open_form(page, space)
    page.locator("#prediction-file input[type=file]").set_input_files(file)
    page.locator("#check-result .notice").wait_for()


def declare(page, judge: str, kind: str = "LLM judge", inputs: str = "caption") -> None:
    # An account has two files a day, and a Space of several tests more than two judges.
    page.get_by_label("Your name").fill(f"Ada Lovelace, group {zlib.crc32(judge.encode())}")
    page.get_by_label("Name of the judge").fill(judge)
    page.locator("#kind input").click()
    page.get_by_role("option", name=kind).click()
    page.locator("#inputs input").click()
    page.get_by_role("option", name=inputs, exact=True).click()
    page.get_by_label("No, they were not used").check()


def submit(page) -> None:
    page.locator("#submit-button").click()
    page.locator("#outcome .notice").wait_for()


def scored_rows(space) -> dict:
    board = json.loads(space.get("/api/board.json"))
    return {row["judge"]: row for row in board["rows"] if row["provenance"] == "scored"}


def sign_in(page, space, name: str, path: str = "/about") -> None:
    """Sign in by name, as on one's own machine, and wait until the page knows it."""
    page.goto(f"{space.url}/sign-in?next={path}")
    page.get_by_label("Your name").fill(name)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)  # its own address ends with the path, too
    page.locator(".signed-in-name", has_text=name).wait_for()


def every_form(page) -> Iterator[str]:
    """Show the page on a desktop and on a phone, light and dark; gives the name of each."""
    for name, width in WIDTHS.items():
        for theme in ("light", "dark"):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=theme)
            yield f"{name}-{theme}"
    page.set_viewport_size({"width": WIDTHS["desktop"], "height": 900})
    page.emulate_media(color_scheme="light")


def faults(page, impacts: tuple[str, ...] = GRAVE, within: str = "html", **options) -> list[str]:
    """What axe-core finds of these impacts, with the first element of each; and scrolling sideways.

    ``within`` is a selector of what it looks at; ``options`` are axe's own, such as ``runOnly``.
    """
    if not page.evaluate("'axe' in window"):  # it is half a megabyte
        page.evaluate(AXE.read_text(encoding="utf-8"))
    page.evaluate(STILL)  # half-way through a change of colours every contrast is wrong
    colours = COLOURS if options.get("runOnly", COLOURS) == COLOURS else None
    options = {
        "resultTypes": ["violations"],
        "rules": {name: {"enabled": False} for name in COLOURS},
        **options,
    }
    others = None if options.get("runOnly") == COLOURS else options
    found = page.evaluate(VIOLATIONS, [within, others, colours, LIKE_EACH_OTHER])
    grave = [
        f"{fault['id']} ({fault['impact']}): {fault['nodes'][0]['html'][:200]} ({len(fault['nodes'])} places)"
        for fault in found
        if fault["impact"] in impacts
    ]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        grave.append("scrolls sideways")
    return grave
