"""Verdicts of files that were scored here: on a suite with public labels only, and read once."""

import json

import pytest

from dataset_script.settings import Settings
from space.explorer.submitted import MOST_JUDGES, SubmittedJudges
from submissions.service import SubmissionService
from tests.submissions.synthetic import send, settings_for, verdicts, write_suite


@pytest.fixture
def folder(tmp_path):
    write_suite(tmp_path)
    return tmp_path


def service_of(folder, labels: str | None) -> SubmissionService:
    said = f'labels = "{labels}"\n' if labels else ""
    (folder / "small" / "suite.toml").write_text(f"{said}[rules]\nfiles_a_day = 99\nfiles_a_year = 99\n")
    settings: Settings = settings_for(folder, folder / "state")
    return SubmissionService(settings)


def test_each_judge_is_there_with_its_best_file_in_the_order_of_the_board(folder):
    service = service_of(folder, "public")
    send(service, verdicts(service.suite, false_alarms=5), judge="Second")
    send(service, verdicts(service.suite, misses=8, false_alarms=9), judge="First")
    best = send(service, verdicts(service.suite, side_effect=True, optimality=3), judge="First").submission_id
    found = SubmittedJudges(service).of_suite("small")
    assert [judge.judge for judge in found] == ["First", "Second"]
    assert found[0].submission_id == best
    assert found[0].answers["success"].sum() == 10  # the suite's successes: every one was told
    assert set(found[0].answers) == {"success", "side_effect", "optimality"}


@pytest.mark.parametrize("labels", ["private", None])
def test_a_suite_whose_labels_are_hidden_shows_nothing_of_the_files_sent_to_it(folder, labels):
    service = service_of(folder, labels)
    receipt = send(service, verdicts(service.suite, reasoning="I saw it."))
    judges = SubmittedJudges(service)
    assert judges.of_suite("small") == ()
    some_id = service.suite.split("test")[0].trajectory_id
    assert judges.reasoning("small", receipt.submission_id, some_id) is None


def test_another_suites_dataset_has_no_submitted_judges(folder):
    service = service_of(folder, "public")
    send(service, verdicts(service.suite))
    assert SubmittedJudges(service).of_suite("sample") == ()


def test_what_a_judge_wrote_on_a_trajectory_is_found(folder):
    service = service_of(folder, "public")
    lines = [json.loads(line) for line in verdicts(service.suite).splitlines()]
    for place, line in enumerate(lines):
        line["reasoning"] = f"Reason {place}"
    content = "\n".join(map(json.dumps, lines)).encode()
    receipt = send(service, content)
    judges = SubmittedJudges(service)
    wanted = lines[4]["trajectory_id"]
    assert judges.of_suite("small")[0].has_reasoning
    assert judges.reasoning("small", receipt.submission_id, wanted) == "Reason 4"
    assert judges.reasoning("small", receipt.submission_id, "webarena/none/webarena.1") is None
    assert judges.reasoning("small", "unknown", wanted) is None


def test_files_are_read_once_for_a_board(folder, monkeypatch):
    service = service_of(folder, "public")
    send(service, verdicts(service.suite), judge="Alpha")
    read, real = [], SubmissionService.verdicts
    monkeypatch.setattr(
        SubmissionService, "verdicts", lambda self, name: (read.append(name), real(self, name))[1]
    )
    judges = SubmittedJudges(service)
    judges.of_suite("small")
    judges.of_suite("small")
    assert len(read) == 1
    send(service, verdicts(service.suite, misses=1), judge="Beta")
    assert [judge.judge for judge in judges.of_suite("small")] == ["Alpha", "Beta"]
    assert len(read) == 2  # the one that is new


def test_a_damaged_file_hides_its_judge_alone_and_the_log_names_it(folder, caplog):
    service = service_of(folder, "public")
    gone = send(service, verdicts(service.suite), judge="Gone")
    send(service, verdicts(service.suite, misses=1), judge="There")
    service.files.path(gone.file_sha256).write_bytes(b"rubbish")
    assert [judge.judge for judge in SubmittedJudges(service).of_suite("small")] == ["There"]
    assert gone.submission_id in caplog.text


def test_there_is_a_bound_on_the_judges_that_are_shown(folder):
    service = service_of(folder, "public")
    for number in range(MOST_JUDGES + 2):
        send(service, verdicts(service.suite, false_alarms=number % 20), judge=f"Judge {number}")
    assert len(SubmittedJudges(service).of_suite("small")) == MOST_JUDGES
