"""`RunConfig`: everything a run depends on, built once from the options of a command.

Engines take it as a value. What its verdicts depend on is recorded in run.json as the run's configuration: a
run continues in its folder only with the same one.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import re
import subprocess
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arb.core.cli import read_settings
from arb.core.files import PROJECT
from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.endpoints.providers import (
    PROVIDERS,
    address_of,
    omitted_params,
    resolve_access,
    with_address,
)
from arb.judges.engine.budget import build_budget
from arb.judges.engine.cache import CallCache
from arb.judges.engine.prices import PriceTable, read_prices
from arb.judges.engine.reasoning import output_room
from arb.judges.engine.storage import StorageError
from arb.judges.ensembles.threshold import read_threshold, score_settings
from arb.judges.registry import (
    default_provider,
    digest_of_files,
    find_judge,
    full_name,
    key_of,
    released_folder,
)
from arb.judges.run.folder import diff_configurations
from arb.judges.types import (
    AnyJudge,
    ImageOptions,
    Judge,
    ModelSettings,
    OptionsError,
    Wants,
    is_reward_judge,
    models_of,
    traits_of,
    wants_of,
)

if TYPE_CHECKING:
    from arb.core.settings import Settings
    from arb.core.suite import Suite
    from arb.judges.cli.options import RunOptions

ROOT: Final = Path(__file__).parents[3]

PROVIDER_CLIENTS: Final = ("any-llm-sdk", "anthropic", "boto3", "google-genai")
PACKAGES: Final = (
    *("aiohttp", "pillow", "msgspec", "genai-prices", "transformers", "torch", "ray", "agent-reward-bench"),
    *PROVIDER_CLIENTS,
)
"""Whose versions may show in what comes out."""

SAMPLING_TEMPERATURE: Final = 0.7
"""At temperature 0 several samples would be one and the same answer."""


_RECORDED: Final = ("prompts", "compat", "cascade", "cascade_band", "cascade_trusts_yes", "samples")
"""Options that verdicts depend on, in the order of run.json."""

_SELECTION: Final = ("benchmark", "agent", "shard", "limit")
"""Options that choose trajectories, in the order of run.json."""

_SETTINGS: Final = (
    *("source", "skip_incomplete", "answers", "refresh", "max_in_flight", "requests_per_minute"),
    *("tokens_per_minute", "rate_limit_timeout", "timeout", "max_usd"),
)
"""Options that a configuration has under the same names."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything a run depends on.

    Attributes:
        judge: The judge, with samples, cascade and threshold.
        models: How the model of each role is asked; empty for a judge that calls no model.
        suite: The suite of the trajectories.
        split: Their split.
        ids: The chosen trajectories, in the order of the suite.
        selection: The options that chose them, as run.json has them.
        images: How pictures are sent.
        recorded: The options that verdicts depend on, as run.json has them.
        prices: The prices of the models.
        cache: The folder of the reply cache; None if no model is asked.
        not_before: Replies that were stored before are asked again (`CallCache`).
        judge_options: The options from which another process builds the judge, which cannot be pickled if it
            comes from a file.

    The other attributes are the options of the same names.
    """

    judge: AnyJudge
    models: Mapping[str, ModelSettings]
    suite: Suite
    split: str
    ids: tuple[str, ...]
    images: ImageOptions
    recorded: Mapping[str, Any]
    prices: PriceTable
    judge_options: RunOptions | None = None
    selection: Mapping[str, Any] = field(default_factory=dict)
    cache: Path | None = None
    not_before: float | None = None
    source: Path | None = None
    skip_incomplete: bool = False
    answers: str | None = None
    refresh: bool = False
    max_in_flight: int = 64
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    rate_limit_timeout: float | None = None
    timeout: float | None = None
    max_usd: float | None = None

    @cached_property
    def name(self) -> str:
        """The judge's full name."""
        return full_name(self.judge, self.models)

    def configuration(self, data_hash: str | None) -> dict[str, Any]:
        """Return what the verdicts depend on, for JSON. ``data_hash`` is that of the recorded runs."""
        from arb.judges.views import view_hash

        is_reward = is_reward_judge(self.judge)
        return {
            "suite": self.suite.name,
            "split": self.split,
            "judge": key_of(self.judge),
            **self.recorded,
            "prompts_hash": None if is_reward else self.judge.prompts_hash or None,
            "view_hash": None if is_reward else view_hash(self.judge.wants or Wants()),
            "models": {role: _identity(model) for role, model in sorted(self.models.items())},
            "images": asdict(self.images),
            "data_hash": data_hash,
        }

    def open_cache(self) -> AbstractContextManager[CallCache | None]:
        """Open the reply cache for a block; None if no model is asked. Raises OptionsError."""
        if self.cache is None:
            return nullcontext()
        return closing(open_cache(self.cache, self.answers, self.not_before))


