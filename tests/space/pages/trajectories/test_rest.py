"""The explorer's answers over HTTP."""

import io
import re
from dataclasses import replace

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from PIL import Image

from dataset_script.sources.published import PublishedDataset
from space.pages.labels.access import BlindItems
from space.pages.trajectories.dataset import Explorer
from space.pages.trajectories.page import build_explorer_router, build_trajectories_router
from space.web.frame import PageFrame
from space.web.responses import StaticAssets


def app_over(explorer: Explorer) -> FastAPI:
    """The routes and the page, without the rest of the Space."""
    app = FastAPI()
    app.include_router(build_explorer_router(explorer, lambda request: BlindItems()))
    pages = PageFrame(StaticAssets())
    app.include_router(build_trajectories_router(explorer, pages, lambda request: BlindItems()))
    return app


@pytest.fixture(scope="module")
def client(explorer):
    with TestClient(app_over(explorer)) as client:
        yield client


def ask(client, path, entry, **changes):
    headers = changes.pop("headers", {})
    return client.get(path, params={"trajectory_id": entry.trajectory_id, **changes}, headers=headers)


def test_a_screenshot_comes_as_it_was_recorded_or_smaller(client, entries):
    whole, small = (
        ask(client, "/api/screenshot", entries[0], num=0, **more) for more in ({}, {"width": 320})
    )
    for answer, width in ((whole, 1280), (small, 320)):
        image = Image.open(io.BytesIO(answer.content))
        assert (image.get_format_mimetype(), image.width) == (answer.headers["content-type"], width)
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_an_address_with_the_datasets_version_may_be_kept_for_good_and_another_is_asked_again(
    client, explorer, entries
):
    version = explorer.of_suite().version
    for v, expected in ((version, "immutable"), ("older", "no-cache"), ("", "no-cache")):
        for path, more in (("/api/screenshot", {"width": 160}), ("/api/tree", {})):
            answer = ask(client, path, entries[0], num=0, v=v, **more)
            assert expected in answer.headers["cache-control"], (path, v)


def test_whoever_has_the_picture_gets_no_body_and_it_is_not_even_read(client, entries, explorer, monkeypatch):
    first = ask(client, "/api/screenshot", entries[1], num=0, width=160)
    monkeypatch.setattr(explorer, "picture", None)
    again = ask(
        client,
        "/api/screenshot",
        entries[1],
        num=0,
        width=160,
        headers={"if-none-match": first.headers["etag"]},
    )
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])


def test_other_steps_widths_and_runs_have_other_tags(client, entries):
    asked = [
        (entries[0], {"num": 0}), (entries[0], {"num": 1}), (entries[0], {"num": 0, "width": 160}),
        (entries[1], {"num": 0}),
    ]  # fmt: skip
    tags = {ask(client, "/api/screenshot", entry, **more).headers["etag"] for entry, more in asked}
    assert len(tags) == 4


@pytest.mark.parametrize(
    ("path", "params", "status"),
    [
        ("/api/screenshot", {"num": "999"}, 404),
        ("/api/screenshot", {"num": "-1"}, 422),
        ("/api/screenshot", {"num": "0", "width": 161}, 422),
        ("/api/screenshot", {"num": "0", "width": 100_000}, 422),
        ("/api/screenshot", {}, 422),
        ("/api/screenshot", {"num": "0", "trajectory_id": "../../etc/passwd"}, 404),
        ("/api/screenshot", {"num": "last", "trajectory_id": "none"}, 404),
        ("/api/screenshot", {"num": "0", "trajectory_id": "x" * 400}, 422),
        ("/api/goal_image", {"num": "99"}, 404),
        ("/api/goal_image", {"num": "last"}, 422),
        ("/api/tree", {"num": "99"}, 404),
        ("/api/tree", {"num": "0", "form": "other"}, 422),
        ("/api/tree", {"num": "0", "trajectory_id": "none"}, 404),
    ],
)
def test_what_is_not_there_or_asked_amiss_is_told_so(client, entries, path, params, status):
    answer = ask(client, path, entries[0], **params)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"


