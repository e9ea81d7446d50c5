"""Read recorded runs in the released layout.

    cleaned/<benchmark>/<agent>/<experiment>/<task_id>.json
    screenshots/<benchmark>/<agent>/<task_id>/screenshot_step_<i>.png
    judgments/<benchmark>/<agent>/<judge>/<task_id>.json

These folders are in the source's folder itself or in its ``trajectories/``.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from arb.core.ids import TrajectoryId
from arb.core.trajectory import Box, Recording, Step
from dataset_script.sources.axtree import acted_on, box_from
from dataset_script.sources.base import RecordedJudgment, SourceFile, SourceListing, TrajectorySource
from dataset_script.sources.files import (
    files_in,
    find_links_out,
    first_inside,
    is_behind,
    link_names,
    no_runs,
)
from dataset_script.sources.problems import Note, SourceError, UnusableFileError
from dataset_script.sources.released_files import (
    ERROR_ENDING,
    CleanedFile,
    CleanedStep,
    read_judgment,
    read_typed,
    reward_in,
    state_in,
    usage_in,
)
from dataset_script.sources.steps import missing_screenshots, ordered_steps

LARGE_FILE_BYTES: Final = 100_000_000

NO_SCREENSHOT: Final = ("", "None")
"""Values of ``screenshot_path`` for a step without a screenshot."""

_RECORDED: Final = tuple(f.name for f in fields(Step) if f.name not in ("box", "screenshot", "text"))


@dataclass(frozen=True, slots=True)
class ReleasedSource(TrajectorySource):
    """A folder in the released layout."""

    kind: ClassVar[str] = "released"

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        """Return whether there is a ``cleaned/`` in the folder, or in its ``trajectories/``."""
        return any((place / "cleaned").is_dir() for place in (folder, folder / "trajectories"))

    @property
    def layout_root(self) -> Path:
        """The folder that contains ``cleaned/``. Raises SourceError if it is missing."""
        for place in (self.folder, self.folder / "trajectories"):
            if (place / "cleaned").is_dir():
                return place
        raise SourceError(
            f"{self.folder} contains neither cleaned/ nor trajectories/cleaned/; "
            "name the folder that contains cleaned/"
        )

    def list_runs(self) -> SourceListing:
        """List the trajectories by name, without reading them. Raises SourceError if the folder is empty."""
        listing = self._list("cleaned")
        if not listing.files:
            problem = "contains no <benchmark>/<agent>/<experiment>/<task_id>.json"
            raise no_runs(self.layout_root / "cleaned", problem, listing.links_out)
        has_screenshots = (self.layout_root / "screenshots").is_dir()
        notes = () if has_screenshots else (Note("no_screenshots", "the source has no screenshots/"),)
        return SourceListing(listing.files, listing.others, notes, listing.links_out)

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one trajectory, with the paths of its screenshots. Raises UnusableFileError."""
        content, is_strict = read_typed(file.path, CleanedFile, "not_a_trajectory")
        if content.valid is False:
            raise UnusableFileError("invalid")
        if not content.steps:
            raise UnusableFileError("no_steps")
        place = TrajectoryId.parse(file.trajectory_id)
        notes = [] if is_strict else [Note("not_strict_json")]
        if (size := file.path.stat().st_size) >= LARGE_FILE_BYTES:
            notes.append(Note("large_file", f"{size / 1e6:.0f} MB"))
        names = {"benchmark": (content.benchmark, place.folder), "agent": (content.agent, place.agent)}
        for name, (inside, outside) in names.items():
            if inside not in (None, outside):
                notes.append(Note("other_names", f"{name} {inside[:80]!r}"))
        screenshots = self.layout_root / "screenshots"
        folder = _folder_of(screenshots, place)
        steps = tuple(
            _step(step, _screenshot(step, self.folder, screenshots, folder), notes) for step in content.steps
        )
        steps, changed = ordered_steps(steps)
        notes += changed
        if screenshots.is_dir():
            notes += missing_screenshots(steps)
        summary = content.summary_info or {}
        return Recording(
            trajectory_id=file.trajectory_id,
            model=content.model,
            goal=content.goal or "",
            cum_reward=reward_in(summary),
            steps=steps,
            # The words of an error are not part of the released dataset.
            state="error" if summary.get("err_msg") else state_in(summary),
            usage=usage_in(summary),
        ), notes

    def files_of(self, file: SourceFile) -> Iterable[Path]:
        try:
            place = TrajectoryId.parse(file.trajectory_id)
        except ValueError:  # reported when it is read
            return (file.path,)
        return file.path, *files_in(_folder_of(self.layout_root / "screenshots", place))

    def own_files(self) -> Iterable[Path]:
        """Return the judgments, which `list_judgments` lists, and the file that `fetch` wrote."""
        return self.folder / "fetched.json", *files_in(self.layout_root / "judgments", whole=True)

    def origin(self) -> dict[str, str]:
        """Return the repository and commit that `fetch` recorded in the folder, or an empty dict."""
        try:
            note = json.loads((self.folder / "fetched.json").read_bytes())
            return {name: note[name] for name in ("repo", "commit") if isinstance(note[name], str)}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def list_judgments(self) -> SourceListing:
        """List the judgment files by name. The listing is empty if the source has none."""
        if not (self.layout_root / "judgments").is_dir():
            return SourceListing((), ())
        listing = self._list("judgments")
        return SourceListing(listing.files, listing.others)  # the listing of the runs has the links

    def read_judgment(self, file: SourceFile) -> RecordedJudgment:
        """Read one judgment. The judge is its folder's name. Raises UnusableFileError if there is none."""
        return read_judgment(file.path)

    def _list(self, part: str) -> SourceListing:
        """List the files in ``cleaned/`` or ``judgments/``, except those behind links out of the source."""
        links = find_links_out(self.folder)
        root = self.layout_root / part
        files, others = [], []
        for folder, folders, names in os.walk(root, followlinks=True):
            if is_behind(Path(folder), links):
                folders.clear()
                continue
            depth = len(Path(folder).relative_to(root).parts)
            is_in_place = depth == _DEPTH - 1
            if depth >= _DEPTH - 1:  # links inside the source may form a circle
                folders[:] = [name for name in folders if not Path(folder, name).is_symlink()]
            for path in (Path(folder, name) for name in names):
                if path in links:
                    continue
                if is_in_place and path.suffix == ".json":
                    benchmark, agent, *_ = path.relative_to(root).parts
                    own_id = f"{benchmark}/{agent}/{path.stem.removesuffix(ERROR_ENDING)}"
                    files.append(SourceFile(path, self.name_of(path), own_id))
                else:
                    others.append(self.name_of(path))
        files.sort(key=lambda file: PurePosixPath(file.name).parts)
        others.sort(key=lambda name: PurePosixPath(name).parts)
        return SourceListing(tuple(files), tuple(others), links_out=link_names(links, self.folder))


