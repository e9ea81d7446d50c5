import json

import pytest

from space.gradio_app.findings import KINDS, MOST_ROWS, grouped_findings, understood
from tests.support.submissions import verdicts


@pytest.fixture
def rows(service):
    """A right file's rows as mappings, all without success."""
    return [{"trajectory_id": t.trajectory_id, "success": False} for t in service.suite.split("test")]


def viewed(service, rows, name="a.jsonl"):
    content = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows).encode()
    return grouped_findings(service.intake.check(content, name, "test"))


def codes(groups):
    return {title: [shown.finding.code for shown in views] for title, views in groups.items()}


def test_findings_stand_in_groups_and_groups_with_errors_come_first(service, rows):
    rows = [*rows[1:], {**rows[2], "success": True}, "no json", {**rows[3], "success": "maybe", "note": 1}]
    found = codes(viewed(service, rows))
    assert found == {
        KINDS["lines"]: ["invalid_json"],
        KINDS["ids"]: ["duplicate_id", "missing_id"],
        KINDS["values"]: ["unknown_word"],
        KINDS["columns"]: ["unknown_columns"],  # a warning
    }
    assert list(found)[-1] == KINDS["columns"]


def test_a_findings_rows_come_with_what_stands_in_them(service, rows):
    rows[4] = {**rows[4], "success": "maybe"}
    rows[5] = {**rows[5], "success": True}
    ((shown,),) = viewed(service, rows).values()
    assert shown.rows == ((5, json.dumps(rows[4]), ""),)
    assert shown.more == 0


def test_of_many_rows_a_few_are_shown_and_the_others_counted(service, rows):
    ((shown,),) = viewed(service, [{**row, "success": "maybe"} for row in rows]).values()
    assert len(shown.rows) == MOST_ROWS
    assert shown.more == 30 - MOST_ROWS


def test_what_was_understood_is_shown_before_anything_is_submitted(service, rows):
    for place, row in enumerate(rows):
        row |= {"success": None if place < 3 else place < 12, "repetition": place < 5, "cost_usd": 0.25}
        row |= {"state": "refused" if place < 3 else "ok", "score": 0.5}
    content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    # 30 rows: 3 without a verdict, places 3 to 11 successful: 9 of 27 = 33.3 %; 30 * $0.25 = $7.50
    assert understood(service.intake.check(content, "a.jsonl", "test"), service.suite) == (
        "Success: 9 of 27 verdicts are yes (33.3 %); 30 rows.",
        "A row without a verdict counts as a no in the ranking.",
        "Repetition: 5 of 30 verdicts are yes (16.7 %); 30 rows.",
        "The judge is not ranked on side effect: the file has no such verdicts.",
        "There are scores for 30 trajectories, so the judge's page shows their calibration.",
        "There are costs for 30 trajectories, $7.50 in total.",
        "Trajectories with a state other than ok: 3 refused.",
    )


def test_a_file_that_is_nothing_that_is_read_has_a_finding_without_rows(service):
    groups = grouped_findings(service.intake.check(b"%PDF-1.7", "a.pdf", "test"))
    assert codes(groups) == {KINDS["file"]: ["not_text"]}
    assert groups[KINDS["file"]][0].rows == ()


def findings(service, content: bytes, name="a.jsonl"):
    groups = grouped_findings(service.intake.check(content, name, "test"))
    return {shown.finding.code: shown for views in groups.values() for shown in views}


def test_a_wrong_id_is_shown_once_with_the_id_that_is_probably_meant(service, rows):
    meant = rows[0]["trajectory_id"]
    wrong = {**rows[0], "trajectory_id": meant + "x"}
    shown = findings(service, "".join(f"{json.dumps(row)}\n" for row in [wrong, *rows[1:]]).encode())
    assert shown["unknown_id"].rows == ((1, meant + "x", meant),)
    assert meant not in shown["unknown_id"].message


def test_one_sentence_says_which_replacement_corrects_all_ids(service, rows):
    wrong = [{**row, "trajectory_id": "data/v1/" + row["trajectory_id"]} for row in rows]
    shown = findings(service, "".join(f"{json.dumps(row)}\n" for row in wrong).encode())["malformed_id"]
    assert "30 ids have the prefix &#39;data/v1/&#39;; remove it." in shown.message
    first, *_ = shown.rows
    assert first == (1, "data/v1/" + rows[0]["trajectory_id"], rows[0]["trajectory_id"])
    assert (len(shown.rows), shown.more) == (MOST_ROWS, 30 - MOST_ROWS)


def test_an_id_like_none_of_the_suite_has_no_meant_id(service, rows):
    unknown = {"trajectory_id": "miniwob/somebody/clicks.77", "success": True}
    shown = findings(service, "".join(f"{json.dumps(row)}\n" for row in [*rows, unknown]).encode())
    assert "miniwob/somebody/clicks.77" not in shown["unknown_id"].message
    assert shown["unknown_id"].rows == ((31, "miniwob/somebody/clicks.77", ""),)


def test_a_template_is_a_link_on_the_page_and_not_a_command(service):
    shown = findings(service, b'{"trajectory_id": "webarena/nobody/webarena.1", "success": true}\n')
    message = shown["unknown_id"].message
    assert '<a href="/api/template?split=test" download>the template for test</a>' in message
    assert "python -m" not in message


def test_another_split_is_named_as_the_page_names_it(service):
    message = findings(service, verdicts(service.suite, "dev"))["wrong_split"].message
    assert "choose dev above" in message
    assert "--split" not in message


def test_lines_of_a_binary_file_are_counted_and_not_shown(service):
    shown = findings(service, bytes(range(256)) * 20)
    assert shown["wrong_encoding"].rows == ()
    assert "20 lines have" in shown["wrong_encoding"].message


def test_messages_are_escaped(service, hostile):
    row = {"trajectory_id": "nowhere", "success": hostile}
    for shown in findings(service, f"{json.dumps(row)}\n".encode()).values():
        assert hostile not in shown.message or not set(hostile) & set("<>&\"'")
