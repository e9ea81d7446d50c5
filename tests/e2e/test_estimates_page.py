"""Estimates on the pages Success rates and My agent and over REST: choices, labelling, hostile files."""

import json
import re
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from arb.core.suite import load_suite
from tests.support.browsing import GRAVE, WIDTHS, faults

pytestmark = [pytest.mark.browser, pytest.mark.labels, pytest.mark.shared]
FORMULA = '=HYPERLINK("http://evil.example";"x")'


def verdicts_of(agent: str, n: int = 40) -> bytes:
    """Verdicts on runs of an agent, every fourth a success."""
    rows = [{"trajectory_id": f"own/{agent}/task{i}", "success": i % 4 == 0} for i in range(n)]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def labels_of(agent: str, n: int = 20) -> bytes:
    """Labels of the first runs of an agent, right ones."""
    rows = [f"own/{agent}/task{i},{'yes' if i % 4 == 0 else 'no'}" for i in range(n)]
    return "\n".join(["trajectory_id,success", *rows]).encode()


def post(
    space, verdicts: bytes, labels: bytes, path: str = "/api/estimate", **headers: str
) -> httpx.Response:
    files = {"verdicts": ("judge.jsonl", verdicts), "labels": ("labels.csv", labels)}
    return httpx.post(space.url + path, files=files, headers=headers, timeout=120)


def test_choices_of_labels_and_judges_live_in_the_address_and_keep_the_others(judged_space, page):
    page.goto(f"{judged_space.url}/rates?benchmark=webarena")
    table = page.locator("table.estimates").first
    expect(table.locator("tbody tr")).to_have_count(4)
    assert "60 of 300" in table.inner_text() and "60 of 206" in table.inner_text()
    page.locator("#labels").select_option("100")
    page.wait_for_url("**/rates?labels=100&benchmark=webarena")
    expect(table).to_contain_text("100 of 300")
    page.locator("#judges-1").select_option(judged_space.ids["NNetNav"])
    page.wait_for_url(re.compile(r"judges="))
    expect(page.locator("#estimates")).to_contain_text(
        "NNetNav (changes) gives Llama 3.3 a rate of 37.9 %; all labels give 17.0 %"
    )  # off by 20.9, estimate.md
    page.locator("#benchmark").select_option("workarena")
    page.wait_for_url(re.compile(r"benchmark=workarena"))
    assert "labels=100" in page.url and "judges=" in page.url
    expect(page.locator("svg.estimates g.assisted")).to_have_count(4)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_on_a_phone_the_plot_and_the_table_fit(judged_space, page, theme):
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{judged_space.url}/rates")
    page.locator("svg.estimates").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    drawn = page.evaluate(
        "[...document.querySelectorAll('svg.estimates text')].map((t) => t.getBoundingClientRect())"
    )
    assert all(box["height"] >= 9 and box["left"] >= 0 and box["right"] <= 390 for box in drawn)


@pytest.mark.parametrize("has_scripts", [True, False])
def test_the_form_gives_the_estimate_of_two_files_and_errors_in_place(
    judged_space, browser, tmp_path, has_scripts
):
    good, labels, bad = tmp_path / "judge.jsonl", tmp_path / "labels.csv", tmp_path / "bad.csv"
    good.write_bytes(verdicts_of("my-agent"))
    labels.write_bytes(labels_of("my-agent"))
    bad.write_bytes(b"trajectory_id,success\nown/my-agent/task1,perhaps\n")
    context = browser.new_context(java_script_enabled=has_scripts)
    page = context.new_page()
    page.goto(f"{judged_space.url}/my-agent")
    page.get_by_text("I already have labels in a file").click()
    page.locator("input[name=verdicts]").set_input_files([good])
    page.locator("input[name=labels]").set_input_files(labels)
    page.get_by_role("button", name="Estimate", exact=True).click()
    own = page.locator("#own-estimate")
    expect(own).to_contain_text("my-agent")
    expect(own).to_contain_text("20 of 40")
    if not has_scripts:
        page.get_by_text("I already have labels in a file").click()
    page.locator("input[name=verdicts]").set_input_files([good])
    page.locator("input[name=labels]").set_input_files(bad)
    page.get_by_role("button", name="Estimate", exact=True).click()
    own.get_by_text("cannot be used").wait_for()
    expect(own).to_contain_text(
        "bad.csv: success: 1 row has a word that is not understood (row 2: 'perhaps')"
    )
    context.close()


