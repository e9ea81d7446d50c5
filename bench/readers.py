"""Readers that open a page in Chromium, each with an empty cache of its own."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

WAIT_SECONDS = 300
REST_SECONDS = 1.5
WINDOW = {"width": 1280, "height": 900}
WATCH = """
(() => {
  const shown = (elements) => [...elements].filter((element) => element.getBoundingClientRect().height > 0);
  const look = () => {
    if (document.body && (%s)) window.filledAfter = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  window.largestPaint = window.layoutShift = 0;
  const watch = (type, add) =>
    new PerformanceObserver((list) => list.getEntries().forEach(add)).observe({ type, buffered: true });
  watch("largest-contentful-paint", (entry) => { window.largestPaint = entry.startTime; });
  watch("layout-shift", (entry) => { window.layoutShift += entry.hadRecentInput ? 0 : entry.value; });
})()
"""
REQUESTS = "performance.getEntriesByType('resource').length"


@dataclass(frozen=True)
class Target:
    """A page: its address, and what is true once its table stands filled on the screen.

    ``is_filled`` is an expression in JavaScript, where ``shown(elements)`` gives those with a height.
    """

    name: str
    url: str
    is_filled: str

    @property
    def watch(self) -> str:
        """A script that notes the moment at which the table stands filled on the screen."""
        return WATCH % self.is_filled


@dataclass(frozen=True)
class FirstLoad:
    """A page opened once: seconds to its filled table and to its largest paint; its layout shift, and the
    requests that scrolling to its end made."""

    filled: float
    largest_paint: float
    layout_shift: float
    requests_when_scrolled: int


@asynccontextmanager
async def fresh_page(browser, target: Target) -> AsyncIterator:
    """A Playwright page with an empty cache that watches for the filled table; closed at the end."""
    context = await browser.new_context(viewport=WINDOW)
    try:
        page = await context.new_page()
        await page.add_init_script(target.watch)
        yield page
    finally:
        await context.close()


async def open_until_filled(page, target: Target) -> tuple[float, float]:
    """Open the target: when (seconds since 1970), and after how many seconds its table stood filled."""
    await page.goto(target.url, wait_until="commit", timeout=WAIT_SECONDS * 1000)
    await page.wait_for_function("() => window.filledAfter", timeout=WAIT_SECONDS * 1000, polling=250)
    opened, after = await page.evaluate("[performance.timeOrigin, window.filledAfter]")
    return opened / 1000, after / 1000


async def read_in_chromium(browser, target: Target) -> FirstLoad:
    """Open the page alone, let it rest, then scroll to its end."""
    async with fresh_page(browser, target) as page:
        _, filled = await open_until_filled(page, target)
        await asyncio.sleep(REST_SECONDS)
        largest_paint, before = await page.evaluate(f"[window.largestPaint, {REQUESTS}]")
        await page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        await asyncio.sleep(REST_SECONDS)
        shift, after = await page.evaluate(f"[window.layoutShift, {REQUESTS}]")
    return FirstLoad(filled, largest_paint / 1000, shift, after - before)


def chromium_path() -> str | None:
    """The machine's Chromium; None means Playwright's own."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
