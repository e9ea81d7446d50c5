"""The interface of a source of recorded runs.

A source lists its runs and reads one at a time. `released` reads the layout of the release, `published` our
own Parquet, and `agentlab` the results of AgentLab and browsergym-experiments. Each other module reads the
format it is named after. Targets and judgments are ignored. So are scores and rewards, except the rule-based
reward of benchmarks; `TrajectorySource.scores` returns them on request.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, Literal

from arb.core.replies import Verdict
from arb.core.trajectory import Recording
from dataset_script.sources.agents import AgentFacts, name_agents
from dataset_script.sources.files import (
    LINES,
    file_stamp,
    files_in,
    find_links_out,
    json_problems,
    link_names,
    no_runs,
    read_bytes,
)
from dataset_script.sources.json_values import JsonPlace, json_values, read_json_at
from dataset_script.sources.problems import Note, SourceError, UnusableFileError
from dataset_script.sources.values import finite, id_part


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A run of a source: its path, its name inside the source, and its id.

    ``place`` is the run's place in a file that has several. If the run cannot be read, ``problem`` has the
    code and the detail of the reason. ``details`` has whatever else the source needs to read the run.
    """

    path: Path
    name: str
    trajectory_id: str
    place: JsonPlace | None = None
    problem: tuple[str, str] | None = None
    details: Any = None

    @property
    def size(self) -> int:
        """The approximate number of bytes that have to be read for this run."""
        if self.place is not None:
            return self.place.size
        try:
            if self.path.is_dir():
                return sum(path.stat().st_size for path in self.path.iterdir())
            return self.path.stat().st_size
        except OSError:
            return 0


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run before it has an id: its file, and the parts of the id. ``order`` sorts the repeats of an id.

    ``agent`` is the agent's name, or the facts that distinguish the agents of a source.
    """

    file: SourceFile
    benchmark: str
    agent: str | AgentFacts
    task: str
    order: Any = 0


Amount = Literal["none", "last", "all"]
"""For which steps of a run the trees or screenshots are read."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The kinds of observations that at least one step of a run has; ``texts`` are observations in words."""

    urls: bool
    axtrees: bool
    screenshots: bool
    texts: bool

    @property
    def is_web(self) -> bool:
        """Whether anything of a web page was recorded."""
        return self.urls or self.axtrees or self.screenshots


@dataclass(frozen=True, slots=True)
class SourceListing:
    """The runs of a source, sorted by name, and the names of other files found where runs are expected.

    ``files`` may be a collection that lists the runs again on each iteration, so that a million runs need no
    memory. ``notes`` are about the source as a whole. ``links_out`` names the links that lead out of the
    source, which are not followed. ``facts`` are the names that `--agent-from` accepts for this source.
    """

    files: Collection[SourceFile]
    others: tuple[str, ...]
    notes: tuple[Note, ...] = ()
    links_out: tuple[str, ...] = ()
    facts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class FileCounts:
    """How many files a source has, and how many could be read. Commands list the names of the rest."""

    found: int
    read: int

    @property
    def named(self) -> int:
        return self.found - self.read

    def to_json(self) -> dict[str, int]:
        return {"found": self.found, "read": self.read, "named": self.named}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJudgment(Verdict):
    """A published judge's verdict on a run, and the raw reply it was read from.

    ``has_screenshot`` and ``has_axtree`` say what the judge was shown, or are None if that is not recorded.
    """

    judge: str
    model: str | None
    has_screenshot: bool | None
    has_axtree: bool | None
    reply: str | None


def numbered_ids(runs: Sequence[tuple[str, Any]]) -> list[str]:
    """Return the ids of runs, in the order given. Repeats of an id get ``~2``, ``~3`` and so on.

    ``runs`` are pairs of ``<benchmark>/<agent>/<task_id>`` and the key that sorts its repeats.
    """
    ids, times = [""] * len(runs), Counter[str]()
    for place in sorted(range(len(runs)), key=lambda place: (runs[place][1], place)):
        task = runs[place][0]
        times[task] += 1
        ids[place] = task if times[task] == 1 else f"{task}~{times[task]}"
    return ids