def test_the_last_screenshot_of_a_run_that_has_none_is_no_content_and_no_error(
    client, entries, explorer, monkeypatch
):
    monkeypatch.setattr(explorer, "_pictures", lambda *_: {})
    assert ask(client, "/api/screenshot", entries[2], num="last").status_code == 204


def test_a_tree_is_plain_text(client, entries, built):
    answer = ask(client, "/api/tree", entries[0], num=1, form="pruned")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    steps = PublishedDataset(built).rows_of("steps", entries[0].trajectory_id)
    assert answer.text == steps[1]["axtree_pruned"]


def test_the_page_is_the_list_or_the_story_of_its_address(client, entries):
    story = client.get(f"/trajectories?id={entries[0].trajectory_id}")
    assert story.headers["content-type"] == "text/html; charset=utf-8"
    assert entries[0].goal.split()[0] in story.text
    assert '<a href="/trajectories" aria-current="page">' in story.text
    assert '<form class="filters"' in client.get("/trajectories?split=dev").text
    known = {"If-None-Match": story.headers["etag"]}
    assert client.get(f"/trajectories?id={entries[0].trajectory_id}", headers=known).status_code == 304


def test_an_unknown_trajectory_is_a_page_with_404(client):
    answer = client.get("/trajectories?id=none")
    assert answer.status_code == 404
    assert "There is no such trajectory." in answer.text
    assert 'class="masthead"' in answer.text


def test_reasoning_is_that_of_the_judge_and_escaped(client, entries, explorer, monkeypatch):
    entry = entries[0]
    dataset, name = explorer.of_suite().dataset, entry.trajectory_id
    rows = dataset.rows_of("judgments", name, ["judge", "reply"])
    (written,) = (row["reply"] for row in rows if row["judge"] == "aerv")
    assert written.startswith("<reasoning>") and explorer.reasoning(name, "aerv") in written
    answer = ask(client, "/trajectories/reasoning", entry, judge="aerv")
    assert answer.text.startswith("<p>")
    assert "reasoning&gt;" not in answer.text
    assert (
        "No reasoning of this judge is stored"
        in ask(client, "/trajectories/reasoning", entry, judge="nobody").text
    )
    monkeypatch.setattr(explorer, "reasoning", lambda *_: "<script>x</script>")
    assert "<script>" not in ask(client, "/trajectories/reasoning", entry, judge="aerv").text


def test_the_steps_of_a_run_are_shown_without_verdicts_and_in_full_only_if_they_are_few(
    client, entries, explorer, monkeypatch
):
    entry = entries[0]
    steps = explorer.blind_story(entry.trajectory_id).steps
    assert client.get("/trajectories/steps?trajectory_id=none").status_code == 404
    answer = ask(client, "/trajectories/steps", entry)
    assert re.findall(r"<h4>Step (\d+)", answer.text) == [str(each.place) for each in steps]
    assert answer.text.count("<img loading=") == sum(each.size is not None for each in steps)
    assert "aerv" not in answer.text and "verdict" not in answer.text
    text = "<script>x</script>" + 5_000 * "y"
    many = tuple(replace(steps[0], place=place, text=text) for place in range(1, 101))
    monkeypatch.setattr(
        explorer, "blind_story", lambda _: replace(explorer.story(entry.trajectory_id), steps=many)
    )
    long = ask(client, "/trajectories/steps", entry).text
    # 100 steps: the first 20, a line on 60 steps, and the last 20
    assert re.findall(r"<h4>Step (\d+)", long) == [*map(str, range(1, 21)), *map(str, range(81, 101))]
    assert "60 steps are left out here" in long and "<script>" not in long and "… (cut)" in long
    assert len(long) < 40 * 5_000  # a text of 5,018 characters would be longer


def test_a_dataset_that_cannot_be_read_answers_503_without_its_place(built, tmp_path):
    from tests.space.pages.trajectories.test_dataset import explorer_over

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "manifest.json").write_text("{}")
    app = app_over(explorer_over(tmp_path / "data", tmp_path))
    client = TestClient(app, raise_server_exceptions=False)
    for path in (
        "/trajectories",
        "/trajectories?id=x",
        "/api/tree?trajectory_id=x&num=0",
    ):
        answer = client.get(path)
        assert (answer.status_code, str(tmp_path) in answer.text) == (503, False), path
