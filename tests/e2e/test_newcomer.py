"""What a newcomer wants, by the words on the screen, on a desktop and a phone: at most four clicks each.

A click or tap is on a link, a button, a box or a field; a choice from a list takes two. Submitting a file may
take more, since a form has to be filled in. Signed-in readers have signed in before.
"""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from playwright.sync_api import expect

from arb.core.suite import load_suite
from tests.e2e.conftest import watched_page
from tests.support.browsing import WIDTHS, declare, keep_picture, sign_in, submit
from tests.support.running_space import JudgedSpace
from tests.support.synthetic_dataset import Shape, make_dataset

pytestmark = [pytest.mark.browser, pytest.mark.labels, pytest.mark.shared, pytest.mark.slow]
MOST_CLICKS = 4
JUDGE = "WebJudge (o4-mini, all screenshots)"
"""A judge whose verdicts and costs come with the software."""


@pytest.fixture(scope="module")
def space(tmp_path_factory, official_settings, shared):
    """A Space with judges, and with the test trajectories of WebArena."""
    folder = tmp_path_factory.mktemp("newcomer")
    runs = [each for each in load_suite().split("test") if each.benchmark == "webarena"]
    data = make_dataset(folder / "data", None, Shape(6, 1_500, 2, judges=()), runs)
    verdicts = shared / "data" / "agent-reward-bench" / "verdicts"
    running = JudgedSpace(folder, verdicts, ARB_DATA_DIR=str(data), ARB_CHECKS_A_MINUTE="10000")
    yield running
    running.kill()


class Newcomer:
    """A reader on the front page, who knows only what is on the screen; ``clicks`` counts clicks and taps."""

    def __init__(self, page, device: str) -> None:
        self.page, self.device, self.clicks = page, device, 0

    def press(self, words: str, within=None) -> None:
        """Press the first visible link, button or summary with these words."""
        exactly = re.compile(rf"^\s*{re.escape(words)}\s*$")
        found = (within or self.page).locator("a, button, summary").filter(has_text=exactly)
        self.touch(found.locator("visible=true").first)

    def touch(self, target) -> None:
        target.tap() if self.device == "phone" else target.click()
        self.clicks += 1

    def choose(self, name: str, option: str) -> None:
        """Choose from a list, which takes two clicks."""
        self.page.get_by_label(name).select_option(label=option)
        self.clicks += 2

    def open_menu(self, page_title: str) -> None:
        if self.device == "phone":
            self.press("Menu")
        self.press(page_title, self.page.get_by_role("navigation", name="Pages"))

    def row(self, judge: str):
        """The first row of the board with this name."""
        return self.page.locator("#board-table tr", has=self.page.get_by_text(judge, exact=True)).first


@pytest.fixture(params=WIDTHS)
def newcomer(browser, space, request):
    is_phone = request.param == "phone"
    size = {"width": WIDTHS[request.param], "height": 844 if is_phone else 900}
    with watched_page(browser, viewport=size, has_touch=is_phone, is_mobile=is_phone) as page:
        page.goto(space.url)
        found = Newcomer(page, request.param)
        yield found
        keep_picture(page, f"newcomer-{request.node.originalname.removeprefix('test_')}-{request.param}")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    if "submit" not in request.node.name:
        assert found.clicks <= MOST_CLICKS


def test_find_a_cheap_judge_for_workarena(newcomer):
    if newcomer.device == "phone":
        newcomer.choose("Sort by", "Cost, $ per 1,000, ascending")
        newcomer.press("All metrics")
    else:
        newcomer.press("Cost, $ per 1,000")
    newcomer.page.wait_for_url("**/?sort=cost")
    costs = newcomer.page.locator("#board-table tbody.judges [data-heading^='Cost']").all_inner_texts()
    known = [float(re.search(r"[\d.]+", text)[0]) for text in costs if text]
    # WebJudge with o4-mini, GPT-4o and its own 7B model; then a file that says a cent for every verdict.
    assert known == sorted(known) == [7.21, 9.22, 10.0, 10.66]
    cheapest = newcomer.row(JUDGE)
    expect(cheapest.locator("[data-heading^='Cost']")).to_contain_text("≥ 7.21")
    expect(cheapest.locator("[data-heading='WorkArena']")).to_be_visible()
    expect(cheapest.locator("[data-heading='WorkArena']")).to_contain_text("100.0")
    expect(newcomer.page.get_by_text("Costs with ≥ are lower bounds")).to_be_attached()


def test_learn_why_two_judges_tie(newcomer):
    first, second = "GPT-4o (tree)", "Claude 3.7 Sonnet (tree)"
    newcomer.touch(newcomer.row(first).locator(".range"))
    note = newcomer.page.locator("#rank-note")
    expect(note).to_contain_text(re.compile(r"Its difference from the other \d+ may be chance\."))
    for judge in (first, second):
        newcomer.touch(newcomer.row(judge).get_by_role("checkbox"))
    newcomer.press("Compare", newcomer.page.locator(".pick-bar"))
    verdict = newcomer.page.locator(".verdict")
    expect(verdict).to_contain_text(f"The test set cannot tell {first} and {second} apart")
    # Table 7: 69.8 and 68.8
    expect(verdict).to_contain_text("The difference in precision is +1.0 points, and its 95 % interval")
    expect(verdict).to_contain_text("includes zero")


