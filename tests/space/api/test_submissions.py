"""Tests of checking and submitting over HTTP: what is accepted and refused, without any traceback."""

import errno
import json
import os

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from leaderboard.__main__ import app as leaderboard_app
from leaderboard.labels.annotations import write_parquet
from leaderboard.success_rates.runs import Draw, Stratum
from space.api.submissions import build_submission_router
from space.operations.limits import CheckLimit
from space.operations.metrics import Metrics
from space.services import Services
from submissions.app import SubmissionsApp
from tests.support.annotations import by
from tests.support.space_app import rest_app
from tests.support.submissions import assert_nothing_was_written, settings_for, verdicts

DECLARED = {
    "account": "Ann", "judge": "Alpha", "kind": "LLM judge", "inputs": "tree", "test_labels_used": "false",
}  # fmt: skip


def client_of(service) -> TestClient:
    app = rest_app(service)
    app.include_router(build_submission_router(Services(service, None)))
    return TestClient(app)


@pytest.fixture
def client(service):
    return client_of(service)


def post(client, path, content, data=None, name="verdicts.jsonl", **options):
    return client.post(path, files={"file": (name, content)}, data=data or {}, **options)


def test_a_good_file_is_checked_and_nothing_is_recorded(client, service):
    answer = post(client, "/api/check", verdicts(service.suite))
    assert answer.status_code == 200
    assert answer.json()["acceptable"] is True
    assert all(row.provenance != "scored" for row in service.records.board().rows)


def test_what_is_sent_and_what_is_answered_name_their_formats(client, service):
    assert client.get("/openapi.json").text.count("A prediction file of format 1 or older") == 2
    found = post(client, "/api/submissions", verdicts(service.suite), DECLARED).json()
    assert (found["format"], found["report"]["format"]) == (1, 1)


def test_a_dev_file_is_checked_against_dev(client, service):
    content = verdicts(service.suite, "dev")
    assert post(client, "/api/check?split=dev", content).json()["acceptable"] is True
    assert post(client, "/api/check?split=test", content).json()["acceptable"] is False


def test_a_full_disk_is_507_for_a_while_and_nothing_is_half_stored(client, service, monkeypatch):
    content = verdicts(service.suite)

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        refused = post(client, "/api/submissions", content, DECLARED)
    assert (refused.status_code, refused.headers["Retry-After"]) == (507, "30")
    message = "the Space's disk is full, so nothing was stored; try again later"
    assert refused.json() == {"detail": message}
    assert [path for path in service.files.folder.rglob("*") if path.is_file()] == []
    assert not service.records.board().rows
    assert post(client, "/api/submissions", content, DECLARED).status_code == 201


def test_every_problem_of_the_declaration_comes_at_once(client, service):
    answer = post(client, "/api/submissions", verdicts(service.suite), {"link": "javascript:alert(1)"})
    assert answer.status_code == 422
    fields = {problem["field"] for problem in answer.json()["fields"]}
    assert fields == {"account", "judge", "kind", "inputs", "link", "test_labels_used"}


def test_a_bad_file_is_refused_with_its_findings_and_not_recorded(client, service):
    answer = post(client, "/api/submissions", b"not json\n", DECLARED)
    assert answer.status_code == 422
    assert answer.json()["check"]["findings"]
    assert not [row for row in service.records.board().rows if row.provenance == "scored"]


def test_without_a_file_the_answer_says_how_to_send_one(client):
    answer = client.post("/api/check", data={"split": "test"})
    assert answer.status_code == 422
    assert "curl -F file=@FILE" in answer.json()["detail"]
    for form in ({"data": {"file": "text"}, "files": {"x": b""}}, {"files": {"other": b"{}"}}):
        answer = client.post("/api/submissions", **form)
        assert (answer.status_code, answer.json()["detail"][:8]) == (422, "there is")


def test_a_body_over_the_limit_is_cut_off_while_it_comes_in(suite_folder, tmp_path):
    settings = settings_for(suite_folder, tmp_path / "state", max_upload_bytes=10_000)
    client = client_of(SubmissionsApp(settings))
    taken = 0

    def endless():
        nonlocal taken
        yield b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n'
        for _ in range(100):
            taken += 10_000
            yield b" " * 10_000

    headers = {"content-type": "multipart/form-data; boundary=x"}
    answer = client.post("/api/check", content=endless(), headers=headers)
    assert answer.status_code == 413
    assert "10,000 bytes" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("multipart/form-data; boundary=x", b"--x\r\nnonsense"),
        ("multipart/form-data", b"no boundary"),
        ("application/json", b'{"file": "x"}'),
        ("text/plain", b"\x00\xff"),
    ],
)
def test_a_body_that_is_no_form_is_refused_and_never_an_error_of_ours(client, content_type, body):
    answer = client.post("/api/check", content=body, headers={"content-type": content_type})
    assert answer.status_code in (400, 422)
    assert answer.json()["detail"]


