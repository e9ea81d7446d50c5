"""Items for Label Studio and Argilla, and the answers back, hostile ones too."""

import importlib.util
import json
import os
import subprocess
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import MagicMock
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suite import load_suite
from arb.core.suites.targets import AnswerChoice, Target, default_targets
from dataset_script import sample
from dataset_script.sources.published import PublishedDataset
from leaderboard.labels.annotations import AnnotationsInvalid
from submissions.labels import exchange
from submissions.labels.exchange import (
    AnswersReader,
    item_token,
    labelling_config,
    read_export,
    read_items,
    write_argilla,
    write_label_studio,
)
from tests.conftest import _absent

KEY = b"k" * 32
SUITE = load_suite("sample")
QUESTIONS = default_targets()
IDS = [t.trajectory_id for t in SUITE.trajectories if t.task == SUITE.trajectories[0].task]
TOKENS = {item_token(KEY, name): name for name in IDS}
OWN = Target(
    "tone",
    "Tone & <b>",
    "$5 & <i>polite</i>?",
    (AnswerChoice("ok", "Fine", "1"), AnswerChoice("rude", '"R"', "2")),
)
ANSWERS = {"success": "yes", "side_effect": "no", "repetition": "No", "optimality": "Somewhat optimal"}


@pytest.fixture(scope="module")
def items():
    """The four agents' runs of one task of the sample."""
    assert len(IDS) == 4
    dataset = PublishedDataset(Path(sample.__file__).parent / "data")
    return list(read_items(dataset, IDS, KEY))


@pytest.fixture
def label_studio(items, tmp_path) -> Path:
    assert write_label_studio(tmp_path / "out", items, QUESTIONS, SUITE.guidelines, None) == 4
    return tmp_path / "out"


@pytest.fixture
def argilla_folder(items, tmp_path) -> Path:
    found = write_argilla(tmp_path / "out", "sample", items, (*QUESTIONS, OWN), "", "https://a.example/i/")
    assert found == 4
    return tmp_path / "out"


# -- Out


@pytest.mark.parametrize("kind", ["label_studio", "argilla_folder"])
def test_nothing_written_says_which_agent_ran_or_how_it_went(kind, request):
    folder = request.getfixturevalue(kind)
    paths = [path for path in folder.rglob("*") if path.is_file()]
    agents = {trajectory.agent for trajectory in SUITE.trajectories}
    texts = [path.read_text() for path in paths if path.suffix in (".json", ".xml", ".md")]
    assert len(texts) == 3
    for text in [*texts, *(str(path.relative_to(folder)) for path in paths)]:
        assert not [name for name in (*agents, *IDS, "reward", "verdict", "annotator-") if name in text]
    tasks = json.loads((folder / ("tasks.json" if kind == "label_studio" else "records.json")).read_text())
    named = [task["data"]["item"] if kind == "label_studio" else task["id"] for task in tasks]
    assert named == sorted(TOKENS)  # not in the order of ids, which is that of agents


def test_a_task_has_goal_steps_and_the_addresses_of_pictures_that_are_there(label_studio, items):
    tasks = json.loads((label_studio / "tasks.json").read_text())
    data, item = tasks[0]["data"], items[0]
    assert (data["goal"], data["steps"]) == (item.goal, item.steps)
    assert item.steps.startswith("Step 1\nhttp://") and "Action: " in item.steps
    assert len(data["screenshots"]) == len(item.pictures) > 1
    for address, (name, content) in zip(data["screenshots"], item.pictures, strict=True):
        assert address == f"/data/local-files/?d=out/images/{item.token}/{name}"
        assert (label_studio / "images" / item.token / name).read_bytes() == content


def test_a_folder_that_is_there_is_not_written_over_and_a_failed_one_leaves_nothing(items, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError, match="choose another folder"):
        write_label_studio(tmp_path / "out", items, QUESTIONS, "", None)

    def broken():
        yield items[0]
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write_label_studio(tmp_path / "other", broken(), QUESTIONS, "", None)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_configuration_has_every_question_with_its_answers_and_no_markup_of_theirs():
    view = ElementTree.fromstring(labelling_config((*QUESTIONS, OWN)))
    choices = {
        each.get("name"): {choice.get("alias"): choice.get("value") for choice in each}
        for each in view.iter("Choices")
    }
    assert choices["optimality"]["1"] == "Complete failure"
    assert choices["tone"] == {"ok": "Fine", "rude": '"R"', "unsure": "Unsure"}
    headers = [each.get("value") for each in view.iter("Header")]
    assert headers[-1] == " $5 & <i>polite</i>?"  # a text that begins with $ would name a variable
    assert not list(ElementTree.fromstring(labelling_config(QUESTIONS, False)).iter("Image"))


