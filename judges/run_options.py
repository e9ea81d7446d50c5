"""From the options of a command to what a run is made of: judge, models, views, trajectories."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from judges.base import OptionsError
from judges.engine.providers import PROVIDERS
from judges.selection import settings_of_environment, source_folder

if TYPE_CHECKING:
    from dataset_script.settings import Settings
    from dataset_script.suite import Suite
    from judges.base import Judge, ModelSettings, RewardJudge
    from judges.command_options import RunOptions
    from judges.views import Views

SAMPLING_TEMPERATURE = 0.7
"""At temperature 0 several samples would be one and the same answer."""


def build_judge(options: RunOptions) -> Judge | RewardJudge:
    """The judge that the options name, sampled, cascaded and with its threshold where they say so.

    Raises OptionsError for an unknown name, or options that do not go together.
    """
    if (options.judge is None) == (options.cascade is None):
        raise OptionsError("name one judge (see `python -m judges list`), or two with --cascade CHEAP,STRONG")
    if options.cascade is None and (options.cascade_band is not None or options.cascade_trusts_yes):
        raise OptionsError("--cascade-band, --cascade-trusts-yes: go with --cascade; leave them out")
    judge = _cascade(options) if options.judge is None else _named(options.judge, options)
    if not hasattr(judge, "ask"):
        _refuse_for_reward_judge(options)
        return judge
    if options.samples > 1:
        from judges.ensemble import SampledJudge

        judge = SampledJudge(judge, options.samples, options.vote)
    if options.threshold is not None:
        from judges.thresholds import read_threshold, with_threshold

        judge = with_threshold(judge, read_threshold(options.threshold))
    return judge


def build_models(options: RunOptions, judge: Judge | RewardJudge) -> dict[str, ModelSettings]:
    """How the model of each role is asked; empty for a judge that calls no model.

    A role's model is that of ``--model-of ROLE=…``, else of ``--model``, else the judge's own, which is asked
    where the paper asked it unless a provider or an address is given. ``PROVIDER:MODEL`` names the provider
    too, so that a cascade may ask two. Raises OptionsError.
    """
    defaults: Mapping[str, str] = getattr(judge, "models", {})
    own = _pairs(options.model_of, "--model-of", "ROLE=MODEL")
    if unknown := sorted(set(own) - set(defaults)):
        roles = ", ".join(sorted(defaults)) or "none: it asks no model"
        raise OptionsError(f"--model-of {', '.join(unknown)}: {judge.name} has no such role; it has {roles}")
    common = _common_settings(options)
    return {
        role: _settings(own.get(role) or options.model or default, common, options)
        for role, default in defaults.items()
    }


def build_views(options: RunOptions, suite: Suite, settings: Settings | None = None) -> Views:
    """The recorded runs that judges are shown. Raises OptionsError when there is none to be found."""
    from judges.images import ImageOptions
    from judges.views import Views

    images = ImageOptions(options.max_image_side, options.image_format, options.image_detail)
    return Views(source_folder(options, suite, settings or settings_of_environment()), suite, images)


def _named(name: str, options: RunOptions) -> Judge | RewardJudge:
    from judges.registry import find_judge

    try:
        return find_judge(name, prompts=options.prompts, compat=options.compat)
    except ValueError as problem:
        raise OptionsError(str(problem)) from problem


def _cascade(options: RunOptions) -> Judge:
    from judges.cascade import Cascade, parse_band

    names = [name.strip() for name in (options.cascade or "").split(",")]
    if len(names) != 2 or not all(names):
        raise OptionsError(f"--cascade {options.cascade!r}: name two judges as CHEAP,STRONG")
    cheap, strong = (_named(name, options) for name in names)
    if not (hasattr(cheap, "ask") and hasattr(strong, "ask")):
        raise OptionsError(f"--cascade {options.cascade}: both judges must ask a model")
    try:
        band = parse_band(options.cascade_band)
    except ValueError as problem:
        raise OptionsError(f"--cascade-band {options.cascade_band}: {problem}") from problem
    return Cascade(cheap, strong, band, confirms_success=not options.cascade_trusts_yes)


def _refuse_for_reward_judge(options: RunOptions) -> None:
    given = {"--samples": options.samples > 1, "--threshold": options.threshold is not None}
    if asked := [flag for flag, is_given in given.items() if is_given]:
        raise OptionsError(f"{' and '.join(asked)}: {options.judge} asks no model; leave them out")


def _common_settings(options: RunOptions) -> ModelSettings:
    """The settings that every role's model gets; its name is filled in later."""
    from judges.base import DEFAULT_OUTPUT_TOKENS, ModelSettings

    if options.provider is not None and options.provider not in PROVIDERS:
        raise OptionsError(f"--provider {options.provider}: use one of {', '.join(PROVIDERS)}")
    is_sampled = options.samples > 1
    temperature = options.temperature
    if temperature is None:
        temperature = SAMPLING_TEMPERATURE if is_sampled else 0.0
    seed = options.seed if options.seed is not None or is_sampled else 0
    return ModelSettings(
        model="",
        provider=options.provider or "any",
        base_url=options.base_url,
        key_variable=options.key_variable,
        temperature=temperature,
        seed=seed,
        max_output_tokens=options.max_output_tokens or DEFAULT_OUTPUT_TOKENS,
        logprobs=options.logprobs,
        extra=_extra(options),
    )


def _settings(model: str, common: ModelSettings, options: RunOptions) -> ModelSettings:
    """The settings for a model: at the provider that was named, else where the paper's model was asked."""
    from judges.registry import default_provider

    provider, colon, name = model.partition(":")
    if colon and provider in PROVIDERS and name:
        if provider != common.provider:  # an address and a key belong to the provider they were given for
            common = replace(common, provider=provider, base_url=None, key_variable=None)
        return replace(common, model=name)
    if options.provider is None and options.base_url is None:
        common = replace(common, provider=default_provider(model) or "openai")
    return replace(common, model=model)


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


def _pairs(given, flag: str, form: str) -> dict[str, str]:
    pairs = [text.partition("=") for text in given or ()]
    if bad := ["".join(pair) for pair in pairs if not (pair[0] and pair[2])]:
        raise OptionsError(f"{flag} {', '.join(bad)}: write {form}")
    return {name: value for name, _, value in pairs}
