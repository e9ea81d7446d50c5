"""Measure the page of all suites against the leaderboard: ``python -m bench.suites`` (``--quick``: smaller).

Made-up suites with public labels have the same judges, whose verdicts are files in the suites' folders. The
Space serves all suites. Printed are the seconds until all boards are built, and those of views of the
leaderboard and of ``/suites``: the first ones, those after a board has changed, and later ones (the median).
It fails if the first or a later view of ``/suites`` takes more than 1.5 times as long as the leaderboard's.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from fastapi.testclient import TestClient

from arb.core.files import csv_text
from arb.core.settings import Settings
from space.app import create_app

MOST = 1.5
"""The largest ratio of ``/suites`` to the leaderboard."""


def write_suite(folder: Path, n_judges: int, n_tasks: int, seed: int) -> None:
    """Write a suite of two runs per task, 30 % of them successes, and judges with accuracies of .6 to .9."""
    generator = np.random.default_rng(seed)
    ids = [f"shop/agent-{agent}/shop.{task}" for task in range(n_tasks) for agent in "ab"]
    labels = generator.random(len(ids)) < 0.3
    (folder / "verdicts").mkdir(parents=True)
    (folder / "suite.toml").write_text(
        'labels = "public"\n[[targets]]\nname = "success"\nvalues = ["yes", "no"]\n'
    )
    (folder / "trajectories.csv").write_text(csv_text(("trajectory_id", "split"), [(i, "test") for i in ids]))
    rows = [(run, 1, "yes" if label else "no") for run, label in zip(ids, labels, strict=True)]
    names = [run.split("/") for run in ids]
    released = [
        ("a", benchmark, task, agent, "", "Successful" if label == "yes" else "Unsuccessful")
        for (benchmark, agent, task), (_, _, label) in zip(names, rows, strict=True)
    ]
    columns = ("annotator_name", "benchmark", "task_id", "model_name", "exp_name", "trajectory_success")
    (folder / "test_labels.csv").write_text(csv_text(columns, released))
    for judge in range(n_judges):
        is_right = generator.random(len(ids)) < 0.6 + 0.3 * judge / n_judges
        verdicts = np.where(is_right, labels, ~labels).tolist()
        lines = (json.dumps({"trajectory_id": i, "success": v}) for i, v in zip(ids, verdicts, strict=True))
        (folder / "verdicts" / f"judge-{judge}.jsonl").write_text("\n".join(lines) + "\n")


def seconds(client: TestClient, times: int = 1) -> dict[str, float]:
    """Return the median seconds of requests of the two pages in turn, by path."""
    found: dict[str, list[float]] = {"/": [], "/suites": []}
    for _ in range(times):
        for path, durations in found.items():
            began = time.perf_counter()
            client.get(path).raise_for_status()
            durations.append(time.perf_counter() - began)
    return {path: statistics.median(durations) for path, durations in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--suites", type=int, default=5)
    parser.add_argument("--judges", type=int, default=100)
    parser.add_argument("--tasks", type=int, default=300)
    parser.add_argument("--quick", action="store_true", help="two suites with ten judges each")
    options = parser.parse_args()
    n_suites, n_judges = (2, 10) if options.quick else (options.suites, options.judges)
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder) / f"bench-{number}" for number in range(n_suites)]
        for number, name in enumerate(names):
            write_suite(name, n_judges, options.tasks, seed=number)
        places = ",".join(map(str, names))
        app = create_app(Settings(suites=places, state_dir=Path(folder) / "state", labels="wheel"))
        with TestClient(app) as client:
            began = time.perf_counter()
            for services in app.state.services_by_suite.values():
                services.submissions.records.board()
            built = time.perf_counter() - began
            views = {"first view": seconds(client)}
            records = next(iter(app.state.services_by_suite.values())).submissions.records
            changed = replace(records.board(), rows=records.board().rows[:-1])
            records.board = lambda: changed
            views |= {"after a change": seconds(client), "later views": seconds(client, times=101)}
    print(f"{n_suites} suites with {n_judges} judges each; all boards built in {built:.1f} s")
    ratios = {}
    for name, found in views.items():
        ratios[name] = found["/suites"] / found["/"]
        durations = f"leaderboard {1000 * found['/']:.1f} ms, suites {1000 * found['/suites']:.1f} ms"
        print(f"{name}: {durations}, ratio {ratios[name]:.2f} (at most {MOST})")
    sys.exit(max(ratios["first view"], ratios["later views"]) > MOST)


if __name__ == "__main__":
    main()
