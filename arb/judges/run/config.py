"""Build the configuration of a run (`RunConfig`) from the options of a command.

Everything that verdicts depend on is recorded in run.json as ``configuration``. A run can be continued only
with the same ``configuration``.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arb.core.cli import read_settings
from arb.judges.endpoints.providers import address_of, resolve_access
from arb.judges.engine.budget import build_budget
from arb.judges.engine.cache import CallCache
from arb.judges.engine.prices import PriceTable, read_prices
from arb.judges.engine.storage import StorageError
from arb.judges.ensembles.combination import is_combination, record_of
from arb.judges.ensembles.threshold import read_threshold, score_settings
from arb.judges.registry import digest_of_files, full_name, key_of
from arb.judges.run.folder import diff_configurations
from arb.judges.run.judge_options import (
    build_judge,
    build_models,
    image_options,
    refuse_omitted_params,
    refuse_unused,
)
from arb.judges.run.selection import select
from arb.judges.types import AnyJudge, ImageOptions, ModelSettings, OptionsError, Wants, is_reward_judge
from arb.judges.views import view_hash

if TYPE_CHECKING:
    from arb.core.suite import Suite
    from arb.judges.cli.options import RunOptions

_RECORDED: Final = ("prompts", "compat", "cascade", "cascade_band", "cascade_trusts_yes", "samples")
"""The options that verdicts depend on, in the order of run.json."""

_SELECTION: Final = ("benchmark", "agent", "shard", "limit")
"""The options that choose trajectories, in the order of run.json."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that a run depends on: the options, and what was made from them.

    Attributes:
        options: The options. A worker process builds the judge from them, because a judge from a file cannot
            be pickled.
        judge: The judge, including samples, cascade and threshold.
        models: The model of each role with its settings; empty if the judge calls no model.
        ids: The ids of the chosen trajectories, in the order of the suite.
        recorded: The options that verdicts depend on, as in run.json.
        cache: The folder of the reply cache, or None if the judge calls no model.
        not_before: The time (seconds since 1970) before which cached replies are too old, or None.
    """

    options: RunOptions
    judge: AnyJudge
    models: Mapping[str, ModelSettings]
    suite: Suite
    ids: tuple[str, ...]
    images: ImageOptions
    recorded: Mapping[str, Any]
    prices: PriceTable
    cache: Path | None
    not_before: float | None

    @cached_property
    def name(self) -> str:
        """The judge's full name."""
        return full_name(self.judge, self.models)

    def configuration(self, data_hash: str | None) -> dict[str, Any]:
        """Return the ``configuration`` of run.json. ``data_hash`` is the hash of the recorded runs."""
        hashes: dict[str, str | None] = {"prompts_hash": None, "view_hash": None}
        if not is_reward_judge(self.judge):
            hashes["prompts_hash"] = self.judge.prompts_hash or None
            hashes["view_hash"] = view_hash(self.judge.wants or Wants())
        return {
            "suite": self.suite.name,
            "split": self.options.split,
            "judge": key_of(self.judge),
            **self.recorded,
            **hashes,
            "models": {role: _identity(model) for role, model in sorted(self.models.items())},
            "images": asdict(self.images),
            "data_hash": data_hash,
        }

    @property
    def selection(self) -> dict[str, Any]:
        """The options that chose the trajectories, as in run.json."""
        chosen = {name: getattr(self.options, name) for name in _SELECTION}
        if self.options.subset:
            chosen["subset"] = self.options.subset
        return chosen | {"from_a_file": self.options.ids is not None}

    def open_cache(self) -> AbstractContextManager[CallCache | None]:
        """Open the reply cache for a ``with`` block, which gets None if the judge calls no model."""
        if self.cache is None:
            return nullcontext()
        return closing(open_cache(self.cache, self.options.answers, self.not_before))


