"""What the process that verifies holds for each trajectory, counted with tracemalloc.

What worker processes do, a bounded number at a time, is stood in for. Ids are as long as the released ones,
four runs have a task, and a sixth of them have dev labels.
"""

import gc
import itertools
import pathlib
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from arb.core import suite
from arb.core.ids import reading_key
from arb.core.vocabulary import SPLITS
from dataset_script.sources.published import Shard
from dataset_script.verify import totals
from dataset_script.verify.manifest import Findings
from dataset_script.verify.totals import Facts

AGENTS = tuple(f"GenericAgent-anthropic_claude-3.7-sonnet-{letter}" for letter in "abcd")
MOST_BYTES = 200


def an_id(number: int) -> str:
    """90 characters, as the released ids have on average."""
    task = f"workarena.servicenow.infeasible-navigate-{number // 4:06d}-l2"
    return f"workarena/{AGENTS[number % 4]}/{task}"


def make_suite(folder: Path, count: int) -> None:
    ids = sorted(map(an_id, range(count)))
    folder.mkdir()
    splits = {
        name: "dev" if name.rpartition("/")[2] < an_id(count // 6).rpartition("/")[2] else "test"
        for name in ids
    }
    rows = "".join(f"{name},{splits[name]}\n" for name in ids)
    (folder / "trajectories.csv").write_text(f"trajectory_id,split\n{rows}")
    labels = "".join(f"{name},1,true,false,false,3\n" for name in ids if splits[name] == "dev")
    head = "trajectory_id,annotation,success,side_effect,repetition,optimality"
    (folder / "dev_labels.csv").write_text(f"{head}\n{labels}")


def make_source(folder: Path, count: int) -> None:
    for agent in AGENTS:
        (folder / "cleaned" / "workarena" / agent / "run").mkdir(parents=True)
    for number in range(count):
        benchmark, agent, task = an_id(number).split("/")
        (folder / "cleaned" / benchmark / agent / "run" / f"{task}.json").touch()


def bytes_a_run(measured: Callable[[Path], None], tmp_path: Path, sizes=(20, 200, 600)) -> float:
    """What a further run takes where most is held, from the last but one number of runs to the last.

    ``measured`` gets a folder with source and suite. The first number only warms up. Not what pathlib holds:
    Python keeps the names of its paths in one table for the process, which shrinks again.
    """
    most = []
    for count in sizes:
        place = tmp_path / str(count)
        place.mkdir()
        make_suite(place / "suite", count)
        make_source(place / "source", count)
        held.clear()
        gc.freeze()  # what is there before need not be looked at
        tracemalloc.start()
        try:
            measured(place)
        finally:
            tracemalloc.stop()
            gc.unfreeze()
        most.append(max(held))
    each = (most[-1] - most[-2]) / (sizes[-1] - sizes[-2])
    assert each > 10  # the ids themselves are held somewhere: else nothing was looked at
    return each


held: list[int] = []


def look() -> None:
    """Note how many bytes of Python's objects are there now."""
    gc.collect()
    by_file = tracemalloc.take_snapshot().statistics("filename")
    held.append(sum(each.size for each in by_file if each.traceback[0].filename != pathlib.__file__))


def looking(function: Callable, every: int = 1) -> Callable:
    """The function, and a look after every so many of its calls."""
    calls = itertools.count(1)

    def called(*arguments, **options):
        result = function(*arguments, **options)
        if next(calls) % every == 0:
            look()
        return result

    return called


@pytest.fixture(autouse=True)
def large_suites(monkeypatch):
    monkeypatch.setattr(suite, "MOST_BYTES_AS_OBJECTS", 0)


def test_a_verification_holds_at_most_200_bytes_of_a_trajectory(tmp_path, monkeypatch):
    monkeypatch.setattr(totals, "_check_against_suite", looking(totals._check_against_suite, 190))
    monkeypatch.setattr(Facts, "has", looking(Facts.has, 190))

    def verify(place):
        ours, findings = suite.load_suite(place / "suite"), Findings()
        with Facts() as facts:
            for configuration, split in itertools.product(totals.EVERY_TRAJECTORY, SPLITS):
                names = (run.trajectory_id for run in ours.trajectories if run.split == split)
                shard = Shard("x", configuration, split, "", 1, 1)
                while few := list(itertools.islice(names, 80)):  # as many as are in a shard
                    rows = [(name, reading_key(name), True, '[""]', '{"n_steps": 21}') for name in few]
                    facts.add(shard, (), rows)
            look()
            totals.check_agreement(facts, ours, (), findings)
            look()
        assert not findings.listed()

    assert bytes_a_run(verify, tmp_path) <= MOST_BYTES