@dataclass(frozen=True, slots=True)
class TrajectorySource:
    """Recorded runs of one kind. It must be small and picklable, since worker processes get a copy per file.

    ``folder`` is a folder, or a file if the runs are in one log. ``kind`` is one word for the manifest, such
    as ``released``. Subclasses implement `candidates`, `holds_runs` and `runs_in`, or else `recognises` and
    `list_runs`. All implement `read`, and if the format has judgments, also the methods for these.
    """

    folder: Path
    agent_from: tuple[str, ...] = field(default=(), kw_only=True)
    kind: ClassVar[str]
    expected: ClassVar[str] = "contains no runs of this kind"
    """The error message if there is no run. It follows the folder's name."""

    @classmethod
    def recognises(cls, folder: Path) -> bool:
        """Return whether a folder or log file holds runs of this kind. This must be fast."""
        return any(map(cls.holds_runs, cls.candidates(folder)))

    @classmethod
    def open(cls, folder: Path, also_allowed: tuple[str, ...]) -> "TrajectorySource":
        """Return the source of a folder; ``also_allowed`` are classes that its pickles may contain."""
        return cls(folder)

    @staticmethod
    def candidates(folder: Path) -> Iterator[Path]:
        """Yield the files under a folder that may hold runs, or the file itself."""
        raise NotImplementedError

    @staticmethod
    def holds_runs(path: Path) -> bool:
        """Return whether a candidate holds runs, judging by its beginning."""
        raise NotImplementedError

    def runs_in(self, path: Path) -> Iterable[FoundRun]:
        """Return the runs in a file. A value that is not a run is also returned, as an unusable run."""
        raise NotImplementedError

    def list_runs(self) -> SourceListing:
        """List the runs, sorted by file. Raises SourceError if there are no runs of this kind."""
        links = find_links_out(self.folder)
        runs: list[FoundRun] = []
        others = []
        for path in sorted(set(self.candidates(self.folder)) - links):
            if self.holds_runs(path):
                runs += self.runs_in(path)
            else:
                others.append(path)
        return self.listing(runs, links, others)

    def read(self, file: SourceFile) -> tuple[Recording, Sequence[Note]]:
        """Read one run. Raises UnusableFileError if it has no trajectory."""
        raise NotImplementedError

    def kind_of(self, file: SourceFile) -> str:
        """Return the kind of a run. All runs have the same kind, unless the folder has several formats."""
        return self.kind

    def files_of(self, file: SourceFile) -> Iterable[Path]:
        """Return the files that belong to a run. By default, that is its file, or all files of its folder."""
        return files_in(file.path)

    def own_files(self) -> Iterable[Path]:
        """Return the files that belong to no run, but are read or expected in such a source."""
        return ()

    def list_all(self) -> SourceListing:
        """List the runs as `list_runs` does, and every file that belongs to none of them.

        Raises SourceError if there is no run, or if a fact in ``agent_from`` was recorded for no run.
        """
        listing = self.list_runs()
        self.check_agent_from(listing.facts)
        taken = {path for file in listing.files for path in self.files_of(file)} | {*self.own_files()}
        named = {*listing.others, *listing.links_out}
        rest: dict[str, None] = {}
        for path in files_in(self.folder, whole=True):
            if path not in taken:
                name = PurePosixPath(self.name_of(path))
                # A hidden folder, such as one of version control, is named once.
                hidden = (each for each in reversed(name.parents) if each.name.startswith("."))
                if named.isdisjoint(map(str, (name, *name.parents))):
                    rest[str(next(hidden, name))] = None
        return replace(listing, others=(*listing.others, *rest))

    def check_agent_from(self, facts: Collection[str]) -> None:
        """Raise SourceError if ``agent_from`` contains a name that is not among ``facts``."""
        if unknown := [name for name in self.agent_from if name not in facts]:
            known = ", ".join(sorted(facts)) or "nothing, because the ids of this format are fixed"
            raise SourceError(f"--agent-from {unknown[0]}: no run records this; choose from: {known}")

    def count_files(self, listing: SourceListing, left_out: Collection[str]) -> FileCounts | None:
        """Count the source's files, or return None if the format does not store runs in files of their own.

        ``left_out`` has the names of the runs that could not be used.
        """
        found = {*files_in(self.folder, whole=True)} | {self.root / name for name in listing.links_out}
        unused: set[Path] = set()
        read: set[Path] = set()
        for file in listing.files:
            (unused if file.name in left_out else read).update(self.files_of(file))
        own = (path for path in self.own_files() if path not in unused)
        read.update(path for path in own if self.name_of(path) not in left_out)
        return FileCounts(len(found), len(found & read))

    def read_parts(
        self, file: SourceFile, axtrees: Amount = "all", screenshots: Amount = "all", goal_images: bool = True
    ) -> Recording:
        """Read one run. A source may leave out trees and pictures that are not requested."""
        return self.read(file)[0]

    def reward(self, file: SourceFile) -> float | None:
        """Return a run's reward, or None if none was recorded. Raises UnusableFileError as `read` does."""
        return self.read(file)[0].cum_reward

    def scores(self, file: SourceFile) -> Mapping[str, float]:
        """Return the scores in a run's log, keyed by name. Only `arb data rewards` reads them."""
        reward = finite(self.reward(file))
        return {} if reward is None else {"reward": reward}

    def observed(self) -> Mapping[str, Observed]:
        """Return each run's kinds of observations, keyed by id; nothing if the runs would have to be read."""
        return {}

    def data_hash(self, files: Iterable[SourceFile]) -> str:
        """Return a SHA-256 that changes if the recorded runs may have changed."""
        digest = hashlib.sha256()
        for file in files:
            digest.update(f"{file.name}\n{self.identity(file)}\n".encode())
        return digest.hexdigest()

    def identity(self, file: SourceFile) -> str:
        """Return a string that changes if the run may have changed.

        It must be fast to compute, so use only the files' names, sizes and times.
        """
        return "\n".join(map(file_stamp, self.files_of(file)))

    def list_judgments(self) -> SourceListing:
        """List the judgment files; a trajectory may have several. By default, there are none."""
        return SourceListing((), ())

    def read_judgment(self, file: SourceFile) -> RecordedJudgment:
        """Read one judgment. Raises UnusableFileError if the file has no judgment."""
        raise NotImplementedError

    def origin(self) -> dict[str, str]:
        """Return where the runs came from, such as repository and commit, for the manifest."""
        return {}

    @property
    def root(self) -> Path:
        """The folder that names start from and that has all pictures. Links must not leave it."""
        return self.folder.parent if self.folder.is_file() else self.folder

    def name_of(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def file(self, path: Path, member: str = "", **more: Any) -> SourceFile:
        """Return a run that has no id yet. ``member`` tells apart several runs in the file ``path``."""
        return SourceFile(path, self.name_of(path) + member, "", **more)

    def listing(
        self,
        runs: Sequence[FoundRun],
        links: Iterable[Path],
        others: Iterable[Path] = (),
        notes: Iterable[Note] = (),
        facts: Iterable[str] = (),
    ) -> SourceListing:
        """Return the listing of runs, with their ids. Raises SourceError if there are no runs.

        ``facts`` are names that `--agent-from` accepts in addition to those found in the runs.
        """
        names = link_names(links, self.root)
        if not runs:
            raise no_runs(self.folder, self.expected, names)
        facts_of_runs = [
            (f"{run.benchmark}/{run.task}", run.agent) for run in runs if isinstance(run.agent, AgentFacts)
        ]
        agents, same = name_agents(facts_of_runs, self.agent_from)
        named = iter(agents)
        ids = []
        for run in runs:
            agent = run.agent if isinstance(run.agent, str) else next(named)
            ids.append(("/".join(map(id_part, (run.benchmark, agent, run.task))), run.order))
        found = zip(runs, numbered_ids(ids), strict=True)
        files = tuple(replace(run.file, trajectory_id=own_id) for run, own_id in found)
        known = frozenset(facts).union(*(each.known for _, each in facts_of_runs))
        return SourceListing(files, tuple(map(self.name_of, others)), (*notes, *same), names, known)


def value_of(file: SourceFile) -> Any:
    """Return the JSON value of a run, or the list of all values if it is a file of JSON Lines.

    Raises UnusableFileError if the value cannot be read.
    """
    if file.problem:
        raise UnusableFileError(*file.problem)
    if file.place is not None:
        return read_json_at(file.path, file.place)
    if file.path.suffix.lower() in LINES:
        return [read_json_at(file.path, place) for _, place in json_values(file.path)]
    with json_problems():
        return json.loads(read_bytes(file.path))
