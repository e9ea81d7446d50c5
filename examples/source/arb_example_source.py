"""Read runs from Markdown files ``<benchmark>/<agent>/<task>.run.md`` with goal, steps and answer.

# Find the cheapest laptop
1. `click("Laptops")` Laptops are in the menu.
2. `sort("price")`
> The cheapest laptop is the Aspire 3.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from arb.core.trajectory import Recording, Step
from dataset_script.sources.base import FoundRun, SourceFile, TrajectorySource
from dataset_script.sources.problems import Note, UnusableFileError

_ENDING = ".run.md"
_STEP = re.compile(r"\d+\. `(?P<action>.+?)`\s*(?P<reasoning>.*)")


@dataclass(frozen=True, slots=True)
class MarkdownSource(TrajectorySource):
    """The runs in a folder of Markdown files."""

    kind: ClassVar[str] = "markdown"

    expected: ClassVar[str] = f"has no <benchmark>/<agent>/<task>{_ENDING}"

    @staticmethod
    def candidates(folder: Path) -> Iterator[Path]:
        return folder.glob(f"*/*/*{_ENDING}")

    @staticmethod
    def holds_runs(path: Path) -> bool:
        return path.is_file()

    def runs_in(self, path: Path) -> Iterator[FoundRun]:
        benchmark, agent = path.parent.parent.name, path.parent.name
        yield FoundRun(self.file(path), benchmark, agent, path.name.removesuffix(_ENDING), order=path.name)

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        goal, answer, steps = "", None, []
        for line in file.path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("# "):
                goal = line[2:]
            elif line.startswith("> "):
                answer = line[2:]
            elif found := _STEP.match(line):
                steps.append(
                    Step(len(steps) + 1, action=found["action"], reasoning=found["reasoning"] or None)
                )
        if not steps:
            raise UnusableFileError("no_steps")
        return Recording(file.trajectory_id, goal=goal, steps=tuple(steps), answer=answer), []
