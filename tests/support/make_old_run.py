"""Make a dataset and a judge's run of a release, for later code to read: ``tests/arb/releases/<commit>``.

Run it with the release's own code, from a checkout of the release:

    git worktree add /tmp/release COMMIT && cd /tmp/release
    python HERE/tests/support/make_old_run.py HERE/tests/arb/releases/COMMIT

It uses only commands. The folder that it writes is small and holds nothing of the machine:

    towns            a suite of two tasks, each done by two agents
    dataset          what `arb data build` wrote of its runs
    run              what `arb judges run` wrote: the dataset's dev split, with an endpoint that is gone
    labels.csv       labels of the dev split
    report.json      what `arb score --json` said about the run
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path.cwd()))  # the code of the release

from tests.support.llm_server.process import LLMProcess

DEV = "1"
"""The task that the release puts into dev."""


def arb(folder: Path, *words: str) -> str:
    """Run a command in the folder, and return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd()), "ARB_CACHE_DIR": "cache"}
    command = [sys.executable, "-m", "arb", *words]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def make(folder: Path) -> None:
    """Record four runs, build a dataset of them, judge it, and score the judge."""
    for agent, answer in (("careful", "It is in Norway."), ("hasty", "I do not know.")):
        (folder / "logs" / agent).mkdir(parents=True)
        for number in ("0", "1"):
            messages = [
                {"role": "user", "content": f"In which country is town {number}?"},
                {"role": "assistant", "content": answer},
            ]
            log = {"messages": messages, "model": agent, "id": number}
            (folder / "logs" / agent / f"{number}.json").write_text(json.dumps(log))
    arb(folder, "data", "new-suite", "--source", "logs", "--out", "towns", "--dev-share", "0.5")
    arb(folder, "data", "build", "--source", "logs", "--suite", "towns", "--out", "dataset")
    labels = f"trajectory_id,success\nchat/careful/{DEV},yes\nchat/hasty/{DEV},no\n"
    (folder / "labels.csv").write_text(labels)
    data = ["--suite", "towns", "--source", "dataset", "--split", "dev"]
    with LLMProcess() as server:
        judge = ["gpt-4o-mini-noscreen", "--base-url", server.base_url]
        arb(folder, "judges", "run", *judge, *data, "--out", "run")
    report = arb(folder, "score", "run/predictions.jsonl", "--labels", "labels.csv", "--json")
    (folder / "report.json").write_text(report)
    for left in ("logs", "cache", "run/.lock"):
        shutil.rmtree(folder / left) if (folder / left).is_dir() else (folder / left).unlink()


if __name__ == "__main__":
    make(Path(sys.argv[1]).absolute())
