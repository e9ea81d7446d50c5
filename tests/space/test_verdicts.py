"""Tests that every page shows the same about a judge, wherever its verdicts are stored."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from arb.core.judge_info import declare
from leaderboard.paper.published_files import read_published_files
from space.pages.trajectories.dataset import Explorer
from space.verdicts import JudgeVerdicts
from space.web.query import link_to
from submissions.app import SubmissionsApp
from tests.space.conftest import shown_text
from tests.support.clocks import one_a_day
from tests.support.space_app import local_client, private_service, public_with_three, send_three

JUDGES = {"aer-c": "paper/aer-c", "nnetnav": "paper/nnetnav", "rule-based": "paper/rule-based"}
SHIPPED = ["reported/webjudge-7b", "reported/webjudge-gpt-4o", "reported/webjudge-o4-mini"]


@pytest.fixture(scope="module")
def files(shared):
    return shared / "data" / "agent-reward-bench" / "verdicts"


@pytest.fixture(scope="module")
def as_submissions(official_settings, files, tmp_path_factory):
    """Return a client of a Space with the three files as submissions, and their rows."""
    settings = official_settings.model_copy(update={"state_dir": tmp_path_factory.mktemp("submitted")})
    service = SubmissionsApp(settings, clock=one_a_day())
    ids = []
    for name in JUDGES:
        declared = declare(
            account="Ada", judge=name, kind="LLM judge", inputs="caption", test_labels_used=False
        )
        upload = service.intake.check((files / f"{name}.jsonl").read_bytes(), f"{name}.jsonl", "test")
        ids.append(service.intake.submit(upload, declared).receipt.submission_id)
    return local_client(service), ids


@pytest.fixture(scope="module")
def as_paper_verdicts(official_settings, files, tmp_path_factory):
    """Return a client of a Space with the three files in ARB_PAPER_VERDICTS, and the paper's rows."""
    folder = tmp_path_factory.mktemp("folder")
    settings = official_settings.model_copy(update={"state_dir": folder, "paper_verdicts": files})
    return local_client(SubmissionsApp(settings)), list(JUDGES.values())


def numbers(html: str) -> list[str]:
    """Return the text of every cell with a number, in the order of the page."""
    return [shown_text(cell).strip() for cell in re.findall(r'<td class="number[^>]*>(.*?)</td>', html, re.S)]


def page(client, path: str, **query) -> str:
    answer = client.get(link_to(path, **query))
    assert answer.status_code == 200
    return answer.text


@pytest.mark.labels
@pytest.mark.shared
class TestTheSameThreeFilesGiveTheSameFigures:
    @pytest.mark.slow
    def test_on_the_page_of_a_judge(self, as_submissions, as_paper_verdicts):
        for place in range(3):
            submitted, known = (
                page(client, "/judge", id=ids[place]) for client, ids in (as_submissions, as_paper_verdicts)
            )
            assert numbers(submitted) == numbers(known)
            assert len(re.findall(r'href="/errors\?[^"]*&amp;agent=', known)) >= 4
            assert "95 % intervals are computed from the judge's verdicts" in known
            assert "shows the metrics printed in the paper" in known and "printed" not in submitted

    def test_on_a_comparison_with_its_ensembles(self, as_submissions, as_paper_verdicts):
        for metric in ("precision", "kappa"):
            submitted, known = (
                page(client, "/compare", judges=ids, figure=metric)
                for client, ids in (as_submissions, as_paper_verdicts)
            )
            assert numbers(submitted) == numbers(known)
            assert "All 3 say yes (unanimous)" in known and "Error overlap" in known

    def test_as_success_rates(self, as_submissions, as_paper_verdicts):
        tables = [
            re.search(r'<table class="sheet rates">.*?</table>', page(client, "/rates", by=ids), re.S)[0]
            for client, ids in (as_submissions, as_paper_verdicts)
        ]
        assert numbers(tables[0]) == numbers(tables[1]) != []

    def test_as_errors(self, as_submissions, as_paper_verdicts):
        # AER-C: 212 / 101 / 83 / 710, so 184 errors
        for place in range(3):
            pages = [
                page(client, "/errors", judge=ids[place])
                for client, ids in (as_submissions, as_paper_verdicts)
            ]
            found = [re.findall(r'<tr><th scope="row">([^<]*/[^<]*)</th><td>([^<]*)', each) for each in pages]
            assert found[0] == found[1] and len(found[0]) == 10
            leads = [re.search(r"this judge says .*? have a tag", shown_text(each))[0] for each in pages]
            assert leads[0] == leads[1]
            if place == 0:
                assert "yes to 101 trajectories that should get a no, and no to 83 that" in leads[0]

    def test_and_a_row_whose_verdicts_are_not_known_keeps_its_printed_figures(self, as_paper_verdicts):
        client, _ = as_paper_verdicts
        text = shown_text(page(client, "/judge", id="paper/gpt-4o-tree"))
        assert "Metrics by agent are not known for rows without verdicts." in text


