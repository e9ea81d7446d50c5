"""The oracle of the attacks over the real service: files in, what owners and the public are told out."""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from submissions.app import SubmissionsApp
from submissions.errors import RateLimited
from submissions.intake.accounts import Actor
from tests.attacks.oracle import ACCOUNTS, BudgetSpent, FileHeld
from tests.attacks.world import World
from tests.support.submissions import RELEASED_HEADER, declaration, settings_for


class Clock:
    """A time that tests set."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def write_suite_of(world: World, folder: Path, is_public: bool = False, ranking_half: bool = False) -> None:
    """The generated label set as a suite of its own, with its labels in the released format.

    Without a ranking half by default: then figures are of all labels, and tell more.
    """
    suite = folder / "small"
    suite.mkdir(parents=True)
    labels, half = "public" if is_public else "private", str(ranking_half).lower()
    (suite / "suite.toml").write_text(f'labels = "{labels}"\n[rules]\nranking_half = {half}\n')
    with (suite / "trajectories.csv").open("w", newline="") as file:
        rows = [(trajectory.trajectory_id, "test") for trajectory in world.trajectories]
        csv.writer(file).writerows([("trajectory_id", "split"), *rows])
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(RELEASED_HEADER)
        for trajectory, answer in zip(world.trajectories, world.truth, strict=True):
            benchmark, agent, task = trajectory.trajectory_id.split("/")
            word = "Successful" if answer else "Unsuccessful"
            writer.writerow(("A", benchmark, task, agent, "exp", word, "No", "2. Suboptimal", "No"))


@dataclass
class ServiceOracle:
    """Five accounts at the real service; each of their judges has a name of its own."""

    world: World
    folder: Path
    is_public: bool = False
    clock: Clock = field(default_factory=Clock)
    sent: int = 0

    def __post_init__(self) -> None:
        write_suite_of(self.world, self.folder, self.is_public)
        settings = settings_for(self.folder, self.folder / "state")
        self.service = SubmissionsApp(settings, clock=self.clock)
        rules = self.service.suite.rules
        self.files_left = ACCOUNTS * rules.files_a_year
        self.public_rows_left = ACCOUNTS * rules.public_rows_a_year

    def figures(self, verdicts: np.ndarray) -> Mapping[str, Any]:
        """What the owner is told."""
        return self._sent(self._content(verdicts))[1]

    def public_figures(self, verdicts: np.ndarray) -> Mapping[str, Any]:
        """The board's row, once its round is over."""
        submission_id, _ = self._sent(self._content(verdicts))
        self.service.moderation.publish(submission_id, self._actor())
        self.clock.now += timedelta(days=self.service.suite.rules.round_days)
        row = next(row for row in self.service.records.board().rows if row.id == submission_id)
        return {"labels": row.labels}

    def figures_of_content(self, content: bytes) -> Mapping[str, Any]:
        """What the owner is told of a file written in any way."""
        return self._sent(content)[1]

    def _content(self, verdicts: np.ndarray) -> bytes:
        rows = zip(self.world.trajectories, verdicts.tolist(), strict=True)
        lines = [
            json.dumps({"trajectory_id": one.trajectory_id, "success": None if said < 0 else bool(said)})
            for one, said in rows
        ]
        return "\n".join(lines).encode()

    def _actor(self) -> Actor:
        return Actor(f"colluder-{self.sent % ACCOUNTS}")

    def _sent(self, content: bytes) -> tuple[str, Mapping[str, Any]]:
        self.sent += 1
        if self.sent % (2 * ACCOUNTS) == 1:
            self.clock.now += timedelta(hours=25)
        upload = self.service.intake.check(content, "verdicts.jsonl", "test")
        said = declaration(account=self._actor().name, judge=f"judge {self.sent}")
        try:
            receipt = self.service.intake.submit(upload, said, self._actor()).receipt
        except RateLimited:
            raise BudgetSpent from None
        self.files_left -= 1
        if receipt.status == "held":
            raise FileHeld
        return receipt.submission_id, self.service.records.submission(
            receipt.submission_id, self._actor()
        ).report
