"""A client that openapi-python-client generates from the OpenAPI document, against a running Space."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from arb.core.settings import Settings
from space.auth.access_tokens import AccessTokens
from submissions.records.database import open_database
from tests.conftest import _absent
from tests.support.running_space import SampleSpace

pytestmark = pytest.mark.slow
# No generator knows `image/*` by itself; it is enough to say that a picture is bytes.
CONFIGURATION = '{"content_type_overrides": {"image/*": "application/octet-stream"}, "post_hooks": []}'


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """The sample behind the name of another host, so that submitting needs an access token."""
    folder = tmp_path_factory.mktemp("sample")
    running = SampleSpace(folder, ARB_ALLOWED_HOSTS="board.example.org")
    engine = open_database(Settings(state_dir=folder / "state").records_url())
    running.token = AccessTokens(engine).make("Eve")
    engine.dispose()
    yield running
    running.kill()


@pytest.fixture(scope="module")
def generated(space, tmp_path_factory) -> Path:
    """The folder of the generated package; the generator may not warn of anything that it leaves out."""
    path = os.environ.get("OPENAPI_CLIENT_PATH")
    if not path:
        _absent("OPENAPI_CLIENT_PATH names no folder with openapi-python-client: see .ci/openapi-client.txt")
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(space.get("/api/openapi.json"))
    (folder / "config.json").write_text(CONFIGURATION)
    words = "generate --path openapi.json --config config.json --output-path space_client --meta none"
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *words.split(), "--fail-on-warning"],
        cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "space_client"


@pytest.fixture(scope="module")
def client(generated, space):
    """The modules of the package, and clients with and without a token."""
    sys.path.insert(0, str(generated.parent))
    try:
        found = SimpleNamespace(
            models=importlib.import_module("space_client.models"),
            types=importlib.import_module("space_client.types"),
            **{
                each.stem: importlib.import_module(f"space_client.api.{each.parent.name}.{each.stem}")
                for each in (generated / "api").glob("*/[gp]*.py")
            },
        )
        package = importlib.import_module("space_client")
    finally:
        sys.path.remove(str(generated.parent))
    found.anybody = package.Client(space.url, timeout=120)
    found.eve = package.AuthenticatedClient(space.url, space.token, timeout=120)
    return found


def test_every_operation_is_generated_with_a_type_for_each_response(generated, space):
    described = json.loads(space.get("/api/openapi.json"))["paths"]
    modules = list((generated / "api").glob("*/[gp]*.py"))
    assert len(modules) == sum(map(len, described.values()))
    untyped = [
        each.stem for each in modules if re.search(r"cast\(Any|Response\[Any|\bAny \|", each.read_text())
    ]
    assert untyped == []


def test_the_board_and_its_judges_are_objects_that_lose_nothing(client, space):
    board = client.get_board_json.sync(client=client.anybody)
    assert board.to_dict() == json.loads(space.get("/api/board.json"))
    says_yes = next(row for row in board.rows if row.id == space.judge)
    overall = says_yes.labels["success"].overall
    assert overall.precision == overall.tp / len(space.ids)
    page = client.get_board.sync(client=client.anybody, limit=1)
    assert (page.n_rows, page.rows[0].id) == (len(board.rows), board.rows[0].id)
    judges = client.get_judges.sync(client=client.anybody)
    assert judges.to_dict() == json.loads(space.get("/api/judges"))
    problem = client.get_board.sync(client=client.anybody, cursor="none")
    assert "start again without a cursor" in problem.detail


def test_a_run_gives_its_tree_and_its_screenshot(client, space):
    split = client.models.GetTemplateSplit("test")
    template = client.get_template.sync(client=client.anybody, split=split).payload.read()
    run = json.loads(template.splitlines()[0])["trajectory_id"]
    assert run == space.ids[0]
    tree = client.get_tree.sync(client=client.anybody, trajectory_id=run, num=0)
    assert "RootWebArea" in tree
    picture = client.get_screenshot.sync(client=client.anybody, trajectory_id=run, num=0)
    assert picture.payload.read(4) in (b"\x89PNG", b"RIFF")


def submit(client, sender, content: bytes):
    """Send a file of a judge; gives the response."""
    models = client.models
    body = models.BodyPostSubmissions(
        file=client.types.File(content, "verdicts.jsonl"),
        judge="A generated client's",
        kind=models.BodyPostSubmissionsKind("LLM judge"),
        inputs=models.BodyPostSubmissionsInputs("tree"),
        test_labels_used=models.BodyPostSubmissionsTestLabelsUsed("no"),
    )
    return client.post_submissions.sync_detailed(client=sender, body=body)


def test_a_bad_file_is_refused_with_findings_and_a_good_one_is_scored(client, space):
    good = "".join(json.dumps({"trajectory_id": run, "success": True}) + "\n" for run in space.ids).encode()
    refused = submit(client, client.anybody, good)
    assert refused.status_code == 401 and "access token" in refused.parsed.detail
    bad = submit(client, client.eve, good.replace(b"true", b'"perhaps"', 1))
    assert bad.status_code == 422 and isinstance(bad.parsed, client.models.Problem)
    (error,) = [each for each in bad.parsed.check.findings if each.level == "error"]
    assert (error.column, error.rows) == ("success", [1])

    sent = submit(client, client.eve, good)
    assert sent.status_code == 201, sent.content
    status = client.get_submissions_submission_id.sync(sent.parsed.submission_id, client=client.eve)
    assert (status.status, status.account, status.standing.is_withdrawn) == ("accepted", "Eve", False)
    overall = status.report.labels["success"].overall
    assert overall.recall == 1 and overall.precision == overall.positives / overall.n
    assert client.get_me.sync(client=client.eve).name == "Eve"
    assert client.get_allowance.sync(client=client.eve).left_today == 1


def test_files_give_an_estimate_or_findings(client):
    verdicts = [{"trajectory_id": f"own/a/task{i}", "success": i % 4 == 0} for i in range(40)]
    labels = "trajectory_id,success\n" + "".join(f"own/a/task{i},{i % 4 == 0}\n" for i in range(20))

    def estimate(labels: str):
        file = client.types.File("".join(json.dumps(row) + "\n" for row in verdicts).encode(), "judge.jsonl")
        labels_file = client.types.File(labels.encode(), "labels.csv")
        body = client.models.BodyPostEstimate(verdicts=[file], labels=labels_file)
        return client.post_estimate.sync(client=client.anybody, body=body)

    (agent,) = estimate(labels).agents
    assert (agent.n, agent.labelled, agent.judge_alone[0].rate) == (40, 20, 0.25)
    low, high = agent.assisted.ci_on_tasks
    assert low < agent.assisted.rate == 0.25 < high
    (finding,) = estimate(labels + "own/a/task1,perhaps\n").findings
    assert finding.file == "labels.csv"