@pytest.fixture
def public(tmp_path):
    return public_with_three(tmp_path)


@pytest.mark.labels
@pytest.mark.shared
def test_a_paper_row_is_ranked_by_its_verdicts_so_that_board_and_compare_agree(
    official_settings, files, tmp_path
):
    found = []
    for name, folder in (("without", None), ("with", files)):
        updates = {"state_dir": tmp_path / name, "paper_verdicts": folder}
        service = SubmissionsApp(official_settings.model_copy(update=updates))
        found.append(service.records.board().ranks("success")["paper/rule-based"].separated_from)
    # The two judges' precisions are correlated over tasks, which their counts do not show.
    assert "paper/aer-c" not in found[0] and "paper/aer-c" in found[1]
    text = shown_text(page(local_client(service), "/compare", judges=["paper/rule-based", "paper/aer-c"]))
    assert "Rule-based (reward) is better than AER-C (caption) overall" in text
    assert "does not separate" not in text


def test_the_board_is_made_again_when_the_known_verdicts_change(public):
    service, _ = public
    source = SimpleNamespace(mark=1, of_papers=dict)
    service.records.known_verdicts = source
    first = service.records.board()
    assert service.records.board() is first and service.records.cached_board() is first
    source.mark = 2
    assert service.records.cached_board() is None
    assert service.records.board() is not first


def test_a_dataset_gives_the_board_only_whole_columns_of_published_judges(
    official_settings, tmp_path, monkeypatch
):
    service = SubmissionsApp(official_settings.model_copy(update={"state_dir": tmp_path}))
    ids = [t.trajectory_id for t in service.suite.split("test")]
    whole = [{"trajectory_id": name, "judge": "aerc", "success": 1} for name in ids]
    part = [{"trajectory_id": name, "judge": "aerv", "success": 1} for name in ids[:9]]
    other = [{"trajectory_id": name, "judge": "somebody", "success": 1} for name in ids]
    found = verdicts_of(service, [*whole, *part, *other], monkeypatch)
    shipped = {f"reported/webjudge-{name}" for name in ("7b", "gpt-4o", "o4-mini")}
    assert found.of_papers().keys() == {"paper/aer-c", *shipped}


def verdicts_of(service, carried=None, monkeypatch=None) -> JudgeVerdicts:
    """Return the verdicts of the Space, with ``carried`` as the dataset's judgments on test, if any."""
    found = JudgeVerdicts(service, Explorer(service.settings, service))
    if carried is not None:
        opened = SimpleNamespace(version="v1", suite=service.suite.name, dataset=None)
        monkeypatch.setattr(JudgeVerdicts, "_dataset", lambda self: opened)
        monkeypatch.setattr("space.verdicts.judgments_in", lambda *_: carried)
    return found


def test_a_submission_has_the_verdicts_of_its_file(public):
    service, ids = public
    row = service.records.board().row(ids["Beta"])
    found = verdicts_of(service)
    assert found.are_known(row) and found.with_figures(row) is row
    assert (found.for_row(row).answers == service.records.verdicts(row.id).targets["success"]).all()


