"""Find the trajectories to judge, and the folder of their recorded runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from arb.core.cli import read_settings
from arb.core.suite import Suite, load_suite
from arb.judges.types import OptionsError
from dataset_script import sample
from dataset_script.sources.problems import SourceError
from dataset_script.sources.published import PublishedDataset

if TYPE_CHECKING:
    from arb.core.ids import Trajectory
    from arb.core.settings import Settings
    from arb.judges.cli.options import RunOptions

_GROUPS: Final[Mapping[str, Callable[[Trajectory], set[str]]]] = MappingProxyType(
    {
        "benchmark": lambda each: {each.benchmark},
        "agent": lambda each: {each.agent},
        "subset": lambda each: {"=".join(tag) for tag in each.tags},
    }
)
"""For each option that chooses groups, a function that returns the names of a trajectory's groups."""


def select(options: RunOptions, settings: Settings | None = None) -> tuple[Suite, tuple[str, ...]]:
    """Return the suite and the ids of the trajectories that the options select.

    Raises SuiteError, and OptionsError if an option is wrong or no trajectory is left.
    """
    suite = load_suite(options.suite or (settings or read_settings()).suite)
    split = options.split_name
    chosen = list(suite.split(split))
    problems: list[str] = []
    for option, names_of in _GROUPS.items():
        wanted = getattr(options, option) or ()
        known = sorted({name for each in suite.trajectories for name in names_of(each)})
        if unknown := [name for name in wanted if name not in known]:
            advice = f"use {', '.join(known)}" if known else f"leave out --{option}, since the suite has none"
            problems.append(f"--{option} {', '.join(unknown)}: not in {suite.name}; {advice}")
        elif wanted:
            chosen = [each for each in chosen if not names_of(each).isdisjoint(wanted)]
    if options.ids is not None:
        named = _named_ids(options.ids, suite, split, problems)
        chosen = [each for each in chosen if each.trajectory_id in named]
    if options.shard is not None:
        chosen = chosen[_shard(options.shard, problems)]
    if problems:
        raise OptionsError("; ".join(problems))
    if not chosen:
        raise OptionsError(
            f"no trajectory of {suite.name}, split {split}, matches all options; leave some out"
        )
    return suite, tuple(each.trajectory_id for each in chosen[: options.limit])


def _shard(text: str, problems: list[str]) -> slice:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if found and 1 <= int(found[1]) <= int(found[2]):
        return slice(int(found[1]) - 1, None, int(found[2]))
    problems.append(f"--shard {text}: write I/N with I from 1 to N, such as 1/4")
    return slice(None)


def _named_ids(path: Path, suite: Suite, split: str, problems: list[str]) -> set[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        problems.append(f"--ids {path}: cannot be read ({problem.strerror})")
        return set()
    except UnicodeDecodeError:
        problems.append(f"--ids {path}: is not UTF-8 text; write one id on each line")
        return set()
    if not any(map(str.strip, lines)):
        problems.append(f"--ids {path}: is empty; write one id on each line")
    named: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = suite.find(line)
        if found is None or found.split != split:
            where = "is in another split" if found else f"is not in the suite {suite.name}"
            problems.append(f"--ids {path}, line {number}: {line.strip()[:80]!r} {where}; correct it")
        else:
            named.add(found.trajectory_id)
    return named


def source_folder(source: Path | None, suite: Suite) -> Path:
    """Return ``source``, or the suite's dataset if it is None. Raises OptionsError if neither exists."""
    if source is not None:
        return source
    settings = read_settings()
    with suppress(SourceError):
        if PublishedDataset(settings.data_dir).suite == suite.name:
            return settings.data_dir
    if suite.name == "sample":
        return Path(sample.__file__).parent / "data"
    raise OptionsError(
        f"no recorded runs of the suite {suite.name} were found ({settings.data_dir} is not a dataset built "
        "for it). Name their folder with --source (the released data, a built dataset, or AgentLab's "
        "results), or a dataset in ARB_DATA_DIR. To try things out, use --suite sample, which contains its "
        "runs"
    )
