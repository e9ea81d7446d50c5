"""Readers that open a page all at once: pages of one Chromium, each with an empty cache of its own."""

import asyncio
import shutil
import time
from dataclasses import dataclass

WAIT_SECONDS = 300
WATCH = """
(() => {
  const shown = (elements) => [...elements].filter((element) => element.getBoundingClientRect().height > 0);
  const look = () => {
    if (document.body && (%s)) window.filledAt = performance.timeOrigin + performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})()
"""


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
class Sent:
    """What one reader with an empty cache fetches until the page rests."""

    bytes: int
    requests: int


async def read_at_once(browser, target: Target, n_readers: int) -> list[float]:
    """Seconds from the click to the filled table, for each of ``n_readers`` that click at once."""
    contexts = [await browser.new_context(viewport={"width": 1280, "height": 900}) for _ in range(n_readers)]
    pages = [await context.new_page() for context in contexts]
    try:
        for page in pages:
            await page.add_init_script(target.watch)
        return await asyncio.gather(*(_read(page, target) for page in pages))
    finally:
        for context in contexts:
            await context.close()


async def _read(page, target: Target) -> float:
    clicked = time.time()
    await page.goto(target.url, wait_until="commit", timeout=WAIT_SECONDS * 1000)
    await page.wait_for_function("window.filledAt", timeout=WAIT_SECONDS * 1000, polling=250)
    return await page.evaluate("window.filledAt") / 1000 - clicked


async def bytes_sent(browser, target: Target) -> Sent:
    """What goes over the wire for one reader, as Chromium counts it: packed bodies and headers."""
    context = await browser.new_context(viewport={"width": 1280, "height": 900})
    page = await context.new_page()
    sizes: list[float] = []
    client = await context.new_cdp_session(page)
    await client.send("Network.enable")
    client.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
    await page.add_init_script(target.watch)
    await page.goto(target.url, wait_until="commit")
    await page.wait_for_function("window.filledAt", timeout=WAIT_SECONDS * 1000)
    for _ in range(60):  # rests when nothing came for a second and a half
        before = len(sizes)
        await asyncio.sleep(1.5)
        if len(sizes) == before:
            break
    await context.close()
    return Sent(int(sum(sizes)), len(sizes))


def chromium_path() -> str | None:
    """The machine's Chromium; None means Playwright's own."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
