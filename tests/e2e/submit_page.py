"""What one does on the submit page, for its tests."""

import json
import zlib


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
