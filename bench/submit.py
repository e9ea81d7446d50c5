"""Measure Submit on a slow network: ``python -m bench.submit``.

Chromium opens the page with an empty cache over an emulated network, in turns with a bare Gradio form of the
same fields, until each form takes its first event. The ratio of the medians has a target.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from statistics import median

from bench.space import free_port, serving
from bench.support.readers import Target, chromium_path, fresh_page, open_until_filled

MOST_TIMES = 1.5
KBIT_A_SECOND, LATENCY_MS, ROUNDS = 400, 400, 3


async def measure(targets: list[Target], kbit: int, latency: int, rounds: int) -> list[list[float]]:
    """Return the seconds to the usable form of each target, for each round."""
    from playwright.async_api import async_playwright

    speed = kbit * 1000 // 8
    network = {"offline": False, "latency": latency, "downloadThroughput": speed, "uploadThroughput": speed}
    seconds: list[list[float]] = [[] for _ in targets]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium_path())
        for number in range(rounds):
            for place in range(len(targets))[:: 1 if number % 2 == 0 else -1]:
                async with fresh_page(browser, targets[place]) as page:
                    session = await page.context.new_cdp_session(page)
                    await session.send("Network.enable")
                    await session.send("Network.emulateNetworkConditions", network)
                    seconds[place].append((await open_until_filled(page, targets[place]))[1])
        await browser.close()
    return seconds


def main(arguments: list[str] | None = None) -> int:
    """Print the figures; return 1 if the target is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.submit", description=__doc__.splitlines()[0])
    parser.add_argument("--kbit", type=int, default=KBIT_A_SECOND, help="kbit per second")
    parser.add_argument("--latency", type=int, default=LATENCY_MS, help="milliseconds before each response")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="number of times to open each page")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-submit-") as temporary, free_port() as port:
        folder = Path(temporary)
        environment = {"ARB_STATE_DIR": str(folder / "state"), "ARB_PORT": str(port)}
        with (
            free_port() as bare_port,
            serving(folder / "space.log", ["space", "serve"], port, **environment) as url,
            serving(folder / "bare.log", ["bench.support.bare_form", str(bare_port)], bare_port) as bare_url,
        ):
            ready = "document.querySelector('#submit-form.is-ready')"
            targets = [
                Target("Submit", f"{url}/submit", ready),
                Target("a bare form", bare_url, "document.documentElement.dataset.ready"),
            ]
            found = asyncio.run(measure(targets, options.kbit, options.latency, options.rounds))
    for target, seconds in zip(targets, found, strict=True):
        print(f"  {target.name:<12} {median(seconds):6.2f} s   (", *(f"{each:.2f}" for each in seconds), ")")
    ratio = median(found[0]) / median(found[1])
    print(f"{options.kbit} kbit/s, {options.latency} ms: {ratio:.2f} times (target {MOST_TIMES})")
    return 0 if ratio <= MOST_TIMES else 1


if __name__ == "__main__":
    sys.exit(main())
