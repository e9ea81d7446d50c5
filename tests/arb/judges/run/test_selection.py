"""The trajectories that the options of a run choose."""

import pytest

from arb.judges.cli.options import RunOptions
from arb.judges.run.selection import select
from arb.judges.types import OptionsError

RUNS = [f"shop/{agent}/shop.{task}" for agent in ("a", "b") for task in (1, 2, 3)]


@pytest.fixture
def suite(tmp_path) -> str:
    """Task 1 is easy and 2 is hard, 3 is neither; the first run is on a phone."""
    (tmp_path / "suite.toml").write_text('subsets = ["difficulty", "mobile"]\n')
    rows = [f"{run},dev,{'yes' if run == RUNS[0] else ''}\n" for run in RUNS]
    (tmp_path / "trajectories.csv").write_text("trajectory_id,split,mobile\n" + "".join(rows))
    (tmp_path / "tasks.csv").write_text("task,benchmark,difficulty\nshop.1,shop,easy\nshop.2,shop,hard\n")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({"subset": ["difficulty=hard"]}, [1, 4]),
        ({"subset": ["difficulty=hard", "mobile=yes"]}, [0, 1, 4]),
        ({"subset": ["difficulty=hard"], "agent": ["b"]}, [4]),
        ({"subset": ["difficulty=easy"], "limit": 1}, [0]),
    ],
)
def test_a_subset_of_the_suite_is_chosen_also_together_with_an_agent(suite, options, chosen):
    _, ids = select(RunOptions(suite=suite, split="dev", **options))
    assert list(ids) == [RUNS[place] for place in chosen]


def test_an_unknown_subset_is_refused_with_those_that_there_are(suite):
    there = "use difficulty=easy, difficulty=hard, mobile=yes"
    with pytest.raises(OptionsError, match=f"--subset hard: not in .*; {there}"):
        select(RunOptions(suite=suite, split="dev", subset=["hard"]))
    with pytest.raises(OptionsError, match="--subset hard: not in sample; leave out --subset"):
        select(RunOptions(suite="sample", split="dev", subset=["hard"]))
