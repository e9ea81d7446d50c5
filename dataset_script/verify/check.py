"""`verify`: every check of a published folder, in order; of the card against the files; `fetched` from the
Hub.

Nothing is raised for what is wrong with the data: that is a finding.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from arb.core.console import Progress, no_progress
from arb.core.files import atomic_write
from arb.core.hub import BESIDE_THE_DATA, CROISSANT, INDEX, HubError, describe_failure
from arb.core.suite import Suite, SuiteError, Trajectory, load_suite, shipped_suites
from dataset_script.build.output import code_version
from dataset_script.by_id import IndexEntry, index_schema, indexed, read_index
from dataset_script.sources.published import Shard
from dataset_script.verify.manifest import (
    Findings,
    Manifest,
    VerifyReport,
    check_acceptances,
    check_bytes,
    check_files,
    read_manifest,
)
from dataset_script.verify.rows import OF_ARROW, Forbidden, check_canaries, check_shard
from dataset_script.verify.totals import Facts, Row, ShardFacts, check_agreement

if TYPE_CHECKING:
    from huggingface_hub import HfApi

CARD = "README.md"


def check_card(folder: Path, shards: tuple[Shard, ...], findings: Findings) -> None:
    """Every configuration and split of the front matter has files with rows, and every shard is in it."""
    try:
        configs = _front_matter(folder / CARD)["configs"]
        listed = {
            (config["config_name"], part["split"]): part["path"]
            for config in configs
            for part in config["data_files"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        findings.add(
            "card", CARD, f"its front matter has no configs that can be read ({type(error).__name__})"
        )
        return
    found: dict[tuple[str, str], int] = dict.fromkeys(listed, 0)
    for shard in shards:
        key = (shard.configuration, shard.split)
        if key in listed and any(fnmatch(shard.name, pattern) for pattern in _patterns(listed[key])):
            found[key] += shard.rows
        elif shard.rows:
            findings.add("card", CARD, f"does not list {shard.name}")
    for (configuration, split), rows in found.items():
        if not rows:
            findings.add("card", CARD, f"lists {configuration}/{split}, which has no rows")


def check_index(folder: Path, entries: Iterable[IndexEntry], findings: Findings) -> None:
    """The index, where there is one, has just these entries."""
    if (folder / INDEX).is_file() and _index_of(folder) != indexed(entries):
        findings.add("index", INDEX)


def _index_of(folder: Path) -> list[IndexEntry] | None:
    """The entries of the index; None where there is none that can be read, or it says more than an index."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(folder / INDEX) as file:
            extra = (file.metadata.metadata or {}).keys() - OF_ARROW
            if extra or not file.schema_arrow.equals(index_schema()):
                return None
        with (folder / INDEX).open("rb") as file:
            return list(read_index(file))
    except (pa.ArrowException, OSError, TypeError):
        return None


def check_own_texts(folder: Path, forbidden: Forbidden, findings: Findings) -> None:
    """No canary, prompt or path of a machine in what the build wrote beside the data."""
    for name in (*BESIDE_THE_DATA, CROISSANT):
        path = folder / name
        if path.is_file():
            content = path.read_bytes()
            for code, what in forbidden.found_in(
                content, "content", may_hold_rewards=name in (CARD, CROISSANT), may_hold_labels=False
            ):
                findings.add(code, name, what)


def _patterns(path: Any) -> tuple[str, ...]:
    return (path,) if isinstance(path, str) else tuple(path)


def _front_matter(path: Path) -> dict[str, Any]:
    import yaml

    text = path.read_text(encoding="utf-8")
    parts = text.split("---\n", 2)
    if len(parts) != 3 or parts[0]:
        raise ValueError("no front matter")
    try:
        return yaml.safe_load(parts[1])
    except yaml.YAMLError as error:
        raise ValueError("the front matter is no YAML") from error


Trust = Literal["times", "hashes", "nothing"]
"""What a verification takes from those before it: that a file is the one that was hashed, by its size and
times; what was found in bytes of the same hash; nothing, so that everything is read and checked again.
"""


