"""What experts and judges said, beside each other.

Verdicts of files that were scored here: on a suite with public labels only, and read once.
"""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from arb.core.predictions.table import Predictions
from arb.core.settings import Settings
from arb.core.suites.targets import default_targets
from dataset_script.sources.published import PublishedDataset
from space.pages.trajectories.index import TrajectoryEntry
from space.pages.trajectories.labels import experts_in, titles_of
from space.pages.trajectories.verdicts import (
    MOST_JUDGES,
    SubmittedJudges,
    judge_names,
    judges_of,
    link_steps,
    reasoning_in,
)
from submissions.app import SubmissionsApp
from submissions.records.service import RecordsService
from tests.support.submissions import send, settings_for, verdicts, write_suite
from tests.support.synthetic_dataset import JUDGES


@pytest.fixture
def dataset(built):
    return PublishedDataset(built)


def test_experts_are_there_on_dev_and_not_on_test(dataset, dev, test_entries):
    first = experts_in(dataset, dev[0], default_targets())
    assert first[0].title == "First"
    assert first[0].labels == dev[0].labels
    assert [experts_in(dataset, entry, default_targets()) for entry in test_entries] == [()] * len(
        test_entries
    )


def test_a_decision_comes_before_the_people_and_is_none_of_them():
    assert titles_of([True, False, False, False]) == ["Decision", "First", "Second", "3"]
    assert titles_of([False, False]) == ["First", "Second"]


def test_every_judge_of_the_dataset_is_there_with_the_rule_based_one_first(dataset, entries):
    found = judges_of(dataset, entries[0], (), {"paper/gpt-4o-tree"})
    assert len(found) == len(JUDGES)
    assert (found[0].key, found[0].name, found[0].has_reasoning) == (
        "functional",
        "Rule-based (reward)",
        False,
    )
    by_key = {judge.key: judge for judge in found}
    assert by_key["gpt-4o-noscreen"].name == "GPT-4o (tree)"
    assert by_key["gpt-4o-noscreen"].about == "gpt-4o-2024-11-20 · tree"


def test_only_a_judge_on_the_board_has_a_page(dataset, entries):
    found = judges_of(dataset, entries[0], (), {"paper/gpt-4o-tree"})
    assert [judge.row_id for judge in found if judge.row_id] == ["paper/gpt-4o-tree"]


def test_a_judge_differs_where_it_contradicts_the_expert_and_never_on_test(dataset, dev, test_entries):
    for entry in dev[:3]:
        for judge in judges_of(dataset, entry, (), ()):
            answers = (judge.main, entry.labels["success"])
            assert judge.differs == (None if None in answers else answers[0] != answers[1])
    judges = judges_of(dataset, test_entries[0], (), ())
    assert {judge.differs for judge in judges} == {None}


def test_a_submitted_judge_answers_from_its_columns(dataset, test_entries):
    entry = test_entries[0]
    columns = {"success": 1, "side_effect": -1, "optimality": -1}
    judge = SimpleNamespace(
        row=SimpleNamespace(id="abc", judge="Mine", account="Ada", model="m", inputs="tree"),
        places={entry.trajectory_id: 1}, has_reasoning=True,
        verdicts=Predictions(
            ("", entry.trajectory_id),
            {name: np.array([0, value], dtype=np.int8) for name, value in columns.items()},
        ),
    )  # fmt: skip
    found = judges_of(dataset, entry, [judge], {"abc"})[-1]
    assert (found.name, found.row_id, found.about) == ("Mine (tree)", "abc", "m · submitted by Ada")
    assert (found.main, found.other_answers(default_targets())) == ("yes", "")
    elsewhere = SimpleNamespace(**{**vars(judge), "places": {}})
    assert len(judges_of(dataset, entry, [elsewhere], ())) == len(JUDGES)
    # A judge of a paper, whose file is here, has no sender; where the dataset carries it, it is there once.
    judge.row.id, judge.row.account = "paper/other", ""
    for judge.row.provenance, words in (("published", "paper"), ("self-reported", "self-reported")):
        assert judges_of(dataset, entry, [judge], ())[-1].about == f"m · {words}"
    judge.row.id = "paper/gpt-4o-tree"
    assert len(judges_of(dataset, entry, [judge], ())) == len(JUDGES)


def test_every_released_folder_of_a_judge_of_the_paper_has_a_name():
    assert {folder for folder, *_ in JUDGES} <= judge_names().keys()


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        ("<reasoning>\nIt paid.\n</reasoning><success>Successful</success>", "It paid."),
        ("Thoughts: no\nStatus: failure", "Thoughts: no\nStatus: failure"),
        ("<reasoning></reasoning> rest", "<reasoning></reasoning> rest"),
        ("<think>a</think>b", "a"),
        ("", ""),
    ],
)
def test_a_reply_is_shown_by_its_reasoning(reply, shown):
    assert reasoning_in(reply) == shown


