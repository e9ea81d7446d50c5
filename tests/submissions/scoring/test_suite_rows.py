"""Rows that come with a suite: judges whose verdicts are in its folder, and trivial judges."""

import json
import logging

import pytest

from arb.core.settings import Settings
from submissions.app import SubmissionsApp
from tests.support.submissions import PLAIN_RULES, settings_for, write_suite

RULES = PLAIN_RULES.replace("trivial_judges = false\n", "")
TRIVIAL = {"reference/always-yes", "reference/most-frequent"}


@pytest.fixture
def folder(tmp_path):
    """The synthetic suite with a file of verdicts: yes to every run."""
    suite = write_suite(tmp_path)
    (suite / "suite.toml").write_text(RULES)
    ids = [line.split(",")[0] for line in (suite / "trajectories.csv").read_text().splitlines()]
    (suite / "verdicts").mkdir()
    rows = [json.dumps({"trajectory_id": each, "success": True}) for each in ids if "webarena.10" not in each]
    (suite / "verdicts" / "GPT-4o.jsonl").write_text("\n".join(rows[1:]) + "\n")
    return tmp_path


def rows_of(folder, **changes):
    service = SubmissionsApp(settings_for(folder, folder / "state", **changes))
    try:
        return {row.id: row for row in service.records.board().rows}
    finally:
        service.close()


def test_verdicts_in_the_folder_of_a_suite_are_ranked_rows(folder):
    row = rows_of(folder)["published/GPT-4o"]
    cell = row.score("success")["overall"]
    assert (cell["tp"], cell["fp"], row.provenance, row.evidence) == (10, 20, "published", "verdicts")
    assert row.score("success")["rank"]["place"] == 1 and cell["precision_ci"] is not None
    assert (row.model, row.maker) == ("GPT-4o", "OpenAI")


def test_a_suite_with_public_labels_has_trivial_judges(folder):
    assert rows_of(folder).keys() > TRIVIAL


def test_a_suite_may_leave_them_out(folder):
    (folder / "small" / "suite.toml").write_text(PLAIN_RULES)
    assert not TRIVIAL & rows_of(folder).keys()


def test_private_labels_show_neither_verdict_files_nor_trivial_judges(folder):
    (folder / "small" / "suite.toml").write_text(RULES.replace("public", "private"))
    assert rows_of(folder) == {}


def test_an_unusable_file_is_logged_and_left_out(folder, caplog):
    (folder / "small" / "verdicts" / "broken.jsonl").write_text('{"trajectory_id": "a/b/c", "success": 1}\n')
    with caplog.at_level(logging.WARNING):
        assert "published/broken" not in rows_of(folder)
    assert "broken.jsonl" in caplog.text


def test_the_published_verdicts_of_agent_as_a_judge_are_on_the_board_of_devai(tmp_path):
    service = SubmissionsApp(Settings(suite="devai", state_dir=tmp_path, labels="wheel"))
    cell = service.records.board().row("published/agent-as-a-judge").score("satisfied")["overall"]
    assert (round(cell["precision"], 3), round(cell["recall"], 3)) == (0.846, 0.875)
    service.close()
