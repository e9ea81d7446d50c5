import json

import pytest

from space.gradio_app.findings import KINDS, MOST_ROWS, view_upload
from tests.support.submissions import verdicts


@pytest.fixture
def rows(service):
    """A right file's rows as mappings, all without success."""
    return [{"trajectory_id": t.trajectory_id, "success": False} for t in service.suite.split("test")]


def viewed(service, rows, name="a.jsonl"):
    content = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows).encode()
    return view_upload(service.intake.check(content, name, "test"))


def codes(view):
    return {group.title: [shown.finding.code for shown in group.findings] for group in view.groups}


def test_findings_stand_in_groups_and_groups_with_errors_come_first(service, rows):
    rows = [*rows[1:], {**rows[2], "success": True}, "no json", {**rows[3], "success": "maybe", "note": 1}]
    view = viewed(service, rows)
    assert codes(view) == {
        KINDS["lines"]: ["invalid_json"],
        KINDS["ids"]: ["duplicate_id", "missing_id"],
        KINDS["values"]: ["unknown_word"],
        KINDS["columns"]: ["unknown_columns"],  # a warning
    }
    assert (view.n_errors, view.n_warnings) == (4, 1)


def test_a_findings_rows_come_with_what_stands_in_them(service, rows):
    rows[4] = {**rows[4], "success": "maybe"}
    rows[5] = {**rows[5], "success": True}
    (group,) = viewed(service, rows).groups
    (shown,) = group.findings
    assert [(row.number, row.text) for row in shown.rows] == [(5, json.dumps(rows[4]))]
    assert shown.more == 0


def test_of_many_rows_a_few_are_shown_and_the_others_counted(service, rows):
    (group,) = viewed(service, [{**row, "success": "maybe"} for row in rows]).groups
    (shown,) = group.findings
    assert len(shown.rows) == MOST_ROWS
    assert shown.more == 30 - MOST_ROWS


def test_what_was_understood_is_shown_before_anything_is_submitted(service, rows):
    for place, row in enumerate(rows):
        row |= {"success": None if place < 3 else place < 12, "repetition": place < 5, "cost_usd": 0.25}
        row |= {"state": "refused" if place < 3 else "ok", "score": 0.5}
    view = viewed(service, rows)
    # 30 rows: 3 without a verdict, places 3 to 11 successful: 9 of 27 = 33.3 %; 30 * $0.25 = $7.50
    assert view.understood == (
        "Success: 9 called successful, 18 not, 3 without a verdict (33.3 % of the verdicts say successful).",
        "A trajectory without a verdict counts as not successful in the ranking.",
        "Repetition: 5 of 30 verdicts say that it happened.",
        "No verdicts on side effect: the judge will not be on those boards.",
        "Scores for 30 trajectories: calibration is shown.",
        "Costs for 30 trajectories, $7.50 in all.",
        "Answers that did not end well: 3 refused.",
    )


def test_nothing_is_said_to_be_understood_of_a_file_with_errors(service, rows):
    assert viewed(service, rows[1:]).understood == ()


def test_rows_are_counted_by_benchmark(service):
    view = view_upload(service.intake.check(verdicts(service.suite), "a.jsonl", "test"))
    # AssistantBench 3 tasks, WebArena 6, WorkArena 3, WorkArena++ 3, two agents each
    assert [(title, part.rows) for title, part in view.parts] == [
        ("AssistantBench", 6), ("WebArena", 12), ("WorkArena", 6), ("WorkArena++", 6),
    ]  # fmt: skip
    assert view.expected == 30


def test_a_file_that_is_nothing_that_is_read_has_a_finding_without_rows(service):
    view = view_upload(service.intake.check(b"%PDF-1.7", "a.pdf", "test"))
    assert codes(view) == {KINDS["file"]: ["not_text"]}
    assert view.groups[0].findings[0].rows == ()


def findings(service, content: bytes, name="a.jsonl"):
    view = view_upload(service.intake.check(content, name, "test"))
    return {shown.finding.code: shown for group in view.groups for shown in group.findings}


def test_ids_that_the_message_names_are_not_shown_again_with_their_rows(service, rows):
    unknown = {"trajectory_id": "webarena/nobody/webarena.1", "success": True}
    shown = findings(service, "".join(f"{json.dumps(row)}\n" for row in [*rows, unknown]).encode())
    assert shown["unknown_id"].message.count("webarena/nobody/webarena.1") == 1
    assert shown["unknown_id"].rows == ()


def test_a_template_is_a_link_on_the_page_and_not_a_command(service):
    shown = findings(service, b'{"trajectory_id": "webarena/nobody/webarena.1", "success": true}\n')
    message = shown["unknown_id"].message
    assert '<a href="/api/template?split=test" download>the template of test</a>' in message
    assert "python -m" not in message


def test_another_split_is_named_as_the_page_names_it(service):
    message = findings(service, verdicts(service.suite, "dev"))["wrong_split"].message
    assert "choose dev above" in message
    assert "--split" not in message


def test_lines_of_a_binary_file_are_counted_and_not_shown(service):
    shown = findings(service, bytes(range(256)) * 20)
    assert shown["wrong_encoding"].rows == ()
    assert "in 20 lines" in shown["wrong_encoding"].message


def test_messages_are_escaped(service, hostile):
    row = {"trajectory_id": "nowhere", "success": hostile}
    for shown in findings(service, f"{json.dumps(row)}\n".encode()).values():
        assert hostile not in shown.message or not set(hostile) & set("<>&\"'")