def verify(
    folder: Path,
    *,
    suite: Suite | None = None,
    canaries: Sequence[str] = (),
    accept: Sequence[str] = (),
    allow_missing: Sequence[str] = (),
    progress: Progress = no_progress,
    workers: int = 1,
    cache: Path | None = None,
    trust: Trust = "times",
) -> VerifyReport:
    """Check a published folder. ``suite`` is what it should hold (None: the shipped one that it names).

    ``accept`` are warnings about words, each ``CODE:TRAJECTORY_ID``, that somebody has looked at;
    ``allow_missing`` are ids of the suite that the folder may lack. Shards are checked by ``workers``
    processes, a row group's rows at a time; ``progress`` names the shard that was checked last. In ``cache``
    stays what was found in each, by the hash of its bytes, so that a verification that was stopped goes on
    and the next one checks only what changed. Raises ValueError for a canary too short to mean anything, for
    what cannot be accepted, and for an id that is none of the suite's; WorkerError.
    """
    canaries, findings = check_canaries(canaries), Findings()
    accept = check_acceptances(accept)
    rows: dict[str, dict[str, int]] = defaultdict(dict)
    manifest = read_manifest(folder, findings)
    if manifest is None:
        return VerifyReport(0, {}, findings.listed())
    suite = suite or _suite_of(manifest)
    forbidden = Forbidden(canaries, suite.questions if suite else ())
    allowed = trajectories_of(suite, allow_missing)
    shards = check_files(folder, manifest, findings)
    with tempfile.TemporaryDirectory(prefix="verify-") as temporary, Facts() as facts:
        results = ShardResults(cache or Path(temporary), folder, forbidden, manifest.is_blind, trust)
        for shard, found, of_trajectories in results.of(shards, workers, progress):
            of_split = rows[shard.configuration]
            of_split[shard.split] = of_split.get(shard.split, 0) + found["rows"]
            check_bytes(shard, manifest, findings)
            findings.merge(found["findings"])
            facts.add(shard, found["tasks"], of_trajectories)
        check_index(folder, facts.index_entries(), findings)
        check_agreement(facts, suite, allowed, findings, is_blind=manifest.is_blind)
    check_card(folder, shards, findings)
    check_own_texts(folder, forbidden, findings)
    accepted = findings.accept(accept)
    return VerifyReport(len(shards), dict(rows), findings.listed(), accepted)


@dataclass(frozen=True, slots=True)
class CheckTask:
    """A shard to check: its hash where that is known, what the check depends on besides, and where the result
    goes. ``results`` are those of shards whose last pictures need not be decoded again.
    """

    folder: Path
    shard: Shard
    forbidden: Forbidden
    is_blind: bool
    version: str
    cache: Path
    reads_all: bool
    results: tuple[Path, ...] = ()

    def result(self, sha256: str) -> Path:
        """Where the result lies for the bytes of this hash."""
        shard = replace(self.shard, sha256=sha256)
        parts = (self.version, self.forbidden, self.is_blind, shard)
        return self.cache / f"{hashlib.sha256(repr(parts).encode()).hexdigest()}.jsonl"


def check_task(task: CheckTask) -> str:
    """Check a shard and store what was found, if it is not there yet; returns the hash of its bytes."""
    sha256 = task.shard.sha256
    if not sha256:
        with (task.folder / task.shard.name).open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    place = task.result(sha256)
    if task.reads_all or not place.is_file():
        findings, facts = Findings(), ShardFacts(task.shard)
        whole = {digest for path in task.results for digest in _last_pictures(path)}
        rows = check_shard(
            task.folder, task.shard, task.forbidden, facts, findings, is_blind=task.is_blind, whole=whole
        )
        found = {"rows": rows, "findings": findings.as_json(), "tasks": facts.tasks}
        lines = map(json.dumps, (found, *facts.rows()))
        atomic_write(place, "".join(f"{line}\n" for line in lines), mode=0o600)
    return sha256


