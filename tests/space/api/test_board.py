"""Tests of the board as data: one entry per judge, with its best row and its metrics for each label."""

import asyncio
import csv
import dataclasses
import io
import json
import threading

import httpx
import pandas
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from leaderboard.board.export import board_to_csv
from space.api.board import BAD_CURSOR, build_board_router, judges_response, top_of_board
from space.operations.health import build_health_router
from space.web.responses import CachedResponse, takes_gzip
from submissions.app import SubmissionsApp
from submissions.intake.accounts import Actor
from tests.support.boards import board, cell, label, row
from tests.support.space_app import public_service, send_three
from tests.support.submissions import SECRET_ANNOTATOR, TASKS, send, verdicts


@pytest.fixture
def service(tmp_path):
    return public_service(tmp_path)


@pytest.fixture
def client(service):
    return client_of(service)


def test_judges_come_in_the_boards_order_with_figures_as_fractions(service, client):
    ids = send_three(service)
    found = client.get("/api/judges").json()
    assert found["suite"] == "small" and found["board_digest"] == service.records.board().digest
    assert [judge["judge"] for judge in found["judges"]] == ["Alpha", "Beta", "Gamma"]
    beta = found["judges"][1]
    assert (beta["account"], beta["kind"], beta["inputs"], beta["model"]) == (
        "Ada", "LLM judge", "tree", "some-model",
    )  # fmt: skip
    assert beta["best_row"] == beta["figures"]["success"]["row"] == ids["Beta"]
    # Beta: 8 of 12 called successful are, of 10: P = 8/12, R = 8/10, F1 = 16/22
    success = beta["figures"]["success"]
    assert (success["precision"], success["recall"]) == pytest.approx((8 / 12, 8 / 10))
    assert success["f1"] == pytest.approx(16 / 22)
    assert success["rank"]["place"] == 2 and success["n"] == 30
    assert beta["figures"]["repetition"] is None


def test_the_top_of_a_board_takes_at_most_9_kb_in_a_json_string_however_long_the_names():
    """An MCP answer has at most 10 kB: this string, and less than 1 kB around it."""
    of_all = label(cell(9, 1, 2, 8, ci=[0.6, 0.95]), (1, 1, 100))
    long = board(*(row('"' * 60, of_all, id=f"{number:03}", model="é" * 60) for number in range(100)))
    text = top_of_board(long, "success", "precision", 100)
    found = json.loads(text)
    assert len(json.dumps(text, ensure_ascii=False).encode()) <= 9_000
    assert 10 < len(found["rows"]) < 100 == found["n_rows"]
    assert [each["id"] for each in found["rows"]] == [each.id for each in long.rows][: len(found["rows"])]


def rows_in_pages(client, limit: int, cursor: str = "", between=lambda: None) -> list[str]:
    """Return the row ids of all pages. ``between`` is called after each page."""
    ids = []
    while cursor is not None:
        found = client.get("/api/board", params={"cursor": cursor, "limit": limit}).json()
        assert len(found["rows"]) <= limit
        ids += [row["id"] for row in found["rows"]]
        assert found["format"] == 1
        cursor = found["next"]
        between()
    return ids


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_the_pages_of_the_board_are_its_rows_in_order(service, client, limit):
    send_three(service)
    whole = client.get("/api/board.json").json()
    first = client.get("/api/board", params={"limit": limit}).json()
    assert first["rows"] == whole["rows"][:limit]
    assert (first["label_version"], first["n_rows"]) == (whole["label_version"], len(whole["rows"]))
    assert rows_in_pages(client, limit) == [row["id"] for row in whole["rows"]]


def test_rows_that_come_between_two_pages_repeat_no_row_and_leave_none_out(service, client):
    send_three(service)
    before = [row["id"] for row in client.get("/api/board.json").json()["rows"]]
    new = iter((1, 5))

    def one_more() -> None:
        if (misses := next(new, None)) is not None:
            send(service, verdicts(service.suite, misses=misses), judge="New")

    found = rows_in_pages(client, 1, between=one_more)
    assert len(found) == len(set(found))
    assert [row_id for row_id in found if row_id in before] == before


