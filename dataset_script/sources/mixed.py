"""Read a folder that has runs in several formats."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from arb.core.trajectory import Recording
from dataset_script.sources.base import Amount, RecordedJudgment, SourceFile, SourceListing, TrajectorySource
from dataset_script.sources.problems import Note, SourceError


@dataclass(frozen=True, slots=True)
class MixedSource(TrajectorySource):
    """The runs of several formats in a folder. ``parts`` has one source per format.

    A run's ``details`` are the kind of its format, and the run as the source of that format listed it.
    """

    parts: tuple[TrajectorySource, ...] = ()

    kind: ClassVar[str] = "mixed"

    def kind_of(self, file: SourceFile) -> str:
        return self._of(file)[0].kind

    def list_runs(self) -> SourceListing:
        """List the runs of all formats.

        A file inside another format's run is part of that run, so it is not listed. If two formats give the
        same id, the later run becomes a repeat.
        """
        listings: list[tuple[TrajectorySource, SourceListing]] = []
        for part in self.parts:
            try:
                listings.append((part, part.list_runs()))
            except SourceError:  # its only files are behind links, which the others name
                continue
        owners: dict[Path, set[tuple[Path, str]]] = {}
        for part, listing in listings:
            for file in listing.files:
                for path in part.files_of(file):
                    owners.setdefault(path, set()).add((file.path, part.kind))
        runs: list[SourceFile] = []
        taken: set[str] = set()
        paths: set[Path] = set()
        for part, listing in listings:
            new = {file.path for file in listing.files} - paths
            for file in listing.files:
                outer = (path for path, kind in owners.get(file.path, ()) if kind != part.kind)
                if file.path in new and all(path == file.path for path in outer):
                    own_id = _free(file.trajectory_id, taken)
                    taken.add(own_id)
                    runs.append(replace(file, trajectory_id=own_id, details=(part.kind, file)))
            paths |= new
        if not runs:
            raise SourceError(f"{self.folder} contains no run that can be listed")
        others = {name for _, listing in listings for name in listing.others}
        owned = {*owners, *self.own_files()}
        others -= {self.name_of(path) for path in owned if path.is_relative_to(self.root)}
        return SourceListing(
            tuple(runs),
            tuple(sorted(others)),
            tuple(note for _, listing in listings for note in listing.notes),
            tuple(sorted({name for _, listing in listings for name in listing.links_out})),
            frozenset[str]().union(*(listing.facts for _, listing in listings)),
        )

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        part, own = self._of(file)
        recording, notes = part.read(own)
        return replace(recording, trajectory_id=file.trajectory_id), notes

    def read_parts(
        self, file: SourceFile, axtrees: Amount = "all", screenshots: Amount = "all", goal_images: bool = True
    ) -> Recording:
        part, own = self._of(file)
        recording = part.read_parts(own, axtrees, screenshots, goal_images)
        return replace(recording, trajectory_id=file.trajectory_id)

    def files_of(self, file: SourceFile) -> Iterable[Path]:
        part, own = self._of(file)
        return part.files_of(own)

    def own_files(self) -> Iterator[Path]:
        for part in self.parts:
            yield from part.own_files()

    def scores(self, file: SourceFile) -> Mapping[str, float]:
        part, own = self._of(file)
        return part.scores(own)

    def identity(self, file: SourceFile) -> str:
        part, own = self._of(file)
        return f"{part.kind}\n{own.trajectory_id}\n{part.identity(own)}"

    def list_judgments(self) -> SourceListing:
        """List the judgments of the released layout. No other format in a mixed folder has judgments."""
        listings = [(part.kind, part.list_judgments()) for part in self.parts]
        files = [replace(file, details=(kind, file)) for kind, listing in listings for file in listing.files]
        return SourceListing(tuple(files), tuple(name for _, listing in listings for name in listing.others))

    def read_judgment(self, file: SourceFile) -> RecordedJudgment:
        part, own = self._of(file)
        return part.read_judgment(own)

    def origin(self) -> dict[str, str]:
        found = {name: value for part in self.parts for name, value in part.origin().items()}
        return found | {"formats": ", ".join(part.kind for part in self.parts)}

    def _of(self, file: SourceFile) -> tuple[TrajectorySource, SourceFile]:
        """Return the source of a run, and the run as that source listed it."""
        kind, own = file.details
        return next(part for part in self.parts if part.kind == kind), own


def _free(trajectory_id: str, taken: set[str]) -> str:
    """Return the id. If it is taken, give it the next free repeat number, such as ``~2``."""
    task, _, number = trajectory_id.partition("~")
    times = int(number) if number.isdecimal() else 1
    while trajectory_id in taken:
        times += 1
        trajectory_id = f"{task}~{times}"
    return trajectory_id
