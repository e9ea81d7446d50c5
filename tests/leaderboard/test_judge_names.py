"""Names of judges: from run.json, the folder or the file, whatever the order."""

import json
from itertools import permutations

import pytest

from leaderboard.judge_names import judge_names


@pytest.fixture
def files(tmp_path):
    """Make files of predictions in folders; those with a judge have a run.json beside them."""

    def make(**judges):
        made = {}
        for folder, judge in judges.items():
            made[folder] = tmp_path / folder / "predictions.jsonl"
            made[folder].parent.mkdir()
            if judge is not None:
                made[folder].with_name("run.json").write_text(json.dumps({"judge": judge}))
        return list(made.values())

    return make


def test_a_run_has_the_name_of_its_judge_else_of_its_folder_and_any_other_file_its_own(files, tmp_path):
    runs = files(a={"name": "aer"}, b=None, c="broken", d={"name": ""})
    assert judge_names([*runs, tmp_path / "a" / "mine.v2.csv"]) == ["aer", "b", "c", "d", "mine.v2"]


def test_equal_names_get_what_differs_in_their_paths_in_any_order(files, tmp_path):
    runs = files(a={"name": "aer"}, b={"name": "aer"}, c={"name": "rules"})
    other = tmp_path / "b" / "predictions.csv"
    names = ["aer (a/predictions.jsonl)", "aer (b/predictions.jsonl)", "rules", "aer (predictions.csv)"]
    for order in permutations(zip([*runs, other], names, strict=True)):
        assert judge_names([file for file, _ in order]) == [name for _, name in order]
    assert judge_names(runs) == ["aer (a)", "aer (b)", "rules"]
    deep = [tmp_path / side / "dev" / "predictions.csv" for side in ("left", "right")]
    assert judge_names(deep) == ["dev (left/dev)", "dev (right/dev)"]