def test_after_a_row_that_left_the_board_the_next_page_goes_on_at_its_place(service, client):
    ids = send_three(service)
    order = [row["id"] for row in client.get("/api/board.json").json()["rows"]]
    cursor = client.get("/api/board", params={"limit": 2}).json()["next"]
    service.moderation.withdraw(order[1], Actor("Ada"))
    assert order[1] in ids.values()
    assert rows_in_pages(client, 2, cursor) == order[2:]


@pytest.mark.parametrize("cursor", ["x", "!", "W10", "bnVsbA", "A" * 400, "WzEsMl0", "W1sxXSx7fV0"])
def test_what_is_no_cursor_is_refused(service, client, cursor):
    send_three(service)
    answer = client.get("/api/board", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["detail"]) == (422, BAD_CURSOR)


def test_a_judge_with_several_submissions_is_one_entry_with_its_best(service):
    worse = send(service, verdicts(service.suite, false_alarms=9)).submission_id
    better = send(service, verdicts(service.suite, false_alarms=1)).submission_id
    (judge,) = judges_response(service.records.board())["judges"]
    assert judge["best_row"] == better
    assert sorted(judge["rows"]) == sorted([worse, better])


def test_the_same_name_of_another_account_is_another_judge(service):
    send(service, verdicts(service.suite), account="Ada")
    send(service, verdicts(service.suite, misses=1), account="Bob")
    assert [judge["account"] for judge in judges_response(service.records.board())["judges"]] == [
        "Ada",
        "Bob",
    ]


def test_reference_rows_are_no_judges_and_papers_rows_are_each_their_own():
    from leaderboard.board.board import make_board
    from leaderboard.paper.published import load_published_rows

    published = load_published_rows()
    found = judges_response(make_board("agent-reward-bench", (), published, None))["judges"]
    assert len(found) == sum(row.provenance != "reference" for row in published)
    assert all(judge["account"] == "" and judge["rows"] == [judge["best_row"]] for judge in found)


def client_of(service) -> TestClient:
    app = FastAPI()
    app.include_router(build_board_router(service))
    app.include_router(build_health_router(service))
    return TestClient(app)


@pytest.fixture
def filled(service):
    send(service, verdicts(service.suite, misses=1, repetition=False), judge="Alpha")
    send(service, verdicts(service.suite, misses=2, false_alarms=4), judge="Beta", account="Bob")
    return service


@pytest.fixture
def rest_client(filled):
    return client_of(filled)


def plain(rest_client, path, **headers):
    return rest_client.get(path, headers={"accept-encoding": "identity", **headers})


# The board as JSON


