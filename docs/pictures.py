"""Take the pictures of the README and of the guides from a running Space: ``make pictures``.

If ``../shared`` is there, the three real judges are submitted first. Else the board is shown as it is. Name
pictures to take only these: ``python -m docs.pictures submit``.
"""

import io
import json
import sys
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
SUBMIT_COLOURS = 24


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
            only = set(sys.argv[1:])
            for name, address in addresses(ids).items():
                if not only or name in only:
                    take(page, url + address, DOCS / f"{name}.png")
            if not only or "submit" in only:
                submit(page, url, Path(folder))
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


def submit(page: Page, url: str, folder: Path) -> None:
    """Take three pictures of the page *Submit*: a valid file and the form, findings, and a receipt."""
    trajectories = load_suite().split("test")
    rows = [
        {"trajectory_id": each.trajectory_id, "success": n % 3 == 0} for n, each in enumerate(trajectories)
    ]
    good, bad = folder / "my-test-verdicts.jsonl", folder / "with-errors.jsonl"
    good.write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows[3]["success"], rows[7]["trajectory_id"] = "perhaps", "webarena/MyAgent/webarena.1"
    bad.write_text("".join(json.dumps(row) + "\n" for row in rows[:-2]))
    for name, file in (("submit_findings", bad), ("submit_file", good)):
        page.goto(f"{url}/submit")
        page.locator("#submit-form.is-ready").wait_for()
        page.locator("#prediction-file input[type=file]").set_input_files(file)
        page.locator("#check-result .notice").wait_for()
        page.locator("#submit-form").scroll_into_view_if_needed()
        keep(page, DOCS / f"{name}.png", SUBMIT_COLOURS)
    page.get_by_label("Your name").fill("Ada")
    page.get_by_label("Name of the judge").fill("My judge")
    page.locator("#kind input").click()
    page.get_by_role("option", name="LLM judge").click()
    page.locator("#inputs input").click()
    page.get_by_role("option", name="tree", exact=True).click()
    page.get_by_label("No, they were not used").check()
    page.locator("#submit-button").click()
    page.locator("#receipt").scroll_into_view_if_needed()
    page.mouse.wheel(0, -60)
    keep(page, DOCS / "submit_receipt.png", SUBMIT_COLOURS)


def take(page: Page, url: str, path: Path) -> None:
    """Take a picture of the visible part of a page."""
    page.goto(url)
    page.wait_for_load_state("networkidle")
    keep(page, path, COLOURS)


def keep(page: Page, path: Path, colours: int) -> None:
    """Write a picture of what is visible in few colours, as the pages have few."""
    page.wait_for_timeout(500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(colours, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
