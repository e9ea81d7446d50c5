"""Steps in the browser: annotated by keyboard, and shown on the run's page next to the answers of a judge.

Named parts of a run are annotated in the same form.
"""

import json

import pytest
from playwright.sync_api import expect

from arb.core.judge_info import declare
from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.labels.annotation_service import AnnotationService
from tests.support.browsing import keep_picture, sign_in
from tests.support.running_space import RunningSpace
from tests.support.step_suite import FINALS, OTHER, STEPS, STUBBORN, write_part_suite, write_step_suite

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def settings(tmp_path_factory) -> Settings:
    """A suite of runs of the sample, which asks about steps; a judge says 1 about each of them.

    Ada has STUBBORN to annotate, whose steps 1, 2 and 3 are asked.
    """
    folder = tmp_path_factory.mktemp("steps")
    suite = write_step_suite(folder / "sample")  # named like the dataset that ships, so that it has its runs
    settings = Settings(suite=str(suite), state_dir=folder / "state", data_dir=folder / "none")
    service = SubmissionsApp(settings)
    rows = [{"trajectory_id": run, "step": None, "final": FINALS[run]} for run in (STUBBORN, OTHER)]
    for run in (STUBBORN, OTHER):
        rows += [{"trajectory_id": run, "step": step, "move": "1"} for step in STEPS[run]]
    upload = service.intake.check("\n".join(map(json.dumps, rows)).encode(), "yes.jsonl", "test")
    said = declare(account="eve", judge="Says 1", kind="Other", inputs="tree", test_labels_used=False)
    service.intake.submit(upload, said)
    annotations, grace = AnnotationService(service), Actor("grace", is_maintainer=True)
    annotations.invite("ada", grace)
    annotations.assign_trajectories([STUBBORN], 0.0, 1, grace)
    service.engine.dispose()
    return settings


@pytest.fixture(scope="module")
def space(settings):
    running = RunningSpace(
        settings.state_dir, ARB_SUITE=settings.suite, ARB_MAINTAINERS="grace",
        ARB_DATA_DIR=str(settings.data_dir),
    )  # fmt: skip
    yield running
    running.kill()


def test_steps_are_annotated_with_one_key_each(page, space, settings):
    sign_in(page, space, "ada", "/annotate")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    shown, told = page.locator(".step:not([hidden]) .step-number"), page.locator(".steps-told")
    expect(told).to_have_text("0 of 3 steps")
    expect(page.locator(".question.is-current")).to_have_attribute("data-question", "move")
    page.keyboard.press("1")  # answers step 1 and goes on
    expect(shown).to_contain_text("Step 2")
    expect(told).to_have_text("1 of 3 steps")
    page.keyboard.press("3")
    expect(shown).to_contain_text("Step 3")
    page.keyboard.press("k")  # back to step 2, whose answer is there
    expect(page.locator("input[name=move]:checked")).to_have_value("-1")
    page.keyboard.press("u")  # undone
    expect(told).to_have_text("1 of 3 steps")
    page.keyboard.press("2")
    expect(shown).to_contain_text("Step 3")
    keep_picture(page, "annotate-steps")
    expect(page.locator(".saved-told")).to_have_text("Saved")
    page.reload()  # what is saved is still there, and the first step without an answer is shown
    expect(told).to_have_text("2 of 3 steps")
    expect(shown).to_contain_text("Step 3")
    page.keyboard.press("Enter")  # not finished without step 3
    expect(page.locator(".saved-told")).to_have_text("Answer step 3 first")
    page.keyboard.press("3")
    expect(told).to_have_text("3 of 3 steps")
    expect(page.locator(".question.is-current")).to_have_attribute("data-question", "final")
    page.keyboard.press("1")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    page.get_by_text("All done. Thank you.").wait_for()
    (saved,) = AnnotationService(SubmissionsApp(settings)).now().saved.values()
    assert saved.is_done
    assert [saved.steps[step]["move"] for step in "123"] == ["1", "0", "-1"]


def test_the_page_of_a_run_leads_to_the_steps_where_a_judge_is_wrong(page, space):
    page.goto(f"{space.url}/trajectories?id={STUBBORN}")
    here = page.locator(".step:not([hidden])")
    expect(here.locator(".part")).to_contain_text("Move: Helps")
    expect(here.locator(".part .is-wrong")).to_have_count(0)
    wrong = page.locator(".wrong-parts")
    expect(wrong).to_contain_text("Steps where Says 1 (tree) is wrong")
    wrong.get_by_role("link", name="Step 2").click()
    expect(here.locator(".part")).to_contain_text("Move: Harms")
    expect(here.locator(".is-wrong")).to_contain_text("Says 1 (tree): Helps unlike the label")
    keep_picture(page, "run-steps")
    assert "step=2" in page.url


@pytest.fixture(scope="module")
def parts(tmp_path_factory) -> Settings:
    """A suite that asks about named parts; Ada has STUBBORN, which has R1 and R2."""
    folder = tmp_path_factory.mktemp("parts")
    suite = write_part_suite(folder / "sample")
    settings = Settings(suite=str(suite), state_dir=folder / "state", data_dir=folder / "none", labels="none")
    service = SubmissionsApp(settings)
    annotations, grace = AnnotationService(service), Actor("grace", is_maintainer=True)
    annotations.invite("ada", grace)
    annotations.assign_trajectories([STUBBORN], 0.0, 1, grace)
    service.engine.dispose()
    return settings


def test_named_parts_are_annotated_one_after_the_other(page, parts):
    space = RunningSpace(
        parts.state_dir, ARB_SUITE=parts.suite, ARB_MAINTAINERS="grace", ARB_DATA_DIR=str(parts.data_dir),
        ARB_LABELS="none",
    )  # fmt: skip
    try:
        sign_in(page, space, "ada", "/annotate")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        current = page.locator(".question.is-current")
        expect(current).to_have_attribute("data-part", "R1")
        page.keyboard.press("1")  # yes, and on to the next part
        expect(current).to_have_attribute("data-part", "R2")
        page.keyboard.press("1")
        page.keyboard.press("u")  # undone: only R2 loses its answer
        expect(page.locator("[data-part=R2] input:checked")).to_have_count(0)
        expect(page.locator("[data-part=R1] input:checked")).to_have_value("yes")
        expect(page.locator(".saved-told")).to_have_text("Saved")
        page.reload()
        expect(page.locator("[data-part=R1] input:checked")).to_have_value("yes")
        expect(current).to_have_attribute("data-part", "R2")
        page.keyboard.press("2")
        expect(current).to_have_attribute("data-question", "final")
        page.keyboard.press("1")
        with page.expect_navigation():
            page.keyboard.press("Enter")
        page.get_by_text("All done. Thank you.").wait_for()
    finally:
        space.kill()
    (saved,) = AnnotationService(SubmissionsApp(parts)).now().saved.values()
    assert (saved.is_done, saved.answered_parts) == (True, {"R1": {"met": "yes"}, "R2": {"met": "no"}})
