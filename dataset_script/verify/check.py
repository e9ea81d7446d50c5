"""Run all checks of a dataset. Wrong data leads to findings, not to exceptions."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from huggingface_hub import metadata_load

from arb.core.console import Progress, no_progress
from arb.core.hub import BESIDE_THE_DATA, CROISSANT, INDEX
from arb.core.suite import Suite, SuiteError, load_suite, shipped_suites
from dataset_script.build.parts import named_trajectories
from dataset_script.build.workers import Workers
from dataset_script.by_id import IndexEntry, index_table
from dataset_script.sources.problems import SourceError
from dataset_script.sources.published import MANIFEST, Manifest, Shard, read_manifest
from dataset_script.verify.manifest import Findings, VerifyReport, check_acceptances, check_files
from dataset_script.verify.rows import Forbidden, check_canaries, check_shard
from dataset_script.verify.totals import ShardFacts, check_agreement

CARD: Final = "README.md"


def check_card(folder: Path, shards: tuple[Shard, ...], findings: Findings) -> None:
    """Check that the front matter of README.md lists exactly the configurations and splits that have rows."""
    try:
        metadata = metadata_load(folder / CARD) or {}
        listed = {
            (config["config_name"], part["split"]): part["path"]
            for config in metadata["configs"]
            for part in config["data_files"]
        }
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        findings.add("card", CARD, f"its front matter has no readable configs ({type(error).__name__})")
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
    """Check that the index has exactly these entries."""
    try:
        found = pq.read_table(folder / INDEX)
    except (pa.ArrowException, OSError):
        found = None
    if found is None or not found.equals(index_table(entries), check_metadata=True):
        findings.add("index", INDEX)


def check_own_texts(folder: Path, forbidden: Forbidden, findings: Findings) -> None:
    """Check the card and other files next to the data for private content."""
    for name in BESIDE_THE_DATA:
        path = folder / name
        if name == INDEX or not path.is_file():  # `check_index` checks the index
            continue
        may_hold_rewards = name in (CARD, CROISSANT)
        found = forbidden.found_in(
            path.read_bytes(), "content", may_hold_rewards=may_hold_rewards, may_hold_labels=False
        )
        for code, what in found:
            findings.add(code, name, what)


_ALONE_BYTES: Final = 30_000_000
"""A dataset up to this size is checked in this process, since starting workers would take longer."""


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
    """Check a dataset folder and return the report.

    Raises ValueError for an invalid canary, acceptance or id, and OSError if a file cannot be read or the
    system killed a process.

    Args:
        folder: The folder.
        suite: The expected suite; by default the shipped suite that the manifest names.
        canaries: Strings that were planted in private data and must not appear.
        accept: Warnings that a person has reviewed, each as ``CODE:TRAJECTORY_ID``.
        allow_missing: Ids of the suite that the folder may lack.
        progress: Called with the numbers of checked and of all shards, and the name of the last one.
        workers: The number of processes.
    """
    canaries, findings = check_canaries(canaries), Findings()
    accept = check_acceptances(accept)
    try:
        manifest = read_manifest(folder)
    except SourceError as error:
        findings.add("no_manifest", MANIFEST, str(error)[:200])
        return VerifyReport(0, {}, findings.listed())
    suite = suite or _suite_of(manifest)
    forbidden = Forbidden(canaries, suite.targets if suite else ())
    if allow_missing and suite is None:
        raise ValueError("--allow-missing needs the suite of the dataset, which is unknown; add --suite")
    allowed = named_trajectories(suite, allow_missing) if suite is not None else ()
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


def _suite_of(manifest: Manifest) -> Suite | None:
    name = manifest.suite.removesuffix("-blind") if manifest.is_blind else manifest.suite
    try:
        return load_suite(name) if name in shipped_suites() else None
    except SuiteError:
        return None
