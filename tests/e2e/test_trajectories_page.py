"""The trajectories page in a real browser: choosing runs, reading one by keyboard, phone, dark."""

import re
from dataclasses import replace

import pytest
from playwright.sync_api import expect

from tests.space.pages.trajectories.conftest import SMALL, some_trajectories
from tests.support.browsing import faults
from tests.support.running_space import RunningSpace
from tests.support.synthetic_dataset import make_dataset

pytestmark = [pytest.mark.browser, pytest.mark.labels]
PHONE = {"width": 390, "height": 844}
WITHOUT_PAGES = some_trajectories()[-1].trajectory_id
"""A run of which no page was recorded, but what the agent was shown in words."""


@pytest.fixture(scope="module")
def explored(tmp_path_factory, official_settings):
    """A Space over a small built dataset with judgments, beside the sample."""
    folder = tmp_path_factory.mktemp("explored")
    shape = replace(SMALL, without_pages=WITHOUT_PAGES)
    data = make_dataset(folder / "data", shape=shape, only=some_trajectories())
    running = RunningSpace(folder / "state", ARB_DATA_DIR=str(data))
    yield running
    running.kill()


@pytest.fixture(scope="module")
def dev_id() -> str:
    """A dev run with several steps."""
    return next(
        t.trajectory_id for t in some_trajectories() if t.split == "dev" and t.benchmark == "webarena"
    )


def open_page(page, space, query: str = "") -> None:
    """Open the page."""
    page.goto(f"{space.url}/trajectories{query}")
    page.wait_for_selector(".trajectories")


def step_shown(page) -> int:
    return int(page.locator(".step:visible").get_attribute("data-place"))


@pytest.mark.slow
def test_a_run_is_found_opened_and_left_again(page, explored):
    open_page(page, explored)
    page.get_by_label("Split").select_option("dev")
    page.wait_for_url("**/trajectories?split=dev")
    page.wait_for_selector("#runs-found:not([aria-busy])")
    page.wait_for_selector(".run a[href*='split=dev']")
    page.locator(".run a").first.click()
    page.wait_for_url(re.compile("split=dev&id="))
    page.wait_for_selector(".story .step:visible img")
    expect(page).to_have_title(re.compile("AgentRewardBench$"))
    page.go_back()
    page.wait_for_selector(".browse .run")
    expect(page.get_by_label("Split")).to_have_value("dev")
    expect(page).to_have_url(f"{explored.url}/trajectories?split=dev")
    page.go_forward()
    page.wait_for_selector(".story .step:visible")


@pytest.mark.slow
def test_a_search_narrows_the_list_while_one_types_and_the_address_follows(page, explored):
    open_page(page, explored)
    before = page.locator(".run").count()
    page.get_by_label("Search").press_sequentially("visualwebarena", delay=15)
    page.wait_for_url("**?search=visualwebarena")
    expect(page.locator(".run")).not_to_have_count(before)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("heading", level=1).click()  # leaving the field asks for nothing again
    page.wait_for_timeout(300)
    assert not [url for url in asked if "search=" in url]
    found = page.locator(".task-about").all_inner_texts()
    assert found and all("visualwebarena" in text for text in found)
    page.get_by_role("link", name="Show all").click()
    expect(page.locator(".run")).to_have_count(before)
    expect(page.get_by_label("Search")).to_have_value("")


@pytest.mark.slow
def test_back_undoes_a_choice_of_the_list(page, explored):
    open_page(page, explored)
    page.get_by_label("Split").select_option("dev")
    page.wait_for_url("**/trajectories?split=dev")
    page.get_by_label("Order").select_option("longest")
    page.wait_for_url("**/trajectories?split=dev&sort=longest")
    page.go_back()
    expect(page.get_by_label("Order")).to_have_value("task")
    expect(page.get_by_label("Split")).to_have_value("dev")


@pytest.mark.slow
def test_a_trajectory_is_paged_through_by_keyboard(page, explored, dev_id):
    open_page(page, explored, f"?id={dev_id}")
    last = page.locator(".step").count()
    assert step_shown(page) == 1
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert step_shown(page) == 3
    expect(page).to_have_url(re.compile("&step=3$"))
    expect(page.locator("[aria-current=step]")).to_have_attribute("data-step", "3")
    expect(page.locator("#step-told")).to_have_text(f"Step 3 of {last}")
    page.keyboard.press("ArrowLeft")
    assert step_shown(page) == 2
    page.keyboard.press("End")
    assert step_shown(page) == last
    expect(page.get_by_label("Next step")).to_be_disabled()
    page.keyboard.press("ArrowRight")
    assert step_shown(page) == last
    page.keyboard.press("Home")
    assert step_shown(page) == 1
    expect(page).not_to_have_url(re.compile("step="))
    story = page.locator(".story")
    with page.expect_navigation():
        page.keyboard.press("n")
    expect(story).not_to_have_attribute("data-trajectory", dev_id)
    with page.expect_navigation():
        page.keyboard.press("p")
    expect(story).to_have_attribute("data-trajectory", dev_id)
    page.keyboard.press("Escape")
    page.wait_for_selector(".browse .run")


def test_a_shared_address_with_a_step_opens_at_that_step_and_so_does_a_reload(page, explored, dev_id):
    open_page(page, explored, f"?id={dev_id}&step=3")
    assert step_shown(page) == 3
    page.wait_for_function("() => document.querySelector('.step:not([hidden]) img')?.naturalWidth > 0")
    page.keyboard.press("ArrowRight")
    page.reload()
    page.wait_for_selector(".trajectories")
    assert step_shown(page) == 4
    page.keyboard.press("ArrowRight")  # the keys work after a reload
    assert step_shown(page) == 5 if page.locator(".step").count() >= 5 else 4


