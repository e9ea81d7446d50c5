"""Recorded runs as judges see them: from every kind of source, only what is wanted, and what goes wrong."""

import json
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import arb.judges.views
from arb.core.suite import load_suite
from arb.judges.ensembles.cascade import Cascade
from arb.judges.ensembles.voting import SampledJudge
from arb.judges.prompting import prompts_hash, steps_text
from arb.judges.registry import find_judge
from arb.judges.types import ImageOptions, Wants
from arb.judges.views import VIEW_VERSION, NoViewError, Views, missing_inputs, view_hash
from dataset_script import sample
from dataset_script.build.build import build
from dataset_script.new_suite import build_source
from dataset_script.sources.base import Observed
from dataset_script.sources.problems import SourceError
from tests.support.released_layout import SourceFolder
from tests.support.text_runs import BROWSING, IDS, IN_A_BROWSER, READING, RUNS

EVERYTHING = Wants("all", "all", goal_images=True)
SAMPLE = Path(sample.__file__).parent / "data"
AGENTLAB = Path(__file__).parents[2] / "dataset_script" / "sources" / "recorded_by_browsergym"


@pytest.fixture(scope="module")
def released(shared):
    return shared / "data" / "released_layout"


@pytest.fixture(scope="module")
def published(released, tmp_path_factory):
    """The same runs as a dataset."""
    out = tmp_path_factory.mktemp("built") / "dataset"
    build(released, out)
    return out


def without_configuration(folder: Path, out: Path, *names: str) -> Path:
    """The same dataset without some of its configurations."""
    out.mkdir()
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"] = {
        name: entry for name, entry in manifest["files"].items() if entry["configuration"] not in names
    }
    (out / "manifest.json").write_text(json.dumps(manifest))
    shutil.copytree(folder / "data", out / "data")
    shutil.copy(folder / "index.parquet", out)
    return out


@pytest.mark.shared
def test_a_view_has_what_the_recorded_file_has(released):
    views = Views(released)
    for trajectory_id in views.ids():
        benchmark, agent, task = trajectory_id.split("/")
        (path,) = (released / "cleaned" / benchmark / agent).glob(f"*/{task}.json")
        recorded = json.loads(path.read_bytes())
        shown = views.view(trajectory_id, EVERYTHING)
        assert (shown.goal, shown.goal_images) == (recorded["goal"], ())
        assert len(shown.steps) == len(recorded["steps"])
        for number, (step, said) in enumerate(zip(shown.steps, recorded["steps"], strict=True), start=1):
            assert (step.number, step.url, step.action, step.reasoning, step.error) == (
                number,
                said["url"],
                said["action"],
                said["reasoning"],
                said["last_action_error"],
            )
            assert (step.axtree, step.axtree_pruned) == (said["axtree"], said["axtree_pruned"])
            pictures = released / "screenshots" / benchmark / agent / task
            assert step.screenshot.content == (pictures / f"screenshot_step_{number - 1}.png").read_bytes()


@pytest.mark.shared
@pytest.mark.parametrize("wants", [Wants(), Wants("last", "last", True), Wants("none", "all"), EVERYTHING])
def test_the_published_dataset_shows_what_the_released_layout_shows(released, published, wants):
    suite = load_suite("localshop")
    one, other = Views(released, suite), Views(published, suite)
    assert one.ids() == other.ids() == tuple(each.trajectory_id for each in suite.trajectories)
    for trajectory_id in one.ids():
        recorded = one.view(trajectory_id, wants)
        assert recorded.goal.endswith("\n")  # of which the dataset has no need
        assert replace(recorded, goal=recorded.goal[:-1]) == other.view(trajectory_id, wants)
        assert one.reward(trajectory_id) == other.reward(trajectory_id) is not None


