"""A clean folder passes; ids, splits and counts are held to the suite; a blind one to its tasks."""

import json
from pathlib import Path

import pytest

from arb.core.ids import TrajectoryId
from arb.core.suite import load_suite
from dataset_script import sample
from dataset_script.verify.check import verify
from dataset_script.verify.manifest import lines
from tests.support.verify_reports import DEV, TEST, codes, found


def test_a_clean_folder_passes_and_its_rows_are_counted(published, own_suite):
    report = verify(published.write(), suite=own_suite)
    assert report.findings == ()
    assert report.ok
    assert report.rows["trajectories"] == {"dev": 2, "test": 1}
    assert report.rows["steps"] == {"dev": 6, "test": 3}  # 3 steps each
    assert report.files == 15  # 7 configurations with two splits, annotations with one


@pytest.mark.slow
def test_the_shipped_sample_which_was_built_before_some_columns_were_added_passes():
    assert verify(Path(sample.__file__).parent / "data").findings == ()


def test_a_suite_that_is_not_at_hand_is_a_warning(published):
    report = verify(published.write())
    assert codes(report) == {"suite_unknown"}
    assert report.ok


def test_a_missing_a_foreign_and_a_misplaced_trajectory_are_distinguished(published, own_suite):
    for (_, split), rows in published.rows.items():
        for row in rows:
            if "trajectory_id" in row and split == "test":
                row["trajectory_id"] = "shop/Agent-z/shop.9"
    report = verify(published.write(), suite=own_suite)
    assert found(report)["not_in_suite", "data/trajectories/test"] == ("shop/Agent-z/shop.9",)
    assert found(report)["missing_trajectory", "data/trajectories"] == (TEST,)


def test_a_trajectory_without_its_steps_is_caught(published, own_suite):
    published.rows["steps", "dev"] = [r for r in published.rows["steps", "dev"] if r["trajectory_id"] != DEV]
    assert found(verify(published.write(), suite=own_suite))["configurations_disagree", "data/steps/dev"] == (
        DEV,
    )


def test_a_number_of_steps_that_does_not_fit_is_caught(published, own_suite):
    published.rows["trajectories", "dev"][0]["n_steps"] = 7
    assert found(verify(published.write(), suite=own_suite)) == {
        ("configurations_disagree", "data"): (f"{DEV}: the number of steps",)
    }


def test_a_step_of_the_suite_that_the_run_does_not_have_is_a_warning(published, own_suite, tmp_path):
    rows = [f"{DEV},{step}" for step in (0, 1, 3, 4)] + [f"{TEST},3"]  # every run has 3 steps
    (tmp_path / "own" / "items.csv").write_text("\n".join(["trajectory_id,step", *rows]) + "\n")
    report = verify(published.write(), suite=load_suite(tmp_path / "own"))
    assert found(report) == {("unknown_step", "items.csv"): (f"{DEV}: step 0 of 3", f"{DEV}: step 4 of 3")}
    assert report.ok


def without_test(published):
    for (_, split), rows in published.rows.items():
        if split == "test":
            rows[:] = [row for row in rows if "trajectory_id" not in row]
    published.rows = {key: rows for key, rows in published.rows.items() if rows}


def test_a_trajectory_may_be_missing_where_that_is_allowed_by_name(published, own_suite):
    without_test(published)
    folder = published.write()
    assert found(verify(folder, suite=own_suite)) == {("missing_trajectory", "data/trajectories"): (TEST,)}
    report = verify(folder, suite=own_suite, allow_missing=[TEST.replace("shop.2", "shop.resized.2")])
    assert found(report) == {("allowed_missing", "data/trajectories"): (TEST,)}
    assert report.ok
    allowed_and_there = verify(folder, suite=own_suite, allow_missing=[DEV])
    assert found(allowed_and_there) == {("missing_trajectory", "data/trajectories"): (TEST,)}


def test_a_trajectory_that_may_be_missing_is_one_of_the_suite(published, own_suite):
    folder = published.write()
    with pytest.raises(ValueError, match=r"shop/Agent-z/shop\.9: not in the suite own"):
        verify(folder, suite=own_suite, allow_missing=[TEST, "shop/Agent-z/shop.9"])
    with pytest.raises(ValueError, match="add --suite"):
        verify(folder, allow_missing=[TEST])


def make_blind(published):
    published.is_blind = True
    for rows in published.rows.values():
        for row in rows:
            if "trajectory_id" in row:
                name = TrajectoryId.parse(row["trajectory_id"])
                digits = "a" * 16 if name.agent == "Agent-a" else "b" * 16
                row["trajectory_id"] = f"{name.folder}/run-{digits}/{name.task}"
            row |= {name: None for name in ("agent", "model") if name in row}


def test_a_blind_folder_is_held_to_the_tasks_of_the_suite(published, own_suite):
    make_blind(published)
    assert verify(published.write(), suite=own_suite).findings == ()
    for rows in published.rows.values():
        rows[:] = [row for row in rows if "b" * 16 not in str(row.get("trajectory_id"))]
    report = verify(published.write(), suite=own_suite)
    assert found(report) == {("missing_trajectory", "data/trajectories/dev"): ("shop.1: 1 runs",)}
    allowed = verify(published.path, suite=own_suite, allow_missing=[DEV])  # by the suite's own id
    assert found(allowed) == {("allowed_missing", "data/trajectories/dev"): ("shop.1: 1 runs",)}


def test_an_id_that_names_its_agent_is_caught_in_a_blind_folder(published, own_suite):
    make_blind(published)
    published.rows["rewards", "dev"][0]["trajectory_id"] = DEV
    report = verify(published.write(), suite=own_suite)
    assert found(report)["not_blind", "data/rewards/dev-00000-of-00001.parquet"] == (f"{DEV}: the id",)


@pytest.mark.parametrize(
    ("configuration", "column", "value", "told"),
    [
        ("trajectories", "agent", "Agent-a", "agent"),
        ("trajectories_with_screenshot", "model", "m", "model"),
        ("steps", "url", "http://wa-forum-xl-1:80/f", "url: a copy of a site"),
        ("judgments", "reply", "on wa-forum-xl-2", "reply: a copy of a site"),
    ],
)
def test_a_blind_folder_that_tells_agents_is_caught(published, own_suite, configuration, column, value, told):
    make_blind(published)
    published.rows[configuration, "dev"][0][column] = value
    report = verify(published.write(), suite=own_suite)
    assert found(report)["not_blind", f"data/{configuration}/dev-00000-of-00001.parquet"] == (told,)


def test_a_report_says_what_was_found_how_often_and_where(published, own_suite):
    for row in published.rows["steps", "dev"]:
        row["reasoning"] = '{"reward": 1}'
    report = verify(published.write(), suite=own_suite)
    (finding,) = report.findings
    assert (finding.level, finding.code, finding.count) == ("error", "reward", 6)  # 2 trajectories of 3 steps
    assert json.loads(json.dumps(report.as_json()))["ok"] is False
    assert list(lines(report))[-1] == "15 files: not fit to publish"


def test_progress_names_every_shard(published, own_suite):
    told = []
    verify(published.write(), suite=own_suite, progress=lambda *seen: told.append(seen))
    assert [done for done, _, _ in told] == list(range(16))
    assert {total for _, total, _ in told} == {15}


def test_a_folder_that_is_not_there_is_a_finding(tmp_path: Path):
    assert codes(verify(tmp_path / "absent")) == {"no_manifest"}