def test_many_files_and_many_fields_are_refused(client):
    files = [("file", ("a.jsonl", b"{}")), ("other", ("b.jsonl", b"{}"))]
    assert client.post("/api/check", files=files).status_code == 400
    fields = {f"field{number}": "x" for number in range(40)}
    assert client.post("/api/check", files={"file": ("a", b"{}")}, data=fields).status_code == 400


def test_pages_of_other_sites_may_not_send_files(client, service):
    headers = {"sec-fetch-site": "cross-site"}
    answer = post(client, "/api/submissions", verdicts(service.suite), DECLARED, headers=headers)
    assert answer.status_code == 403


def test_a_failure_on_our_side_is_reported_without_details(service, monkeypatch):
    def fail(*_):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(service.intake, "submit", fail)
    answer = post(client_of(service), "/api/submissions", verdicts(service.suite), DECLARED)
    assert answer.status_code == 500
    assert "not entered twice" in answer.json()["detail"]
    assert "secret" not in answer.text


@pytest.mark.parametrize("file_format", ["jsonl", "csv", "parquet"])
def test_a_template_filled_in_is_acceptable(client, service, file_format):
    answer = client.get(f"/api/template?split=test&format={file_format}")
    assert answer.headers["content-disposition"].endswith(f'-test.{file_format}"')
    report = post(client, "/api/check", answer.content, name=f"a.{file_format}").json()
    assert report["rows"] == len(service.suite.split("test"))
    if file_format == "jsonl":
        first = json.loads(answer.content.splitlines()[0])
        targets = dict.fromkeys(("success", "side_effect", "repetition"))
        assert first == {"trajectory_id": service.suite.split("test")[0].trajectory_id, **targets}


