"""One rule for the labels of single test trajectories, on every page.

Two servers differ in nothing but the test labels, which are the opposite of each other. If the labels are
private, no page and no response tells the servers apart. If they are public, the pages of a trajectory, of
errors and of disputes show them.
"""

import csv
import re

import pytest

from arb.core.suite import load_suite
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.support.permissions import expected
from tests.support.space_app import local_client, signed_in
from tests.support.submissions import RELEASED_HEADER, send, settings_for, verdicts, write_suite
from tests.support.synthetic_dataset import Shape, make_dataset

OPPOSITE = {"Successful": "Unsuccessful", "Unsuccessful": "Successful", "Yes": "No", "No": "Yes"}
SHAPE = Shape(pages=2, tree_characters=500, mean_steps=2)


def two_servers(folder, is_public: bool) -> tuple[SubmissionsApp, SubmissionsApp]:
    """Two servers with one dataset and one submission, and opposite labels of the test trajectories."""
    services = []
    for name in ("one", "other"):
        place = folder / name
        toml = write_suite(place) / "suite.toml"
        if not is_public:
            toml.write_text(toml.read_text().replace('labels = "public"', 'labels = "private"'))
        suite = load_suite(str(place / "small"))
        if name == "one":
            make_dataset(folder / "dataset", suite, SHAPE)
        else:
            turn_around(place / "labels.csv", {each.trajectory_id for each in suite.split("test")})
        service = SubmissionsApp(settings_for(place, place / "state", data_dir=folder / "dataset"))
        assert service.suite.labels_are_public == is_public
        send(service, verdicts(service.suite, misses=2, false_alarms=3), judge="Bold")
        services.append(service)
    return services[0], services[1]


def turn_around(path, ids: set[str]) -> None:
    with path.open(newline="") as file:
        _, *rows = csv.reader(file)
    turned = []
    for row in rows:
        is_test = "/".join((row[1], row[3], row[2])) in ids
        turned.append([*row[:5], *(OPPOSITE.get(word, word) if is_test else word for word in row[5:])])
    assert turned != rows
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([RELEASED_HEADER, *turned])


def addresses(service: SubmissionsApp) -> list[str]:
    """Every page and response that can be read, for some test trajectories, judges and filters."""
    plain = [route.split()[1] for route in expected() if route.startswith("GET ") and "{" not in route]
    ids = [each.trajectory_id for each in service.suite.split("test")[:4]]
    judges = ["functional", "gpt-4o-noscreen"]
    found = [path for path in plain if path not in ("/gradio_api/queue/data", "/gradio_api/upload_progress")]
    for name in ids:
        found += [f"/trajectories?id={name}", f"/disputes?trajectory_id={name}", f"/discuss?id={name}"]
        found.append(f"/trajectories/steps?trajectory_id={name}")
        for judge in judges:
            found.append(f"/trajectories?id={name}&judge={judge}")
            found.append(f"/trajectories/reasoning?trajectory_id={name}&judge={judge}")
            found.append(f"/disputes?trajectory_id={name}&judge={judge}")
    for judge in judges:
        found.append(f"/errors?judge={judge}&split=test")
    for filters in ("outcome=success", "outcome=side_effect", "judges=wrong", "outcome=unsure"):
        found += [f"/trajectories?{filters}", f"/trajectories?{filters}&split=test"]
    return [*found, "/errors?split=test", "/rates?split=test", "/rates?labels=5"]


def answer(client, service: SubmissionsApp, path: str, name: str) -> str:
    """The status and text of a response, without hashes, times and the folder of the server."""
    got = client.get(path, headers=signed_in(service, name) if name else {})
    text = re.sub(r"\b[0-9a-f]{12,}\b", "HASH", got.text)
    text = re.sub(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?", "TIME", text)
    return f"{got.status_code} {text}"


@pytest.mark.slow
def test_no_page_of_a_private_suite_tells_opposite_labels_apart(tmp_path):
    one, other = two_servers(tmp_path, is_public=False)
    assert (one.labels.test.primary["success"] != other.labels.test.primary["success"]).all()
    clients = local_client(one), local_client(other)
    n_compared = 0
    for path in addresses(one):
        for name in ("", "stranger"):
            first, second = (
                answer(client, service, path, name)
                for client, service in zip(clients, (one, other), strict=True)
            )
            if not path.startswith(("/metrics", "/gradio", "/config", "/theme", "/api/sessions")):
                assert first == second, f"{path} tells the labels apart"
                n_compared += first.startswith("200")
    assert n_compared > 60
    about = shown_text(clients[0].get("/about").text)
    assert "contains the label of a test trajectory" in about


@pytest.fixture(scope="module")
def public_servers(tmp_path_factory):
    return two_servers(tmp_path_factory.mktemp("public"), is_public=True)


@pytest.mark.slow
def test_a_public_suite_shows_the_same_labels_on_all_its_pages(public_servers):
    # By place: the test trajectory 0 is a success, 1 is none; on the other server it is the other way round.
    for service, answers in zip(public_servers, (("Yes", "No"), ("No", "Yes")), strict=True):
        client = local_client(service)
        for trajectory, label in zip(service.suite.split("test")[:2], answers, strict=True):
            name = trajectory.trajectory_id
            story = client.get("/trajectories", params={"id": name}).text
            assert f'<b class="outcome {label.lower()}">{label}</b>' in story
            assert f"Success (labelled: {label})" in story
            form = client.get("/disputes", params={"trajectory_id": name}).text
            assert f"Success (labelled: {label})" in form and f"Success: <strong>{label}</strong>" in form
            outcome = {"Yes": "success", "No": "failure"}[label]
            listed = client.get("/trajectories", params={"outcome": outcome, "split": "test"}).text
            assert name in listed
        (row,) = (row for row in service.records.board().rows if row.provenance == "scored")
        errors = {
            found for page in (1, 2, 3)
            for found in re.findall(
                r'href="/disputes\?trajectory_id=([^"&]+)&amp;',
                client.get("/errors", params={"judge": row.id, "split": "test", "page": page}).text,
            )
        }  # fmt: skip
        wrong = service.labels.test.primary["success"] != service.records.verdicts(row.id).codes("success")
        assert errors == {
            each.trajectory_id
            for each, is_wrong in zip(service.suite.split("test"), wrong, strict=True)
            if is_wrong
        }
        about = shown_text(client.get("/about").text)
        assert "Pages show every label, of dev and of test" in about
        assert "contains the label of a test trajectory" not in about
