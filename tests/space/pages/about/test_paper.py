"""The paper page: printed beside computed, notes numbered, verdict files from the maintainer's folder."""

import shutil

import pytest

from leaderboard.paper.table import PaperCell, PaperTable, TableRow
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at

CELLS = (
    PaperCell(0.698, 0.6984, "counts", "", 1106),
    PaperCell(0.717, 0.7185, "counts", "why", 1106),
    PaperCell(0.641, None, "", "no file", 78),
    PaperCell(None, 0.5, "counts", "", 10),
    PaperCell(None, None),
    PaperCell(0.717, 0.7189, "counts", "why", 1106),
)
TABLE = PaperTable(1, "A table", ("Judge",), (("", 6),), tuple("abcdef"), (TableRow(("J",), CELLS),))


def test_cells_say_whether_the_metric_agrees_differs_or_is_only_printed():
    assert [cell.kind for cell in CELLS] == ["same", "other", "printed", "computed", "nothing", "other"]
    assert [cell.text for cell in CELLS] == ["69.8", "71.9", "64.1", "50.0", "–", "71.9"]


def test_equal_notes_share_a_number():
    assert TABLE.notes == {"why": 1, "no file": 2}


@pytest.mark.labels
@pytest.mark.shared
def test_verdict_files_of_the_maintainers_folder_are_counted_and_strange_ones_left_out(
    official_settings, shared, tmp_path, caplog
):
    folder = tmp_path / "verdicts"
    folder.mkdir()
    real = shared / "data" / "agent-reward-bench" / "verdicts"
    shutil.copy(real / "rule-based.jsonl", folder)
    shutil.copy(real / "aer-c.jsonl", folder / "grok.jsonl")
    (folder / "nnetnav.jsonl").write_text("[]")
    updates = {"state_dir": tmp_path / "state", "paper_verdicts": folder}
    text = shown_text(
        page_at(SubmissionsApp(official_settings.model_copy(update=updates)), "/paper", table="10")
    )
    assert "Rule-based" in text
    assert "AER-C" not in text
    assert "grok.jsonl of ARB_PAPER_VERDICTS cannot be used: no published judge has this name" in caplog.text
    assert "nnetnav.jsonl cannot be scored" in caplog.text


@pytest.mark.labels
def test_without_files_the_tables_of_one_agent_say_what_to_do(official_settings, tmp_path):
    service = SubmissionsApp(official_settings.model_copy(update={"state_dir": tmp_path}))
    assert "ARB_PAPER_VERDICTS" in page_at(service, "/paper", table="9")


def test_a_suite_of_ones_own_has_the_printed_metrics_only(service, hostile):
    html = page_at(service, "/paper", status=422, table=hostile)  # no such table: the first one
    assert "Table 1." in html
    assert "agrees with the paper" in html
