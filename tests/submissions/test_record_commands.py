"""The commands over the records: what they print, their exit codes, and one line for whatever is wrong."""

import json

import pytest
from typer.testing import CliRunner

from submissions.__main__ import app
from tests.submissions.recorded import again
from tests.submissions.synthetic import send, verdicts


@pytest.fixture
def run(settings, monkeypatch, tmp_path):
    """Call a command over the synthetic suite, in an empty folder; gives exit code and what was printed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, **environment: str):
        variables = {
            "ARB_SUITE": settings.suite, "ARB_LABELS": settings.labels,
            "ARB_STATE_DIR": str(settings.state_dir), "ARB_CACHE_DIR": str(settings.cache_dir),
        }  # fmt: skip
        done = CliRunner().invoke(app, arguments, env={**variables, **environment})
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "Traceback" not in done.output
        return done.exit_code, done.output

    return call


def test_verify_finds_untouched_records_whole_and_names_what_was_touched(run, service):
    receipt = send(service, verdicts(service.suite))
    code, said = run("verify")
    assert code == 0 and "2 records, 1 files, 1 scores made again\n" in said
    assert f"all as it was written; board {service.board().digest}" in said
    assert json.loads(run("verify", "--json")[1])["problems"] == []
    service.files.path(receipt.file_sha256).unlink()
    code, said = run("verify")
    assert code == 1
    assert f"problem: submission {receipt.submission_id}: its kept file is missing or damaged" in said


def test_a_receipt_is_checked_with_the_public_key(run, service, tmp_path):
    receipt = send(service, verdicts(service.suite)).to_json()
    (tmp_path / "receipt.json").write_text(json.dumps(receipt))
    key = service.signer.public_key
    code, said = run("receipt", "receipt.json", "--key", key)
    assert code == 0 and "the signature holds" in said
    (tmp_path / "receipt.json").write_text(json.dumps({**receipt, "judge": "Another"}))
    code, said = run("receipt", "receipt.json", "--key", key)
    assert code == 1 and "does not fit" in said
    (tmp_path / "receipt.json").write_text("[]")
    assert run("receipt", "receipt.json", "--key", key) == (
        1, "error: 'receipt.json' is not a receipt in JSON (ValueError); save it as it was given\n",
    )  # fmt: skip


def test_what_was_exported_is_restored_elsewhere_with_the_same_board(run, service, tmp_path):
    send(service, verdicts(service.suite))
    assert run("export", "--out", "backup") == (0, "2 records and 1 files in backup\n")
    state = str(tmp_path / "elsewhere")
    code, said = run("restore", "backup", ARB_STATE_DIR=state)
    assert (code, said) == (0, "2 records and 1 files restored; `verify` checks them\n")
    restored = again(service, state_dir=tmp_path / "elsewhere")
    assert restored.board().to_bytes() == service.board().to_bytes()
    code, said = run("restore", "backup", ARB_STATE_DIR=state)
    assert code == 1 and "restore into an empty" in said
    code, said = run("export", "--out", "backup")
    assert code == 1 and "not empty" in said


def test_a_static_site_is_written_into_a_folder(run, service, tmp_path):
    send(service, verdicts(service.suite))
    code, said = run("export", "--static", "--out", "site")
    assert code == 0 and said.startswith("5 files in site")
    assert (tmp_path / "site" / "index.html").is_file()


def test_labels_are_published_listed_and_everything_is_scored_again(run, service, suite_folder, tmp_path):
    labels = str(suite_folder / "labels.csv")
    assert "no label set was published for small" in run("label-versions")[1]
    code, said = run("publish-labels", labels, "--why", "the first round")
    assert code == 0 and "by the command line: the first round (30 with a success label;" in said
    code, said = run("publish-labels", labels, "--why", " ")
    assert code == 1 and said.startswith("error: say what changed and why")
    (version,) = json.loads(run("label-versions", "--json")[1])
    assert version["version"] == service.label_version

    sent = send(service, verdicts(service.suite)).submission_id
    changed = (suite_folder / "labels.csv").read_text().replace(",Unsuccessful,", ",Successful,", 1)
    (tmp_path / "corrected_labels.csv").write_text(changed)
    assert run("publish-labels", "corrected_labels.csv", "--why", "one run did succeed")[0] == 0
    code, said = run("rescore", "--json", ARB_LABELS="records")
    found = json.loads(said)
    assert (code, found["scored"], found["before"]) == (0, 1, version["version"])
    assert found["changes"] == [
        {"id": sent, "judge": "First judge", "account": "Ada", "before": 1, "after": 1}
    ]
    assert "0 submissions scored" in run("rescore", ARB_LABELS="records")[1]


def test_without_labels_nothing_is_scored_again_and_a_bad_file_is_told_in_a_line(run, tmp_path):
    code, said = run("rescore", ARB_LABELS="none")
    assert code == 1 and said.startswith("error: nothing can be scored: no labels are configured")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    code, said = run("publish-labels", "bad.csv", "--why", "because")
    assert code == 1 and "the columns" in said and len(said.splitlines()) == 1


def test_a_database_that_cannot_be_opened_ends_every_command_with_a_line(run):
    for command in (["verify"], ["rescore"], ["export", "--out", "x"], ["label-versions"]):
        code, said = run(*command, DATABASE_URL="nonsense://")
        assert code == 2 and "DATABASE_URL cannot be used" in said
