"""Before a submission: findings with rows, the address, the keyboard, lines to copy, a closed Space."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import REPOSITORY, RunningSpace
from tests.e2e.submit_page import drop, scored_rows

pytestmark = [pytest.mark.browser, pytest.mark.labels]


def test_a_findings_rows_open_and_show_what_stands_in_them(page, space, tmp_path):
    file = tmp_path / "bad.jsonl"
    file.write_text('{"trajectory_id": "webarena/nobody/webarena.1", "success": "<b>maybe</b>"}\n')
    drop(page, space, file)
    page.locator(".finding[data-code='unknown_word']").wait_for()
    shown = page.locator(".finding[data-code='unknown_word'] dl.rows")
    if not shown.is_visible():
        page.locator(".finding[data-code='unknown_word'] summary").click()
    assert '"success": "<b>maybe</b>"' in shown.inner_text()
    assert "line 1" in shown.inner_text()


def test_the_split_lives_in_the_address(page, space):
    page.goto(space.url + "/submit?split=dev")
    page.get_by_role("button", name="Rehearse").wait_for()
    assert page.get_by_label("dev: a rehearsal").is_checked()
    assert not page.locator("#declaration").is_visible()
    page.get_by_label("test: scored").check()
    page.get_by_role("button", name="Submit").wait_for()
    assert page.url == space.url + "/submit"


def test_a_file_is_chosen_and_sent_with_the_keyboard_alone(page, space, tmp_path):
    page.on("filechooser", lambda chooser: None)  # from now on, or the key could be faster than the listener
    page.goto(space.url + "/submit?split=dev")
    button = page.get_by_role("button", name="Rehearse")
    button.wait_for()
    page.wait_for_load_state("networkidle")
    page.locator(".more-rules summary").focus()
    file = tmp_path / "dev.csv"
    file.write_bytes(space.get("/api/template?split=dev&format=csv").replace(b",\n", b",true\n"))
    page.keyboard.press("Tab")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(file)
    page.wait_for_selector("#check-result .notice.good")
    for _ in range(12):
        page.keyboard.press("Tab")
        if button.evaluate("button => button === document.activeElement"):
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("#rehearsed")


@pytest.mark.parametrize("block", ["command-text", "curl-text"])
def test_the_lines_to_copy_do_what_the_page_does(page, space, tmp_path, block):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=space.url)
    page.goto(space.url + "/submit")
    page.wait_for_selector("#prediction-file")
    page.locator(f"[data-copy='{block}']").click()
    page.get_by_text("Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert space.url in copied
    # What the guide asks for between the first line and the others: fill in success.
    fill_in = "sed -i 's/null/true/' my-verdicts.jsonl"
    first, *rest = copied.replace("My judge", block).splitlines()
    rest.insert(1 if block == "curl-text" else 0, fill_in)
    script = "\n".join(["set -e", f"export PYTHONPATH={REPOSITORY}", first, *rest])
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert block in scored_rows(space)


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """A Space without labels."""
    running = RunningSpace(tmp_path_factory.mktemp("closed") / "state", ARB_LABELS="none")
    yield running
    running.kill()


def test_a_space_without_labels_checks_but_takes_nothing(page, closed, tmp_path):
    page.goto(closed.url + "/submit")
    page.get_by_text("Submitting is off now").wait_for()
    page.wait_for_function("document.querySelector('#submit-button')?.disabled")
    file = tmp_path / "bad.csv"
    file.write_text("trajectory_id,success\n")
    page.locator("#prediction-file input[type=file]").set_input_files(file)
    page.wait_for_selector("#check-result .notice.bad")
    page.get_by_label("dev: a rehearsal").check()
    page.get_by_role("button", name="Rehearse").wait_for()
    assert page.locator("#submit-button").is_enabled()
