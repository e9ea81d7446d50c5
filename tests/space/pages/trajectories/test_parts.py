"""Labels of steps next to the answers of judges: on the run's page, over REST, and on the page of errors.

The judge says 1 about every step. The labels of STUBBORN's steps are 1, -1 and -1, those of OTHER's 1 and 0.
"""

import json
import re

import pytest

from arb.core.judge_info import declare
from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from submissions.labels.annotation_service import AnnotationService
from tests.space.conftest import shown_text
from tests.support.space_app import local_client, signed_in
from tests.support.step_suite import (
    CAREFUL,
    FINAL,
    FINALS,
    OTHER,
    STEP,
    STEPS,
    STUBBORN,
    write_step_suite,
)


@pytest.fixture(scope="module")
def service(tmp_path_factory) -> SubmissionsApp:
    folder = tmp_path_factory.mktemp("parts")
    suite = write_step_suite(folder / "sample")  # named like the dataset that ships, so that it has its runs
    settings = Settings(suite=str(suite), state_dir=folder / "state", data_dir=folder / "none")
    service = SubmissionsApp(settings)
    rows = [{"trajectory_id": run, "step": None, "final": FINALS[run]} for run in (STUBBORN, OTHER)]
    for run in (STUBBORN, OTHER):
        rows += [{"trajectory_id": run, "step": step, "move": "1"} for step in STEPS[run]]
    upload = service.intake.check("\n".join(map(json.dumps, rows)).encode(), "yes.jsonl", "test")
    said = declare(account="eve", judge="Says 1", kind="Other", inputs="tree", test_labels_used=False)
    service.intake.submit(upload, said)
    return service


@pytest.fixture(scope="module")
def client(service):
    return local_client(service)


def of_step(page: str, step: int) -> str:
    """What the page shows of a step, as text."""
    return shown_text(page.split('<section class="step" data-place="')[step].partition("</aside>")[0])


def test_a_step_shows_its_label_next_to_the_answers_of_judges(client):
    page = client.get("/trajectories", params={"id": STUBBORN}).text
    assert "Move: Helps Says 1 (tree): Helps" in of_step(page, 1)
    assert "Move: Harms Says 1 (tree): Helps unlike the label" in of_step(page, 2)
    assert "Move:" not in of_step(page, 4)  # the suite does not ask about it


def test_a_list_leads_to_the_steps_where_a_judge_is_wrong(client):
    page = client.get("/trajectories", params={"id": STUBBORN}).text
    section = re.search(r'<section class="wrong-parts">.*?</section>', page, re.DOTALL)[0]
    assert "Steps where Says 1 (tree) is wrong" in section
    assert re.findall(r'data-step="(\d+)"', section) == ["2", "3"]
    assert all("step=" in address for address in re.findall('href="([^"]+)"', section))


def test_a_run_of_dev_shows_labels_and_no_judge(client):
    page = client.get("/trajectories", params={"id": CAREFUL}).text
    assert "Move: Helps" in of_step(page, 1)
    assert "Says 1" not in page


def test_rest_gives_the_same(client):
    found = client.get("/api/parts", params={"trajectory_id": OTHER}).json()["parts"]
    assert [(each["step"], each["target"], each["label"]) for each in found] == [
        ("1", "move", "1"), ("2", "move", "0")
    ]  # fmt: skip
    assert [[answer["is_wrong"] for answer in each["answers"]] for each in found] == [[False], [True]]
    assert client.get("/api/parts", params={"trajectory_id": "a/b/c"}).status_code == 404


def test_hidden_labels_show_no_step_and_no_answer(service, monkeypatch):
    monkeypatch.setattr(type(service.suite), "shows_labels", lambda suite, split: split == "dev")
    client = local_client(service)
    assert client.get("/api/parts", params={"trajectory_id": OTHER}).json() == {"parts": []}
    page = client.get("/trajectories", params={"id": OTHER}).text
    assert "Move:" not in page and "Says 1" not in page


def test_an_annotator_sees_no_label_of_a_run_that_is_still_to_do(service, client):
    annotations, grace = AnnotationService(service), Actor("grace", is_maintainer=True)
    annotations.invite("ada", grace)
    annotations.assign_trajectories([OTHER], 0.0, 1, grace)
    ada = signed_in(service, "ada")
    assert client.get("/api/parts", params={"trajectory_id": OTHER}, headers=ada).status_code == 403
    assert client.get("/api/parts", params={"trajectory_id": STUBBORN}, headers=ada).status_code == 200


def test_the_page_of_errors_lists_the_steps_where_the_judge_is_wrong(service, client):
    (row,) = [each for each in service.records.board().rows if each.judge == "Says 1"]
    page = client.get("/errors", params={"judge": row.id, "split": "test"}).text
    section = re.search(r'aria-labelledby="wrong-parts".*?</section>', page, re.DOTALL)[0]
    assert "3 on test." in section  # two of STUBBORN's steps, and one of OTHER's
    assert re.findall(r">Move (\d+)</a>", section) == ["2", "2", "3"]  # OTHER comes first


def test_parts_are_listed_with_their_label_and_the_answers(tmp_path):
    (tmp_path / "sample").mkdir()
    suite = write_step_suite(tmp_path / "sample", FINAL + STEP.replace('level = "step"', 'level = "part"'))
    (suite / "items.csv").write_text(f"trajectory_id,part\n{OTHER},login\n{OTHER},order\n")
    rows = [f"{OTHER},login,1,annotator-1,1,", f"{OTHER},order,1,annotator-1,-1,"]
    (suite / "test_labels.csv").write_text(
        "\n".join(["trajectory_id,part,annotation,annotator,move,final", *rows])
    )
    service = SubmissionsApp(
        Settings(suite=str(suite), state_dir=tmp_path / "state", data_dir=tmp_path / "none")
    )
    lines = [{"trajectory_id": run, "part": None, "final": "1"} for run in (STUBBORN, OTHER)]
    lines += [{"trajectory_id": OTHER, "part": part, "move": "1"} for part in ("login", "order")]
    upload = service.intake.check("\n".join(map(json.dumps, lines)).encode(), "yes.jsonl", "test")
    said = declare(account="eve", judge="Says 1", kind="Other", inputs="tree", test_labels_used=False)
    service.intake.submit(upload, said)
    page = local_client(service).get("/trajectories", params={"id": OTHER}).text
    text = shown_text(page)
    assert "Parts where Says 1 (tree) is wrong order" in text
    assert "login Move: Helps Says 1 (tree): Helps order Move: Harms Says 1 (tree): Helps unlike" in text
