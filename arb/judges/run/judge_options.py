"""Build the judge of a run and the settings of its models from the options of a command."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from arb.core.cli import read_settings
from arb.core.suite import load_suite
from arb.judges.catalog import official
from arb.judges.catalog.simplified import SimplifiedJudge
from arb.judges.catalog.steps import StepJudge
from arb.judges.endpoints.providers import PROVIDERS, omitted_params, with_address
from arb.judges.engine.reasoning import output_room
from arb.judges.ensembles import combination as combinations
from arb.judges.ensembles.cascade import Cascade, parse_band
from arb.judges.ensembles.combination import CombinedPart, is_combination
from arb.judges.ensembles.threshold import read_threshold, with_threshold
from arb.judges.ensembles.voting import SampledJudge
from arb.judges.registry import default_provider, find_judge
from arb.judges.types import (
    AnyJudge,
    ImageOptions,
    Judge,
    ModelSettings,
    OptionsError,
    is_reward_judge,
    models_of,
    traits_of,
)

if TYPE_CHECKING:
    from arb.judges.cli.options import RunOptions

SAMPLING_TEMPERATURE: Final = 0.7
"""The default temperature with ``--samples``, since at temperature 0 all samples would be the same."""


def build_judge(options: RunOptions) -> AnyJudge:
    """Build the judge that the options describe, including samples, cascade and threshold.

    Raises OptionsError if a name is unknown or options contradict each other.
    """
    if (options.judge is None) == (options.cascade is None):
        raise OptionsError("name either a judge (see `arb judges list`) or --cascade CHEAP,STRONG")
    if options.cascade is None and (options.cascade_band is not None or options.cascade_trusts_yes):
        raise OptionsError("--cascade-band and --cascade-trusts-yes need --cascade; add it or leave them out")
    if is_combination(options.judge):
        return _combination(options)
    judge: AnyJudge = _cascade(options) if options.judge is None else _named(options.judge, options)
    if options.structured_output and not traits_of(judge).response_formats:
        raise OptionsError(
            f"--structured-output works only with the simplified judges, not with {judge.name}; leave it out"
        )
    if is_reward_judge(judge):
        if options.samples > 1 or options.threshold is not None:
            raise OptionsError(f"--samples, --threshold: {options.judge} calls no model; leave them out")
        return judge
    if options.samples > 1:
        judge = SampledJudge(judge, options.samples, options.vote or "majority")
    if options.threshold is not None:
        judge = with_threshold(judge, read_threshold(options.threshold))
    return judge


def build_models(options: RunOptions, judge: AnyJudge) -> dict[str, ModelSettings]:
    """Return the settings of each role's model, or {} if the judge calls no model.

    - The model comes from ``--model-of``, else from ``--model``, else from the judge.
    - The provider comes from a name such as ``PROVIDER:MODEL``, else from ``--provider``, else from the paper
      if it used the model.
    - The output limit comes from ``--max-output-tokens``, else from `JudgeTraits.output_tokens`, else from
      ModelSettings. If the option is missing, reasoning models get a higher limit.

    Raises OptionsError if options contradict each other or a model is missing.
    """
    defaults, traits = models_of(judge), traits_of(judge)
    own = _pairs(options.model_of, "--model-of", "ROLE=MODEL")
    if unknown := sorted(set(own) - set(defaults)):
        roles = ", ".join(sorted(defaults)) or "none, since it calls no model"
        raise OptionsError(f"--model-of {', '.join(unknown)}: not a role of {judge.name}; its roles: {roles}")
    if is_combination(options.judge):
        own = combinations.models_of_combination(Path(options.judge or ""), judge)
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
    addresses = {each.base_url for each in models.values()}
    if models and options.base_url not in {None, *addresses}:
        providers = ", ".join(sorted({each.provider for each in models.values()}))
        raise OptionsError(
            f"--base-url {options.base_url}: no model uses it, because each names its provider "
            f"({providers}). Leave out --base-url, or the provider's name before the model"
        )
    return models


def refuse_omitted_params(options: RunOptions, models: Mapping[str, ModelSettings]) -> None:
    """Raise OptionsError if the user set a parameter that the provider never accepts.

    ``--allow-dropped-params`` permits this. The default temperature and seed are always permitted: they are
    left out, and the run prints a warning.
    """
    if options.allow_dropped_params:
        return
    typed = {"temperature": options.temperature, "seed": options.seed, "logprobs": options.logprobs or None}
    problems = {
        f"--{name}: --provider {model.provider} never accepts it; leave it out, or add "
        "--allow-dropped-params to ignore it (run.json records that it was not sent)": None
        for model in models.values()
        for name in omitted_params(model)
        if typed.get(name) is not None
    }
    if problems:
        raise OptionsError("\n".join(problems))


def refuse_unused(options: RunOptions, judge: AnyJudge, models: Mapping[str, ModelSettings]) -> None:
    """Raise OptionsError if the user gave a price, a vote or a checkout that the run would not use."""
    problems = []
    names = sorted({model.model for model in models.values()})
    for text in options.price or ():
        priced = text.rpartition("=")[0].strip().casefold() or text  # `read_prices` refuses other forms
        if priced != text and priced not in map(str.casefold, names):
            used = f"uses only {', '.join(names)}" if names else "calls no model"
            problems.append(f"--price {text}: {judge.name} {used}; correct the name or leave it out")
    if options.vote is not None and options.samples == 1:
        problems.append(f"--vote {options.vote} needs --samples; add --samples N, or leave out --vote")
    if options.prompts_from is not None and not official.is_from_checkout(judge):
        problems.append(
            "--prompts-from needs --prompts official and WebJudge, OSReward or browser-use; use those, or "
            "leave out --prompts-from"
        )
    if problems:
        raise OptionsError("\n".join(problems))


def image_options(options: RunOptions, judge: AnyJudge) -> ImageOptions:
    """Return how to send pictures. Options override the judge's own settings."""
    own = traits_of(judge).images or ImageOptions()
    if options.image_format not in (None, own.format):
        own = replace(own, format=options.image_format, quality=None)
    return replace(own, max_side=options.max_image_side, detail=options.image_detail or own.detail)