@pytest.mark.shared
def test_only_what_is_wanted_is_shown(released):
    views = Views(released)
    trajectory_id = views.ids()[0]
    bare = views.view(trajectory_id, Wants())
    assert all((s.axtree, s.axtree_pruned, s.screenshot) == (None, None, None) for s in bare.steps)
    last = views.view(trajectory_id, Wants(axtrees="last", screenshots="last"))
    for step in last.steps:
        is_last = step is last.steps[-1]
        assert (step.axtree is not None, step.screenshot is not None) == (is_last, is_last)


@pytest.mark.parametrize(
    ("absent", "trees", "screenshots"),
    [
        (("steps",), "last", "last"),  # then only the last page has a tree and a picture
        (("trajectories_with_screenshot",), "all", "all"),
        (("steps", "trajectories_with_screenshot"), "last", "none"),
    ],
)
def test_of_a_dataset_in_parts_what_is_there_is_shown(tmp_path, absent, trees, screenshots):
    views, whole = Views(without_configuration(SAMPLE, tmp_path / "part", *absent)), Views(SAMPLE)
    for trajectory_id in whole.ids()[:5]:
        expected = whole.view(trajectory_id, Wants(trees, screenshots))
        assert views.view(trajectory_id, EVERYTHING) == expected
    last = Wants("last", "none" if screenshots == "none" else "last")
    assert views.view(trajectory_id, Wants("last", "last")) == whole.view(trajectory_id, last)


def test_without_rewards_there_is_no_reward(tmp_path):
    views = Views(without_configuration(SAMPLE, tmp_path / "part", "rewards"))
    assert {views.reward(each) for each in views.ids()} == {None}
    assert {Views(SAMPLE).reward(each) for each in views.ids()} >= {0.0, 1.0}


@pytest.fixture
def agentlab():
    """A recorded run of a scripted agent."""
    return Views(AGENTLAB)


def test_agentlabs_runs_show_the_pictures_of_their_goal_where_they_are_wanted(agentlab):
    (trajectory_id,) = agentlab.ids()
    views = agentlab
    shown = views.view(trajectory_id, EVERYTHING)
    assert [each.media_type for each in shown.goal_images] == ["image/png"]
    assert all(step.axtree and step.axtree_pruned and step.screenshot for step in shown.steps)
    assert views.view(trajectory_id, Wants()).goal_images == ()


def test_ids_are_the_suites_in_its_order_and_a_spelling_in_use_finds_the_run(tmp_path):
    (tmp_path / "suite").mkdir()
    rows = "trajectory_id,split\nshop/b/shop.resized.1,dev\nshop/a/shop.2,test\nshop/a/shop.9,test\n"
    (tmp_path / "suite" / "trajectories.csv").write_text(rows)
    source = SourceFolder(tmp_path / "runs")
    for trajectory_id in ("shop/b/shop.1", "shop/a/shop.2", "shop/a/shop.5"):
        source.put(trajectory_id)
    views = Views(source.path, load_suite(tmp_path / "suite"))
    assert views.ids() == ("shop/a/shop.2", "shop/b/shop.resized.1")  # 5 is in no suite, 9 has no run
    assert views.view("shop/b/shop.resized.1") == views.view("shop/b/shop.1")


def test_of_two_spellings_of_one_run_the_released_one_is_shown(tmp_path):
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "trajectories.csv").write_text("trajectory_id,split\nshop/b/shop.resized.1,dev\n")
    source = SourceFolder(tmp_path / "runs")
    source.put("shop/b/shop.1", goal="the other spelling")
    source.put("shop/b/shop.resized.1", goal="as released")
    views = Views(source.path, load_suite(tmp_path / "suite"))
    assert views.view("shop/b/shop.1").goal == "as released"


def test_of_two_files_of_one_run_the_first_that_can_be_read_is_shown(tmp_path):
    source = SourceFolder(tmp_path)
    source.put("shop/a/shop.1", content="{", experiment="run-1")
    source.put("shop/a/shop.1", experiment="run-2", goal="the second")
    assert Views(tmp_path).view("shop/a/shop.1").goal == "the second"