_DEPTH: Final = 4
"""The depth of a run's file below ``cleaned/``, and of a judgment's below ``judgments/``."""


def _folder_of(screenshots: Path, place: TrajectoryId) -> Path:
    return screenshots / place.folder / place.agent / place.task_id


def _screenshot(step: CleanedStep, source: Path, screenshots: Path, folder: Path) -> Path | None:
    """Return the picture's path in ``folder``, or else the recorded one, or None if neither exists."""
    if step.screenshot_path is None or step.screenshot_path in NO_SCREENSHOT:
        return None
    parts = PurePosixPath(step.screenshot_path).parts
    named = parts[parts.index("screenshots") + 1 :] if "screenshots" in parts else ()
    usual = f"screenshot_step_{step.num}.png"
    return first_inside([(folder, usual), (screenshots, "/".join(named))], source)


def _step(step: CleanedStep, screenshot: Path | None, notes: list[Note]) -> Step:
    recorded = {name: getattr(step, name) for name in _RECORDED}
    return Step(**recorded, box=_box(step, notes), screenshot=screenshot)


def _box(step: CleanedStep, notes: list[Note]) -> Box | None:
    """Return the box of the element that the action names, or None. Boxes are decoded only if needed."""
    bid = acted_on(step.action)
    if bid is None:
        return None
    try:
        sides = step.sides_of(bid)
    except UnusableFileError as error:
        notes.append(Note("bad_box", f"step {step.num}: {error}"))
        return None
    found = box_from(sides)
    if found is None and sides is not None:
        notes.append(Note("bad_box", f"step {step.num}: {str(sides)[:80]}"))
    return found
