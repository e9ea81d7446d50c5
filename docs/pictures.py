"""Take the README's pictures from a running Space: ``make pictures``.

If ``../shared`` is there, the three real judges are submitted first. Else the board is shown as it is.
"""

import io
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from arb.core.judge_info import declare
from arb.core.settings import Settings
from arb.core.suite import load_suite
from bench.space import free_port, serving
from bench.support.readers import chromium_path
from submissions.app import SubmissionsApp

DOCS = Path(__file__).parent
VERDICTS = DOCS.parents[1] / "shared" / "data" / "agent-reward-bench" / "verdicts"
JUDGES = {
    "aer-c": ("AER-C", "LLM judge", "caption"),
    "nnetnav": ("NNetNav", "LLM judge", "changes"),
    "rule-based": ("Rule-based", "Rule-based", "other"),
}
WIDTH, HEIGHT, COLOURS = 1280, 860, 128


def main() -> None:
    """Take every picture."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        ids = submit_real_judges(SubmissionsApp(Settings(state_dir=state), clock=one_a_day()))
        log = Path(folder) / "space.log"
        with (
            free_port() as port,
            serving(log, ["space", "serve"], port, ARB_STATE_DIR=str(state), ARB_PORT=str(port)) as url,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=chromium_path())
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            for name, address in addresses(ids).items():
                take(page, url + address, DOCS / f"{name}.png")
            browser.close()


def one_a_day() -> Callable[[], datetime]:
    """Return a clock that is a day further on at each call, as an account may send two files a day."""
    days = count()
    return lambda: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=next(days))


def submit_real_judges(service: SubmissionsApp) -> list[str]:
    """Return the ids of the submissions; empty if the files are not here."""
    found = []
    for file, (judge, kind, inputs) in JUDGES.items():
        path = VERDICTS / f"{file}.jsonl"
        if path.is_file():
            upload = service.intake.check(path.read_bytes(), path.name, "test")
            declaration = declare(
                account="Released verdicts", judge=judge, kind=kind, inputs=inputs, test_labels_used=False
            )
            found.append(service.intake.submit(upload, declaration).receipt.submission_id)
    return found


def addresses(ids: list[str]) -> dict[str, str]:
    """Return the address of each picture."""
    compared = ids or ["paper/gpt-4o-tree", "paper/claude-3.7-sonnet-screenshot"]
    run = load_suite("sample").split("dev")[0].trajectory_id
    return {
        "leaderboard": "/",
        "compare": f"/compare?judges={','.join(compared)}",
        "trajectory": f"/trajectories?id={run}&step=2",
    }


def take(page: Page, url: str, path: Path) -> None:
    """Take a picture of the visible part of a page in few colours, as the pages have few."""
    page.goto(url)
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