def test_a_missing_or_unreadable_run_is_named_by_its_id_and_why(tmp_path):
    source = SourceFolder(tmp_path)
    source.put("shop/a/shop.1", content={"steps": 3})
    views = Views(tmp_path)
    with pytest.raises(NoViewError, match=r"shop/a/shop\.1: cleaned/.*/shop\.1\.json: not_a_trajectory"):
        views.view("shop/a/shop.1")
    with pytest.raises(NoViewError, match=r"shop/a/shop\.2: there is no run of it in"):
        views.view("shop/a/shop.2")
    with pytest.raises(NoViewError):
        views.reward("shop/a/shop.2")


def test_a_folder_that_is_no_source_is_refused(tmp_path):
    with pytest.raises(SourceError):
        Views(tmp_path)


@pytest.mark.shared
def test_a_picture_cut_off_counts_as_none_and_one_that_vanished_is_a_fault(released, tmp_path, monkeypatch):
    copy = tmp_path / "copy"
    shutil.copytree(released, copy)
    views = Views(copy)
    trajectory_id = views.ids()[0]
    pictures = copy / "screenshots" / trajectory_id
    for path in (pictures, *pictures.iterdir()):
        path.chmod(0o755)
    (pictures / "screenshot_step_0.png").write_bytes(b"\x89PNG\r\n\x1a\n cut")
    shown = views.view(trajectory_id, Wants(screenshots="all"))
    assert [step.screenshot is None for step in shown.steps] == [True] + [False] * (len(shown.steps) - 1)

    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: _gone(path) if path.suffix == ".png" else real(path))
    with pytest.raises(NoViewError, match="a screenshot cannot be read"):
        views.view(trajectory_id, Wants(screenshots="last"))


def _gone(path: Path) -> bytes:
    raise FileNotFoundError(2, "No such file or directory")


def test_pictures_are_prepared_as_asked():
    views = Views(SAMPLE, images=ImageOptions(max_side=100, format="jpeg", detail="low"))
    picture = views.view(views.ids()[0], Wants(screenshots="last")).steps[-1].screenshot
    assert (picture.media_type, max(picture.width, picture.height), picture.detail) == (
        "image/jpeg",
        100,
        "low",
    )


@pytest.mark.parametrize("source", ["published", "agentlab"])
def test_views_go_to_other_processes_and_to_threads(source, request):
    views = Views(SAMPLE) if source == "published" else request.getfixturevalue(source)
    ids = views.ids()[:12]
    there = pickle.loads(pickle.dumps(views))
    expected = [views.view(each, EVERYTHING) for each in ids]
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda each: there.view(each, EVERYTHING), ids))
    assert found == expected


def test_the_data_hash_is_the_same_for_the_same_data_and_changes_with_it(tmp_path):
    source = SourceFolder(tmp_path)
    path = source.put("shop/a/shop.1")
    first = Views(tmp_path).data_hash()
    assert first == Views(tmp_path).data_hash() and len(first) == 64
    path.write_text(path.read_text() + " ")
    assert Views(tmp_path).data_hash() != first
    assert Views(SAMPLE).data_hash() != Views(AGENTLAB).data_hash()


def test_what_a_recording_of_the_sample_shows_changes_only_with_the_version_of_the_view():
    shown = Views(SAMPLE, load_suite("sample"))
    view = shown.view(shown.ids()[0], EVERYTHING)
    texts = [view.goal, steps_text(view.steps), *(str(each.axtree_pruned) for each in view.steps)]
    pinned = {1: "181e1deee5a541cc"}  # where this fails, raise VIEW_VERSION and add its line
    assert prompts_hash(*texts)[:16] == pinned[VIEW_VERSION]


