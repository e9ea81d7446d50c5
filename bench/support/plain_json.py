"""A plain script with which the build is compared: ``python -m bench.support.plain_json SOURCE OUT``.

It uses the standard library to load each cleaned file, drop the fields that the dataset does not have, and
write JSON again.
"""

import argparse
import json
import multiprocessing
from functools import partial
from pathlib import Path

KEPT = ("benchmark", "agent", "model", "valid", "goal")
KEPT_OF_A_STEP = (
    "num",
    "url",
    "action",
    "reasoning",
    "last_action_error",
    "focused_element",
    "axtree",
    "axtree_pruned",
    "screenshot_path",
)


def clean(path: Path, out: Path) -> None:
    with path.open(encoding="utf-8") as file:
        run = json.load(file)
    kept = {name: run.get(name) for name in KEPT}
    kept["cum_reward"] = run["summary_info"]["cum_reward"]
    kept["steps"] = [{name: step.get(name) for name in KEPT_OF_A_STEP} for step in run["steps"]]
    with (out / f"{path.parts[-3]}-{path.name}").open("w", encoding="utf-8") as file:
        file.write(json.dumps(kept))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("-n", "--workers", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    files = sorted(options.source.glob("cleaned/*/*/*/*.json"))
    with multiprocessing.Pool(options.workers) as pool:
        for _ in pool.imap_unordered(partial(clean, out=options.out), files):
            pass


if __name__ == "__main__":
    main()
