"""Read runs from Markdown files ``<benchmark>/<agent>/<task>.run.md`` with goal, steps and answer.

# Find the cheapest laptop
1. `click("Laptops")` Laptops are in the menu.
2. `sort("price")`
> The cheapest laptop is the Aspire 3.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from arb.core.trajectory import Recording, Step
from dataset_script.sources.base import (
    Note,
    SourceFile,
    SourceListing,
    TrajectorySource,
    UnusableFileError,
    file_stamp,
    find_links_out,
    id_part,
)

_ENDING = ".run.md"
_STEP = re.compile(r"\d+\. `(?P<action>.+?)`\s*(?P<reasoning>.*)")


@dataclass(frozen=True, slots=True)
class MarkdownSource(TrajectorySource):
    """The runs in a folder of Markdown files."""

    kind: ClassVar[str] = "markdown"

    @staticmethod
    def recognises(folder: Path) -> bool:
        return next(folder.glob(f"*/*/*{_ENDING}"), None) is not None

    def list_runs(self) -> SourceListing:
        links = find_links_out(self.folder)
        runs = {}
        for path in sorted(set(self.folder.glob(f"*/*/*{_ENDING}")) - links):
            benchmark, agent = path.parent.parent.name, path.parent.name
            task = path.name.removesuffix(_ENDING)
            runs[path] = "/".join(map(id_part, (benchmark, agent, task))), path.name
        return self.listing(runs, links, f"has no <benchmark>/<agent>/<task>{_ENDING}")

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

    def identity(self, file: SourceFile) -> str:
        return file_stamp(file.path)