def test_the_outline_lies_on_the_element_that_the_picture_shows(page, explored, dev_id):
    open_page(page, explored, f"?id={dev_id}")
    for _ in range(page.locator(".step").count()):
        if page.locator(".step:visible .outline").count():
            break
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "() => document.querySelector('.step:not([hidden]) .picture img')?.naturalWidth > 0"
    )
    picture, outline = (
        page.locator(f".step:visible {part}").bounding_box() for part in (".picture img", ".outline")
    )
    assert picture["x"] - 8 <= outline["x"] <= picture["x"] + picture["width"]
    assert picture["y"] - 8 <= outline["y"] <= picture["y"] + picture["height"]
    # the made-up pages have elements of 240 by 56 of 1280 pixels; the outline stands 3 + 2 pixels around
    scale = picture["width"] / 1280
    assert outline["width"] == pytest.approx(240 * scale + 10, abs=3)


def test_the_goal_stays_in_sight(page, explored, dev_id):
    page.set_viewport_size({"width": 1280, "height": 500})
    open_page(page, explored, f"?id={dev_id}")
    page.mouse.wheel(0, 600)
    page.wait_for_function("() => window.scrollY > 100")
    assert 0 <= page.locator(".goal-text").bounding_box()["y"] < 200


def test_the_tree_comes_when_asked_for_and_can_be_searched(page, explored, dev_id):
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/api/tree" in request.url else None)
    open_page(page, explored, f"?id={dev_id}")
    assert asked == []
    page.keyboard.press("t")
    expect(page.locator(".tree-text")).to_have_text(re.compile("^RootWebArea"))
    page.keyboard.type("visible")
    expect(page.locator(".tree-count")).to_have_text(re.compile("^1 of"))
    page.keyboard.press("Enter")
    expect(page.locator(".tree-count")).to_have_text(re.compile("^2 of"))
    page.locator("#tree-search").fill("nothing like this")
    expect(page.locator(".tree-count")).to_have_text("no match")
    page.keyboard.press("Escape")  # out of the field: the keys walk again
    with page.expect_request(lambda request: "/api/tree" in request.url and "num=1" in request.url):
        page.keyboard.press("ArrowRight")
    assert step_shown(page) == 2


def test_verdicts_can_be_folded_away_and_stay_so(page, explored, dev_id):
    open_page(page, explored, f"?id={dev_id}")
    expect(page.get_by_role("heading", name="Experts", exact=True)).to_be_visible()
    wide = page.locator(".step:visible .shot").bounding_box()["width"]
    page.keyboard.press("v")
    expect(page.get_by_role("heading", name="Experts", exact=True)).to_be_hidden()
    assert page.locator(".step:visible .shot").bounding_box()["width"] > wide
    page.reload()
    page.wait_for_selector(".trajectories")
    expect(page.locator(".verdicts-folded")).to_have_count(1)
    page.get_by_role("button", name="Verdicts").click()
    expect(page.get_by_role("heading", name="Experts", exact=True)).to_be_visible()


def test_what_a_judge_wrote_is_fetched_when_it_is_opened(page, explored, dev_id):
    open_page(page, explored, f"?id={dev_id}")
    page.locator(".judge summary", has_text="GPT-4o (tree)").click()
    page.wait_for_selector(".judge[open] .why p")
    expect(page.locator(".judge[open] .why")).not_to_contain_text("reasoning>")


def test_an_address_that_leads_nowhere_is_explained(browser, explored):
    page = browser.new_context().new_page()  # Chromium writes a 404 into the console
    open_page(page, explored, "?id=webarena/none/webarena.1")
    assert page.get_by_role("heading", name="There is no such trajectory.").is_visible()
    page.get_by_role("link", name="Show all trajectories").click()
    page.wait_for_selector(".browse .run")
    page.context.close()


def test_on_a_phone_filters_are_behind_a_button_and_steps_go_by_touch(page, explored, dev_id):
    page.set_viewport_size(PHONE)
    open_page(page, explored)
    assert page.get_by_label("Split").is_hidden()
    page.get_by_role("button", name="Filters and order").click()
    page.get_by_label("Split").select_option("dev")
    page.wait_for_url("**?split=dev")
    open_page(page, explored, f"?id={dev_id}")
    page.get_by_label("Next step").click()
    assert step_shown(page) == 2


def test_the_shipped_sample_is_shown_where_no_dataset_was_built(page, space):
    open_page(page, space)
    assert page.get_by_text("This is the sample that ships with the software").is_visible()
    page.locator(".run a").first.click()
    page.wait_for_function(
        "() => document.querySelector('.step:not([hidden]) .picture img')?.naturalWidth > 0"
    )


@pytest.mark.parametrize(("size", "scheme"), [(PHONE, "light"), ({"width": 1280, "height": 900}, "dark")])
def test_a_run_without_pages_is_read_by_what_was_observed_up_to_its_answer(page, explored, size, scheme):
    page.set_viewport_size(size)
    page.emulate_media(color_scheme=scheme)
    open_page(page, explored, f"?id={WITHOUT_PAGES}")
    assert "Nothing was observed before this step." in page.locator(".step:visible").inner_text()
    page.keyboard.press("End")
    last = page.locator(".step:visible")
    last.locator(".observed").wait_for()
    assert len(last.locator(".observed").inner_text().splitlines()) == 40
    assert re.fullmatch(r"It is <b>.*</b>\.", last.locator(".answer .told").inner_text())
    page.keyboard.press("t")  # there is no tree to open
    assert page.locator(".tree, .step:visible .no-picture").count() == 0
    assert faults(page) == []