def build_config(options: RunOptions, *, will_run: bool = True) -> RunConfig:
    """Build the configuration of a run from the options of its command.

    Keys, addresses and prices are looked for now, before anything is written, if the run will be made.
    Raises OptionsError with every problem, and SuiteError.
    """
    problems: list[str] = []

    def attempt(make, *arguments):
        try:
            return make(*arguments)
        except OptionsError as problem:
            problems.append(str(problem))

    chosen, judge = attempt(select, options), attempt(build_judge, options)
    models = (attempt(build_models, options, judge) if judge is not None else None) or {}
    prices: PriceTable | None = PriceTable({})
    if models:
        if will_run:
            attempt(resolve_access, models)
        attempt(refuse_omitted_params, options, models)
        prices = attempt(read_prices, options.prices, options.price or ())
        if prices is not None and will_run:
            attempt(build_budget, options.max_usd, prices, models)
    recorded = attempt(_recorded_options, options)
    if problems:
        raise OptionsError("\n".join(problems))
    suite, ids = chosen
    config = RunConfig(
        judge=judge,
        models=models,
        suite=suite,
        split=options.split,
        ids=ids,
        images=image_options(options, judge),
        recorded=recorded,
        prices=prices,
        judge_options=options,
        selection=_as_typed(options, _SELECTION) | {"from_a_file": options.ids is not None},
        cache=cache_folder(options.cache) if models else None,
        not_before=_oldest_reply(options),
        **_as_typed(options, _SETTINGS),
    )
    if models and options.threshold is not None:
        check_score_settings(options.threshold, config.configuration(None))
    return config


def _recorded_options(options: RunOptions) -> dict[str, Any]:
    own_file = digest_of_files((options.judge or options.cascade or "").split(","))
    return {
        **({"judge_file_sha256": own_file} if own_file else {}),
        **_as_typed(options, _RECORDED),
        "vote": options.vote if options.samples > 1 else None,
        "threshold": _threshold(options),
    }


def _as_typed(options: RunOptions, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(options, name) for name in names}


def _oldest_reply(options: RunOptions) -> float | None:
    """Return from when on replies in the cache count, in seconds since 1970; None if all do."""
    now = time.time()
    if options.refresh:
        return now
    return None if options.cache_days is None else now - options.cache_days * 86_400


def judge_facts(judge: AnyJudge, name: str) -> dict[str, Any]:
    """Return what `export` needs to know of a judge.

    This is its full name, its released folder if the name is the paper's, whether it asks models, and what
    it was shown.
    """
    wants = wants_of(judge)
    return {
        "name": name,
        "released_folder": released_folder(name),
        "asks_models": bool(models_of(judge)),
        "judge_args": {
            "use_screenshot": wants.screenshots != "none",
            "use_axtree": wants.axtrees != "none",
            "invert_sys_prompt": traits_of(judge).is_inverted,
        },
    }


