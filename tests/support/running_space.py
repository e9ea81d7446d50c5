"""The Space in a process of its own, as `make demo` starts it; and one on which judges were submitted."""

import json
import os
import random
import urllib.request
from pathlib import Path

from arb.core.judge_info import declare
from arb.core.settings import Settings
from dataset_script import sample
from submissions.app import SubmissionsApp
from tests.support import commands
from tests.support.clocks import one_a_day
from tests.support.ports import hold_port, port_of
from tests.support.waiting import START_SECONDS, until_served

REPOSITORY = Path(__file__).parents[2]


class RunningSpace:
    """On a free port, with a state folder of its own."""

    def __init__(self, state: Path, **environment: str) -> None:
        self._held = hold_port()  # it stays ours from one start to the next
        self.port = port_of(self._held)
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = state.parent / f"space-{self.port}.log"
        self._environment = {
            **os.environ,
            "ARB_STATE_DIR": str(state),
            "ARB_PORT": str(self.port),
            **environment,
        }
        self.start()

    def start(self) -> None:
        """Start the process and wait until it serves."""
        self.process = commands.start(["space", "serve"], self.log_path, self.log_path, self._environment)
        until_served(self.url, lambda: not self.process.is_alive(), self.log_path)

    def get(self, path: str) -> bytes:
        """The body of an address."""
        with urllib.request.urlopen(self.url + path, timeout=START_SECONDS) as answer:
            return answer.read()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.process.join()


ANNOTATIONS = Path(sample.__file__).parent / "annotations.csv"
WHY = "The last page looks right to me."
"""The reasoning of the judge that says yes to everything."""


class SampleSpace(RunningSpace):
    """The sample with its labels in a file. ``judge`` says yes to every run, and why; ``other``, to the first
    test run alone, which is a success."""

    def __init__(self, folder: Path, **environment: str) -> None:
        settings = Settings(
            suite="sample", labels=f"csv:{ANNOTATIONS}", state_dir=folder / "state", data_dir=folder / "none"
        )
        service = SubmissionsApp(settings)
        self.ids = [trajectory.trajectory_id for trajectory in service.suite.split("test")]
        yes = [{"trajectory_id": name, "success": True, "reasoning": WHY} for name in self.ids]
        one = [{"trajectory_id": name, "success": name == self.ids[0]} for name in self.ids]
        self.judge, self.other = (
            _submit(service, "\n".join(map(json.dumps, rows)).encode(), judge, "Other", "tree")
            for judge, rows in (("Says yes", yes), ("Once", one))
        )
        service.engine.dispose()
        super().__init__(
            settings.state_dir,
            ARB_SUITE="sample",
            ARB_LABELS=settings.labels,
            ARB_DATA_DIR=str(settings.data_dir),
            ARB_MAINTAINERS="grace",
            **environment,
        )


JUDGES = {
    "AER-C": ("aer-c", "LLM judge", "caption"),
    "NNetNav": ("nnetnav", "LLM judge", "changes"),
    "Rule-based": ("rule-based", "Rule-based", "other"),
}


class JudgedSpace(RunningSpace):
    """``ids`` maps a judge's name to its submission; ``Scored`` is AER-C with made scores and costs."""

    def __init__(self, folder: Path, verdicts: Path, **environment: str) -> None:
        state = folder / "state"
        service = SubmissionsApp(Settings(state_dir=state), clock=one_a_day())
        self.ids = {}
        for judge, (file, kind, inputs) in JUDGES.items():
            content = (verdicts / f"{file}.jsonl").read_bytes()
            self.ids[judge] = _submit(service, content, judge, kind, inputs)
        content = _with_scores((verdicts / "aer-c.jsonl").read_bytes())
        self.ids["Scored"] = _submit(service, content, "Scored", "LLM judge", "caption")
        super().__init__(state, **environment)
        self._service = service

    def submit(self, content: bytes, judge: str) -> str:
        """Submit to the running Space's records; gives the submission's id."""
        return _submit(self._service, content, judge, "Other", "tree")


def _submit(service: SubmissionsApp, content: bytes, judge: str, kind: str, inputs: str) -> str:
    declaration = declare(account="Ada", judge=judge, kind=kind, inputs=inputs, test_labels_used=False)
    return service.intake.submit(
        service.intake.check(content, "verdicts.jsonl", "test"), declaration
    ).receipt.submission_id


def _with_scores(content: bytes) -> bytes:
    """Scores around 0.75 for a yes and 0.2 for a no, and a cent for every verdict."""
    generator = random.Random(1)
    rows = [json.loads(line) for line in content.splitlines()]
    for row in rows:
        score = generator.gauss(0.75 if row["success"] else 0.2, 0.2)
        row |= {"score": round(min(1, max(0, score)), 2), "cost_usd": 0.01}
    return "\n".join(map(json.dumps, rows)).encode()
