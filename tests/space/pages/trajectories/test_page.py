"""The page's HTML: what it shows, what it escapes, what it never holds."""

import html
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arb.core.suite import load_suite
from dataset_script.new_suite import build_source
from dataset_script.sources.published import PublishedDataset
from space.pages.trajectories.page import trajectories_fragment
from tests.space.conftest import shown_text, tags_and_attributes
from tests.space.pages.trajectories.conftest import SMALL, explorer_over, some_trajectories
from tests.support.synthetic_dataset import make_dataset
from tests.support.text_runs import READING, REPEAT


def ids_in(page: str) -> list[str]:
    """The trajectories that a list leads to, in its order."""
    return [
        html.unescape(found) for found in re.findall(r'class="run[^>]*><a href="[^"]*[?;]id=([^"&]*)', page)
    ]


# The list


def test_the_list_shows_the_runs_in_pages_of_their_tasks(explorer, entries):
    first, second = (trajectories_fragment(explorer, query).html for query in ("", "page=2"))
    assert ids_in(first) + ids_in(second) == [entry.trajectory_id for entry in entries]
    assert f"{len(entries)}</strong> trajectories · page 1 of 2" in first


def test_a_page_past_the_end_is_the_last_one(explorer):
    assert ids_in(trajectories_fragment(explorer, "page=99").html) == ids_in(
        trajectories_fragment(explorer, "page=2").html
    )


def test_a_link_to_a_run_keeps_the_choice(explorer):
    found = trajectories_fragment(explorer, "split=dev&sort=longest").html
    assert 'href="/trajectories?split=dev&amp;sort=longest&amp;id=' in found


def test_the_form_stands_as_the_address_says(explorer):
    found = trajectories_fragment(explorer, "split=dev&benchmark=webarena&search=map&task=webarena.7").html
    assert '<option value="dev" selected>' in found
    assert '<option value="webarena" selected>' in found
    assert 'name="search" maxlength="300" placeholder="Words from the goal, or an id" value="map"' in found
    assert 'value="webarena.7"' in found


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("split=test&outcome=success", "labels of test trajectories are not shown"),
        ("split=test&judges=wrong", "Whether judges are wrong is shown only for the dev split"),
        ("task=nosuch", "No task has this name"),
        ("search=xyzzy", "No trajectory matches all filters"),
    ],
)
def test_an_empty_list_says_why_and_leads_back(explorer, query, why):
    found = trajectories_fragment(explorer, query).html
    assert ids_in(found) == []
    assert why in found
    assert 'href="/trajectories"' in found


def test_outcomes_stand_at_dev_runs_alone(explorer, dev, test_entries):
    for split, count in (("dev", len(dev)), ("test", 0)):
        pages = [trajectories_fragment(explorer, f"split={split}&page={page}").html for page in (1, 2)]
        seen = {name for page in pages for name in re.findall(r'<li class="run ?([^"]*)"', page)}
        assert (seen - {""} != set()) == bool(count)


def test_an_address_that_sets_something_unknown_is_told_so_and_shows_the_usual_choice(explorer, entries):
    fragment = trajectories_fragment(explorer, "split=train&benchmark=webarena&judges=many")
    found = fragment.html
    assert fragment.status == 422
    assert "The address of this page has an invalid value for split, judges" in found
    assert {name.split("/")[0] for name in ids_in(found)} == {"webarena"}
    assert 'role="status">This address' not in trajectories_fragment(explorer, "split=dev").html


# A story


def test_a_story_shows_its_goal_its_steps_and_leads_on(explorer, entries):
    entry = entries[5]
    part = trajectories_fragment(explorer, f"id={entry.trajectory_id}&step=2")
    text = shown_text(part.html)
    assert part.status == 200
    assert entry.goal in text
    assert part.html.count('<section class="step"') == entry.n_actions + 1
    shown = re.findall(r'<section class="step" data-place="(\d+)"[^>]*?(hidden)?>', part.html)
    assert [place for place, is_hidden in shown if not is_hidden] == ["2"]
    assert f'id={entries[4].trajectory_id}"' in part.html
    assert f'id={entries[6].trajectory_id}"' in part.html


@pytest.mark.parametrize(
    ("step", "place"), [("1", 1), ("", 1), ("0", 1), ("99999", None), ("x", 1), ("-2", 1)]
)
def test_a_step_that_is_not_there_gives_one_that_is(explorer, entries, step, place):
    found = trajectories_fragment(explorer, f"id={entries[0].trajectory_id}&step={step}").html
    expected = entries[0].n_actions + 1 if place is None else place
    assert f'data-place="{expected}">' in found


def test_the_neighbours_are_those_of_the_choice(explorer, dev):
    middle = sorted(dev, key=lambda entry: -entry.n_actions)
    found = trajectories_fragment(explorer, f"split=dev&sort=longest&id={middle[1].trajectory_id}").html
    assert f"2 of {len(dev)}" in found
    assert (
        f'rel="prev" href="/trajectories?split=dev&amp;sort=longest&amp;id={middle[0].trajectory_id}"'
        in found
    )


