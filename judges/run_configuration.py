"""What a run is made of, as run.json keeps it; to go on in its folder the configuration must be the same."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from judges.base import Judge, ModelSettings, OptionsError, RewardJudge, Wants

if TYPE_CHECKING:
    from judges.command_options import RunOptions

PACKAGES: Final = ("openai", "pillow", "msgspec", "transformers", "torch", "ray", "agent-reward-bench")
"""Whose versions may show in what comes out."""


RELEASED_FOLDERS: Final = (
    "functional",
    "aer",
    "aerv",
    "nnetnav",
    *(f"claude-3.7-sonnet-{shown}" for shown in ("noscreen", "noaxtree")),
    *(f"gpt-4o-{shown}" for shown in ("noscreen", "noaxtree")),
    "gpt-4o-mini",
    *(f"gpt-4o-mini-{shown}" for shown in ("noaxtree", "noscreen", "noscreen-noaxtree")),
    *(f"qwen-2.5-vl-{shown}" for shown in ("noaxtree", "noscreen")),
    "llama-3.3-70b-noscreen",
)
"""The judges' folders in the released data."""


def build_configuration(
    options: RunOptions,
    suite: str,
    judge: Judge | RewardJudge,
    models: Mapping[str, ModelSettings],
    data_hash: str | None,
) -> dict[str, Any]:
    """Everything that the verdicts depend on; a run folder holds verdicts of one configuration only.

    Where a model is reached, how fast, for how much money, and which of the trajectories are judged may be
    another the next time. Raises OptionsError for a threshold file that cannot be read.
    """
    return {
        "suite": suite,
        "split": options.split,
        "judge": judge.name,
        "prompts": options.prompts,
        "prompts_hash": getattr(judge, "prompts_hash", "") or None,
        "compat": options.compat,
        "cascade": options.cascade,
        "cascade_band": options.cascade_band,
        "cascade_trusts_yes": options.cascade_trusts_yes,
        "samples": options.samples,
        "vote": options.vote if options.samples > 1 else None,
        "threshold": _threshold(options),
        "models": {role: _identity(model) for role, model in sorted(models.items())},
        "images": {
            "max_side": options.max_image_side,
            "format": options.image_format,
            "detail": options.image_detail,
        },
        "data_hash": data_hash,
    }


def judge_facts(judge: Judge | RewardJudge) -> dict[str, Any]:
    """What `export` has to know of a judge: its released folder, whether it asks, and what it was shown."""
    wants = getattr(judge, "wants", Wants())
    return {
        "released_folder": _released_folder(judge.name),
        "asks_models": bool(getattr(judge, "models", {})),
        "judge_args": {
            "use_screenshot": wants.screenshots != "none",
            "use_axtree": wants.axtrees != "none",
            "invert_sys_prompt": bool(getattr(judge, "is_inverted", False)),
        },
    }


def endpoint_addresses(models: Mapping[str, ModelSettings]) -> dict[str, str | None]:
    """Where each role's model was reached; a name or a password in the address is left out."""
    return {role: _without_secrets(model.base_url) for role, model in sorted(models.items())}


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that are installed, without importing them."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _released_folder(name: str) -> str | None:
    from judges.registry import entries

    for entry in entries():
        if entry.judge.name == name:
            spelled = (each.casefold() for each in entry.names)
            return next((each for each in spelled if each in RELEASED_FOLDERS), None)
    return None


def _identity(model: ModelSettings) -> dict[str, Any]:
    settings = asdict(model)
    return {name: value for name, value in settings.items() if name not in ("base_url", "key_variable")}


def _threshold(options: RunOptions) -> Any:
    if options.threshold is None:
        return None
    try:
        return json.loads(options.threshold.read_bytes())
    except (OSError, ValueError) as error:
        raise OptionsError(f"--threshold {options.threshold}: cannot be read ({error})") from error


def _without_secrets(address: str | None) -> str | None:
    if address is None:
        return None
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
