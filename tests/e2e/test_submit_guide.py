"""Before a submission: findings with rows, the address, the keyboard, lines to copy, a closed Space."""

import os
import subprocess

import pytest
from playwright.sync_api import expect

from tests.support.browsing import WIDTHS, click_and_read, drop, open_form, scored_rows
from tests.support.commands import path_with_arb
from tests.support.running_space import REPOSITORY

pytestmark = [pytest.mark.browser, pytest.mark.labels]


@pytest.fixture
def space(submitted_space):
    return submitted_space


def test_a_findings_rows_open_and_show_what_stands_in_them(page, space, tmp_path):
    file = tmp_path / "bad.jsonl"
    file.write_text('{"trajectory_id": "webarena/nobody/webarena.1", "success": "<b>maybe</b>"}\n')
    drop(page, space, file)
    page.locator(".finding[data-code='unknown_word']").wait_for()
    shown = page.locator(".finding[data-code='unknown_word'] table.given")
    if not shown.is_visible():
        page.locator(".finding[data-code='unknown_word'] summary").click()
    expect(shown).to_contain_text('"success": "<b>maybe</b>"')
    expect(shown.locator("tbody th")).to_have_text("1")


@pytest.mark.slow
def test_the_split_lives_in_the_address_and_back_undoes_its_choice(page, space):
    open_form(page, space, "?split=dev")
    page.get_by_role("button", name="Dry run on dev").wait_for()
    expect(page.get_by_label("dev: dry run")).to_be_checked()
    page.locator("#declaration").wait_for(state="hidden")
    page.get_by_label("test: scored").check()
    page.get_by_role("button", name="Submit", exact=True).wait_for()
    page.wait_for_url(space.url + "/submit")
    page.go_back()
    page.get_by_role("button", name="Dry run on dev").wait_for()
    expect(page.get_by_label("dev: dry run")).to_be_checked()


@pytest.mark.slow
def test_a_file_is_chosen_and_sent_with_the_keyboard_alone(page, space, tmp_path):
    page.on("filechooser", lambda chooser: None)  # from now on, or the key could be faster than the listener
    open_form(page, space, "?split=dev")
    button = page.get_by_role("button", name="Dry run on dev")
    button.wait_for()
    page.locator("#split input:checked").focus()
    file = tmp_path / "dev.csv"
    file.write_bytes(space.get("/api/template?split=dev&format=csv").replace(b",,,\n", b",true,,\n"))
    page.keyboard.press("Tab")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(file)
    page.locator("#check-result .notice.good").wait_for()
    for _ in range(12):
        page.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    page.keyboard.press("Enter")
    page.locator("#rehearsed").wait_for()


def test_a_file_over_the_limit_is_told_in_the_panel_and_not_sent(page, space, tmp_path):
    file = tmp_path / "big.jsonl"
    file.write_bytes(b"x" * 5_000_001)
    sent = []
    page.on("request", lambda request: sent.append(request.url))
    open_form(page, space)
    page.locator("#prediction-file input[type=file]").set_input_files(file)
    expect(page.locator("#file-problem .notice")).to_contain_text("big.jsonl has 5.0 MB; the limit is 5 MB")
    assert not [url for url in sent if "/gradio_api/upload" in url]


def test_without_scripts_the_page_says_what_to_do(browser, space):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(space.url + "/submit")
    assert "needs JavaScript" in page.locator("#without-scripts").inner_text()
    assert page.locator("#curl-text").is_visible()
    assert not page.locator("#submit-form").is_visible()
    context.close()


def test_without_scripts_no_control_is_shown_that_does_nothing(browser, sample_space):
    phone = {"width": WIDTHS["phone"], "height": 844}
    context = browser.new_context(java_script_enabled=False, viewport=phone)
    page = context.new_page()
    dead = page.locator(".theme-toggle, .show-figures, .pick, button.copy")
    for address, controls in ("/", 4), ("/submit", 4):  # theme, metrics and 2 judges; theme and 3 to copy
        page.goto(sample_space.url + address)
        assert dead.count() == controls, address
        assert not any(control.is_visible() for control in dead.all()), address
    page.goto(sample_space.url)
    assert page.locator("table.board td.other:visible").count() > 0  # which the hidden button would show
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("block", ["command-text", "curl-text"])
def test_the_lines_to_copy_do_what_the_page_does(page, space, tmp_path, block):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=space.url)
    open_form(page, space)
    assert click_and_read(page.locator(f"[data-copy='{block}']")) == "Copied"
    copied = page.evaluate("navigator.clipboard.readText()")
    assert space.url in copied
    # What the guide asks for between the first line and the others: fill in success.
    fill_in = "sed -i 's/null/true/' my-verdicts.jsonl"
    first, *rest = copied.replace("My judge", block).splitlines()
    rest.insert(1 if block == "curl-text" else 0, fill_in)
    script = "\n".join(["set -e", f"export PYTHONPATH={REPOSITORY}", first, *rest])
    environment = {**os.environ, "PATH": path_with_arb(tmp_path / "bin")}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert block in scored_rows(space)


@pytest.mark.slow
def test_a_space_without_labels_checks_but_takes_nothing(page, unlabelled_space, tmp_path):
    open_form(page, unlabelled_space)
    page.get_by_text("Submitting is off at the moment").wait_for()
    page.wait_for_function("() => document.querySelector('#submit-button')?.disabled")
    file = tmp_path / "bad.csv"
    file.write_text("trajectory_id,success\n")
    page.locator("#prediction-file input[type=file]").set_input_files(file)
    page.locator("#check-result .notice.bad").wait_for()
    page.get_by_label("dev: dry run").check()
    page.get_by_role("button", name="Dry run on dev").wait_for()
    page.locator("#submit-button:enabled").wait_for()