def test_a_run_that_the_choice_leaves_out_is_shown_without_neighbours(explorer, dev):
    found = trajectories_fragment(explorer, f"split=test&id={dev[0].trajectory_id}").html
    assert 'rel="prev"' not in found
    assert 'class="story"' in found


def test_a_dev_story_shows_the_experts_and_a_test_story_says_that_it_does_not(explorer, dev, test_entries):
    of_dev = trajectories_fragment(explorer, f"id={dev[0].trajectory_id}").html
    of_test = trajectories_fragment(explorer, f"id={test_entries[0].trajectory_id}").html
    assert 'class="said-table"' in of_dev
    assert 'class="said-table"' not in of_test
    assert "There are no expert labels for this trajectory." in of_test
    assert "unlike the experts" not in of_test


def test_an_address_can_open_what_a_judge_wrote(explorer, entries):
    name, judge, reply = next(
        (entry.trajectory_id, judge.key, reply)
        for entry in entries
        for judge in explorer.story(entry.trajectory_id).judges
        if judge.has_reasoning and (reply := explorer.reasoning(entry.trajectory_id, judge.key))
    )
    page = trajectories_fragment(explorer, f"id={name}&judge={judge}").html
    (opened,) = re.findall(r'<details class="judge" open.*?</details>', page, re.S)
    assert reply in shown_text(opened)
    page = trajectories_fragment(explorer, f"id={name}&judge=nobody").html
    assert '<details class="judge" open' not in page


def test_a_trajectory_leads_to_the_errors_of_its_judges_but_not_for_another_suite(explorer, entries):
    judged = next(e for e in entries if any(j.row_id for j in explorer.story(e.trajectory_id).judges))
    row_id = next(judge.row_id for judge in explorer.story(judged.trajectory_id).judges if judge.row_id)
    page = trajectories_fragment(explorer, f"id={judged.trajectory_id}").html
    assert f'href="/errors?judge={row_id}&amp;split={judged.split}">Its errors</a>' in page
    sample = load_suite("sample").trajectories[0].trajectory_id
    assert "Its errors" not in trajectories_fragment(explorer, f"id={sample}").html


def test_the_story_of_the_sample_can_be_read_beside_a_built_dataset(explorer):
    sample = explorer.of_suite("sample").index.entries[0]
    found = trajectories_fragment(explorer, f"suite=sample&id={sample.trajectory_id}").html
    assert f"1 of {len(explorer.of_suite('sample').index.entries)}" in found


