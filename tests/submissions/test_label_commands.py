"""`export-labels`: a published set comes back as it was, for its owner's eyes only."""

import pytest
from typer.testing import CliRunner

from submissions.__main__ import app
from submissions.accounts import Actor
from submissions.publishing_labels import publish

MIA = Actor("Mia", is_maintainer=True)


@pytest.fixture
def run(settings, monkeypatch, tmp_path):
    """Call the command over the synthetic suite, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    variables = {
        "ARB_SUITE": settings.suite, "ARB_LABELS": "records", "ARB_STATE_DIR": str(settings.state_dir),
    }  # fmt: skip
    return lambda *arguments: CliRunner().invoke(app, ["export-labels", *arguments], env=variables)


@pytest.fixture
def two_sets(service, suite_folder):
    """Two label sets published one after the other, with their versions."""
    first = (suite_folder / "labels.csv").read_bytes()
    second = first.replace(b"Unsuccessful", b"Unsure", 1)
    return {
        publish(service, content, MIA, why).version: content
        for content, why in ((first, "first"), (second, "one is open"))
    }


def test_the_newest_set_and_an_older_one_come_back_byte_for_byte(run, two_sets, tmp_path):
    old, new = two_sets
    done = run("--out", "new_labels.csv")
    assert done.stdout == f"new_labels.csv: label version {new} of small\n"
    assert run("--out", "old_labels.csv", "--version", old).exit_code == 0
    assert (tmp_path / "new_labels.csv").read_bytes() == two_sets[new]
    assert (tmp_path / "old_labels.csv").read_bytes() == two_sets[old]
    assert (tmp_path / "new_labels.csv").stat().st_mode & 0o777 == 0o600


def test_nothing_is_written_over(run, two_sets, tmp_path):
    (tmp_path / "labels.csv").write_text("mine")
    done = run("--out", "labels.csv")
    assert done.exit_code == 2 and "is there already" in done.stderr
    assert (tmp_path / "labels.csv").read_text() == "mine"


def test_a_set_that_is_not_there_is_told_with_those_that_are(run, service, two_sets):
    done = run("--out", "x.csv", "--version", "000000000000")
    there = ", ".join(two_sets)
    assert (done.exit_code, done.stderr) == (
        1, f"error: no label set 000000000000 of small: there are {there}\n"
    )  # fmt: skip


def test_before_the_first_set_it_says_how_one_is_published(run, tmp_path):
    done = run("--out", "x.csv")
    assert done.exit_code == 1 and "`publish-labels` publishes one" in done.stderr
    assert not (tmp_path / "x.csv").exists()


def test_a_damaged_file_is_no_label_set(run, service, two_sets, tmp_path):
    for path in (service.settings.state_dir / "files").glob("*/*"):
        path.write_bytes(b"something else")
    done = run("--out", "x.csv")
    assert done.exit_code == 1 and "is damaged" in done.stderr
    assert not (tmp_path / "x.csv").exists()
