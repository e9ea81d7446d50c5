import json
import logging
import re

import pytest
from starlette.requests import Request

from arb.core.predictions.excerpts import excerpt
from space.gradio_app.endpoints import Endpoints
from space.gradio_app.submit_page import (
    NO,
    YES,
    check_html,
    findings_html,
    page_values,
    problems_html,
    submission_html,
)
from space.services import Services
from space.web.frame import PageFrame
from space.web.responses import StaticAssets
from submissions.app import SubmissionsApp
from submissions.scoring import scorer
from tests.space.conftest import shown_text, tags_and_attributes
from tests.support.submissions import FORM, verdicts, with_rules

TEXTS = ("account", "judge", "kind", "inputs", "model", "authors", "link")


def form(used=NO, **changes) -> tuple:
    return (*({**FORM, **changes}[name] for name in TEXTS), used)


LOCAL = Request({"type": "http", "method": "POST", "headers": [], "client": ("127.0.0.1", 1)})


def submitted(service, path, split, fields) -> str:
    """What the button shows."""
    return submission_html(Endpoints(Services(service, None)), path, split, fields, LOCAL)[0]


def page_html(service) -> str:
    """The page around the form."""
    return PageFrame(StaticAssets()).html(
        "submit/page.html",
        "Submit",
        "/submit",
        **page_values(service),
        read_only_reason=service.intake.read_only_reason,
    )


@pytest.fixture
def uploaded(tmp_path, monkeypatch):
    """A function that writes a file to the folder for uploads, and gives its path."""
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))

    def write(content: bytes, name="verdicts.jsonl") -> str:
        path = tmp_path / "uploads" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        return str(path)

    return write


def rows(service) -> int:
    return len(service.records.board().rows)


def test_a_submission_shows_its_receipt_and_its_scored_row(service, uploaded):
    html = submitted(service, uploaded(verdicts(service.suite, misses=4, false_alarms=2)), "test", form())
    text = shown_text(html)
    (row,) = service.records.board().rows
    assert "Submitted and scored." in text
    assert row.id in text
    assert row.file_sha256 in text
    assert service.label_version in text
    assert "Its rank by precision on success: 1." in text
    # TP 6, FP 2, FN 4, TN 18
    assert re.search(r'data-cell="Overall".*?<strong>75.0</strong>', html, re.S)
    assert "60.0" in text
    assert "Side effect: the file has no verdicts on this label." in text
    assert f'href="/judge?id={row.id}"' in html


def test_a_dev_file_shows_its_report_and_is_not_recorded(service, uploaded):
    path = uploaded(verdicts(service.suite, "dev", false_alarms=1))
    html = submitted(service, path, "dev", (*[""] * 7, None))  # the declaration is not needed
    assert "75.0" in html  # 3 of 4
    assert "nothing was recorded" in shown_text(html)
    assert 'id="receipt"' not in html
    assert rows(service) == 0


def test_a_missing_file_is_reported(service):
    assert "Upload a prediction file first." in submitted(service, None, "test", form())


def test_every_problem_of_the_form_is_reported_at_once_and_nothing_recorded(service, uploaded):
    fields = form(used=None, account="", judge="x" * 99, kind=None, inputs=None, link="javascript:alert(1)")
    endpoints, path = Endpoints(Services(service, None)), uploaded(verdicts(service.suite))
    html, by_field = submission_html(endpoints, path, "test", fields, LOCAL)
    text = shown_text(html)
    assert set(by_field) == {"account", "judge", "kind", "inputs", "link", "test_labels_used"}
    assert by_field["account"] == "Your name: fill it in"
    for said in (
        "Your name: fill it in", "Name of the judge: is over 80", "Kind: choose one",
        "What it sees: choose one", "Link: is not a web address", "Test labels: say whether",
    ):  # fmt: skip
        assert said in text
    assert rows(service) == 0


@pytest.mark.parametrize(("used", "kept"), [(YES, True), (NO, False)])
def test_the_answer_about_test_labels_is_recorded(service, uploaded, used, kept):
    submitted(service, uploaded(verdicts(service.suite)), "test", form(used=used))
    assert service.records.board().rows[0].test_labels_used is kept


