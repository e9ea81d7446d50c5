"""What the repository ships: recordings, labels, and what can be seen in them."""

import csv
import io
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from arb.core.settings import Settings
from arb.core.suite import SHIPPED, load_dev_labels, load_suite
from dataset_script import sample
from leaderboard.labels.labels import load_labels
from tools.sample_recorder.record import runs

FOLDER = Path(sample.__file__).parent
ANNOTATIONS = FOLDER / "annotations.csv"
KINDS = tomllib.loads((FOLDER / "failures.toml").read_text(encoding="utf-8"))["kind"]
SHIPPED_LIMIT = 6_000_000
EVERY_ID = sorted(run.trajectory_id for run in runs())


@pytest.fixture(scope="module")
def annotations():
    """The released format's rows by trajectory id, the first annotation first."""
    with ANNOTATIONS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    by_id = defaultdict(list)
    for row in rows:
        by_id[f"{row['benchmark']}/{row['model_name']}/{row['task_id']}"].append(row)
    return by_id


@pytest.fixture(scope="module")
def trajectories(shipped_rows):
    return {row["trajectory_id"]: row for row in shipped_rows("trajectories")}


@pytest.fixture(scope="module")
def rewards(shipped_rows):
    return {row["trajectory_id"]: row["cum_reward"] for row in shipped_rows("rewards")}


def kind_named(name: str) -> list[str]:
    (kind,) = [kind for kind in KINDS if kind["name"] == name]
    return kind["runs"]


def words(action: str) -> str:
    """An action without the ids of elements, which are the browser's: ``click('22')`` is ``click``."""
    verb, _, rest = action.partition("(")
    if verb in ("click", "fill", "select_option"):
        rest = re.sub(r"^'\w+'(, )?", "", rest)
    return f"{verb}({rest}"


def test_the_sample_and_its_code_are_small_enough_to_ship():
    every = [path for path in FOLDER.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in every) < SHIPPED_LIMIT


def test_every_trajectory_of_the_suite_is_there_once(shipped_rows):
    suite = load_suite("sample")
    assert sorted(t.trajectory_id for t in suite.trajectories) == EVERY_ID
    for configuration in ("trajectories", "trajectories_with_screenshot", "rewards"):
        assert sorted(row["trajectory_id"] for row in shipped_rows(configuration)) == EVERY_ID


def test_steps_are_complete_and_their_pictures_decode(shipped_rows, trajectories):
    from PIL import Image

    counts = Counter()
    for row in shipped_rows("steps"):
        image = Image.open(io.BytesIO(row["screenshot"]["bytes"]))
        image.load()
        assert image.size == (1280, 720)
        counts[row["trajectory_id"]] += 1
    assert counts == {name: row["n_steps"] for name, row in trajectories.items()}


def test_a_picture_shows_the_element_that_is_acted_on(shipped_rows):
    """The box of every element clicked, filled or chosen from lies on its screenshot."""
    boxes = [
        row["box"] for row in shipped_rows("steps") if re.match(r"(click|fill|select)", row["action"] or "")
    ]
    assert len(boxes) > 250
    for left, top, width, height in boxes:
        assert width > 0 < height
        assert left >= 0 <= top
        assert left + width <= 1280
        assert top + height <= 720


def test_what_was_recorded_is_what_the_scripts_say(follow, trajectories, rewards):
    for run in runs():
        done, row = follow(run.task.task_id, run.character.name), trajectories[run.trajectory_id]
        recorded = [step for step in row["steps"] if step["action"] is not None]
        assert [words(step["action"]) for step in recorded] == [words(action) for action in done.actions]
        assert [step["reasoning"] for step in recorded] == list(done.reasoning)
        assert rewards[run.trajectory_id] == done.reward


def test_no_address_but_those_of_the_sites_is_in_the_sample(shipped_rows):
    for row in shipped_rows("steps"):
        assert re.match(r"http://127\.0\.0\.1:877[1-5]/", row["url"])
        assert set(re.findall(r"https?://[^/']+", row["axtree"])) <= {row["url"][:21]}


def test_every_trajectory_is_annotated_and_a_fifth_of_them_twice(annotations):
    assert sorted(annotations) == EVERY_ID
    said_by = [[row["annotator_name"] for row in rows] for rows in annotations.values()]
    assert all(names in (["annotator-1"], ["annotator-1", "annotator-2"]) for names in said_by)
    assert sum(len(names) == 2 for names in said_by) >= len(EVERY_ID) / 5