@pytest.fixture
def folder(tmp_path):
    write_suite(tmp_path)
    return tmp_path


def service_of(folder, labels: str | None) -> SubmissionsApp:
    labels = f'labels = "{labels}"\n' if labels else ""
    (folder / "small" / "suite.toml").write_text(f"{labels}[rules]\nfiles_a_day = 99\nfiles_a_year = 99\n")
    settings: Settings = settings_for(folder, folder / "state")
    return SubmissionsApp(settings)


def test_each_judge_is_there_with_its_best_file_in_the_order_of_the_board(folder):
    service = service_of(folder, "public")
    send(service, verdicts(service.suite, false_alarms=5), judge="Second")
    send(service, verdicts(service.suite, misses=8, false_alarms=9), judge="First")
    best = send(service, verdicts(service.suite, side_effect=True, optimality=3), judge="First").submission_id
    found = SubmittedJudges(service).of_suite("small")
    assert [judge.row.judge for judge in found] == ["First", "Second"]
    assert found[0].row.id == best
    assert found[0].verdicts.targets["success"].sum() == 10  # the suite's successes: every one was told
    assert set(found[0].verdicts.targets) == {"success", "side_effect", "optimality"}


@pytest.mark.parametrize("labels", ["private", None])
def test_a_suite_whose_labels_are_hidden_shows_nothing_of_the_files_sent_to_it(folder, labels):
    service = service_of(folder, labels)
    receipt = send(service, verdicts(service.suite, reasoning="I saw it."))
    judges = SubmittedJudges(service)
    assert judges.of_suite("small") == ()
    some_id = service.suite.split("test")[0].trajectory_id
    assert judges.reasoning("small", receipt.submission_id, some_id) is None


def test_another_suites_dataset_has_no_submitted_judges(folder):
    service = service_of(folder, "public")
    send(service, verdicts(service.suite))
    assert SubmittedJudges(service).of_suite("sample") == ()


def test_what_a_judge_wrote_on_a_trajectory_is_found(folder):
    service = service_of(folder, "public")
    lines = [json.loads(line) for line in verdicts(service.suite).splitlines()]
    for place, line in enumerate(lines):
        line["reasoning"] = f"Reason {place}"
    content = "\n".join(map(json.dumps, lines)).encode()
    receipt = send(service, content)
    judges = SubmittedJudges(service)
    wanted = lines[4]["trajectory_id"]
    assert judges.of_suite("small")[0].has_reasoning
    assert judges.reasoning("small", receipt.submission_id, wanted) == "Reason 4"
    assert judges.reasoning("small", receipt.submission_id, "webarena/none/webarena.1") is None
    assert judges.reasoning("small", "unknown", wanted) is None


def test_files_are_read_once_for_a_board(folder, monkeypatch):
    service = service_of(folder, "public")
    send(service, verdicts(service.suite), judge="Alpha")
    read, real = [], RecordsService.verdicts
    monkeypatch.setattr(
        RecordsService, "verdicts", lambda self, name: (read.append(name), real(self, name))[1]
    )
    judges = SubmittedJudges(service)
    judges.of_suite("small")
    judges.of_suite("small")
    assert len(read) == 1
    send(service, verdicts(service.suite, misses=1), judge="Beta")
    assert [judge.row.judge for judge in judges.of_suite("small")] == ["Alpha", "Beta"]
    assert len(read) == 2  # the one that is new


def test_a_damaged_file_hides_its_judge_alone_and_the_log_names_it(folder, caplog):
    service = service_of(folder, "public")
    gone = send(service, verdicts(service.suite), judge="Gone")
    send(service, verdicts(service.suite, misses=1), judge="There")
    service.files.path(gone.file_sha256).write_bytes(b"rubbish")
    assert [judge.row.judge for judge in SubmittedJudges(service).of_suite("small")] == ["There"]
    assert gone.submission_id in caplog.text


def test_there_is_a_bound_on_the_judges_that_are_shown(folder):
    service = service_of(folder, "public")
    for number in range(MOST_JUDGES + 2):
        send(service, verdicts(service.suite, false_alarms=number % 20), judge=f"Judge {number}")
    assert len(SubmittedJudges(service).of_suite("small")) == MOST_JUDGES


def test_mentions_of_recorded_steps_lead_to_them_and_everything_else_stays_text():
    entry = TrajectoryEntry("b/a/t&1", "dev", "b", "a", "t", "goal", 4, None)  # four actions, five pages
    linked = link_steps("Step 5 <b> met, step 2: x. steps 1, step 6, step 0, misstep 3", entry, "aer")
    assert linked == (
        '<a href="/trajectories?id=b/a/t%261&amp;step=5&amp;judge=aer">Step 5</a> &lt;b&gt; met, '
        '<a href="/trajectories?id=b/a/t%261&amp;step=2&amp;judge=aer">step 2</a>: x. '
        "steps 1, step 6, step 0, "
        "misstep 3"
    )
