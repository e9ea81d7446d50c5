"""Which trajectories a run is about, and the folder that their recordings are read from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from judges.base import OptionsError

if TYPE_CHECKING:
    from dataset_script.settings import Settings
    from dataset_script.suite import Suite, Trajectory
    from judges.command_options import RunOptions


@dataclass(frozen=True, slots=True)
class Selection:
    """The trajectories of a run, in the order of the suite."""

    suite: Suite
    trajectories: tuple[Trajectory, ...]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(each.trajectory_id for each in self.trajectories)


def select(options: RunOptions, settings: Settings | None = None) -> Selection:
    """The trajectories that the options name. Raises OptionsError when there is none, SuiteError."""
    from dataset_script.suite import load_suite

    suite = load_suite(options.suite or (settings or settings_of_environment()).suite)
    chosen = list(suite.split(options.split))
    problems: list[str] = []
    for flag, wanted, field in (
        ("--benchmark", options.benchmark, "benchmark"),
        ("--agent", options.agent, "agent"),
    ):
        known = sorted({getattr(each, field) for each in suite.trajectories})
        if unknown := [name for name in wanted or () if name not in known]:
            problems.append(f"{flag} {', '.join(unknown)}: the suite {suite.name} has {', '.join(known)}")
        elif wanted:
            chosen = [each for each in chosen if getattr(each, field) in wanted]
    if options.ids is not None:
        named = _named_ids(options.ids, suite, options.split, problems)
        chosen = [each for each in chosen if each.trajectory_id in named]
    if options.shard is not None:
        chosen = chosen[_shard(options.shard, problems)]
    if problems:
        raise OptionsError("; ".join(problems))
    if not chosen:
        raise OptionsError(f"no trajectory of {suite.name}, split {options.split}, is left by these options")
    return Selection(suite, tuple(chosen[: options.limit]))


def source_folder(options: RunOptions, suite: Suite, settings: Settings) -> Path:
    """Where the runs are read from. Raises OptionsError when no folder was named and there is no other."""
    from dataset_script import sample
    from dataset_script.sources.base import SourceError
    from dataset_script.sources.published import PublishedDataset

    if options.source is not None:
        return options.source
    try:
        if PublishedDataset(settings.data_dir).suite == suite.name:
            return settings.data_dir
    except SourceError:
        pass
    if suite.name == "sample":
        return Path(sample.__file__).parent / "data"
    raise OptionsError(
        f"no recorded runs of the suite {suite.name}: name their folder with --source (the released layout, "
        f"a built dataset, or AgentLab's results), or in ARB_DATA_DIR ({settings.data_dir} is no dataset "
        "built for it); to try things out, --suite sample has its runs with it"
    )


def cache_folder(given: Path | None, settings: Settings | None = None) -> Path:
    """Where replies are kept: the folder given with ``--cache``, else ``calls`` in the private cache."""
    if given is not None:
        return given
    private = (settings or settings_of_environment()).cache_dir.expanduser()
    private.mkdir(mode=0o700, parents=True, exist_ok=True)
    return private / "calls"


def settings_of_environment() -> Settings:
    """The settings; a bad one ends the command with a line that names it."""
    from dataset_script.command_line import read_settings

    return read_settings()


def _shard(text: str, problems: list[str]) -> slice:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text)
    if found and 1 <= int(found[1]) <= int(found[2]):
        return slice(int(found[1]) - 1, None, int(found[2]))
    problems.append(f"--shard {text}: write i/n with i from 1 to n, such as 1/4")
    return slice(None)


def _named_ids(path: Path, suite: Suite, split: str, problems: list[str]) -> set[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        problems.append(f"--ids {path}: cannot be read ({problem})")
        return set()
    named: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = suite.find(line)
        if found is None or found.split != split:
            where = "in another split" if found else f"not in the suite {suite.name}"
            problems.append(f"--ids {path}, line {number}, {line.strip()[:80]!r}: {where}")
        else:
            named.add(found.trajectory_id)
    return named