def _read_result(path: Path) -> Iterator[Any]:
    """What was found in a shard, then what it says of each trajectory: a line at a time, as a shard may have
    thousands of them.
    """
    with path.open("rb") as file:
        yield from map(json.loads, file)


def _last_pictures(path: Path) -> Iterator[str]:
    """The digests of the trajectories' last pictures in a shard of `steps` whose pictures are all whole."""
    found, *of_trajectories = _read_result(path)
    if not any(code == "bad_image" for code, *_ in found["findings"]):
        yield from (json.loads(ends).get("screenshot") for *_, ends in of_trajectories)


UNUSED_DAYS: Final = 30
"""Results that no verification asked for in so long go."""


class ShardResults:
    """What was found in each shard of a folder: from ``cache``, or checked now and stored there.

    A file is taken for the one that was hashed before when its size, inode and times (of its content, and of
    any change, which no program can set) are the same, and it had been left alone for a while when it was
    hashed: else a later change might bear the same time.
    """

    def __init__(self, cache: Path, folder: Path, forbidden: Forbidden, is_blind: bool, trust: Trust):
        self._cache, self._folder, self._trust = cache, folder.resolve(), trust
        name = hashlib.sha256(str(self._folder).encode()).hexdigest()[:32]
        self._seen_path = cache / f"seen-{name}.json"
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._seen = self._read_seen() if trust == "times" else {}
        self._options = (forbidden, is_blind, code_version(), cache, trust == "nothing")

    def of(
        self, shards: Sequence[Shard], workers: int, progress: Progress
    ) -> Iterator[tuple[Shard, dict[str, Any], Iterator[Row]]]:
        """Each shard, in their order, with its hash; what was found in it; what it says of each trajectory.

        Raises WorkerError, OSError.
        """
        started = time.time_ns()
        states = {shard.name: _state(self._folder / shard.name) for shard in shards}
        hashes: dict[str, str] = {}
        done = 0

        def finished(task: CheckTask) -> None:
            nonlocal done
            done += 1
            progress(done, len(shards), task.shard.name)

        progress(0, len(shards), "")
        of_steps = [shard for shard in shards if shard.configuration != _REPEATS_PICTURES]
        for group in (of_steps, [shard for shard in shards if shard.configuration == _REPEATS_PICTURES]):
            tasks = []
            for shard in group:
                size, *times, sha256 = self._seen.get(shard.name, (None, ""))
                known = sha256 if (size, *times) == states[shard.name] else ""
                task = CheckTask(self._folder, replace(shard, sha256=known), *self._options)
                if known and not task.reads_all and task.result(known).is_file():
                    hashes[shard.name] = known
                    finished(task)
                else:
                    tasks.append(task)
            if group is not of_steps:
                tasks = self._with_pictures(tasks, of_steps, hashes)
            for task, sha256 in zip(tasks, _run(tasks, workers, finished), strict=True):
                hashes[task.shard.name] = sha256
        for shard in shards:
            task = CheckTask(self._folder, shard, *self._options)
            path = task.result(hashes[shard.name])
            os.utime(path)
            lines = _read_result(path)
            yield replace(shard, sha256=hashes[shard.name]), next(lines), lines
        self._store(states, hashes, started)

    def _with_pictures(
        self, tasks: list[CheckTask], shards: Sequence[Shard], hashes: dict[str, str]
    ) -> list[CheckTask]:
        """The tasks with the results of the shards of `steps` that may have the same trajectories, as the
        index says: where it is wrong, a picture is decoded twice.
        """
        if not tasks:
            return []
        ids = {entry.file: (entry.first or "", entry.last or "") for entry in _index_of(self._folder) or ()}
        of_steps = [
            (shard.split, *ids[shard.name], CheckTask(self._folder, shard, *self._options))
            for shard in shards
            if shard.configuration == "steps" and shard.name in ids
        ]
        found = []
        for task in tasks:
            first, last = ids.get(task.shard.name, ("", ""))
            results = tuple(
                steps.result(hashes[steps.shard.name])
                for split, least, greatest, steps in of_steps
                if split == task.shard.split and first <= greatest and least <= last
            )
            found.append(replace(task, results=results))
        return found

    def _read_seen(self) -> dict[str, tuple[Any, ...]]:
        with suppress(OSError, ValueError, AttributeError, TypeError):
            return {name: tuple(state) for name, state in json.loads(self._seen_path.read_bytes()).items()}
        return {}

    def _store(self, states: dict[str, tuple[int, ...]], hashes: dict[str, str], started: int) -> None:
        """Store the state of each file that had been left alone when it was hashed; forget old results."""
        seen = {
            name: (*state, hashes[name])
            for name, state in states.items()
            if started - max(state[1:3]) > _moment(state) and _state(self._folder / name) == state
        }
        atomic_write(self._seen_path, json.dumps(seen), mode=0o600)
        for path in self._cache.glob("*.json*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > UNUSED_DAYS * 86_400:
                    path.unlink()


_REPEATS_PICTURES: Final = "trajectories_with_screenshot"
"""Its final pictures are those of the last `steps`."""


def _state(path: Path) -> tuple[int, int, int, int]:
    """Size, time of the content, time of any change, inode."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _moment(state: tuple[int, ...]) -> int:
    """Nanoseconds in which two changes may bear the same time: where files have whole seconds only, two."""
    return 2_000_000_000 if state[2] % 1_000_000_000 == 0 else 50_000_000


_ALONE_BYTES: Final = 30_000_000
"""So little is checked before other processes have started."""


def _run(tasks: list[CheckTask], workers: int, finished: Callable[[CheckTask], None]) -> list[str]:
    if not tasks:
        return []
    from dataset_script.build.parts import Workers

    sizes = [min(task.shard.bytes, 50_000_000) for task in tasks]
    with Workers(workers if sum(sizes) > _ALONE_BYTES else 1) as pool:
        return pool.run_all(check_task, tasks, sizes, finished)


def trajectories_of(suite: Suite | None, ids: Sequence[str]) -> tuple[Trajectory, ...]:
    """The trajectories that may be missing. Raises ValueError for an id that is none of the suite's."""
    if ids and suite is None:
        raise ValueError(f"{ids[0]}: name the suite of the trajectories that may be missing (--suite)")
    found = [(name, suite.find(name)) for name in ids] if suite is not None else []
    if unknown := [name for name, trajectory in found if trajectory is None]:
        raise ValueError(f"{', '.join(unknown[:5])}: no trajectory of the suite {suite.name}")
    return tuple({trajectory: None for _, trajectory in found})


def _suite_of(manifest: Manifest) -> Suite | None:
    try:
        return load_suite(manifest.suite) if manifest.suite in shipped_suites() else None
    except SuiteError:
        return None


@contextmanager
def fetched(
    hub: HfApi, repo: str, revision: str | None = None, keep_in: Path | None = None
) -> Iterator[Path]:
    """The files of a dataset repository, in a temporary folder that is removed at the end, or in ``keep_in``.

    A folder that is kept is fetched into again: only what changed, but what the repository dropped stays
    there. Never in the Hub's shared cache, which hands private files to any token. Raises HubError.
    """
    from huggingface_hub.errors import HFValidationError, HTTPError, LocalEntryNotFoundError

    with tempfile.TemporaryDirectory(prefix="verify-") as temporary:
        folder = keep_in or Path(temporary)
        try:
            hub.snapshot_download(repo, repo_type="dataset", revision=revision, local_dir=folder)
        except LocalEntryNotFoundError as error:
            raise HubError(f"{repo}: the Hub cannot be reached, or has no such repository") from error
        except HTTPError as error:
            raise HubError(f"{repo}: {describe_failure(error)}") from error
        except HFValidationError as error:
            raise HubError(f"{repo}: is no repository's name (owner/name)") from error
        yield folder