@pytest.mark.parametrize(
    ("wants", "pinned"),
    [
        (Wants(), "524da2f7d26d17cd"),
        (EVERYTHING, "567c64332c44a7be"),
        (Wants(axtrees="last"), "7d673b5f5b2ab125"),
    ],
)
@pytest.mark.parametrize(
    ("function", "other"),
    [
        ("steps_text", lambda steps, answer=None: "in other words"),
        ("observation_apart", lambda view: (view.steps, "in other words")),
    ],
)
def test_the_hash_of_the_view_changes_with_what_is_wanted_and_with_how_a_run_is_written(
    monkeypatch, wants, pinned, function, other
):
    assert view_hash(wants)[:16] == pinned  # that of commit 7d56a80: its runs go on
    monkeypatch.setattr(arb.judges.views, function, other)
    assert view_hash(wants)[:16] != pinned


def test_a_run_without_pages_is_shown_with_its_observations_and_its_answer_from_any_source(
    text_runs, tmp_path
):
    built = build_source(text_runs, tmp_path / "cache")
    views = [Views(folder, built.suite).view(READING, EVERYTHING) for folder in (text_runs, built.folder)]
    assert views[0] == views[1]
    assert [step.text for step in views[0].steps] == [step["text"] for step in RUNS[READING]["steps"]]
    assert (views[0].answer, {step.axtree for step in views[0].steps}) == (RUNS[READING]["answer"], {None})


def test_what_a_run_lacks_is_known_from_the_footers_and_asked_of_every_part_of_a_judge(text_runs, tmp_path):
    (text_runs / "browsing.json").write_text(json.dumps(IN_A_BROWSER))
    built = build_source(text_runs, tmp_path / "cache")
    views = Views(built.folder, built.suite)
    assert views.observed[READING] == Observed(urls=False, axtrees=False, screenshots=False, texts=True)
    assert views.observed[BROWSING] == Observed(urls=True, axtrees=True, screenshots=True, texts=False)
    assert set(Views(SAMPLE).observed.values()) == {Observed(True, True, True, False)}
    both = find_judge("simplified-both")
    cascade = Cascade(find_judge("simplified-axtree"), SampledJudge(both, 3, "majority"))
    for judge in (both, cascade):
        assert views.incomplete(judge, views.ids()) == dict.fromkeys(IDS, ("screenshots",))


def test_a_dataset_whose_footers_do_not_say_what_runs_have_is_refused(text_runs, tmp_path):
    built = build_source(text_runs, tmp_path / "cache")
    for path in (built.folder / "data" / "steps").glob("*.parquet"):
        file = pq.ParquetFile(path)
        groups = [file.read_row_group(number) for number in range(file.num_row_groups)]
        with pq.ParquetWriter(path, file.schema_arrow, write_statistics=["trajectory_id"]) as writer:
            for group in groups:
                writer.write_table(group)
    with pytest.raises(SourceError, match="what was observed; build again"):
        Views(built.folder, built.suite).incomplete(find_judge("simplified-both"), IDS)


@pytest.mark.parametrize(
    ("judge", "observed", "missing"),
    [
        ("nnetnav", Observed(True, False, True, False), ("accessibility trees",)),
        ("nnetnav", Observed(True, False, False, False), ("accessibility trees",)),
        ("nnetnav", Observed(False, False, False, False), ()),  # question and answer: nothing is missing
        ("aer-c", Observed(False, False, False, True), ()),
        ("aer-c", Observed(True, True, False, False), ("screenshots",)),
        ("aer-v", Observed(False, False, False, False), ("screenshots",)),
        ("simplified-both", Observed(True, False, False, False), ("screenshots", "accessibility trees")),
        ("simplified-neither", Observed(True, False, False, False), ()),
        ("always-successful", Observed(True, False, False, False), ()),
        ("rule-based", Observed(True, False, False, False), ()),
    ],
)
def test_a_judge_lacks_what_it_looks_at_and_no_step_of_a_run_on_the_web_has(judge, observed, missing):
    assert missing_inputs(find_judge(judge), observed) == missing