def versions() -> dict[str, str | None]:
    """The versions of this project, Python and the packages that are installed, without importing them.

    ``aiohttp`` makes the calls. ``commit`` ends in ``-dirty`` where files of the checkout were changed.
    """
    found = {"project": _project_version(), "commit": _commit(), "python": platform.python_version()}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def _project_version() -> str | None:
    """Return the version of the installed package, else that of the checkout's pyproject.toml."""
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(PROJECT)
    with suppress(OSError, ValueError, KeyError):
        return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return None


@cache
def _commit() -> str | None:
    """Return the commit of the checkout; None if this is no checkout, or there is no git."""
    if not (ROOT / ".git").exists():  # else git would name a checkout around an installed package
        return None
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        described = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None


def _identity(model: ModelSettings) -> dict[str, Any]:
    settings = asdict(model)
    del settings["base_url"], settings["key_variable"], settings["prompt_cache"], settings["header"]
    return {**settings, "address": address_of(model)}


def _threshold(options: RunOptions) -> Any:
    if options.threshold is None:
        return None
    try:
        return json.loads(options.threshold.read_bytes())
    except (OSError, ValueError) as error:
        raise OptionsError(f"--threshold {options.threshold}: cannot be read ({error})") from error


def check_score_settings(path: Path, configuration: Mapping[str, Any]) -> None:
    """Raise OptionsError if a run makes its scores differently from those the threshold was chosen on."""
    chosen_on = read_threshold(path).configuration
    if differences := diff_configurations(chosen_on, score_settings(configuration)):
        raise OptionsError(
            f"--threshold {path}: was chosen on scores made with other settings; use the same options as on "
            "dev, or choose another:\n" + "\n".join(f"  {each}" for each in differences)
        )


def select(options: RunOptions, settings: Settings | None = None) -> tuple[Suite, tuple[str, ...]]:
    """Return the suite and the ids of its trajectories that the options name.

    Raises OptionsError if there is none, and SuiteError.
    """
    from arb.core.suite import load_suite

    suite = load_suite(options.suite or (settings or read_settings()).suite)
    chosen = list(suite.split(options.split))
    problems: list[str] = []
    for option in ("benchmark", "agent"):
        wanted = getattr(options, option)
        known = sorted({getattr(each, option) for each in suite.trajectories})
        if unknown := [name for name in wanted or () if name not in known]:
            problems.append(f"--{option} {', '.join(unknown)}: the suite {suite.name} has {', '.join(known)}")
        elif wanted:
            chosen = [each for each in chosen if getattr(each, option) in wanted]
    if options.ids is not None:
        named = _named_ids(options.ids, suite, options.split, problems)
        chosen = [each for each in chosen if each.trajectory_id in named]
    if options.shard is not None:
        chosen = chosen[_shard(options.shard, problems)]
    if problems:
        raise OptionsError("; ".join(problems))
    if not chosen:
        raise OptionsError(f"no trajectory of {suite.name}, split {options.split}, is left by these options")
    return suite, tuple(each.trajectory_id for each in chosen[: options.limit])


def source_folder(source: Path | None, suite: Suite) -> Path:
    """Return where the runs are read from: ``source`` if it was named, else the dataset of the suite.

    Raises OptionsError if there is none.
    """
    from dataset_script import sample
    from dataset_script.sources.base import SourceError
    from dataset_script.sources.published import PublishedDataset

    if source is not None:
        return source
    settings = read_settings()
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


def cache_folder(chosen: Path | None) -> Path:
    """Return where replies are stored: the folder of ``--cache``, else ``calls`` in the private cache.

    Raises OptionsError if the private cache cannot be made.
    """
    if chosen is not None:
        return chosen
    private = read_settings().cache_dir.expanduser()
    with _cache_problems(private):
        private.mkdir(mode=0o700, parents=True, exist_ok=True)
    return private / "calls"


