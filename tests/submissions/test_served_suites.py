"""Tests of the suites that a Space serves, and of the places of their records."""

from pathlib import Path

import pytest
import typer
from sqlalchemy import make_url

from arb.core.settings import Settings
from arb.core.suite import SuiteError, load_suite
from leaderboard.labels.labels import LabelsInvalid, load_labels
from leaderboard.labels.source import LabelsUnavailable
from submissions.app import SubmissionsApp
from submissions.cli import settings_of_records
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor
from submissions.labels.corrections import publish_corrections
from submissions.records.database import DatabaseUnavailable
from submissions.served_suites import served_suites, settings_of_chosen
from tests.support.submissions import counts, send, settings_for, verdicts, write_suite


def test_by_default_a_space_serves_the_default_suite_and_the_public_shipped_ones():
    served = list(served_suites(Settings()))
    assert served[0] == "agent-reward-bench"
    assert {"devai", "online-mind2web"} <= set(served)
    assert not {"sample", "localshop"} & set(served)  # of the guides
    assert list(served_suites(Settings(suite="devai"))) == ["devai"]
    assert list(served_suites(Settings(suite="agent-reward-bench"))) == ["agent-reward-bench"]


def test_the_first_of_several_suites_has_the_places_of_a_space_with_one(tmp_path):
    settings = Settings(
        suites="devai,online-mind2web", state_dir=tmp_path, data_dir=tmp_path / "data", labels="none",
        board_repo="ada/board", records_repo="ada/records", secret="863bf41c30eb455c968d136c2c02861a",
    )  # fmt: skip
    first, second = (each.settings for each in served_suites(settings).values())
    assert (first.suite, first.state_dir, first.labels) == ("devai", tmp_path, "none")
    assert first.main is first
    assert (second.suite, second.state_dir) == ("online-mind2web", tmp_path / "suites" / "online-mind2web")
    assert second.data_dir == tmp_path / "data" / "suites" / "online-mind2web"
    assert (second.labels, second.board_repo, second.records_repo) == ("wheel", None, "ada/records")
    assert second.main.state_dir == tmp_path
    assert settings.suite == "devai"  # for commands that know of one suite only


def test_another_suite_takes_its_labels_from_the_source_that_is_set_for_it(tmp_path):
    rules = write_suite(tmp_path) / "suite.toml"
    rules.write_text(rules.read_text().replace('"public"', '"private"'))
    places = f"devai,{tmp_path / 'small'},online-mind2web"

    def sources(**changes):
        served = served_suites(Settings(suites=places, labels="none", **changes))
        return [each.settings.labels for each in served.values()]

    assert sources() == ["none", "records", "wheel"]
    chosen = "small=csv:/srv/a b=c.csv, online-mind2web=hub:ada/labels"
    assert sources(suite_labels=chosen) == ["none", "csv:/srv/a b=c.csv", "hub:ada/labels"]
    with pytest.raises(SuiteError) as problem:
        sources(suite_labels="devai=none,small=labels.csv,nope")
    message = str(problem.value)
    for name in ("devai", "nope"):
        assert f"{name} is not one of the other suites in ARB_SUITES; use one of small, online" in message
    assert "small has the source 'labels.csv'; use csv:PATH" in message


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("csv:absent.csv", "ARB_SUITE_LABELS names absent.csv, which is not a file"),
        ("none", "(ARB_SUITE_LABELS is 'none')"),
        ("hub:a b/c", "write ARB_SUITE_LABELS=small=hub:OWNER/REPO[/FILE]"),
        ("csv:other/labels.csv", "a trajectory of the suite small; check ARB_SUITES and ARB_SUITE_LABELS"),
        ("csv:dev/labels.csv", "split of the suite small; check ARB_SUITES and ARB_SUITE_LABELS"),
    ],
)
def test_errors_of_a_further_suites_labels_name_their_variable(tmp_path, monkeypatch, source, expected):
    monkeypatch.chdir(tmp_path)
    write_suite(tmp_path)
    header, *rows = (tmp_path / "labels.csv").read_text().splitlines()
    tests = {each.trajectory_id.split("/")[2] for each in load_suite("small").split("test")}
    dev = [row for row in rows if not tests & set(row.split(","))]
    for folder, found in (("dev", dev), ("other", [dev[0].replace("webarena", "elsewhere")])):
        Path(folder).mkdir()
        Path(folder, "labels.csv").write_text("\n".join((header, *found)))
    settings = Settings(suites="devai,small", suite_labels=f"small={source}", cache_dir=tmp_path / "cache")
    served = served_suites(settings)["small"]
    with pytest.raises((LabelsUnavailable, LabelsInvalid)) as problem:
        load_labels(served.suite, "test", served.settings)
    assert expected in str(problem.value)


