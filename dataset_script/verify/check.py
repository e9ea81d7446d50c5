"""`verify`: every check of a published folder, in order; of the card against the files; `fetched` from the
Hub.

Nothing is raised for what is wrong with the data: that is a finding.
"""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from arb.core.console import Progress, no_progress
from arb.core.hub import BESIDE_THE_DATA, CROISSANT, INDEX, HubError, describe_failure
from arb.core.suite import Suite, SuiteError, Trajectory, load_suite, shipped_suites
from dataset_script.build.parts import Workers
from dataset_script.by_id import IndexEntry, index_table
from dataset_script.sources.base import SourceError
from dataset_script.sources.published import MANIFEST, Manifest, Shard, read_manifest
from dataset_script.verify.manifest import Findings, VerifyReport, check_acceptances, check_files
from dataset_script.verify.rows import Forbidden, check_canaries, check_shard
from dataset_script.verify.totals import ShardFacts, check_agreement

if TYPE_CHECKING:
    from huggingface_hub import HfApi

CARD = "README.md"


def check_card(folder: Path, shards: tuple[Shard, ...], findings: Findings) -> None:
    """Every configuration and split of the front matter has files with rows, and every shard is in it."""
    from huggingface_hub import metadata_load
    from yaml import YAMLError

    try:
        listed = {
            (config["config_name"], part["split"]): part["path"]
            for config in metadata_load(folder / CARD)["configs"]
            for part in config["data_files"]
        }
    except (OSError, ValueError, KeyError, TypeError, YAMLError) as error:
        findings.add(
            "card", CARD, f"its front matter has no configs that can be read ({type(error).__name__})"
        )
        return
    found: dict[tuple[str, str], int] = dict.fromkeys(listed, 0)
    for shard in shards:
        key = (shard.configuration, shard.split)
        patterns = listed.get(key, ())
        patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
        if any(fnmatch(shard.name, pattern) for pattern in patterns):
            found[key] += shard.rows
        elif shard.rows:
            findings.add("card", CARD, f"does not list {shard.name}")
    for (configuration, split), rows in found.items():
        if not rows:
            findings.add("card", CARD, f"lists {configuration}/{split}, which has no rows")


def check_index(folder: Path, entries: Iterable[IndexEntry], findings: Findings) -> None:
    """Check that the index, if there is one, has just these entries and says nothing else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not (folder / INDEX).is_file():
        return
    try:
        found = pq.read_table(folder / INDEX)
    except (pa.ArrowException, OSError):
        found = None
    if found is None or not found.equals(index_table(entries), check_metadata=True):
        findings.add("index", INDEX)


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


_ALONE_BYTES: Final = 30_000_000
"""Up to this size, starting other processes takes longer than checking."""


def verify(
    folder: Path,
    *,
    suite: Suite | None = None,
    canaries: Sequence[str] = (),
    accept: Sequence[str] = (),
    allow_missing: Sequence[str] = (),
    progress: Progress = no_progress,
    workers: int = 1,
) -> VerifyReport:
    """Check a published folder. ``suite`` is what it should hold (None: the shipped one that it names).

    ``accept`` lists warnings about words, each as ``CODE:TRAJECTORY_ID``, that somebody has looked at.
    ``allow_missing`` lists ids of the suite that the folder may lack. Shards are checked by ``workers``
    processes; ``progress`` names the shard that was checked last.

    Raises:
        ValueError: A canary is too short, a warning cannot be accepted, or an id is not in the suite.
        OSError: A file cannot be read, or the system ended a process.
    """
    canaries, findings = check_canaries(canaries), Findings()
    accept = check_acceptances(accept)
    try:
        manifest = read_manifest(folder)
    except SourceError as error:
        findings.add("no_manifest", MANIFEST, str(error)[:200])
        return VerifyReport(0, {}, findings.listed())
    suite = suite or _suite_of(manifest)
    forbidden = Forbidden(canaries, suite.questions if suite else ())
    allowed = trajectories_of(suite, allow_missing)
    shards = check_files(folder, manifest, findings)
    progress(0, len(shards), "")
    checked: dict[Shard, tuple[ShardFacts, Findings]] = {}
    check = partial(check_shard, folder, forbidden=forbidden, is_blind=manifest.is_blind)
    is_small = sum(shard.bytes for shard in shards) <= _ALONE_BYTES
    with Workers(1 if is_small else workers) as pool:
        for shard, result in pool.run_each(check, ((shard, 0) for shard in shards)):
            checked[shard] = result
            progress(len(checked), len(shards), shard.name)
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    all_facts = []
    for facts, found in (checked[shard] for shard in shards):
        rows[facts.shard.configuration][facts.shard.split] += facts.rows
        findings.merge(found)
        all_facts.append(facts)
    check_index(folder, [facts.index_entry() for facts in all_facts], findings)
    check_agreement(all_facts, suite, allowed, findings, is_blind=manifest.is_blind)
    check_card(folder, shards, findings)
    check_own_texts(folder, forbidden, findings)
    accepted = findings.accept(accept)
    return VerifyReport(len(shards), dict(rows), findings.listed(), accepted)


def trajectories_of(suite: Suite | None, ids: Sequence[str]) -> tuple[Trajectory, ...]:
    """The trajectories that may be missing. Raises ValueError for an id that is none of the suite's."""
    if ids and suite is None:
        raise ValueError(f"{ids[0]}: name the suite of the trajectories that may be missing (--suite)")
    found = [(name, suite.find(name)) for name in ids] if suite is not None else []
    if unknown := [name for name, trajectory in found if trajectory is None]:
        raise ValueError(f"{', '.join(unknown[:5])}: no trajectory of the suite {suite.name}")
    return tuple({trajectory: None for _, trajectory in found})


def _suite_of(manifest: Manifest) -> Suite | None:
    name = manifest.suite.removesuffix("-blind") if manifest.is_blind else manifest.suite
    try:
        return load_suite(name) if name in shipped_suites() else None
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