def test_the_board_is_served_as_it_is(rest_client, filled):
    answer = plain(rest_client, "/api/board.json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.content == filled.records.board().to_bytes()
    assert [found["judge"] for found in answer.json()["rows"]] == ["Alpha", "Beta"]


def test_the_board_is_served_again_without_making_or_waiting_and_anew_after_a_submission(
    rest_client, filled, monkeypatch
):
    first = plain(rest_client, "/api/board.json")
    with monkeypatch.context() as patched:
        patched.setattr(filled.records, "board", lambda: pytest.fail("the records were read"))
        assert plain(rest_client, "/api/board.json").content == first.content
    send(filled, verdicts(filled.suite, misses=3), judge="Gamma")
    again = plain(rest_client, "/api/board.json", **{"if-none-match": first.headers["etag"]})
    assert again.headers["etag"] != first.headers["etag"]
    assert {row["judge"] for row in again.json()["rows"]} == {"Alpha", "Beta", "Gamma"}


@pytest.mark.parametrize("sent", ["W/{}", '"other", {}', "*", '"a" ,{}'])
def test_a_tag_is_known_in_every_way_that_clients_send_it(rest_client, sent):
    etag = plain(rest_client, "/api/board.json").headers["etag"]
    answer = plain(rest_client, "/api/board.json", **{"if-none-match": sent.format(etag)})
    assert answer.status_code == 304


@pytest.mark.parametrize("sent", ['"other"', "", '""', "rubbish,,", '"'])
def test_another_tag_gets_the_board(rest_client, sent):
    assert plain(rest_client, "/api/board.json", **{"if-none-match": sent}).status_code == 200


def test_a_client_that_takes_gzip_gets_it_with_a_tag_of_its_own(rest_client):
    whole = plain(rest_client, "/api/board.json")
    packed = rest_client.get("/api/board.json", headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == whole.content  # as decoded by the client
    assert int(packed.headers["content-length"]) < len(whole.content) / 2
    assert packed.headers["etag"] != whole.headers["etag"]
    for known in (packed.headers["etag"], whole.headers["etag"]):
        again = rest_client.get(
            "/api/board.json", headers={"accept-encoding": "gzip", "if-none-match": known}
        )
        assert again.status_code == 304


@pytest.mark.parametrize(
    ("header", "takes"),
    [
        ("gzip", True), ("GZIP", True), ("br, gzip;q=0.5", True), ("*", True), ("gzip;q=1.0, *;q=0", True),
        ("", False), ("identity", False), ("gzip;q=0", False), ("gzip; q=0.000", False), ("*;q=0", False),
        ("gzip;q=0, *", False), ("br", False), ("x-gzipped", False), (";;,", False),
    ],
)  # fmt: skip
def test_gzip_is_for_those_who_take_it(header, takes):
    assert takes_gzip(header) is takes


def test_answers_are_prepared_once_for_a_board(filled, monkeypatch):
    made = []
    real = CachedResponse.of.__func__
    monkeypatch.setattr(CachedResponse, "of", classmethod(lambda cls, *a: (made.append(1), real(cls, *a))[1]))
    rest_client = client_of(filled)
    for path in ("/api/board.json", "/api/board.csv", "/api/judges", "/api/board.json"):
        assert rest_client.get(path).status_code == 200
    assert len(made) == 3  # JSON, CSV, judges


# The board as CSV


def read_csv(text: str) -> pandas.DataFrame:
    return pandas.read_csv(io.StringIO(text))


def test_the_csv_has_a_line_for_each_row_and_label(rest_client):
    answer = plain(rest_client, "/api/board.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert 'filename="small-board.csv"' in answer.headers["content-disposition"]
    table = read_csv(answer.text)
    assert table["label"].tolist() == ["success", "success", "repetition"]
    assert table["judge"].tolist() == ["Alpha", "Beta", "Alpha"]
    # Alpha never says that a run repeats, so its precision is undefined and it has no place
    assert table["rank_place"].fillna(0).tolist() == [1, 2, 0]
    # Alpha: 9 of 9; Beta: 8 of 12
    assert table["precision"][:2].tolist() == pytest.approx([1.0, 8 / 12])
    assert table["tp"][:2].tolist() == [9, 8]
    assert (table["precision_ci_low"][1] < 8 / 12) and (table["precision_ci_high"][1] > 8 / 12)


def test_a_figure_that_is_unknown_is_empty_and_not_nought():
    (line,) = csv.DictReader(
        io.StringIO(board_to_csv(board(row("Never", label(cell(0, 0, 9, 20))))), newline="")
    )
    assert (line["precision"], line["recall"], line["precision_ci_low"], line["rank_place"]) == (
        "",
        "0.0",
        "",
        "",
    )


FORMULAS = (
    "=1+1", "+1", "-1", "@SUM(A1)", "  =1+1", "\t=1+1", "\tx", "\r=1", "\n=1", "\u00a0=1", "\u3000=1",
    "＝1+1", "＋1", "－1", "＠x", '=HYPERLINK("https://evil.example","x")', "=cmd|' /C calc'!A0",
)  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(
    "field", ["judge", "account", "model", "authors", "link", "inputs", "kind", "note", "source"]
)
def test_no_cell_of_the_csv_is_a_formula(formula, field):
    hostile = dataclasses.replace(row("x", label(cell(9, 1, 1, 9))), **{field: formula})
    text = board_to_csv(board(hostile))
    (line,) = csv.DictReader(io.StringIO(text, newline=""))
    assert line[field] == f"'{formula}"


@pytest.mark.parametrize(
    "harmless", ["GPT-4o", "a=b", "judge -1", "'quoted'", 'two\nlines, and "quotes"', "a\r=1+1", "", "né"]
)
def test_other_texts_are_in_the_csv_as_they_are(harmless):
    text = board_to_csv(board(row("x", label(cell(9, 1, 1, 9)), model=harmless)))
    (line,) = csv.DictReader(io.StringIO(text, newline=""))
    assert line["model"] == harmless


def test_a_number_below_zero_stays_a_number():
    table = read_csv(board_to_csv(board(row("x", label(cell(1, 9, 9, 1))))))
    assert table["kappa"].tolist() == pytest.approx([-0.8])


# Health


def test_health_says_that_submissions_are_open(rest_client, filled):
    assert rest_client.get("/readyz").json() == {
        "status": "ok", "suite": "small", "submissions": "open", "waiting": 0, "records": None,
        "label_version": filled.label_version, "board_digest": filled.records.board().digest,
        "submissions_off_because": None,
    }  # fmt: skip


def test_health_in_read_only_mode_says_so_and_the_board_is_served_as_before(filled):
    before = filled.records.board()
    rest_client = client_of(SubmissionsApp(filled.settings.model_copy(update={"labels": "none"})))
    assert rest_client.get("/readyz").json() == {
        "status": "ok", "suite": "small", "submissions": "off", "waiting": 0, "records": None,
        "label_version": None, "board_digest": before.digest,
        "submissions_off_because": "no labels are configured (ARB_LABELS is 'none'), so test cannot be "
        "scored",
    }  # fmt: skip
    assert rest_client.get("/api/board.json").content == before.to_bytes()


def test_health_waits_neither_for_threads_of_pages_nor_for_a_board_that_is_made(filled):
    from anyio import to_thread

    async def scene():
        app = client_of(filled).app
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as asking:
            first = (await asking.get("/readyz")).json()
            send(filled, verdicts(filled.suite, misses=3), judge="Late")
            made, pages = threading.Event(), to_thread.current_default_thread_limiter()
            filled.records._current._lock.acquire()  # a board is being made
            busy = [
                asyncio.create_task(to_thread.run_sync(made.wait)) for _ in range(int(pages.total_tokens))
            ]
            try:
                while pages.borrowed_tokens < pages.total_tokens:
                    await asyncio.sleep(0)
                assert (await asyncio.wait_for(asking.get("/readyz"), 120)).json() == first
            finally:
                made.set()
                filled.records._current._lock.release()
                await asyncio.gather(*busy)

    asyncio.run(scene())


# What no response contains


@pytest.mark.parametrize("path", ["/api/board.json", "/api/board.csv", "/healthz", "/readyz"])
@pytest.mark.parametrize("labels", [None, "none", "csv:/srv/private/labels.csv"])
def test_no_answer_holds_a_label_a_task_a_path_or_a_count_by_task(filled, path, labels):
    changes = {} if labels is None else {"labels": labels}
    rest_client = client_of(SubmissionsApp(filled.settings.model_copy(update=changes)))
    text = rest_client.get(path).text
    hidden = ["counts_by_task", SECRET_ANNOTATOR, "Unsuccessful", "private", "labels.csv", "verdicts.jsonl"]
    hidden += [str(filled.settings.state_dir), "records.sqlite", *(task for _, task in TASKS)]
    assert [word for word in hidden if word in text] == []


def test_no_array_as_long_as_the_split_or_its_tasks_is_in_the_json(rest_client):
    # 30 trajectories, 15 tasks: per-run or per-task figures would be such arrays. Intervals have two ends.
    def lengths(value) -> list[int]:
        if isinstance(value, dict):
            return [n for found in value.values() for n in lengths(found)]
        if isinstance(value, list):
            return [len(value), *(n for found in value for n in lengths(found))]
        return []

    body = json.loads(rest_client.get("/api/board.json").content)
    assert max(n for found in body["rows"] for n in lengths(found)) == 2