def test_a_judge_that_the_dataset_carries_in_part_has_errors_and_no_figures(public, monkeypatch):
    service, _ = public
    every = [t.trajectory_id for t in service.suite.split("test")]
    some = [{"trajectory_id": name, "judge": "part", "success": 1} for name in every[:5]]
    none = [{"trajectory_id": name, "judge": "whole", "success": None} for name in every[1:]]
    whole = [{"trajectory_id": every[0], "judge": "whole", "success": 0}, *none]
    found = verdicts_of(service, [*some, *whole], monkeypatch)
    part, whole = (found.find(name, "test") for name in ("part", "whole"))
    assert (part.is_complete, whole.is_complete) == (False, True)
    assert part.answers.tolist() == [1] * 5 + [-1] * (len(every) - 5)
    assert whole.answers.tolist() == [0] + [-1] * (len(every) - 1)
    assert "side_effect" not in whole.verdicts.targets


def test_where_labels_are_private_no_errors_are_given_and_no_figures_made(tmp_path):
    service = private_service(tmp_path)
    ids = send_three(service)
    found = verdicts_of(service)
    assert found.labels("test") is None and dict(found.by_judge("test")) == {}
    assert found.find(ids["Beta"], "test") is None
    assert found.splits() == ("dev",)
    assert np.all([found.with_figures(row) is row for row in service.records.board().rows])


@pytest.mark.labels
class TestTheShippedVerdictsOfWebJudge:
    """What a Space shows of them without any setting."""

    @pytest.fixture(scope="class")
    def service(self, official_settings, tmp_path_factory):
        folder = tmp_path_factory.mktemp("shipped")
        return SubmissionsApp(official_settings.model_copy(update={"state_dir": folder}))

    @pytest.fixture(scope="class")
    def client(self, service):
        return local_client(service)

    def test_their_counts_against_the_labels_are_those_of_the_readings(self, service):
        readings = read_published_files().readings
        for row_id in SHIPPED:
            row, read = service.records.board().row(row_id), readings[row_id]["success"].counts
            found = row.labels["success"]["overall"]
            assert tuple(found[name] for name in ("tp", "fp", "fn", "tn")) == tuple(read)
            assert (row.evidence, row.split, row.labels["success"]["intervals"]) == (
                "verdicts", "test", "tasks",
            )  # fmt: skip
            assert row.labels["success"]["rank"] and len(row.labels["success"]["by_agent"]) == 4

    @pytest.mark.shared
    def test_they_are_the_authors_verdicts_trajectory_by_trajectory(self, service, files):
        for row_id in SHIPPED:
            lines = (files / f"{row_id.partition('/')[2]}.jsonl").read_text().splitlines()
            known = {row["trajectory_id"]: row["success"] for row in map(json.loads, lines)}
            verdicts = service.records.verdicts(row_id)
            assert (
                dict(zip(verdicts.trajectory_ids, verdicts.targets["success"].tolist(), strict=True)) == known
            )

    def test_a_comparison_is_paired_with_overlap_and_ensembles(self, client):
        text = shown_text(page(client, "/compare", judges=SHIPPED))
        assert "Every interval not marked with" in text or "Every interval is paired" in text
        assert "Only 1st right" in text and "If all 3 must say yes" in text

    def test_the_board_and_a_comparison_show_the_same_precision(self, client):
        shown = re.findall(r"75\.7", page(client, "/compare", judges=SHIPPED))
        assert shown and "75.7" in page(client, "/judge", id=SHIPPED[0])

    def test_errors_come_with_what_the_judge_wrote(self, client):
        # false positives of WebJudge-7B: 55, of 226 called successful
        text = shown_text(page(client, "/errors", judge=SHIPPED[0], split="test", kind="fp"))
        assert "55" in text and "Thoughts:" in text

    def test_other_suites_have_none(self, tmp_path):
        service, _ = public_with_three(tmp_path)
        assert dict(service.records.paper_verdicts) == {}