def draw(page, space, verdicts: Path, n_labels: int) -> None:
    """Open the page, choose the file, and draw runs."""
    page.goto(f"{space.url}/my-agent")
    page.locator("input[name=verdicts]").set_input_files(verdicts)
    page.locator("#n_labels").select_option(str(max(10, n_labels)))
    page.get_by_role("button", name="Draw runs to label").click()
    expect(page.locator(".drawn-run")).to_have_count(n_labels)


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_drawn_runs_are_labelled_by_keyboard_kept_over_a_reload_and_sent_together(
    judged_space, page, tmp_path, width
):
    page.set_viewport_size({"width": WIDTHS[width], "height": 900})
    verdicts = tmp_path / "judge.jsonl"
    verdicts.write_bytes(verdicts_of("my-agent"))
    draw(page, judged_space, verdicts, 10)
    assert faults(page, (*GRAVE, "moderate")) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]
    heights = page.eval_on_selector_all(
        ".drawn-run .segments label", "all => all.map(each => each.getBoundingClientRect().height)"
    )
    assert min(heights) >= (40 if width == "phone" else 24)
    for key in "yynnu":  # the heading has the focus, so the first key labels the first run
        page.keyboard.press(key)
    expect(page.locator(".labelled-count")).to_have_text("5 of 10 labelled")
    draw(page, judged_space, verdicts, 10)  # the page was left: nothing was sent before
    expect(page.locator(".labelled-count")).to_have_text("5 of 10 labelled")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the labels").click()
    header, *rows = saved.value.path().read_text().splitlines()
    assert header == "trajectory_id,success"
    runs = page.eval_on_selector_all(".drawn-run", "all => all.map((each) => each.dataset.run)")
    answers = ("yes", "yes", "no", "no", "unsure")
    assert rows == [f'"{run}",{answer}' for run, answer in zip(runs, answers, strict=False)]
    page.locator(".drawn-run").nth(5).get_by_role("radio", name="Yes").check()
    page.keyboard.press("y")  # labels this run again and moves on
    for _ in range(4):
        page.keyboard.press("n")
    expect(page.locator(".labelled-count")).to_have_text("10 of 10 labelled")
    expect(page.get_by_role("button", name="Estimate the success rate")).to_be_focused()
    page.keyboard.press("Enter")
    own = page.locator("#own-estimate")
    expect(own).to_contain_text("9 of 40")  # one of ten is unsure
    expect(own).to_contain_text("label 10 or more for an estimate")
    page.locator(".drawn-run").nth(4).get_by_role("radio", name="No").check()
    page.get_by_role("button", name="Estimate the success rate").click()
    expect(own).to_contain_text("10 of 40")
    assert faults(page, (*GRAVE, "moderate")) == []
    page.get_by_role("button", name="Clear all labels").click()
    expect(page.locator(".labelled-count")).to_have_text("0 of 10 labelled")
    draw(page, judged_space, verdicts, 10)
    expect(page.locator(".labelled-count")).to_have_text("0 of 10 labelled")


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_the_steps_of_a_served_run_open_below_its_choices(judged_space, page, tmp_path, width):
    page.set_viewport_size({"width": WIDTHS[width], "height": 900})
    run = load_suite("sample").split("test")[0].trajectory_id
    verdicts = tmp_path / "judge.csv"
    verdicts.write_text(f"trajectory_id,success\n{run},yes\n")
    draw(page, judged_space, verdicts, 1)
    steps = page.locator(".run-steps")
    steps.locator("summary").click()
    expect(steps.get_by_role("heading", name=re.compile("^Step 1"))).to_be_visible()
    page.locator(".drawn-run").get_by_role("radio", name="Yes").check(force=True)  # still in view
    expect(page.locator(".labelled-count")).to_have_text("1 of 1 labelled")
    assert faults(page, (*GRAVE, "moderate")) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width]


