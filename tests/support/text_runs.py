"""A source of runs without web pages: tool calls and what they returned, a JSON file a run.

It stands in for the readers of logs in tests of what comes after reading.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from arb.core.plugins import load_plugins
from arb.core.trajectory import Recording, Step
from dataset_script import sources
from dataset_script.sources.base import SourceFile, SourceListing, TrajectorySource
from dataset_script.sources.files import read_json_object
from tests.support.judges import picture

READING = "coding/solver/fix-parser"
REPEAT = "coding/solver/fix-parser~2"
ASKING = "coding/asker/which-port"
IDS = (ASKING, READING, REPEAT)

RUNS = {
    READING: {
        "goal": "Make the tests pass.",
        "answer": "The parser now reads <empty> lines.",
        "cum_reward": 1.0,
        "steps": [
            {"action": "bash(cmd='pytest')", "reasoning": "See what fails.", "text": None},
            {"action": "edit(path='parser.py')", "reasoning": "", "text": "1 failed: <empty> line"},
            {"action": None, "reasoning": None, "text": "12 passed in 0.1s"},
        ],
    },
    REPEAT: {
        "goal": "Make the tests pass.",
        "answer": None,
        "cum_reward": 0.0,
        "steps": [
            {"action": "bash(cmd='rm -r tests')", "reasoning": "No tests, no failure.", "text": None},
            {"action": None, "reasoning": None, "text": "no tests ran"},
        ],
    },
    ASKING: {
        "goal": "Which port does the server use?",
        "answer": "It uses port 7860.",
        "cum_reward": None,
        "steps": [
            {"action": "grep(pattern='port')", "reasoning": None, "text": "The working folder is /srv."},
            {"action": None, "reasoning": None, "text": "port: int = 7860"},
        ],
    },
}


BROWSING = "shop/browser/tea.1"
IN_A_BROWSER = {
    "trajectory_id": BROWSING,
    "goal": "Open the list of teas.",
    "answer": None,
    "cum_reward": 1.0,
    "steps": [
        {"action": "click('7')", "reasoning": "Teas.", "url": "http://shop/"},
        {"action": None, "reasoning": None, "url": "http://shop/teas"},
    ],
}
"""A run in a browser, for a folder of both kinds."""


def write_text_runs(folder: Path) -> Path:
    """The runs above, each in a file of its own."""
    folder.mkdir(parents=True)
    for number, (name, run) in enumerate(RUNS.items()):
        (folder / f"run-{number}.json").write_text(json.dumps(run | {"trajectory_id": name}))
    return folder


@dataclass(frozen=True, slots=True)
class TextSource(TrajectorySource):
    """The files of a folder, as `write_text_runs` leaves them."""

    also_allowed: tuple[str, ...] = ()
    kind: ClassVar[str] = "text"

    @staticmethod
    def recognises(folder: Path) -> bool:
        return folder.is_dir()

    def list_runs(self) -> SourceListing:
        return SourceListing(
            tuple(
                SourceFile(path, path.name, json.loads(path.read_bytes())["trajectory_id"])
                for path in sorted(self.folder.glob("*.json"))
            ),
            (),
        )

    def read(self, file: SourceFile):
        run = read_json_object(file.path)
        steps = tuple(_step(num, step) for num, step in enumerate(run["steps"]))
        return Recording(
            file.trajectory_id,
            "model-x",
            run["goal"],
            (),
            run["cum_reward"],
            steps,
            run["answer"],
            "completed",
        ), ()

    def identity(self, file: SourceFile) -> str:
        state = file.path.stat()
        return f"{state.st_size} {state.st_mtime_ns}"


def _step(num: int, step: dict) -> Step:
    """A step; one of a run in a browser has a ``url``, and a tree and a screenshot with it."""
    url = step.get("url")
    return Step(
        num=num,
        url=url,
        action=step["action"],
        reasoning=step["reasoning"],
        last_action_error=None,
        focused_element=None,
        axtree=url and f"tree of {url}",
        axtree_pruned=url and f"pruned tree of {url}",
        box=None,
        screenshot=picture(num) if url else None,
        text=step.get("text"),
    )


@pytest.fixture
def text_runs(tmp_path, monkeypatch) -> Path:
    """A folder of runs without web pages that `open_source` recognises."""
    kinds = dict(load_plugins("arb.sources")) | {"agentlab": TextSource}
    monkeypatch.setattr(sources, "load_plugins", lambda group: kinds.items())
    return write_text_runs(tmp_path / "logs")