def runs_file(n: int = 40, agent: str = "a", **wrong: bool) -> bytes:
    """Return a judge's verdicts on ``n`` runs of an agent. Every fourth run succeeded.

    The judge is right except for the tasks in ``wrong``.
    """
    rows = [
        {"trajectory_id": f"own/{agent}/task{i}", "success": wrong.get(f"task{i}", i % 4 == 0)}
        for i in range(n)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def labels_file(n: int = 20, agent: str = "a") -> bytes:
    """Return the labels of an agent's first ``n`` runs as CSV."""
    rows = [f"own/{agent}/task{i},{'yes' if i % 4 == 0 else 'no'}" for i in range(n)]
    return "\n".join(["trajectory_id,success", *rows]).encode()


def post_estimate(client, labels: bytes, *verdicts: bytes, **options):
    names = [f"judge-{number}.jsonl" for number in range(len(verdicts))]
    files = [("verdicts", (name, content)) for name, content in zip(names, verdicts, strict=True)]
    return client.post("/api/estimate", files=[*files, ("labels", ("labels.csv", labels))], **options)


def test_an_estimate_is_that_of_the_command(client, tmp_path):
    wrong = runs_file(task1=True, task39=True)
    (tmp_path / "judge-0.jsonl").write_bytes(runs_file())
    (tmp_path / "judge-1.jsonl").write_bytes(wrong)
    (tmp_path / "labels.csv").write_bytes(labels_file())
    paths = [str(tmp_path / name) for name in ("judge-0.jsonl", "judge-1.jsonl", "labels.csv")]
    call = ["estimate", "--verdicts", paths[0], "--verdicts", paths[1], "--labels", paths[2], "--json"]
    answer = post_estimate(client, labels_file(), runs_file(), wrong)
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    assert answer.json() == json.loads(CliRunner().invoke(leaderboard_app, call).stdout)
    (agent,) = answer.json()["agents"]
    # 10 of 40 runs succeeded; the second judge adds two
    assert [judge["rate"] for judge in agent["judge_alone"]] == [10 / 40, 12 / 40]
    assert (agent["n"], agent["labelled"]) == (40, 20)


def post_draw(client, labels: bytes, draw: bytes):
    files = {
        "verdicts": ("judge-0.jsonl", runs_file()),
        "labels": ("labels.csv", labels),
        "draw": ("a.draw.json", draw),
    }
    return client.post("/api/estimate", files=files)


def test_the_record_of_a_draw_gives_labelled_runs_their_weights(client):
    ids = [f"own/a/task{i}" for i in range(40)]
    successes, failures = ids[::4], [run for run in ids if run not in ids[::4]]
    strata = (
        Stratum("a", {"judge-0": True}, 10, tuple(successes)),
        Stratum("a", {"judge-0": False}, 30, tuple(failures[:10])),
    )
    labels = "\n".join(
        ["trajectory_id,success"]
        + [f"{run},{'yes' if run in successes[:5] else 'no'}" for run in (*successes, *failures[:10])]
    ).encode()
    answer = post_draw(client, labels, Draw(strata=strata).to_json().encode())
    (agent,) = answer.json()["agents"]
    # 5 of the 10 runs called successful are, none of the 10 drawn of 30: (10 x 5/10 + 30 x 0) / 40;
    # as one uniform draw it would be 5 of 20 labels
    assert agent["labels_only"]["rate"] == pytest.approx(5 / 40)
    assert not any("is not recorded" in warning for warning in answer.json()["warnings"])


def test_a_draw_that_is_none_or_by_an_absent_judge_is_a_finding_of_its_file(client):
    (finding,) = post_draw(client, labels_file(), b"[]").json()["findings"]
    assert (finding["file"], finding["code"]) == ("a.draw.json", "not_a_draw")
    other = Draw(strata=(Stratum("a", {"other": True}, 40, ("own/a/task1",)),)).to_json()
    answer = post_draw(client, labels_file(), other.encode())
    (finding,) = answer.json()["findings"]
    assert answer.status_code == 422 and (finding["file"], finding["code"]) == (
        "a.draw.json",
        "judge_missing",
    )


def test_annotations_are_labels_and_nothing_of_the_files_is_kept(client, service):
    answers = [by(f"own/a/task{i}", "Secret Name", "yes" if i % 4 == 0 else "no") for i in range(20)]
    answer = post_estimate(client, write_parquet(answers), runs_file())
    assert answer.status_code == 200, answer.text
    assert answer.json()["agents"][0]["labelled"] == 20
    assert_nothing_was_written(service)
    left = [path for path in service.settings.state_dir.rglob("*") if path.is_file()]
    assert not [path for path in left if b"own/a/task" in path.read_bytes()]


def test_every_problem_of_every_file_comes_at_once_with_file_rows_and_column(client):
    twice = b"trajectory_id,success\nown/a/task1,yes\nown/a/task1,no\ntwo/parts,no\n"
    answer = post_estimate(client, twice, b"not json", runs_file().replace(b"false", b"NaN", 1))
    assert answer.status_code == 422
    assert answer.json()["acceptable"] is False
    found = {(each["file"], each["code"]): each for each in answer.json()["findings"]}
    assert {file for file, _ in found} == {"judge-0.jsonl", "judge-1.jsonl", "labels.csv"}
    assert (
        found["judge-1.jsonl", "nan"]["rows"] == [2] and found["judge-1.jsonl", "nan"]["column"] == "success"
    )
    assert found["labels.csv", "duplicate_id"]["rows"] == [3]
    assert found["labels.csv", "malformed_id"]["rows"] == [4]


def test_labels_of_other_runs_are_one_finding(client):
    answer = post_estimate(client, labels_file(agent="b"), runs_file())
    (finding,) = answer.json()["findings"]
    assert (finding["file"], finding["code"], finding["count"]) == ("labels.csv", "no_overlap", 20)


def test_a_missing_file_is_named_and_more_judges_than_the_limit_are_refused(client):
    answer = client.post("/api/estimate", files={"labels": ("labels.csv", labels_file())})
    assert answer.status_code == 422
    assert answer.json()["detail"] == (
        "there is no file; send it as the form's part `verdicts` (curl -F verdicts=@FILE)"
    )
    answer = client.post("/api/estimate", data={"labels": "text"}, files={"verdicts": b"{}"})
    assert "the form's part `labels`" in answer.json()["detail"]
    assert post_estimate(client, labels_file(), *[runs_file()] * 9).status_code == 422
    assert post_estimate(client, labels_file(), *[runs_file()] * 10).status_code == 400


def test_an_estimate_is_one_check_whatever_the_number_of_its_files(service, within_a_minute):
    checks = CheckLimit(service.settings.model_copy(update={"checks_a_minute": 2}), Metrics())
    app = rest_app(service, counts={"/api/estimate": checks.take})
    app.include_router(build_submission_router(Services(service, None, checks)))
    client = TestClient(app)
    for status in (422, 422, 429):
        assert post_estimate(client, b"bad", runs_file(), runs_file()).status_code == status