def _named(name: str, options: RunOptions) -> AnyJudge:
    try:
        judge = find_judge(
            name, prompts=options.prompts, compat=options.compat, checkout=options.prompts_from
        )
    except ValueError as problem:
        raise OptionsError(str(problem)) from problem
    if isinstance(judge, StepJudge):
        return judge.with_targets(load_suite(options.suite or read_settings().suite).targets)
    if options.structured_output and isinstance(judge, SimplifiedJudge):
        return replace(judge, is_structured=True)
    return judge


def _cascade(options: RunOptions) -> Judge:
    names = [name.strip() for name in (options.cascade or "").split(",")]
    if len(names) != 2 or not all(names):
        raise OptionsError(f"--cascade {options.cascade!r}: name two judges as CHEAP,STRONG")
    cheap, strong = (_named(name, options) for name in names)
    if is_reward_judge(cheap) or is_reward_judge(strong):
        raise OptionsError(f"--cascade {options.cascade}: name two judges that both call a model")
    try:
        band = parse_band(options.cascade_band)
    except ValueError as problem:
        raise OptionsError(f"--cascade-band {options.cascade_band}: {problem}") from problem
    return Cascade(cheap, strong, band, confirms_success=not options.cascade_trusts_yes)


_FROZEN: Final = {
    "model": None, "model_of": None, "samples": 1, "threshold": None, "prompts": "own", "compat": False,
    "structured_output": False,
}  # fmt: skip
"""The options that the file of a combination decides, with their default values."""


def _combination(options: RunOptions) -> Judge:
    typed = [name for name, default in _FROZEN.items() if (getattr(options, name) or default) != default]
    if typed:
        flags = ", ".join("--" + name.replace("_", "-") for name in typed)
        raise OptionsError(f"{flags}: {options.judge} is a frozen combination; leave out these options")

    def judge_of(part: CombinedPart) -> Judge:
        own = replace(
            options, prompts=part.prompts, compat=part.compat, structured_output=part.structured_output
        )
        judge = _named(part.judge, own)
        if is_reward_judge(judge):
            raise OptionsError(f"{options.judge}: {part.judge} calls no model and cannot be combined")
        return judge

    return combinations.combined_judge(Path(options.judge or ""), judge_of)


def _common_settings(options: RunOptions) -> ModelSettings:
    """Return the settings that the models of all roles share. Each has an option of the same name."""
    if options.provider is not None and options.provider not in PROVIDERS:
        raise OptionsError(f"--provider {options.provider}: use one of {', '.join(PROVIDERS)}")
    sampling = {"temperature": SAMPLING_TEMPERATURE, "seed": None} if options.samples > 1 else {}
    typed = {each.name: getattr(options, each.name) for each in fields(ModelSettings)}
    typed = {name: value for name, value in typed.items() if value is not None}
    own = {"model": "", "extra": _extra(options), "header": _headers(options)}
    settings: dict[str, Any] = {"provider": "any"} | sampling | typed | own
    return ModelSettings(**settings)


def _settings(model: str, common: ModelSettings, options: RunOptions) -> ModelSettings:
    """Return the settings of a model, which may be written as ``PROVIDER:MODEL``."""
    provider, colon, name = model.partition(":")
    if colon and provider in PROVIDERS and name:
        if provider != common.provider:  # address, key and headers are those of the other provider
            common = replace(common, provider=provider, base_url=None, key_variable=None, header=())
        return with_address(replace(common, model=name))
    if options.provider is None and options.base_url is None:
        common = replace(common, provider=default_provider(model) or "openai")
    return with_address(replace(common, model=model))


def _headers(options: RunOptions) -> tuple[tuple[str, str], ...]:
    """Return the names and values of ``--header``. Raises OptionsError, without quoting secret values."""
    pairs = [text.partition("=")[::2] for text in options.header or ()]
    for name, value in pairs:
        if not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", name, re.ASCII) or not value:
            raise OptionsError("--header: write NAME=VALUE, with a name of letters, digits and hyphens")
        if not value.isprintable() or not value.isascii():
            raise OptionsError(f"--header {name}: use only printable ASCII characters in the value")
    return tuple(pairs)


def _extra(options: RunOptions) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for name, text in _pairs(options.extra, "--extra", "NAME=JSON").items():
        try:
            read[name] = json.loads(text)
        except ValueError as problem:
            raise OptionsError(f"--extra {name}: {text!r} is not JSON; text needs double quotes") from problem
    return read


def _pairs(texts: Sequence[str] | None, flag: str, form: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts or ()]
    if bad := ["".join(pair) for pair in pairs if not (pair[0] and pair[2])]:
        raise OptionsError(f"{flag} {', '.join(bad)}: write {form}")
    return {name: value for name, _, value in pairs}