def test_a_long_observation_keeps_its_two_ends():
    step = {"num": 0, "text": "a" * 30_000 + "end"}
    text = exchange._step_text(step)
    assert len(text) < 20_100 and text.startswith("Step 1\nObserved: aaa") and text.endswith("aend")


# -- Back


def choice(name, value):
    return {"from_name": name, "to_name": "trajectory_goal", "type": "choices", "value": {"choices": [value]}}


def annotated(answers=ANSWERS, completed_by=1, **more):
    result = [choice(name, value) for name, value in answers.items()]
    return {"id": 7, "completed_by": completed_by, "result": result, "was_cancelled": False, **more}


def task(place, *annotations):
    return {"id": place, "data": {"item": sorted(TOKENS)[place]}, "annotations": list(annotations)}


def read(*tasks, questions=QUESTIONS):
    reader = AnswersReader(questions, TOKENS)
    return reader.label_studio(json.dumps(tasks).encode()), reader.left_out


def problems_of(*tasks):
    with pytest.raises(AnnotationsInvalid) as found:
        read(*tasks)
    return found.value.problems


def test_answers_come_back_by_value_or_title_with_who_and_when():
    text = {"from_name": "comment", "type": "textarea", "value": {"text": ["two", "lines"]}}
    one = annotated(updated_at="2026-02-03T04:05:06.789Z", lead_time=12.5)
    one["result"].append(text)
    found, left_out = read(task(0, one, annotated(completed_by={"id": 2, "email": "bob@example.org"})))
    first, second = found
    assert first.answers == {
        "success": "yes", "side_effect": "no", "repetition": "no", "optimality": "3",
    }  # fmt: skip
    assert (first.trajectory_id, first.person) == (TOKENS[sorted(TOKENS)[0]], "1")
    assert first.at == datetime(2026, 2, 3, 4, 5, 6, 789000, UTC)
    assert (first.comment, first.seconds) == ("two\nlines", 12.5)
    assert (second.person, second.at, left_out) == ("bob@example.org", None, [])


def test_what_was_skipped_or_not_finished_is_left_out_and_named():
    part = {name: value for name, value in ANSWERS.items() if name != "optimality"}
    found, left_out = read(task(0, annotated(was_cancelled=True), annotated(part, 2)), task(1))
    assert found == []
    assert left_out == ["task 1, 1: skipped", "task 1, 2: not answered: Optimality"]


def test_every_problem_is_named_at_once_and_no_answer_repeated():
    strange = {"data": {"item": "0" * 32}, "annotations": []}
    wrong = annotated({**ANSWERS, "success": "WRONG WORD", "colour": "red"})
    found = problems_of(
        strange, task(0, wrong, annotated(completed_by=None)), task(1, annotated(), annotated()), {"id": 3}
    )
    words = "Yes, No, Unsure"
    assert [each.partition(";")[0] for each in found] == [
        f"task 1: item '{'0' * 32}' is not in this suite",
        "task 2, 1, success: not a valid answer",
        "task 2, 1: 'colour' is not a question",
        "task 2: the annotator's name is missing or invalid",
        "task 3, 1: answered this item twice",
        "task 4: no annotations",
    ]
    assert words in found[1] and "WRONG WORD" not in "".join(found)


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b"{", b"[" * 100_000, b'{"a": 1}', b"[1]", b'"text"', b"", b"[{}, null]", b"9" * 5_000],
)
def test_a_file_that_is_no_export_is_refused_in_one_line(content):
    for name in ("label_studio", "argilla"):
        with pytest.raises(AnnotationsInvalid) as found:
            getattr(AnswersReader(QUESTIONS, TOKENS), name)(content)
        assert len(found.value.problems) == 1
        assert "export it again" in str(found.value) or "is not a list" in str(found.value)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "MOST_BYTES", 10)
    (tmp_path / "big.json").write_text("[" + " " * 20 + "]")
    with pytest.raises(AnnotationsInvalid, match="export it in parts"):
        read_export(tmp_path / "big.json")


WORDS = st.sampled_from(
    ["data", "item", "annotations", "result", "from_name", "value", "choices", "text", "completed_by",
     "email", "success", "yes", "comment", "responses", "user_id", "id", "status", "\ud800", "lead_time",
     *TOKENS]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.dictionaries(WORDS, JSON, max_size=5), max_size=3))