def test_hostile_names_come_back_as_text(service, uploaded, hostile):
    plain = submitted(service, uploaded(verdicts(service.suite)), "test", form())
    fields = form(judge=hostile[:80], account=hostile[:80], model=hostile, authors=hostile)
    html = submitted(service, uploaded(verdicts(service.suite)), "test", fields)
    assert f"{hostile[:80]}, by {hostile[:80]}" in shown_text(html)
    assert tags_and_attributes(html) == tags_and_attributes(plain)


def test_hostile_values_in_a_file_come_back_as_text(service, hostile):
    harmless = service.intake.check(
        b'{"trajectory_id": "nowhere", "success": "perhaps", "extra": 1}\n', "a.jsonl", "test"
    )
    quoted = '"' + hostile.replace('"', '""') + '"'
    content = f"trajectory_id,success,{quoted}\nnowhere,x,1\n{quoted},x,2\n"
    upload = service.intake.check(content.encode(), hostile, "test")
    assert not upload.check.acceptable
    html = findings_html(upload, service.suite)
    allowed = tags_and_attributes(findings_html(harmless, service.suite))
    assert tags_and_attributes(html) <= allowed


def test_hostile_file_names_come_back_as_text(service, hostile):
    html = findings_html(service.intake.check(verdicts(service.suite), hostile, "test"), service.suite)
    plain = findings_html(service.intake.check(verdicts(service.suite), "plain", "test"), service.suite)
    assert tags_and_attributes(html) == tags_and_attributes(plain)


def test_a_valid_file_is_called_valid_with_its_rows(service):
    upload = service.intake.check(verdicts(service.suite), "a.jsonl", "test")
    text = shown_text(findings_html(upload, service.suite))
    assert "a.jsonl is valid for test: 30 rows, verdicts on 100.0 %." in text


def test_a_file_over_the_limit_is_not_parsed(settings, uploaded, monkeypatch):
    service = SubmissionsApp(settings.model_copy(update={"max_upload_bytes": 1000}))
    sizes = []
    real = service.intake.check
    monkeypatch.setattr(
        service.intake, "check", lambda content, *rest: (sizes.append(len(content)), real(content, *rest))[1]
    )
    html = submitted(service, uploaded(b"x" * 1_000_000), "test", form())
    assert sizes == []
    assert "Nothing was submitted" in html
    assert "more than 1,000 bytes; send a smaller file" in html


def test_an_error_of_ours_shows_no_traceback_and_no_path_and_is_logged(
    service, uploaded, monkeypatch, caplog
):
    def broken(content):
        raise OSError(5, "Input/output error", "/srv/secret/state/files/ab")

    monkeypatch.setattr(service.files, "keep", broken)
    with caplog.at_level(logging.ERROR):
        html = submitted(service, uploaded(verdicts(service.suite)), "test", form())
    assert "Something failed on our side." in html
    for hidden in ("Traceback", "secret", "Input/output", "OSError", "/srv"):
        assert hidden not in html
    assert "Input/output error" in caplog.text


def test_a_failing_score_shows_and_logs_no_count(service, uploaded, monkeypatch, caplog):
    # The counts of a task are nearly labels. A trigger makes writing the score fail in the database itself.
    with service.engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE INSERT ON scores BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        )
    with caplog.at_level(logging.DEBUG):
        html = submitted(service, uploaded(verdicts(service.suite)), "test", form())
    assert "Sending it again" in html
    assert "disk is full" in caplog.text
    assert "counts_by_task" not in html
    assert not re.search(r"\[\[\d+, \d+\]", caplog.text)
    assert "precision_ci" not in caplog.text


def test_a_submission_after_a_failed_score_is_one_entry(service, uploaded, monkeypatch):
    path = uploaded(verdicts(service.suite))
    with monkeypatch.context() as patched:
        patched.setattr(scorer, "record_score", lambda *arguments: 1 / 0)
        assert "Something failed" in submitted(service, path, "test", form())
    assert "This file was already submitted for this judge" in submitted(service, path, "test", form())
    assert rows(service) == 1


def test_submitting_without_labels_is_refused_in_words(settings, uploaded):
    service = SubmissionsApp(settings.model_copy(update={"labels": "none"}))
    html = submitted(service, uploaded(verdicts(service.suite)), "test", form())
    assert "submitting is off: no labels are configured" in shown_text(html)


def test_an_upload_that_was_removed_meanwhile_is_asked_for_again(service, uploaded, tmp_path):
    html = submitted(service, str(tmp_path / "uploads" / "gone.jsonl"), "test", form())
    assert "Upload the file again" in html
    assert str(tmp_path) not in html


