"""Tests of the commands on records: output, exit codes and one-line errors, and `export-labels`."""

import errno
import json
import os

import pytest

from submissions.intake.accounts import Actor
from submissions.moderation.log_view import read_log
from submissions.moderation.reader_actions import ReaderActions
from submissions.scoring.rescore import publish
from tests.submissions.conftest import invoke
from tests.support.submissions import again, send, verdicts

MIA = Actor("Mia", is_maintainer=True)


@pytest.fixture
def run(settings, monkeypatch, tmp_path):
    """Return a function that runs a command on the synthetic suite in an empty folder.

    It returns the exit code and the output.
    """
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, **environment: str):
        done = invoke(settings, *arguments, **environment)
        assert "Traceback" not in done.output
        return done.exit_code, done.output

    return call


@pytest.fixture
def export_labels(run):
    """Return a function that runs `export-labels` on the recorded label sets."""
    return lambda *arguments: run("export-labels", *arguments, ARB_LABELS="records")


@pytest.fixture
def two_sets(service, suite_folder):
    """Publish two label sets, one after the other, and return their versions."""
    first = (suite_folder / "labels.csv").read_bytes()
    second = first.replace(b"Unsuccessful", b"Unsure", 1)
    return {
        publish(service, content, MIA, why).version: content
        for content, why in ((first, "first"), (second, "one is open"))
    }


def test_the_newest_set_and_an_older_one_come_back_byte_for_byte(export_labels, two_sets, tmp_path):
    old, new = two_sets
    said = export_labels("--out", "new_labels.csv")[1]
    assert said.startswith(f"new_labels.csv: label version {new} of small\n")
    assert export_labels("--out", "old_labels.csv", "--version", old)[0] == 0
    assert (tmp_path / "new_labels.csv").read_bytes() == two_sets[new]
    assert (tmp_path / "old_labels.csv").read_bytes() == two_sets[old]
    assert (tmp_path / "new_labels.csv").stat().st_mode & 0o777 == 0o600


