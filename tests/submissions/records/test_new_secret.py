"""Tests of a restore with the right secret, another one or none, and of the charge for a new secret.

Figures of a private suite have noise that depends on the secret. New noise reveals as much about the labels
as the first figures did, so nothing is shown until an operator accepts the charge.
"""

import json
import re
import shutil

import pytest
from pydantic import SecretStr

from space.pages.account import own_submission
from space.web.submission_text import FIGURES_WITHDRAWN
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.versions import published_versions
from submissions.privacy.leak_budget import charges_in, file_cost, row_cost
from submissions.privacy.secret_change import accept_charge
from submissions.privacy.server_secret import SecretChanged, SecretTooWeak, ServerSecret
from submissions.records.backup import BackupError, export_to_folder, restore_from_folder
from submissions.records.queries import current_statuses
from submissions.scoring.rescore import publish
from submissions.startup import open_service
from tests.submissions.conftest import invoke
from tests.support.submissions import send, settings_for, verdicts, write_suite

FIRST, OTHER = "5ad1e07b93c8f4266b0fd2981c7ea453", "b7d95a0c3e6f4182970de4c1a85b362f"
"""Each is the same in every run: of a suite so small, some draws show no figure."""
RULES = 'labels = "private"\n[rules]\nfewest_positives = 1\nround_days = 1\nfiles_a_day = 5\n'


@pytest.fixture
def private(tmp_path) -> SubmissionsApp:
    """Return a private suite with two files, of which the first has a public row. The secret is in a file."""
    write_suite(tmp_path / "suite")
    (tmp_path / "suite" / "small" / "suite.toml").write_text(RULES)
    put_secret(tmp_path / "state", FIRST)
    service = open_service(settings_for(tmp_path / "suite", tmp_path / "state", secret=None))
    service.ids = [
        send(service, verdicts(service.suite, false_alarms=alarms), account=name, judge=name).submission_id
        for name, alarms in (("Ada", 3), ("Bob", 7))
    ]
    service.moderation.publish(service.ids[0], Actor("Ada"))
    return service


def put_secret(folder, secret: str) -> None:
    folder.mkdir()
    (folder / "secret").write_text(secret)


