import io
import json

from rich.console import Console

from leaderboard.cli.paper import (
    AUDIT_COLUMNS,
    audit_findings,
    audit_summary,
    audit_table,
    audit_texts,
    audit_to_json,
)
from leaderboard.paper.published import load_published_rows

ROWS = load_published_rows()


def test_there_is_a_line_for_every_cell_with_figures():
    lines = audit_texts(ROWS)
    # The paper's: 4 judges of 6 cells, 9 of 18; references: 2 of 18, one of 3 x 3; those reported since:
    # overall and the benchmarks that are given
    since = [row for row in ROWS if row.provenance == "self-reported"]
    reported = [label for row in since for label in row.labels.values() if label]
    given = sum(1 + sum(cell is not None for cell in label.by_benchmark.values()) for label in reported)
    assert len(lines) == 4 * 6 + 9 * 18 + 2 * 18 + 3 * 3 + given
    assert {len(line) for line in lines} == {len(AUDIT_COLUMNS)}
    assert lines[0] == (
        "Rule-based (reward)", "Success", "Overall", "83.8", "55.9", "67.1", "165/32/130/779", "unique", "",
    )  # fmt: skip


def test_figures_that_are_not_given_and_counts_that_are_not_settled_stay_empty():
    line = next(
        line
        for line in audit_texts(ROWS)
        if line[0].startswith("WebJudge (o4-mini)") and line[2] == "WorkArena++"
    )
    assert line[3:8] == ("90.0", "", "", "", "several")


def test_every_cell_whose_counts_are_not_unique_has_a_note():
    lines = [
        line
        for line in audit_texts([row for row in ROWS if row.provenance == "published"])
        if line[-1] or line[-2] not in ("unique", "exact")
    ]
    assert [(line[0], line[2]) for line in lines if line[1] == "Success"] == [
        ("Claude 3.7 Sonnet (tree)", "Overall"),
        ("Claude 3.7 Sonnet (tree)", "WorkArena++"),
        ("GPT-4o Mini (tree)", "Overall"),
    ]
    assert all(line[-1] for line in lines)


def test_the_summary_counts_cells_by_status():
    assert audit_summary(ROWS)["published"] == {
        "success": {"unique": 76, "none": 2},
        "side_effect": {"unique": 34, "several": 19, "narrowed": 1},
        "repetition": {"unique": 54},
    }


def test_nothing_is_cut_off_in_a_terminal_of_80_columns():
    text = io.StringIO()
    Console(file=text, width=80).print(audit_table(ROWS))
    shown = text.getvalue()
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80
    for expected in (
        "Claude 3.7 Sonnet (screenshot), published",
        "212/101/83/710",
        "Success, WorkArena++: no whole numbers fit 52 positives of 348; fits 51 positives of 347",
        "published, success: 76 unique, 2 none",
    ):
        assert expected in " ".join(shown.split())


def test_the_json_form_holds_plain_data():
    data = json.loads(json.dumps(audit_to_json(ROWS)))
    cell = next(
        cell
        for cell in data["cells"]
        if (cell["row_id"], cell["label"], cell["benchmark"])
        == ("paper/claude-3.7-sonnet-tree", "success", "workarena++")
    )
    assert (cell["status"], cell["no_verdict"], cell["precision"]) == ("none", 1, 0.667)
    assert cell["counts"] == {"tp": 32, "fp": 16, "fn": 19, "tn": 280}
    assert data["summary"] == audit_summary(ROWS)
    assert data["findings"] == audit_findings(ROWS) == []
