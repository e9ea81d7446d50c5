"""The judges as data: one entry a judge, its best row for each label, figures of the board."""

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from space.judges_answer import judges_answer
from space.rest import build_router
from tests.space.public_suite import public_service, send_three
from tests.submissions.synthetic import send, verdicts


@pytest.fixture
def service(tmp_path):
    return public_service(tmp_path)


@pytest.fixture
def client(service):
    app = FastAPI()
    app.include_router(build_router(service))
    return TestClient(app)


def test_judges_come_in_the_boards_order_with_figures_as_fractions(service, client):
    ids = send_three(service)
    found = client.get("/api/judges").json()
    assert found["suite"] == "small" and found["board_digest"] == service.board().digest
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


def test_a_judge_with_several_submissions_is_one_entry_with_its_best(service):
    worse = send(service, verdicts(service.suite, false_alarms=9)).submission_id
    better = send(service, verdicts(service.suite, false_alarms=1)).submission_id
    (judge,) = judges_answer(service.board())["judges"]
    assert judge["best_row"] == better
    assert sorted(judge["rows"]) == sorted([worse, better])


def test_the_same_name_of_another_account_is_another_judge(service):
    send(service, verdicts(service.suite), account="Ada")
    send(service, verdicts(service.suite, misses=1), account="Bob")
    assert [judge["account"] for judge in judges_answer(service.board())["judges"]] == ["Ada", "Bob"]


def test_the_answer_has_a_tag_that_changes_with_the_board(service, client):
    send(service, verdicts(service.suite))
    first = client.get("/api/judges")
    known = {"if-none-match": first.headers["etag"]}
    assert client.get("/api/judges", headers=known).status_code == 304
    assert client.head("/api/judges").headers["etag"] == first.headers["etag"]
    send(service, verdicts(service.suite, misses=1), judge="Another")
    assert client.get("/api/judges", headers=known).status_code == 200


def test_reference_rows_are_no_judges_and_papers_rows_are_each_their_own():
    from leaderboard.board import make_board
    from leaderboard.published_rows import load_published_rows

    published = load_published_rows()
    found = judges_answer(make_board("agent-reward-bench", (), published, None))["judges"]
    assert len(found) == sum(row.provenance != "reference" for row in published)
    assert all(judge["account"] == "" and judge["rows"] == [judge["best_row"]] for judge in found)