@pytest.fixture
def command(private, tmp_path, monkeypatch):
    """Return a function that runs a command in the folder of ``state`` and returns exit code and output."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, **environment: str) -> tuple[int, str]:
        done = invoke(private.settings, *arguments, **environment)
        return done.exit_code, done.output

    return call


def at(service: SubmissionsApp, folder) -> SubmissionsApp:
    return open_service(service.settings.model_copy(update={"state_dir": folder}))


def figures(service: SubmissionsApp, ids) -> list:
    return [
        service.records.submission(name, Actor(who)).report
        for name, who in zip(ids, ("Ada", "Bob"), strict=True)
    ]


def spent(service: SubmissionsApp) -> float:
    with service.snapshot() as session:
        return sum(charge.rho for charge in charges_in(session, service.suite, current_statuses(session)))


def test_the_guides_command_without_the_secret_restores_nothing_and_names_the_way_out(command, tmp_path):
    assert command("export", "--out", "backup")[0] == 0
    code, said = command("restore", "backup", ARB_STATE_DIR="restored")
    assert code == 1
    for words in (
        "copy the file `secret`",
        "ARB_SECRET",
        "`--new-secret`",
        "`arb submissions accept-charge`",
    ):
        assert words in " ".join(said.split())
    assert not (tmp_path / "restored" / "secret").exists()
    code, said = command("restore", "backup", ARB_STATE_DIR="restored", ARB_SECRET=OTHER)
    assert code == 1 and "this server's secret is not that of the export" in said and OTHER not in said


def test_with_the_secret_the_guides_commands_restore_the_same_figures(private, command, tmp_path):
    command("export", "--out", "backup")
    put_secret(tmp_path / "restored", FIRST)
    assert command("restore", "backup", ARB_STATE_DIR="restored")[0] == 0
    code, said = command("verify", ARB_STATE_DIR="restored")
    assert code == 0 and "recomputed scores: 2" in said and "no problems found" in said
    restored = at(private, tmp_path / "restored")
    assert figures(restored, private.ids) == figures(private, private.ids)
    code, said = command("verify", ARB_STATE_DIR="restored", ARB_SECRET=OTHER)
    assert code != 0 and "no problems found" not in said


def test_a_new_secret_withdraws_private_figures_until_the_charge_is_accepted(private, command, tmp_path):
    before, board = figures(private, private.ids), private.records.board()
    rules, charged = private.suite.rules, spent(private)
    # Two files and one row.
    assert charged == pytest.approx(2 * file_cost(rules) + row_cost(rules))
    leaked = private.records.leak.get().total
    command("export", "--out", "backup")
    put_secret(tmp_path / "restored", OTHER)
    code, said = command("restore", "backup", "--new-secret", ARB_STATE_DIR="restored")
    assert code == 0, said

    restored = at(private, tmp_path / "restored")
    assert figures(restored, private.ids) == [None, None]
    view = restored.records.submission(private.ids[0], Actor("Ada"))
    assert (
        view.are_figures_withdrawn
        and restored.records.submission(private.ids[0], Actor("Mia", is_maintainer=True)).report
    )
    page = own_submission(restored, private.ids[0], Actor("Ada"), is_whole=True)
    assert page["text"] == FIGURES_WITHDRAWN and page["report"] == ""
    assert [row for row in restored.records.board().rows if row.judge == "Ada"] == []
    with pytest.raises(SubmissionError, match="all metrics are hidden until"):
        restored.moderation.refresh(private.ids[0], Actor("Ada"), restored.label_version)
    newer = send(restored, verdicts(restored.suite, misses=5, false_alarms=10), account="Cy", judge="Cy")
    assert restored.records.submission(newer.submission_id, Actor("Cy")).report is None
    code, said = command("verify", ARB_STATE_DIR="restored")
    assert code == 1 and "no problems found" not in said and "accept-charge" in said

    code, said = command("accept-charge", "--json", ARB_STATE_DIR="restored")
    found = json.loads(said)
    assert code == 0 and found["submissions"] == private.ids
    assert found["rho"] == pytest.approx(2 * file_cost(rules) + row_cost(rules))
    restored = at(private, tmp_path / "restored")
    after = figures(restored, private.ids)
    assert None not in after and after != before
    assert restored.records.submission(newer.submission_id, Actor("Cy")).report is not None
    # The two files and the row again, and the file that was submitted since.
    assert spent(restored) == pytest.approx(2 * charged + file_cost(rules))
    # The new secret gives the label version another name, and the figures under both names add up. Under the
    # old name, figures of Ada and Bob were shown; under the new one, also those of Cy.
    assert {name: leak.figures for name, leak in restored.records.leak.get().by_label_version.items()} == {
        private.label_version: leaked.figures,
        restored.label_version: leaked.figures + 1,
    }
    assert leaked.figures == 2
    assert {row.judge for row in restored.records.board().rows} == {row.judge for row in board.rows}
    code, said = command("verify", ARB_STATE_DIR="restored")
    assert code == 0 and "(2 of them only in part" in said, said
    code, said = command("accept-charge", ARB_STATE_DIR="restored")
    assert code == 1 and "nothing to accept" in said


def test_scores_of_published_label_sets_verify_after_a_new_secret(private, command, tmp_path):
    labels = (tmp_path / "suite" / "labels.csv").read_bytes()
    mia = Actor("Mia", is_maintainer=True)
    serving = open_service(private.settings.model_copy(update={"labels": "records"}))
    publish(serving, labels, mia, "the first")
    publish(serving, labels.replace(b",Successful,", b",Unsuccessful,", 1), mia, "one was wrong")
    assert len({each.version for each in published_versions(serving.engine, "small")}) == 2
    command("export", "--out", "backup")
    after = {"ARB_STATE_DIR": "restored", "ARB_LABELS": "records"}
    for arguments in (["restore", "backup", "--new-secret"], ["accept-charge"], ["verify"]):
        code, said = command(*arguments, **after)
        assert code == 0, said
    # Two files under the first set with the old secret, and under the second with the new one: 2 + 2 = 4.
    assert "recomputed scores: 4 (2 of them only in part" in said


def test_a_file_that_a_maintainer_hid_is_not_charged_and_not_shown(private, command, tmp_path):
    mia = Actor("Mia", is_maintainer=True)
    private.moderation.decide("hidden", private.ids[0], mia, "looking into it")
    command("export", "--out", "backup")
    command("restore", "backup", "--new-secret", ARB_STATE_DIR="restored")
    found = json.loads(command("accept-charge", "--json", ARB_STATE_DIR="restored")[1])
    assert found["submissions"] == private.ids[1:]
    restored = at(private, tmp_path / "restored")
    assert restored.records.submission(private.ids[0], Actor("Ada")).report is None
    restored.moderation.decide("shown", private.ids[0], mia, "nothing wrong")
    restored.moderation.refresh(private.ids[0], Actor("Ada"), restored.label_version)
    assert restored.records.submission(private.ids[0], Actor("Ada")).report is not None


def test_the_old_secret_is_refused_after_a_new_one(private, command, tmp_path):
    command("export", "--out", "backup")
    command("restore", "backup", "--new-secret", ARB_STATE_DIR="restored")
    shutil.copy(tmp_path / "state" / "secret", tmp_path / "restored" / "secret")
    code, said = command("verify", ARB_STATE_DIR="restored")
    assert code != 0 and "not the one that these records were made with" in said


def test_a_secret_that_was_replaced_stays_so_in_the_next_export(private, command, tmp_path):
    command("export", "--out", "backup")
    command("restore", "backup", "--new-secret", ARB_STATE_DIR="restored")
    assert command("export", "--out", "second", ARB_STATE_DIR="restored")[0] == 0
    put_secret(tmp_path / "third", (tmp_path / "restored" / "secret").read_text())
    assert command("restore", "second", ARB_STATE_DIR="third")[0] == 0
    assert figures(at(private, tmp_path / "third"), private.ids) == [None, None]


def test_another_secret_that_is_accepted_at_the_start_withdraws_figures_too(private):
    other = private.settings.model_copy(update={"secret": SecretStr(OTHER)})
    with pytest.raises(SecretChanged, match="accept-charge") as refused:
        open_service(other)
    accepted = re.search(r"ARB_ACCEPT_SECRET=(\w+)", str(refused.value))[1]
    moved = open_service(other.model_copy(update={"accept_secret": accepted}))
    assert figures(moved, private.ids) == [None, None]
    assert figures(open_service(other), private.ids) == [None, None]


def test_records_of_a_weak_secret_go_on_with_a_new_one_after_the_charge_is_accepted(private, monkeypatch):
    weak = private.settings.model_copy(
        update={"secret": SecretStr("hunter2hunter2"), "state_dir": private.settings.state_dir / "weak"}
    )
    with monkeypatch.context() as patched:  # as in commit 7d56a80
        patched.setattr("submissions.privacy.server_secret.LEAST_BITS", 0)
        service = open_service(weak)
        ids = [
            send(service, verdicts(service.suite, false_alarms=3), account="Ada", judge="Ada").submission_id
        ]
    with pytest.raises(SecretTooWeak, match="the next start says how to continue with the new one"):
        open_service(weak)
    strong = weak.model_copy(update={"secret": SecretStr(OTHER)})
    with pytest.raises(SecretChanged) as refused:
        open_service(strong)
    accepted = re.search(r"ARB_ACCEPT_SECRET=(\w+)", str(refused.value))[1]
    service = open_service(strong.model_copy(update={"accept_secret": accepted}))
    assert service.records.submission(ids[0], Actor("Ada")).report is None
    again, _ = accept_charge(service, Actor("Mia", is_maintainer=True))
    assert again == ids
    assert service.records.submission(ids[0], Actor("Ada")).report is not None


def test_new_secret_is_refused_where_the_right_one_is_there(private, tmp_path):
    export_to_folder(private, tmp_path / "backup")
    put_secret(tmp_path / "restored", FIRST)
    settings = private.settings.model_copy(update={"state_dir": tmp_path / "restored"})
    with pytest.raises(BackupError, match="leave out --new-secret"):
        restore_from_folder(settings, tmp_path / "backup", new_secret=True)


def test_an_export_holds_the_check_value_and_not_the_secret(private, tmp_path):
    export_to_folder(private, tmp_path / "backup")
    said = json.loads((tmp_path / "backup" / "secret_check.json").read_bytes())
    secret = ServerSecret.of(private.settings)
    assert said == {"check_value": secret.check_value, "derivation": 2}
    value = (tmp_path / "state" / "secret").read_bytes()
    assert not any(value in path.read_bytes() for path in (tmp_path / "backup").rglob("*") if path.is_file())


def test_an_export_that_does_not_name_its_secret_is_not_restored_without_one(private, command, tmp_path):
    command("export", "--out", "backup")
    (tmp_path / "backup" / "secret_check.json").unlink()
    code, said = command("restore", "backup", ARB_STATE_DIR="restored")
    assert code == 1 and "copy the file `secret`" in " ".join(said.split())
    code, said = command("restore", "backup", ARB_STATE_DIR="restored", ARB_SECRET=OTHER)
    assert code == 0 and "the backup does not say which secret it was made with" in said
    code, said = command("verify", ARB_STATE_DIR="restored", ARB_SECRET=OTHER)
    assert code == 1 and "2 scores could not be checked" in said


def test_a_damaged_check_value_is_named(private, tmp_path):
    export_to_folder(private, tmp_path / "backup")
    (tmp_path / "backup" / "secret_check.json").write_text("[]")
    settings = private.settings.model_copy(update={"state_dir": tmp_path / "restored"})
    with pytest.raises(BackupError, match=r"secret_check\.json .* cannot be read"):
        restore_from_folder(settings, tmp_path / "backup")


def test_records_that_began_before_the_first_start_go_on_with_the_secret_that_is_made_then(tmp_path):
    """The guide to new suites does the same: it publishes the labels first, with a command."""
    write_suite(tmp_path / "suite")
    settings = settings_for(tmp_path / "suite", tmp_path / "state", labels="records", secret=None)
    labels = (tmp_path / "suite" / "labels.csv").read_bytes()
    publish(SubmissionsApp(settings), labels, Actor("Mia", is_maintainer=True), "the first")
    service = open_service(settings)
    send(SubmissionsApp(settings), verdicts(service.suite))
    assert open_service(settings).secret.derivation == 2