def test_nothing_is_written_over(export_labels, two_sets, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    code, said = export_labels("--out", "labels.csv")
    assert code == 2 and "already exists" in said
    assert (tmp_path / "labels.csv").read_text() == "mine"


def test_on_a_full_disk_no_half_of_a_set_is_left(export_labels, two_sets, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        code, said = export_labels("--out", "labels.csv")
    assert code == 2 and said.startswith("error: labels.csv: cannot be read or written (No space left")
    assert not (tmp_path / "labels.csv").exists()
    assert export_labels("--out", "labels.csv")[0] == 0


def test_a_set_that_is_not_there_is_told_with_those_that_are(export_labels, two_sets):
    said = f"error: small has no label version 000000000000; use one of {', '.join(two_sets)}\n"
    assert export_labels("--out", "x.csv", "--version", "000000000000") == (1, said)


def test_before_the_first_set_it_says_how_one_is_published(export_labels, tmp_path):
    code, said = export_labels("--out", "x.csv")
    assert code == 1 and "publish one with `arb submissions publish-labels" in said
    assert not (tmp_path / "x.csv").exists()


def test_a_damaged_file_is_no_label_set(export_labels, service, two_sets, tmp_path):
    for path in (service.settings.state_dir / "files").glob("*/*"):
        path.write_bytes(b"something else")
    code, said = export_labels("--out", "x.csv")
    assert code == 1 and "is damaged" in said
    assert not (tmp_path / "x.csv").exists()


def test_verify_finds_untouched_records_whole_and_names_what_was_touched(run, service):
    receipt = send(service, verdicts(service.suite))
    code, said = run("verify")
    assert code == 0 and "records: 2, files: 1, recomputed scores: 1\n" in said
    assert f"no problems found; the board's digest is {service.records.board().digest}" in said
    assert json.loads(run("verify", "--json")[1])["problems"] == []
    service.files.path(receipt.file_sha256).unlink()
    code, said = run("verify")
    assert code == 1
    assert f"problem: submission {receipt.submission_id}: its stored file is missing or damaged" in said


def test_a_receipt_is_checked_with_the_public_key(run, service, tmp_path):
    receipt = send(service, verdicts(service.suite)).to_json()
    (tmp_path / "receipt.json").write_text(json.dumps(receipt))
    key = service.signer.public_key
    code, said = run("receipt", "receipt.json", "--key", key)
    assert code == 0 and "the signature is valid" in said
    (tmp_path / "receipt.json").write_text(json.dumps({**receipt, "judge": "Another"}))
    code, said = run("receipt", "receipt.json", "--key", key)
    assert code == 1 and "the signature is not valid" in said
    (tmp_path / "receipt.json").write_text("[]")
    assert run("receipt", "receipt.json", "--key", key) == (
        1, "error: 'receipt.json' is not a JSON receipt (ValueError); download it again\n",
    )  # fmt: skip


def test_what_was_exported_is_restored_elsewhere_with_the_same_board(run, service, tmp_path):
    send(service, verdicts(service.suite))
    code, said = run("export", "--out", "backup")
    assert (code, said.splitlines()[0]) == (0, "2 records and 1 file written to backup")
    state = str(tmp_path / "elsewhere")
    secret = {"ARB_SECRET": service.settings.secret.get_secret_value(), "ARB_STATE_DIR": state}
    code, said = run("restore", "backup", **secret)
    assert (code, said.splitlines()[0]) == (0, "2 records and 1 file restored")
    restored = again(service, state_dir=tmp_path / "elsewhere")
    assert restored.records.board().to_bytes() == service.records.board().to_bytes()
    code, said = run("restore", "backup", **secret)
    assert code == 1 and "restore into an empty" in said
    code, said = run("export", "--out", "backup")
    assert code == 1 and "not empty" in said


def test_a_static_site_is_written_into_a_folder(run, service, tmp_path):
    send(service, verdicts(service.suite))
    code, said = run("export", "--static", "--out", "site")
    assert code == 0 and said.startswith("5 files written to site")
    assert (tmp_path / "site" / "index.html").is_file()


def test_labels_are_published_listed_and_everything_is_scored_again(run, service, suite_folder, tmp_path):
    labels = str(suite_folder / "labels.csv")
    assert "no label set has been published for small" in run("label-versions")[1]
    code, said = run("publish-labels", labels, "--why", "the first round")
    assert code == 0 and "by the command line: the first round (30 labelled;" in said
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


def test_corrections_are_previewed_and_published_over_the_labels_of_a_file(run, service):
    send(service, verdicts(service.suite, false_alarms=2))
    name = service.suite.split("test")[0].trajectory_id
    acts = ReaderActions(service)
    acts.dispute(name, "success", "see step 3", Actor("Ada"))
    code, said = run("publish-labels", "--preview")
    assert (code, said) == (
        0,
        "there is nothing to publish: the current labels contain every accepted correction\n",
    )
    acts.decide("1", "corrected", "the shop was closed", MIA, "no")
    code, said = run("publish-labels", "--preview")
    assert said.startswith(f"applied: dispute 1, {name} success: yes -> no\n")
    # TP 10 of 12 called successful, and of 10; then 9 of 12 and of 9: F1 20/22 and 18/21.
    cells = ("1 -> 1", "83.3 -> 75.0", "100.0 -> 100.0", "90.9 -> 85.7")
    assert code == 0 and all(cell in said for cell in cells)
    assert "no label set has been published" in run("label-versions")[1]
    code, said = run("publish-labels", "--maintainer", "mia")
    assert code == 0 and "by mia: Correction of dispute 1 (30 labelled;" in said
    assert "1 submission scored" in said
    code, said = run("publish-labels")
    assert (code, said) == (
        1, "error: there is nothing to publish: the current labels contain every accepted correction\n",
    )  # fmt: skip
    (version,) = json.loads(run("label-versions", "--json")[1])
    assert version["disputes"] == ["1"] and "answer" not in str(version)


def test_accounts_are_confirmed_and_banned_with_a_reason(run, service):
    send(service, verdicts(service.suite))
    code, said = run("account", "confirm", "ada", "--reason", "known to us")
    assert (code, said) == (0, "the account ada is confirmed\n")
    code, said = run("account", "confirm", "Ada", "--reason", "known to us")
    assert (code, said) == (1, "error: the account Ada is confirmed\n")
    code, said = run("account", "ban", "Eve", "--reason", "a farm")
    assert code == 1 and "no account named Eve" in said
    words = ("account", "ban", "Eve", "--reason", "a farm", "--even-if-unknown", "--json")
    assert json.loads(run(*words)[1]) == {"account": "Eve", "decision": "banned"}
    assert run("account", "unban", "Eve", "--reason", "no")[1] == "the account Eve is unbanned\n"
    code, said = run("account", "unconfirm", "Ada", "--reason", "left", "--maintainer", "mia")
    assert (code, said) == (0, "the account Ada is unconfirmed\n")
    with service.snapshot() as session:
        last = read_log(session)[0]
    assert (last["kind"], last["actor"], last["body"]) == (
        "unconfirmed", "mia", {"account": "Ada", "reason": "left"},
    )  # fmt: skip


def test_without_labels_nothing_is_scored_again_and_a_bad_file_is_told_in_a_line(run, tmp_path):
    code, said = run("rescore", ARB_LABELS="none")
    assert code == 1 and said.startswith("error: nothing can be scored: no labels are configured")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    code, said = run("publish-labels", "bad.csv", "--why", "because")
    assert code == 1 and "the columns" in said and len(said.splitlines()) == 1


def test_a_suite_that_is_not_there_ends_every_command_with_a_line(run):
    for command in (["verify"], ["rescore"], ["export", "--out", "x"], ["restore", "."], ["label-versions"]):
        code, said = run(*command, ARB_SUITE="nowhere")
        assert code == 2 and said.startswith("error: no suite 'nowhere'; use a shipped one")
        assert len(said.splitlines()) == 1


def test_a_database_that_cannot_be_opened_ends_every_command_with_a_line(run):
    for command in (["verify"], ["rescore"], ["export", "--out", "x"], ["label-versions"]):
        code, said = run(*command, DATABASE_URL="nonsense://")
        assert code == 2 and "DATABASE_URL cannot be used" in said