def test_whatever_a_file_holds_it_is_read_or_refused_with_reasons(tasks):
    content = json.dumps(tasks).encode()
    for name in ("label_studio", "argilla"):
        try:
            found = getattr(AnswersReader(QUESTIONS, TOKENS), name)(content)
        except AnnotationsInvalid as problem:
            assert problem.problems
        else:
            assert all(each.trajectory_id in IDS for each in found)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -1, 1e12, "3", None])
def test_a_duration_that_is_none_counts_as_not_known(seconds):
    ((found,), _) = read(task(0, annotated(lead_time=seconds)))
    assert found.seconds is None


def test_markup_in_a_comment_stays_text():
    one = annotated()
    one["result"].append({"from_name": "comment", "value": {"text": ["<script>alert(1)</script>"]}})
    ((found,), _) = read(task(0, one))
    assert found.comment == "<script>alert(1)</script>"


# -- The packages themselves


def test_argilla_reads_the_folder_and_its_answers_come_back(argilla_folder, tmp_path, monkeypatch):
    if importlib.util.find_spec("argilla") is None:
        _absent("argilla is not installed: pip install -r requirements-dev.txt")
    import argilla
    from argilla._models import DatasetModel
    from argilla.client import Argilla
    from argilla.records._io import JsonIO

    # Settings want a client, which would call a server
    monkeypatch.setattr(Argilla, "_get_default", classmethod(lambda cls: MagicMock()))
    settings = argilla.Settings.from_json(argilla_folder / ".argilla" / "settings.json")
    settings.validate()
    written = json.loads((argilla_folder / ".argilla" / "settings.json").read_text())
    assert [question.name for question in settings.questions] == [
        *(q.name for q in QUESTIONS),
        "tone",
        "comment",
    ]
    assert settings.questions["tone"].labels == ["ok", "rude", "unsure"]
    assert settings.questions["comment"].required is False
    assert settings.fields["trajectory_steps"].use_markdown is False  # what an agent wrote is no markup
    assert settings.guidelines == written["guidelines"]
    DatasetModel(**json.loads((argilla_folder / ".argilla" / "dataset.json").read_text()))
    records = JsonIO._records_from_json(argilla_folder / "records.json")
    assert set(records[0].fields) == {field.name for field in settings.fields}
    ada, bob = uuid.uuid4(), uuid.uuid4()
    answers = {**ANSWERS, "repetition": "no", "optimality": "3", "tone": "rude", "comment": "seen"}
    for record in records[:2]:
        for name, value in answers.items():
            record.responses.add(argilla.Response(name, value, user_id=ada, status="submitted"))
    records[2].responses.add(argilla.Response("success", "no", user_id=bob, status="draft"))
    JsonIO.to_json(records, tmp_path / "answers.json")
    reader = AnswersReader((*QUESTIONS, OWN), TOKENS)
    found = reader.argilla(read_export(tmp_path / "answers.json"))
    assert [(each.trajectory_id, each.person) for each in found] == [
        (TOKENS[name], str(ada)) for name in sorted(TOKENS)[:2]
    ]
    assert found[0].answers["tone"] == "rude" and found[0].comment == "seen"
    (line,) = reader.left_out
    assert line.startswith(f"record 3, {bob}: not answered: Side effect")


CHECK = """
import json, sys
from label_studio_sdk.label_interface import LabelInterface
from label_studio_sdk.label_interface.objects import AnnotationValue, TaskValue
folder = sys.argv[1]
interface = LabelInterface(open(folder + "/config.xml").read())
interface.validate()
tasks = json.load(open(folder + "/tasks.json"))
assert all(TaskValue(**task) for task in tasks)
assert all(interface.validate_task({"data": task["data"]}) for task in tasks)
assert interface.get_control("optimality").labels == ["1", "2", "3", "4", "unsure"]
for number, task in enumerate(tasks, start=1):
    annotation = interface.generate_sample_annotation()
    assert not interface._validate_object({"result": annotation["result"]}, return_errors=True)
    annotation["completed_by"] = number
    task["annotations"] = [AnnotationValue(**annotation).model_dump()]
json.dump(tasks, sys.stdout)
"""


@pytest.mark.slow
def test_label_studios_own_package_takes_configuration_and_tasks_and_its_answers_come_back(label_studio):
    path = os.environ.get("LABEL_STUDIO_PATH")
    if not path:
        _absent("LABEL_STUDIO_PATH names no folder with label-studio-sdk: see .ci/label-studio.txt")
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(label_studio)], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    reader = AnswersReader(QUESTIONS, TOKENS)
    found = reader.label_studio(done.stdout.encode())
    assert [each.person for each in found] == ["1", "2", "3", "4"]
    assert {each.trajectory_id for each in found} == set(IDS)
    assert reader.left_out == []
