"""The official suite with a synthetic file for each of its 1,302 trajectories: the counts of the paper."""

import pytest

from arb.core.suite import load_dev_labels, load_suite
from dataset_script.build.build import BuildOptions, build
from dataset_script.schema import LABEL_COLUMNS
from tests.support.released_layout import SourceFolder


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("official")
    suite = load_suite()
    source = SourceFolder(folder / "trajectories")
    steps = [
        {"num": 0, "action": "noop()", "axtree": "page", "axtree_pruned": "page"},
        {"num": 1, "axtree": "page", "axtree_pruned": "page"},
    ]
    for trajectory in suite.trajectories:
        source.put(trajectory.trajectory_id, steps=steps)
    out = folder / "agent-reward-bench"
    return out, build(folder, out, options=BuildOptions(workers=1))


def test_every_trajectory_is_built_in_the_published_numbers(built):
    _, report = built
    assert report.suite == "agent-reward-bench"
    assert (report.built("dev"), report.built("test")) == (196, 1106)
    assert report.counts["test"] == {
        "assistantbench": 108,
        "visualwebarena": 276,
        "webarena": 310,
        "workarena": 64,
        "workarena++": 348,
    }
    assert (report.left_out, {note.code for note in report.notes}) == ([], {"no_screenshots"})
    # 218 annotations of dev: 196 trajectories, 22 of them twice (106 in all, 84 of them on test)
    assert report.rows["annotations"] == {"dev": 218}
    assert report.rows["tasks"] == {"dev": 51, "test": 300}


def test_labels_are_on_dev_only(built, table):
    out, _ = built
    suite = load_suite()
    primary = [said for said in load_dev_labels(suite) if said.is_primary]
    dev, test = table(out, "dev"), table(out, "test")
    assert [row["trajectory_id"] for row in dev] == [said.trajectory_id for said in primary]
    assert [row["success"] for row in dev] == [
        {"yes": 1, "no": 0}.get(said.answers["success"]) for said in primary
    ]
    assert (
        sum(row["success"] is None for row in dev) == 1
    )  # GPT-4o on webarena.344, where the expert was unsure
    assert {tuple(row[name] for name in LABEL_COLUMNS) for row in test} == {(None,) * 4}
    assert not {row["trajectory_id"] for row in table(out, "dev", "annotations")} & {
        row["trajectory_id"] for row in test
    }


def test_no_annotator_is_named(built, table):
    annotators = {row["annotator"] for row in table(built[0], "dev", "annotations")}
    assert annotators == {f"annotator-{number}" for number in range(1, 8)}