def test_the_receipt_of_a_judge_that_never_says_yes_does_not_speak_of_a_better_one(service, uploaded):
    # No positive verdict: its precision is undefined, so that it has no rank.
    html = submitted(service, uploaded(verdicts(service.suite, misses=10)), "test", form())
    assert "better submission" not in html
    assert 'id="receipt"' in html


def test_the_guide_names_the_files_to_fill_in_and_what_is_public(service):
    html = page_html(service)
    for split in ("test", "dev"):
        for name in ("jsonl", "csv", "parquet"):
            assert f'href="/api/template?split={split}&amp;format={name}"' in html
    assert "at most 5 MB" in shown_text(html)
    assert 'id="read-only"' not in html


def test_whether_verdicts_become_public_depends_on_the_suite(service, settings):
    hidden = with_rules(SubmissionsApp(settings), is_public=False)
    assert "The file itself stays on this server." in shown_text(page_html(hidden))
    official = SubmissionsApp(settings.model_copy(update={"suite": "agent-reward-bench", "labels": "none"}))
    assert "the verdicts and reasoning are shown" in shown_text(page_html(official))


def test_the_lines_for_curl_are_five(service):
    (lines,) = re.findall(r'<pre id="curl-text"[^>]*>(.*?)</pre>', page_html(service), re.S)
    assert len(lines.splitlines()) == 5


def test_a_files_rows_are_shown_with_its_findings_as_text(service, hostile):
    row = json.dumps({"trajectory_id": "nowhere", "success": hostile}, ensure_ascii=False)
    html = findings_html(service.intake.check(f"{row}\n".encode(), "a.jsonl", "test"), service.suite)
    assert excerpt(row) in shown_text(html)


def test_without_a_file_the_page_says_what_will_be_seen(service):
    assert "No file yet." in shown_text(check_html(Endpoints(Services(service, None)), None, "test", LOCAL))


def test_a_file_outside_the_folder_for_uploads_is_not_read(service, uploaded, tmp_path):
    (tmp_path / "secret.jsonl").write_text("secret")
    for path in (str(tmp_path / "secret.jsonl"), str(tmp_path / "uploads" / ".." / "secret.jsonl"), "\0"):
        html = check_html(Endpoints(Services(service, None)), path, "test", LOCAL)
        assert "The file was not checked." in shown_text(html)
        assert "secret" not in html


def test_a_page_of_another_site_submits_nothing(service, uploaded):
    headers = [(b"sec-fetch-site", b"cross-site")]
    request = Request({"type": "http", "method": "POST", "headers": headers, "client": ("127.0.0.1", 1)})
    endpoints = Endpoints(Services(service, None))
    html, _ = submission_html(endpoints, uploaded(verdicts(service.suite)), "test", form(), request)
    assert "a page of another site may not submit here" in html
    assert rows(service) == 0


def test_problems_are_text(hostile):
    assert tags_and_attributes(problems_html(hostile, [hostile])) == tags_and_attributes(
        problems_html("x", ["x"])
    )


# Accounts: on a Space the one that is signed in, elsewhere a name


def elsewhere(service) -> str:
    """The lines to copy."""
    return shown_text(page_html(service).partition('id="elsewhere-title"')[2])


@pytest.fixture
def on_space(settings) -> SubmissionsApp:
    changes = {
        "space_id": "ada/board",
        "space_host": "ada-board.hf.space,judges.example",
        "state_lasts": True,
    }
    return SubmissionsApp(settings.model_copy(update=changes))


def test_on_a_space_the_lines_to_copy_send_a_token_and_no_name(on_space):
    text = elsewhere(on_space)
    assert "Authorization: Bearer $HF_TOKEN" in text
    assert "export HF_TOKEN=" in text
    assert "SPACE=https://ada-board.hf.space " in text
    assert "account" not in text.lower()


def test_elsewhere_they_send_a_name_and_no_token(service):
    text = elsewhere(service)
    assert "--account 'Ada Lovelace'" in text
    assert "-F account='Ada Lovelace'" in text
    assert "HF_TOKEN" not in text


def test_only_on_a_space_the_page_says_who_submits(service, on_space):
    line = 'data-account="anonymous"><a href="/sign-in"'
    assert line in page_html(on_space)
    assert line not in page_html(service)
