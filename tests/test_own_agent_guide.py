"""docs/own_agent.md, its five commands as they stand there: from chat messages to an interval.

`support/pages.py` follows them with logs of Inspect.
"""

import csv
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import path_with_arb
from tests.support.llm_server.process import LLMProcess

REPOSITORY = Path(__file__).parents[1]
GUIDE = (REPOSITORY / "docs" / "own_agent.md").read_text(encoding="utf-8").partition("\n## More\n")[0]
PACKAGES = ("arb", "dataset_script", "leaderboard", "submissions", "space")
ENDPOINT = "http://127.0.0.1:8000/v1"


def commands() -> list[str]:
    return [
        line
        for block in re.findall(r"^```bash\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    ]


def write_chats(folder: Path) -> None:
    """Write runs as chat messages, one file per run."""
    for agent, answers in {"lab_first": ["Bergen", "I give up."] * 20, "lab_second": ["Bergen"] * 40}.items():
        for number, answer in enumerate(answers):
            call = {"name": "look_up", "arguments": json.dumps({"town": number})}
            messages = [
                {"role": "user", "content": f"Find town {number}."},
                {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": call}]},
                {"role": "tool", "content": f"Town {number} is Bergen.", "tool_call_id": "1"},
                {"role": "assistant", "content": answer},
            ]
            path = folder / agent / f"{number}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"messages": messages}))


@pytest.fixture
def checkout(tmp_path) -> Path:
    """A copy of the packages with runs of two agents, 40 each; the first agent finds every second town."""
    for package in PACKAGES:
        shutil.copytree(
            REPOSITORY / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    write_chats(tmp_path / "logs")
    return tmp_path


@pytest.mark.slow
def test_five_commands_lead_from_a_folder_of_logs_to_an_interval(checkout):
    found = commands()
    assert len(found) == 5
    environment = {
        **{name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ},
        "PATH": path_with_arb(checkout / "bin"),
        "HOME": str(checkout / "home"),
        "NO_PROXY": "127.0.0.1",
    }
    printed = []
    with LLMProcess() as endpoint:
        for command in [*found, f"{found[-1]} --json"]:
            if command == found[-1]:
                _label(checkout / "to-label.csv")
            line = command.replace(ENDPOINT, endpoint.base_url)
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=checkout,
                env=environment,
                capture_output=True,
                text=True,
                timeout=240,
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
            printed.append(done.stdout)
    assert "/lab_second/39" in printed[0]
    assert len((checkout / "runs" / "logs" / "predictions.jsonl").read_text().splitlines()) == 80
    first, second = json.loads(printed[-1])["agents"]
    assert [first["agent"], second["agent"]] == ["lab_first", "lab_second"]
    assert [first["n"], first["labelled"]] == [40, 30]
    low, high = first["assisted"]["ci"]
    assert low <= 0.5 <= high  # 20 of 40
    assert second["labels_only"]["rate"] == 1.0


def _label(path: Path) -> None:
    """What a person would write: every town of the second agent, and those with even numbers of the first."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        _, agent, task = row["trajectory_id"].split("/")
        assert row["goal"] == f"Find town {task}."
        assert row["answer"] in ("Bergen", "I give up.")
        assert row["link"].endswith(f"/trajectories?id={row['trajectory_id']}")
        row["success"] = "yes" if agent == "lab_second" or int(task) % 2 == 0 else "no"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