def test_without_scripts_the_runs_are_labelled_and_the_files_chosen_again(judged_space, browser, tmp_path):
    verdicts = tmp_path / "judge.jsonl"
    verdicts.write_bytes(verdicts_of("my-agent"))
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    draw(page, judged_space, verdicts, 10)
    expect(page.get_by_text("Choose the same files again above")).to_be_visible()
    for run in page.locator(".drawn-run").all():
        run.get_by_role("radio", name="No").check()
    page.locator("input[name=verdicts]").set_input_files(verdicts)
    page.get_by_role("button", name="Estimate the success rate").click()
    expect(page.locator("#own-estimate")).to_contain_text("10 of 40")
    context.close()


def test_labels_of_ten_megabytes_are_refused_with_one_message(judged_space):
    huge = b"trajectory_id,success\n" + b"own/a/task1,yes\n" * 650_000
    answer = post(judged_space, verdicts_of("a"), huge)
    assert answer.status_code == 413
    assert answer.json() == {
        "detail": "the upload has more than 5,000,000 bytes; send a smaller file "
        "(for example without reasoning)"
    }
    answer = post(judged_space, verdicts_of("a"), huge, "/my-agent", accept="text/html")
    assert answer.status_code == 413
    assert answer.text.count("The upload has more than 5,000,000 bytes") == 1 and "<html" in answer.text


@pytest.mark.parametrize(
    "agent", ["<script>alert(1)<|script>", FORMULA.replace("/", "|"), "{{7*7}}", "\x1b[31m"]
)
def test_markup_formulas_and_control_characters_in_names_are_text(judged_space, agent):
    verdicts = verdicts_of(agent)
    labels = "\n".join(
        json.dumps({"trajectory_id": f"own/{agent}/task{i}", "success": i % 4 == 0}) for i in range(20)
    ).encode()
    answer = post(judged_space, verdicts, labels)
    assert answer.status_code == 200, answer.text
    assert answer.json()["agents"][0]["agent"] == agent
    answer = post(judged_space, verdicts, labels, "/my-agent", accept="text/html")
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text and ">49<" not in answer.text


@pytest.mark.parametrize(
    ("verdicts", "labels", "file", "code", "rows"),
    [
        (verdicts_of("a"), labels_of("a") + b"\nown/a/task1,no\n", "labels.csv", "duplicate_id", [22]),
        (verdicts_of("a") * 2, labels_of("a"), "judge.jsonl", "duplicate_id", list(range(41, 81))),
        (verdicts_of("a").replace(b"true", b"NaN", 1), labels_of("a"), "judge.jsonl", "nan", [1]),
        (verdicts_of("a"), labels_of("a").replace(b"yes", b"nan", 1), "labels.csv", "nan", [2]),
        (verdicts_of("a"), b"trajectory_id,success\n=1+1,yes\n", "labels.csv", "malformed_id", [2]),
        (verdicts_of("a"), f"trajectory_id,success\nown/a/task1,{FORMULA}\n".encode(), "labels.csv",
         "unknown_word", [2]),
        (verdicts_of("a"), b"", "labels.csv", "empty_file", []),
        (b"PAR1" + b"\x00" * 40, labels_of("a"), "judge.jsonl", "invalid_parquet", []),
        (verdicts_of("a"), b"PAR1" + b"\x00" * 40, "labels.csv", "invalid_parquet", []),
    ],
)  # fmt: skip
def test_a_wrong_file_is_one_finding_with_file_row_and_reason(
    judged_space, verdicts, labels, file, code, rows
):
    answer = post(judged_space, verdicts, labels)
    assert answer.status_code == 422
    (finding,) = answer.json()["findings"]
    assert (finding["file"], finding["code"], finding["rows"]) == (file, code, rows)
    assert "Traceback" not in answer.text


def test_nothing_of_a_readers_files_is_on_the_disk_in_the_database_or_in_the_log(judged_space):
    folder = Path(judged_space.log_path).parent
    before = {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    name = "an-agent-of-nobody"
    assert post(judged_space, verdicts_of(name, 20_000), labels_of(name, 10_000)).status_code == 200
    assert (
        post(judged_space, verdicts_of(name), labels_of(name).replace(b"yes", b"perhaps")).status_code == 422
    )
    for path in folder.rglob("*"):
        if path.is_file():
            assert name.encode() not in path.read_bytes(), path
    new = {path for path in folder.rglob("*") if path.is_file()} - before.keys()
    assert not [path for path in new if "uploads" in path.parts]