def test_the_scorer_reads_the_annotations_of_both_splits(tmp_path):
    settings = Settings(labels=f"csv:{ANNOTATIONS}", suite="sample", state_dir=tmp_path)
    suite = load_suite("sample")
    for split, count in (("dev", 20), ("test", 52)):
        labels = load_labels(suite, split, settings)
        assert len(labels.trajectories) == count
        for name in ("success", "side_effect", "repetition"):
            assert {0, 1} <= set(labels.primary[name].tolist())
        assert labels.annotated_twice.any()


def test_the_dev_labels_are_the_annotations_of_dev(annotations):
    suite = load_suite("sample")
    yes_no = {"Successful": True, "Yes": True, "Unsuccessful": False, "No": False, "Unsure": None}
    expected = [
        (
            trajectory.trajectory_id,
            number,
            yes_no[row["trajectory_success"]],
            yes_no[row["trajectory_side_effect"]],
            yes_no[row["trajectory_looping"]],
            int(row["trajectory_optimality"][0]),
            row["annotator_name"],
        )
        for trajectory in suite.split("dev")
        for number, row in enumerate(annotations[trajectory.trajectory_id], start=1)
    ]
    words = {"yes": True, "no": False}
    found = [
        (
            d.trajectory_id,
            d.annotation,
            *(words.get(d.answers[name]) for name in ("success", "side_effect", "repetition")),
            int(d.answers["optimality"]),
            d.annotator,
        )
        for d in load_dev_labels(suite)
    ]
    assert found == expected


def test_the_data_has_labels_on_dev_and_none_on_test(shipped_rows, trajectories):
    dev = {t.trajectory_id for t in load_suite("sample").split("dev")}
    for name, row in trajectories.items():
        assert (row["success"] is not None) == (name in dev)
    assert {row["trajectory_id"] for row in shipped_rows("annotations")} == dev


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["name"])
def test_every_kind_of_failure_has_runs_of_the_suite(kind):
    assert kind["runs"]
    assert set(kind["runs"]) <= set(EVERY_ID)


@pytest.mark.parametrize(
    "name",
    [
        "grounding mismatch",
        "claims a success that did not happen",
        "misses a detail of the instruction",
        "stops one click before the end",
        "reports the task infeasible after solving it",
    ],
)
def test_the_failures_of_the_paper_are_unsuccessful_but_agents_say_otherwise(name, annotations, trajectories):
    verb = "report_infeasible" if "infeasible" in name else "send_msg_to_user"
    for run in kind_named(name):
        assert annotations[run][0]["trajectory_success"] == "Unsuccessful"
        assert trajectories[run]["steps"][-2]["action"].startswith(verb)


def test_a_run_in_circles_repeats_its_actions_on_the_same_page(annotations, trajectories):
    for run in kind_named("goes in circles"):
        assert annotations[run][0]["trajectory_looping"] == "Yes"
        done = Counter((step["url"], step["action"]) for step in trajectories[run]["steps"] if step["action"])
        assert max(done.values()) >= 2


def test_a_side_effect_is_labelled_as_one(annotations):
    for run in kind_named("causes a side effect"):
        assert annotations[run][0]["trajectory_side_effect"] == "Yes"


def test_the_rules_err_on_both_sides(annotations, rewards):
    success = {run: rows[0]["trajectory_success"] for run, rows in annotations.items()}
    for run in kind_named("the rule is stricter than a person"):
        assert (success[run], rewards[run]) == ("Successful", 0.0)
    for run in kind_named("the rule is laxer than a person"):
        assert (success[run], rewards[run]) == ("Unsuccessful", 1.0)
    # most often they agree, as on real benchmarks
    agree = sum((success[run] == "Successful") == (rewards[run] == 1.0) for run in EVERY_ID)
    assert 0.85 < agree / len(EVERY_ID) < 1


def test_what_the_card_says_of_the_two_passes_is_so(annotations):
    """Success 22 of 22, side effects 22, repetition 22, optimality 21."""
    twice = [rows for rows in annotations.values() if len(rows) == 2]
    agreed = {
        name: sum(first[name] == second[name] for first, second in twice)
        for name in twice[0][0]
        if name.startswith("trajectory_")
    }
    assert len(twice) == 22
    assert agreed == {
        "trajectory_success": 22,
        "trajectory_side_effect": 22,
        "trajectory_looping": 22,
        "trajectory_optimality": 21,
    }
    about = " ".join((SHIPPED / "sample" / "about.md").read_text(encoding="utf-8").split())
    assert "72 trajectories of 18 tasks" in about
    assert "A language model, which is no expert, answered" in about
    assert "In an independent second pass it labelled 22 of the 72 runs again" in about
    assert (
        "success, side effects and repetition in all 22 runs, and on the grade of optimality in 21" in about
    )