def test_see_a_false_positive_with_its_screenshots(newcomer):
    page = newcomer.page
    newcomer.press(JUDGE)
    newcomer.press("Read its errors and its reasoning")
    newcomer.press("False positives")
    listed = page.locator("article.error", has=page.get_by_text("Open the last step")).first
    expect(listed).to_contain_text("The judge says yes, the experts say no.")
    newcomer.press("Open the last step", listed)
    picture = page.locator("section.step:visible .picture img")
    picture.wait_for()
    page.wait_for_function("image => image.complete && image.naturalWidth > 0", arg=picture.element_handle())
    expect(page.locator(".said-table tr", has_text="Success")).to_contain_text("No")
    said = page.locator(".side", has_text="unlike the experts")
    expect(said).to_contain_text(JUDGE)
    expect(said).to_contain_text("self-reported")


def test_submit_a_bad_and_a_good_file(newcomer, tmp_path, shared):
    page, bad = newcomer.page, tmp_path / "bad.csv"
    good = shared / "data" / "agent-reward-bench" / "verdicts" / "aer-c.jsonl"
    bad.write_text("trajectory_id,success\nwebarena/nobody/webarena.1,maybe\n")
    newcomer.press("Submit", page.locator(".masthead"))
    page.locator("#submit-form.is-ready").wait_for()
    chosen = page.locator("#prediction-file input[type=file]")
    chosen.set_input_files(bad)
    found = page.locator("#check-result")
    expect(found).to_contain_text("bad.csv is not valid for test yet")
    expect(found).to_contain_text("1 row has an id that is not in the suite")
    expect(found).to_contain_text("Fix the errors and upload it again")
    page.get_by_role("button", name="Remove").or_(page.get_by_label("Clear")).first.click()
    chosen.set_input_files(good)
    expect(found).to_contain_text("is valid for test: 1,106 rows")
    declare(page, f"A newcomer's, {newcomer.device}")
    submit(page)
    expect(page.locator("#receipt")).to_contain_text("Submitted and scored.")
    expect(page.locator("#receipt")).to_contain_text("Its rank by precision on success:")


def test_find_and_withdraw_a_submission(newcomer, space, shared):
    page, judge = newcomer.page, f"To withdraw, {newcomer.device}"
    content = (shared / "data" / "agent-reward-bench" / "verdicts" / "nnetnav.jsonl").read_bytes()
    space.submit(content, judge)
    sign_in(page, space, "Ada", "/")
    newcomer.touch(page.locator(".account-menu summary", has_text="Ada"))
    newcomer.press("Your submissions")
    own = page.locator("article.item", has=page.get_by_role("link", name=judge))
    newcomer.press("Withdraw it", own)
    expect(own).to_contain_text("This cannot be undone.")
    newcomer.press("Withdraw", own)
    expect(own.locator(".status")).to_have_text("withdrawn")
    assert judge not in space.get("/").decode()


def test_compare_a_judge_with_aer_c(newcomer):
    for judge in (JUDGE, "AER-C (caption)"):
        newcomer.touch(newcomer.row(judge).get_by_role("checkbox"))
    newcomer.press("Compare", newcomer.page.locator(".pick-bar"))
    expect(newcomer.page.locator("h1")).to_have_text(f"Is {JUDGE} better than AER-C (caption)?")
    expect(newcomer.page.locator(".verdict")).to_contain_text(
        f"{JUDGE} is better than AER-C (caption) overall"
    )


def test_download_the_board_as_csv_json_and_dataframe(newcomer):
    page, found = newcomer.page, {}
    for kind in ("CSV", "JSON"):
        with page.expect_download() as download:
            newcomer.press(f"Download {kind}")
        found[kind] = Path(download.value.path()).read_bytes()
    newcomer.press("pandas DataFrame")
    lines = page.locator(".downloads pre").inner_text()
    read: dict = {}
    exec(lines, read)  # what the page says
    rows = json.loads(found["JSON"])["rows"]
    assert {"reported/webjudge-o4-mini", "paper/aer-c"} <= {row["id"] for row in rows}
    # a line for each row and each label on which it has verdicts
    scored = {(row["id"], label) for row in rows for label, score in row["labels"].items() if score}
    assert isinstance(read["board"], pd.DataFrame)
    assert set(read["board"][["id", "label"]].itertuples(index=False, name=None)) == scored
    assert found["CSV"].count(b"\n") == len(scored) + 1


def test_learn_how_precision_is_defined(newcomer):
    meaning = "Precision is the share of a judge's yes answers that are right."
    expect(newcomer.page.locator(".lead").first).to_contain_text(meaning)
    newcomer.open_menu("About")
    expect(newcomer.page.get_by_text("Precision on success ranks the board")).to_be_visible()
    newcomer.press("All metrics and their formulas")
    formula = newcomer.page.locator("tr", has=newcomer.page.get_by_text("TP / (TP + FP)", exact=True))
    expect(formula.get_by_role("rowheader")).to_have_text("Precision")
    expect(formula).to_be_visible()


def test_report_a_wrong_label(newcomer, space):
    page, text = newcomer.page, f"The last step shows what was asked for ({newcomer.device})."
    sign_in(page, space, f"A reader, {newcomer.device}", "/")
    newcomer.touch(newcomer.row(JUDGE).locator("td.main a"))
    listed = page.locator("article.error").first
    expect(listed).to_contain_text("If the label is wrong instead of the judge, dispute it.")
    newcomer.press("dispute it", listed)
    expect(page.get_by_label("Question")).to_have_value("success")
    expect(page.get_by_label("Right answer")).to_have_value("yes")  # the judge's answer
    field = page.get_by_label("What is wrong, and which step shows it")
    newcomer.touch(field)
    field.fill(text)
    newcomer.press("Send")
    filed = page.locator("article.dispute", has_text=text)
    expect(filed).to_contain_text("Right answer according to this dispute: Yes")