# Hidden labels, even where a folder holds them


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A folder in which every test row carries labels, and `annotations` an expert of a test trajectory."""
    folder = make_dataset(tmp_path_factory.mktemp("planted") / "data", shape=SMALL, only=some_trajectories())
    ids = []
    for file in (
        *folder.glob("data/trajectories/test-*"),
        *folder.glob("data/trajectories_with_screenshot/test-*"),
    ):
        table = pq.read_table(file)
        ids = table["trajectory_id"].to_pylist()
        for name in ("success", "side_effect", "repetition", "optimality"):
            place = table.schema.get_field_index(name)
            table = table.set_column(
                place, name, pa.array([1] * table.num_rows, table.schema.field(name).type)
            )
        pq.write_table(table, file)
    (annotations,) = folder.glob("data/annotations/dev-*")
    table = pq.read_table(annotations)
    stolen = table.set_column(0, "trajectory_id", pa.array([ids[0]] * table.num_rows))
    pq.write_table(pa.concat_tables([table, stolen]), annotations)
    return folder


@pytest.mark.slow
def test_labels_that_a_damaged_build_holds_of_test_reach_no_page(planted, tmp_path):
    explorer = explorer_over(planted, tmp_path)
    of_test = [entry for entry in explorer.of_suite().index.entries if entry.split == "test"]
    assert of_test
    for entry in of_test:
        story = explorer.story(entry.trajectory_id)
        assert story.experts == ()
        assert {judge.differs for judge in story.judges} == {None}
        assert 'class="said-table"' not in trajectories_fragment(explorer, f"id={entry.trajectory_id}").html
    for outcome in ("success", "success-no", "side_effect", "repetition", "unsure"):
        for page in (1, 2):
            found = ids_in(trajectories_fragment(explorer, f"outcome={outcome}&page={page}").html)
            assert {load_suite().find(name).split for name in found} <= {"dev"}


# Hostile words


@pytest.fixture(scope="module")
def hostile_folder(tmp_path_factory):
    """A dataset whose goals, actions, reasoning, addresses and replies all mean harm."""
    from tests.space.conftest import HOSTILE

    folder = make_dataset(
        tmp_path_factory.mktemp("hostile") / "data", shape=SMALL, only=some_trajectories()[:2]
    )
    text = " ".join(HOSTILE)
    for configuration, names in (
        ("trajectories", ("goal",)),
        ("steps", ("url", "action", "reasoning", "last_action_error", "axtree_pruned")),
        ("judgments", ("judge_model", "reply")),
    ):
        for file in folder.glob(f"data/{configuration}/*"):
            with pq.ParquetFile(file) as opened:
                groups = [opened.read_row_group(number) for number in range(opened.metadata.num_row_groups)]
            with pq.ParquetWriter(file, groups[0].schema) as writer:
                for table in groups:
                    for name in names:
                        place = table.schema.get_field_index(name)
                        table = table.set_column(place, name, pa.array([text] * table.num_rows))
                    writer.write_table(table)
    return folder


def test_nothing_that_agents_pages_or_judges_wrote_becomes_markup(hostile_folder, built, tmp_path, explorer):
    harmful = explorer_over(hostile_folder, tmp_path)
    entry = harmful.of_suite().index.entries[0]
    for query in (f"id={entry.trajectory_id}", f"id={entry.trajectory_id}&search=%3Cscript%3E"):
        found = trajectories_fragment(harmful, query).html
        assert "<script>alert(1)</script>x" in shown_text(found)
        usual = tags_and_attributes(trajectories_fragment(explorer, f"id={entry.trajectory_id}").html)
        new = tags_and_attributes(found) - usual
        assert not {tag for tag, _ in new} & {"script", "iframe"}
        assert not {name for _, name in tags_and_attributes(found) if name.startswith("on")}
    found = trajectories_fragment(harmful, "search=%22%3E%3Cscript%3E&task=%22%3E%3Cimg onerror=x%3E").html
    assert not {name for tag, name in tags_and_attributes(found) if name.startswith("on") or tag == "script"}


# Runs without web pages


@pytest.fixture
def told(text_runs, tmp_path):
    """An explorer over runs without web pages, one of them with markup in what was observed."""
    path = text_runs / "run-0.json"
    path.write_text(path.read_text().replace("12 passed in 0.1s", "<script>alert(1)</script>"))
    return explorer_over(build_source(text_runs, tmp_path / "cache").folder, tmp_path)


def test_a_run_without_pages_shows_what_was_observed_and_the_answer_escaped(told):
    page = trajectories_fragment(told, f"id={READING}&step=3").html
    text = shown_text(page)
    assert "1 failed: <empty> line" in text and "<script>alert(1)</script>" in text
    assert "The parser now reads <empty> lines." in text and text.count("Its answer") == 1
    assert "<script>alert" not in page and "<empty>" not in page
    assert "Nothing was observed before this step." in text and "What was observed after the last" in text
    assert "screenshot" not in text and "Accessibility tree of this step" not in text
    assert "Its answer" not in trajectories_fragment(told, f"id={REPEAT}").html
    assert "reward" not in text.casefold() and "Rule-based" not in text


def test_a_long_observation_is_cut_and_says_so(text_runs, tmp_path):
    path = text_runs / "run-0.json"
    path.write_text(path.read_text().replace("12 passed in 0.1s", "z" * 25_000))
    folder = build_source(text_runs, tmp_path / "cache").folder
    page = trajectories_fragment(explorer_over(folder, tmp_path), f"id={READING}").html
    assert page.count("z" * 100) > 0 and "[… 5,000 characters left out …]" in page  # 25,000 - 20,000


def test_a_run_in_a_browser_keeps_its_tree_and_has_no_answer_of_its_own(explorer, dev):
    page = trajectories_fragment(explorer, f"id={dev[0].trajectory_id}").html
    assert "Accessibility tree of this step" in page
    assert 'class="observed"' not in page and "Its answer" not in page


LOGS = Path(__file__).parents[3] / "dataset_script" / "sources"


@pytest.mark.parametrize(
    ("folder", "shown"),
    [
        ("inspect_logs/0.3.285/towns", ("Find the town and name it.", "a harbour town of the north")),
        ("atif_by_harbor/jobs", ("Count the words of notes.txt.", 'Bash(command="wc -w notes.txt")')),
        ("online_mind2web_by_hand", ("cheapest tea kettle", "CLICK coords(88, 40)", "costs 12 €.")),
        ("recorded_by_browser_use", ("cheapest tea kettle", 'navigate(url="https://shop.example/"')),
    ],
)
def test_every_run_of_a_log_is_shown_from_its_goal_to_its_answer(tmp_path, folder, shown):
    built = build_source(LOGS / folder, tmp_path / "cache")
    explorer = explorer_over(built.folder, tmp_path, suite=str(built.suite_folder))
    texts = []
    for row in PublishedDataset(built.folder).table("trajectories").to_pylist():
        pages = [
            shown_text(trajectories_fragment(explorer, f"id={row['trajectory_id']}&step={step + 1}").html)
            for step in range(row["n_steps"])
        ]
        for page, step in zip(pages, row["steps"], strict=True):
            assert words(row["goal"]) in words(page) and words(step["action"]) in words(page)
        assert words(row["answer"]) in words(pages[-1])
        texts += pages
    everything = "\n".join(texts)
    assert [text for text in shown if text not in everything] == []
    planted = ("PLANTED LABEL", "0.125", "submission was incorrect")
    assert [text for text in planted if text in everything] == []


def words(text: str | None) -> str:
    """A text as a page shows it: white space is one."""
    return " ".join((text or "").split())