def build_config(
    options: RunOptions, *, will_run: bool = True, chosen: tuple[Suite, tuple[str, ...]] | None = None
) -> RunConfig:
    """Build the configuration of a run from the options of a command.

    If ``will_run`` is false, as for a plan, keys, addresses and prices may be missing. ``chosen`` has a suite
    and ids to judge, in place of those that the options select. Raises SuiteError, and an OptionsError that
    lists all problems.
    """
    problems: list[str] = []
    models: dict[str, ModelSettings] = {}
    prices = PriceTable({})
    with _collected(problems):
        suite, ids = chosen or select(options)
    with _collected(problems):
        judge = build_judge(options)
        models = build_models(options, judge)
        refuse_unused(options, judge, models)
    if models:
        if will_run:
            with _collected(problems):
                resolve_access(models)
        with _collected(problems):
            refuse_omitted_params(options, models)
        with _collected(problems):
            prices = read_prices(options.prices, options.price or ())
            if will_run:
                build_budget(options.max_usd, prices, models)
    if problems:
        raise OptionsError("\n".join(problems))
    config = RunConfig(
        options=options,
        judge=judge,
        models=models,
        suite=suite,
        ids=ids,
        images=image_options(options, judge),
        recorded=_recorded_options(options),
        prices=prices,
        cache=cache_folder(options.cache) if models else None,
        not_before=_oldest_reply(options),
    )
    if models and options.threshold is not None:
        check_score_settings(options.threshold, config.configuration(None))
    return config


@contextmanager
def _collected(problems: list[str]) -> Iterator[None]:
    """If the block raises an OptionsError, catch it and add its message to ``problems``."""
    try:
        yield
    except OptionsError as problem:
        problems.append(str(problem))


def _recorded_options(options: RunOptions) -> dict[str, Any]:
    own_file = digest_of_files((options.judge or options.cascade or "").split(","))
    combination = record_of(Path(options.judge or "")) if is_combination(options.judge) else None
    threshold = None if options.threshold is None else json.loads(options.threshold.read_bytes())
    return {
        **({"judge_file_sha256": own_file} if own_file else {}),
        **({"combination": combination} if combination else {}),
        **{name: getattr(options, name) for name in _RECORDED},
        "vote": (options.vote or "majority") if options.samples > 1 else None,
        "threshold": threshold,
    }


def _oldest_reply(options: RunOptions) -> float | None:
    """Return the time (seconds since 1970) before which cached replies are too old, or None."""
    now = time.time()
    if options.refresh:
        return now
    return None if options.cache_days is None else now - options.cache_days * 86_400


def _identity(model: ModelSettings) -> dict[str, Any]:
    settings = asdict(model)
    del settings["base_url"], settings["key_variable"], settings["prompt_cache"], settings["header"]
    return {**settings, "address": address_of(model)}


def check_score_settings(path: Path, configuration: Mapping[str, Any]) -> None:
    """Raise OptionsError if a threshold was chosen with a judge, model or options other than the run's."""
    chosen_on = read_threshold(path).configuration
    if differences := diff_configurations(chosen_on, score_settings(configuration)):
        raise OptionsError(
            f"--threshold {path}: was chosen with other options; use those, or choose another threshold:\n"
            + "\n".join(f"  {each}" for each in differences)
        )


def cache_folder(chosen: Path | None) -> Path:
    """Return ``chosen``, or the folder ``calls`` in ARB_CACHE_DIR if it is None.

    Raises OptionsError if ARB_CACHE_DIR cannot be created.
    """
    if chosen is not None:
        return chosen
    private = read_settings().cache_dir.expanduser()
    with _cache_problems(private):
        private.mkdir(mode=0o700, parents=True, exist_ok=True)
    return private / "calls"


def open_cache(folder: Path, answers: str | None = None, not_before: float | None = None) -> CallCache:
    """Open the reply cache in a folder. Raises OptionsError if the folder cannot be read or written.

    See `CallCache` for the other arguments.
    """
    with _cache_problems(folder):
        cache = CallCache(folder, answers=answers, not_before=not_before)
        if not os.access(folder, os.W_OK | os.X_OK):
            cache.close()
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return cache


@contextmanager
def _cache_problems(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        cause = problem.__cause__ if isinstance(problem, StorageError) else problem
        reason = cause.strerror if isinstance(cause, OSError) else None
        raise OptionsError(
            f"{folder}: the reply cache cannot be opened ({reason or cause}); choose a writable folder with "
            "--cache or ARB_CACHE_DIR"
        ) from problem
