"""The page My judge: tables of a reader become the report of `arb validate`, and nothing of them is kept."""

import base64
import json
import re

import pytest
from fastapi.testclient import TestClient

import arb
from arb.core.settings import Settings
from arb.core.suites.profile import SuiteProfile
from leaderboard.validation import uploaded
from space.app import create_app
from tests.space.conftest import shown_text
from tests.space.pages.conftest import page_at
from tests.support.hostile import BOMBS
from tests.support.space_app import local_client
from tests.support.submissions import assert_nothing_was_written

ROWS = [(f"r{n}", n % 2 == 1, n % 2 == 1 or n < 10, n // 4) for n in range(40)]
"""Twenty yeses. The judge finds all of them and errs on 0, 2, 4, 6 and 8: its precision is 20 / 25."""
TABLE = "run,human,judge,task\n" + "".join(f"{run},{a:d},{b:d},t{task}\n" for run, a, b, task in ROWS)
COLUMNS = {"label": "human", "verdict": "judge"}


def send(service, table: str = "", files=(), client=None, **data):
    """Send the form as a browser does, with an empty part if no file of labels was chosen."""
    sent = [*files] if any(part == "labels" for part, _ in files) else [*files, ("labels", ("", b""))]
    return (client or local_client(service)).post("/validate", data={"pasted": table, **data}, files=sent)


def file(part: str, name: str, text: str | bytes):
    return part, (name, text.encode() if isinstance(text, str) else text)


def problem_in(html: str) -> str:
    return shown_text(html[html.index('id="validation-problem"') : html.index("</main>")])


def test_a_pasted_table_gives_the_report_of_the_command_and_both_downloads(service):
    answer = send(service, TABLE, **COLUMNS, group="task", by="task")
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    text = shown_text(answer.text)
    assert "40 labelled rows, 50.0 % of them positive, 10 groups" in text and "80.0" in text
    html, report = (
        base64.b64decode(each).decode()
        for each in re.findall(r'href="data:[^,"]*;base64,([^"]*)"', answer.text)
    )
    expected = arb.validate(_frame(), label="human", verdict="judge", group="task").attrs
    found = json.loads(report)
    assert found["judges"][0].pop("by")["task"]["t0"]["precision"]["value"] == 0.5  # of 4 yeses 2 are right
    assert found == expected
    assert html.startswith("<!doctype html>") and "<script" not in html and "80.0" in html
    assert_nothing_was_written(service)
    assert "80.0" not in page_at(service, "/validate")


def _frame():
    import pandas as pd

    return pd.DataFrame([dict(zip(("run", "human", "judge", "task"), row, strict=True)) for row in ROWS])


def test_labels_and_the_verdicts_of_several_judges_may_be_files(service):
    labels = "run_id,label\n" + "".join(f"{run},{a:d}\n" for run, a, *_ in ROWS)
    judges = ["run_id,verdict\n" + "".join(f"{row[0]},{row[place]:d}\n" for row in ROWS) for place in (1, 2)]
    files = [file("labels", "labels.csv", labels)]
    files += [file("verdicts", f"../{name}.csv", text) for name, text in zip("ab", judges, strict=True)]
    text = shown_text(send(service, files=files).text)
    assert "a − b" in text and "the pasted table" not in text
    # the first judge is right on all rows
    assert "100.0" in text and "80.0" in text


def test_columns_that_cannot_be_found_are_chosen_on_the_page(service):
    table = TABLE.replace("human", "first").replace("judge", "second")
    answer = send(service, table)
    assert answer.status_code == 422
    assert "several columns are possible (first, second)" in problem_in(answer.text)
    assert "--label" not in problem_in(answer.text)
    assert "<label data-unclear>Label<select" in answer.text
    assert "<option>second</option>" in answer.text
    assert send(service, table, label="first", verdict="second").status_code == 200


REFUSED = [
    ("", [], "No table was sent. Choose a file, or paste a table"),
    (TABLE, [file("labels", "l.csv", TABLE)], "Send only one of them"),
    ("", [file("verdicts", "v.csv", TABLE)], "Choose a file of labels too"),
    ("label,verdict\nyes,perhaps\n", [], "the pasted table, column verdict: row 2 has 'perhaps'"),
    ("label,verdict\nyes\n", [], "the pasted table: these rows do not have the 2 cells"),
    ("", [file("labels", "l.csv", "x\xe4".encode("latin-1"))], "l.csv: not UTF-8 text"),
    ("", [file("labels", "l.csv", TABLE.encode("utf-16"))], "l.csv: not UTF-8 text"),
    ("", [file("labels", "l.json", b"[" * 1_000_000)], "l.json: not a JSON array"),
    ("", [file("labels", "l.jsonl", b'{"a":' * 500_000)], "l.jsonl: line 1 is not JSON"),
    ("", [file("labels", "l.csv", "a\n" * 10_002)], "l.csv: 10,001 rows; at most 10,000 are accepted"),
    ("", [file("labels", "l.csv", b"," * 200)], "l.csv: 201 columns; at most 100 are accepted"),
    ("", [file("labels", "l.jsonl", b"".join(b'{"k%d":1}\n' % n for n in range(200)))], "200 columns"),
    ("", [file("labels", "l.csv", b'a,b\n"' + b"x" * 1_000_000)], "l.csv: line 2 cannot be read as CSV"),
]  # fmt: skip


@pytest.mark.slow
def test_tables_that_cannot_be_used_are_refused_with_what_to_do(service):
    """All go to one server, which answers the last one as well as the first."""
    client = local_client(service)
    for table, files, message in REFUSED:
        answer = send(service, table, files, client, verdict="verdict" if "perhaps" in table else "")
        assert answer.status_code == 422, message
        assert message in problem_in(answer.text) and "Traceback" not in answer.text


@pytest.mark.slow
def test_files_that_unpack_to_gigabytes_are_refused_and_the_next_table_is_read(service):
    client = local_client(service)
    for bomb in BOMBS:
        content = bomb()[: service.settings.max_upload_bytes]
        answer = send(service, files=[file("labels", "bomb.parquet", content)], client=client)
        assert answer.status_code == 422, bomb.__name__
    assert send(service, TABLE, client=client, **COLUMNS).status_code == 200


@pytest.mark.slow
def test_many_values_to_report_by_and_many_judges_are_refused(service):
    assert "column run has 60 values" in problem_in(
        send(service, "run,label,verdict\n" + "".join(f"{n},{n % 2},1\n" for n in range(60)), by="run").text
    )
    names = [f"j{n}" for n in range(uploaded.MOST_JUDGES + 1)]
    assert send(service, "label," + ",".join(names) + "\n", verdict=names).status_code == 422


@pytest.mark.slow
def test_markup_in_tables_is_text_and_nothing_of_them_is_logged(service, hostile, caplog):
    cell = hostile.replace("\n", " ").replace('"', "'")
    table = f'"{cell}",verdict,label\n' + "".join(f'"{cell} {n % 3}",{n % 2},{n % 2}\n' for n in range(40))
    answer = send(service, table, by=cell.strip())
    assert answer.status_code == 200, problem_in(answer.text)
    refused = send(service, files=[file("labels", f"{cell}.csv".replace("/", "|"), f"a\n{cell}\n")])
    for page in (answer.text, refused.text):
        assert "<script>alert" not in page and "<img src=x" not in page
    assert cell.strip() not in caplog.text


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    given = Settings(labels="none", state_dir=tmp_path_factory.mktemp("state"), checks_a_minute=3)
    with TestClient(create_app(given)) as client:
        yield client


@pytest.mark.slow
def test_a_hundred_megabytes_are_refused_and_tables_count_as_checks(limited, within_a_minute):
    large = {"labels": ("large.csv", b"a" * 100_000_000)}
    answer = limited.post("/validate", files=large, headers={"accept": "text/html"})
    assert answer.status_code == 413 and "send a smaller file" in answer.text
    statuses = [
        limited.post("/validate", data={"pasted": "x"}, files={"labels": ("", b"")}).status_code
        for _ in range(3)
    ]
    assert statuses == [422, 422, 429]


def test_the_page_is_a_switch_of_its_own_and_others_lead_to_it(service):
    assert SuiteProfile("Ours").serves("/validate")
    assert not SuiteProfile("Ours", pages=frozenset({"rates"})).serves("/validate")
    assert 'href="/validate"' in page_at(service, "/my-agent")