def open_cache(folder: Path, answers: str | None = None, not_before: float | None = None) -> CallCache:
    """Open the reply cache in a folder; see `CallCache` for the arguments.

    Raises:
        OptionsError: The folder cannot be read and written.
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
        raise OptionsError(
            f"{folder}: the cache of replies cannot be opened there ({cause.strerror or cause}); name a "
            "folder that can be written with --cache or ARB_CACHE_DIR"
        ) from problem


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


def build_judge(options: RunOptions) -> AnyJudge:
    """Return the judge that the options name, with the samples, cascade and threshold that they ask for.

    Raises OptionsError for an unknown name, or options that do not go together.
    """
    if (options.judge is None) == (options.cascade is None):
        raise OptionsError(
            "name one judge (see `python -m arb judges list`), or two with --cascade CHEAP,STRONG"
        )
    if options.cascade is None and (options.cascade_band is not None or options.cascade_trusts_yes):
        raise OptionsError("--cascade-band, --cascade-trusts-yes: go with --cascade; leave them out")
    judge = _cascade(options) if options.judge is None else _named(options.judge, options)
    if options.structured_output and not traits_of(judge).response_formats:
        raise OptionsError(
            f"--structured-output: {judge.name} has no fixed form; it is for the simplified judges alone"
        )
    if is_reward_judge(judge):
        if options.samples > 1 or options.threshold is not None:
            raise OptionsError(f"--samples and --threshold: {options.judge} asks no model; leave them out")
        return judge
    if options.samples > 1:
        from arb.judges.ensembles.voting import SampledJudge

        judge = SampledJudge(judge, options.samples, options.vote)
    if options.threshold is not None:
        from arb.judges.ensembles.threshold import with_threshold

        judge = with_threshold(judge, read_threshold(options.threshold))
    return judge


def build_models(options: RunOptions, judge: AnyJudge) -> dict[str, ModelSettings]:
    """Return the settings of each role's model; empty for a judge that calls no model.

    A role's model is that of ``--model-of ROLE=…``, else of ``--model``, else the judge's own, which is asked
    where the paper asked it unless a provider or an address is given. ``PROVIDER:MODEL`` names the provider
    too, so that a cascade may ask two. The longest reply is the option's, else the judge's own for the role
    (`JudgeTraits.output_tokens`), else the common default; a reasoning model has room to think.

    Raises:
        OptionsError: Options contradict each other, or a model is missing.
    """
    defaults, traits = models_of(judge), traits_of(judge)
    own = _pairs(options.model_of, "--model-of", "ROLE=MODEL")
    if unknown := sorted(set(own) - set(defaults)):
        roles = ", ".join(sorted(defaults)) or "none: it asks no model"
        raise OptionsError(f"--model-of {', '.join(unknown)}: {judge.name} has no such role; it has {roles}")
    common = _common_settings(options)
    models = {}
    for role, default in defaults.items():
        model = _settings(own.get(role) or options.model or default, common, options)
        if options.max_output_tokens is None:
            longest = traits.output_tokens.get(role, model.max_output_tokens)
            model = replace(model, max_output_tokens=max(longest, output_room(model)))
        if role in traits.response_formats:
            form = traits.response_formats[role]
            model = replace(model, extra={"response_format": form, **model.extra})
        models[role] = model
    return models


def refuse_omitted_params(options: RunOptions, models: Mapping[str, ModelSettings]) -> None:
    """Raise OptionsError for a typed parameter that a provider never takes, unless the options allow that.

    What every run has by default (temperature 0, seed 0) is left out, recorded and warned about instead.
    """
    if options.allow_dropped_params:
        return
    typed = {"temperature": options.temperature, "seed": options.seed, "logprobs": options.logprobs or None}
    problems = {
        f"--{name}: --provider {model.provider} never takes it; leave it out, or run without it by adding "
        "--allow-dropped-params (run.json records that it was not sent)": None
        for model in models.values()
        for name in omitted_params(model)
        if typed.get(name) is not None
    }
    if problems:
        raise OptionsError("\n".join(problems))


def image_options(options: RunOptions, judge: AnyJudge) -> ImageOptions:
    """Return how pictures are sent: as the options say, else as the judge does, else as recorded."""
    own = traits_of(judge).images or ImageOptions()
    if options.image_format not in (None, own.format):
        own = replace(own, format=options.image_format, quality=None)
    return replace(own, max_side=options.max_image_side, detail=options.image_detail or own.detail)


def _named(name: str, options: RunOptions) -> AnyJudge:
    if options.prompts_from is not None and options.prompts != "official":
        raise OptionsError("--prompts-from: goes with --prompts official; leave it out, or add that")
    try:
        judge = find_judge(
            name, prompts=options.prompts, compat=options.compat, checkout=options.prompts_from
        )
    except ValueError as problem:
        raise OptionsError(str(problem)) from problem
    is_structured = options.structured_output and isinstance(judge, SimplifiedJudge)
    return replace(judge, is_structured=True) if is_structured else judge


def _cascade(options: RunOptions) -> Judge:
    from arb.judges.ensembles.cascade import Cascade, parse_band

    names = [name.strip() for name in (options.cascade or "").split(",")]
    if len(names) != 2 or not all(names):
        raise OptionsError(f"--cascade {options.cascade!r}: name two judges as CHEAP,STRONG")
    cheap, strong = (_named(name, options) for name in names)
    if is_reward_judge(cheap) or is_reward_judge(strong):
        raise OptionsError(f"--cascade {options.cascade}: both judges must ask a model")
    try:
        band = parse_band(options.cascade_band)
    except ValueError as problem:
        raise OptionsError(f"--cascade-band {options.cascade_band}: {problem}") from problem
    return Cascade(cheap, strong, band, confirms_success=not options.cascade_trusts_yes)


def _common_settings(options: RunOptions) -> ModelSettings:
    """Return the settings that every role's model gets; its name is filled in later.

    Options and settings have the same names; what was left out has the default of the settings.
    """
    if options.provider is not None and options.provider not in PROVIDERS:
        raise OptionsError(f"--provider {options.provider}: use one of {', '.join(PROVIDERS)}")
    sampling = {"temperature": SAMPLING_TEMPERATURE, "seed": None} if options.samples > 1 else {}
    typed = {each.name: getattr(options, each.name) for each in fields(ModelSettings)}
    typed = {name: value for name, value in typed.items() if value is not None}
    own = {"model": "", "extra": _extra(options), "header": _headers(options)}
    return ModelSettings(**{"provider": "any"} | sampling | typed | own)


def _settings(model: str, common: ModelSettings, options: RunOptions) -> ModelSettings:
    """Return the settings of a model: at the named provider, else where the paper's model was asked."""
    provider, colon, name = model.partition(":")
    if colon and provider in PROVIDERS and name:
        if provider != common.provider:  # address, key and headers belong to the provider they were given for
            common = replace(common, provider=provider, base_url=None, key_variable=None, header=())
        return with_address(replace(common, model=name))
    if options.provider is None and options.base_url is None:
        common = replace(common, provider=default_provider(model) or "openai")
    return with_address(replace(common, model=model))


def _headers(options: RunOptions) -> tuple[tuple[str, str], ...]:
    """Return the headers of ``--header``. Raises OptionsError, which never contains a value."""
    pairs = [text.partition("=")[::2] for text in options.header or ()]
    for name, value in pairs:
        if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII) or not value:
            raise OptionsError("--header: write NAME=VALUE, with a name of letters, digits and hyphens")
        if not value.isprintable() or not value.isascii():
            raise OptionsError(f"--header {name}: the value contains a character that no header may have")
    return tuple(pairs)


def _extra(options: RunOptions) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, text in _pairs(options.extra, "--extra", "NAME=JSON").items():
        try:
            read[name] = json.loads(text)
        except ValueError as problem:
            raise OptionsError(
                f"--extra {name}: {text!r} is not JSON (put text in double quotes)"
            ) from problem
    return read


def _pairs(texts: Sequence[str] | None, flag: str, form: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts or ()]
    if bad := ["".join(pair) for pair in pairs if not (pair[0] and pair[2])]:
        raise OptionsError(f"{flag} {', '.join(bad)}: write {form}")
    return {name: value for name, _, value in pairs}