def test_publishing_for_a_further_suite_that_serves_one_version_names_the_variable_to_change(tmp_path):
    write_suite(tmp_path)
    small = str(tmp_path / "small")
    served = served_suites(Settings(suites=f"devai,{small}", suite_labels="small=records:v1"))["small"]
    with pytest.raises(SubmissionError, match="set ARB_SUITE_LABELS=small=records first"):
        publish_corrections(SubmissionsApp(served.settings), Actor("ada", is_maintainer=True))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:////srv/records.sqlite", "sqlite:////srv/records-devai.sqlite"),
        ("sqlite://", "sqlite://"),
        (
            "postgresql://ada:pw@host/db",
            'postgresql+psycopg://ada:pw@host/db?options=-csearch_path="suite-devai"',
        ),
        (
            "postgresql://host/db?options=-cstatement_timeout%3D9",
            'postgresql+psycopg://host/db?options=-cstatement_timeout=9 -csearch_path="suite-devai"',
        ),
    ],
)
def test_a_further_suite_has_a_database_of_its_own(url, expected):
    served = served_suites(Settings(suites="online-mind2web,devai", database_url=url))
    assert served["online-mind2web"].settings.database_url == url
    assert make_url(served["devai"].settings.database_url) == make_url(expected)


def test_an_address_that_is_no_database_is_said_for_several_suites_too(monkeypatch, capsys):
    monkeypatch.setenv("DATABASE_URL", "nonsense")
    monkeypatch.setenv("ARB_SUITES", "online-mind2web,devai")
    with pytest.raises(DatabaseUnavailable, match="DATABASE_URL cannot be used"):
        served_suites(Settings())
    with pytest.raises(typer.Exit):
        settings_of_records()
    assert capsys.readouterr().err.startswith("error: DATABASE_URL cannot be used")


def test_a_source_of_the_default_suite_is_sent_to_arb_labels(tmp_path):
    with pytest.raises(SuiteError, match="ARB_LABELS is the source of the default suite"):
        served_suites(Settings(suites="devai,sample", suite_labels="devai=none", labels="none"))
    with pytest.raises(SuiteError, match=r"ARB_LABELS is 'labels.csv'; use wheel, csv:PATH"):
        served_suites(Settings(labels="labels.csv"))


def test_every_problem_of_the_list_is_named_at_once(tmp_path):
    for folder in ("one/small", "other/small", "third/my suite"):
        write_suite(tmp_path / folder.partition("/")[0]).rename(tmp_path / folder)
    places = ("nope", *(str(tmp_path / each) for each in ("one/small", "other/small", "third/my suite")))
    with pytest.raises(SuiteError) as problem:
        served_suites(Settings(suites=",".join(places)))
    message = str(problem.value)
    assert message.startswith("ARB_SUITES: nope: no suite 'nope'")
    assert "there are two suites named small" in message
    assert "my suite: rename the folder" in message


def test_commands_act_on_the_records_of_the_suite_in_arb_suite(tmp_path, monkeypatch):
    write_suite(tmp_path)
    settings = settings_for(tmp_path, tmp_path / "state", suites=f"devai,{tmp_path / 'small'}")
    chosen = settings_of_chosen(settings)
    assert chosen.state_dir == tmp_path / "state" / "suites" / "small"
    assert settings_of_chosen(settings_for(tmp_path, tmp_path / "state")).state_dir == tmp_path / "state"
    with pytest.raises(SuiteError, match="ARB_SUITES has no suite sample; use one of devai, small"):
        settings_of_chosen(settings.model_copy(update={"suite": "sample"}))
    for name, value in {
        "ARB_SUITES": settings.suites, "ARB_SUITE": settings.suite, "ARB_STATE_DIR": tmp_path / "state",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    assert settings_of_records().state_dir == chosen.state_dir


def test_suites_share_the_secret_and_have_separate_schemas_in_postgresql(tmp_path, postgres_url):
    for name in ("one", "two"):
        write_suite(tmp_path / name).rename(tmp_path / name / name)
    suites = f"{tmp_path / 'one' / 'one'},{tmp_path / 'two' / 'two'}"
    settings = Settings(
        suites=suites, state_dir=tmp_path / "state", database_url=postgres_url,
        labels=f"csv:{tmp_path / 'one' / 'labels.csv'}",
    )  # fmt: skip
    first, second = (each.settings for each in served_suites(settings).values())
    second = second.model_copy(update={"labels": f"csv:{tmp_path / 'two' / 'labels.csv'}"})
    main = SubmissionsApp(first)
    further = SubmissionsApp(second, main=main)
    content = verdicts(load_suite(first.suite))
    for service in (main, further):
        send(service, content)
        send(service, verdicts(service.suite, misses=1), judge="Second")
    send(main, verdicts(main.suite, misses=2), judge="Third")
    assert (counts(main)["submissions"], counts(further)["submissions"]) == (3, 2)
    assert main.secret.check_value == further.secret.check_value
    assert (tmp_path / "state" / "secret").is_file()
    assert not (second.state_dir / "secret").exists()
    for service in (main, further):
        service.engine.dispose()
