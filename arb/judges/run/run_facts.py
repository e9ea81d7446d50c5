"""The content of run.json besides the configuration: facts about the judge, versions, and sessions."""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import msgspec

from arb.core import __version__
from arb.judges.endpoints.providers import address_of
from arb.judges.engine.prices import price_facts
from arb.judges.registry import entries
from arb.judges.run.config import RunConfig
from arb.judges.run.folder import RunFolder
from arb.judges.run.progress import Spend, utc_now
from arb.judges.types import AnyJudge, models_of, traits_of, wants_of
from dataset_script.sources.published import PublishedSource

ROOT: Final = Path(__file__).parents[3]

PROVIDER_CLIENTS: Final = ("any-llm-sdk", "anthropic", "boto3", "google-genai")
PACKAGES: Final = (
    *("aiohttp", "pillow", "msgspec", "genai-prices", "transformers", "torch", "ray", "agent-reward-bench"),
    *PROVIDER_CLIENTS,
)
"""The packages whose versions may affect the results."""


def judge_facts(judge: AnyJudge, name: str) -> dict[str, Any]:
    """Return the facts about a judge that `export` needs; ``name`` is its full name."""
    wants = wants_of(judge)
    return {
        "name": name,
        "released_folder": next((each.released for each in entries() if each.judge.name == name), None),
        "asks_models": bool(models_of(judge)),
        "judge_args": {
            "use_screenshot": wants.screenshots != "none",
            "use_axtree": wants.axtrees != "none",
            "invert_sys_prompt": traits_of(judge).is_inverted,
        },
    }


def versions() -> dict[str, str | None]:
    """Return the versions of this project, Python and `PACKAGES`, without importing them."""
    found = {"project": __version__, "commit": _commit(), "python": platform.python_version()}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


@cache
def _commit() -> str | None:
    """Return the checkout's commit, with ``-dirty`` if files were changed, or None if it is unknown."""
    if not (ROOT / ".git").exists():  # git would look for a checkout in the parent folders
        return None
    command = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        described = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return described.stdout.strip() or None


def run_facts(config: RunConfig, absent: int, skipped: int) -> dict[str, Any]:
    """Return the facts written into run.json at the start of a run. See `Job` for ``absent``, ``skipped``."""
    headers = sorted({name for model in config.models.values() for name, _ in model.header})
    return {
        "judge": judge_facts(config.judge, config.name),
        "versions": versions(),
        "endpoints": {role: address_of(model) for role, model in sorted(config.models.items())},
        **({"headers": headers} if headers else {}),  # their values may be secrets
        "prices": price_facts(config.prices, config.models),
        "selection": {
            **config.selection,
            "trajectories": len(config.ids),
            "without_a_run": absent,
            **({"skipped": skipped} if skipped else {}),
        },
        **source_facts_of(config.options.source),
    }


@contextmanager
def run_session(folder: RunFolder, facts: Mapping[str, Any], spend: Spend) -> Iterator[dict[str, Any]]:
    """Record a session in run.json at the start of the block, and its duration and cost at the end.

    The block sets ``ended`` in the yielded dict. Until the block ends, ``ended`` is ``killed`` in run.json.
    """
    session = {"started_at": utc_now(), "ended": "killed", "versions": facts["versions"]}
    earlier = folder.run.get("sessions", [])
    folder.update_run({**facts, "sessions": [*earlier, session]})
    begun = time.monotonic()
    try:
        yield session
    finally:
        session |= {
            "ended_at": utc_now(),
            "seconds": round(time.monotonic() - begun, 3),
            "calls_paid": spend.calls,
            "paid_usd": spend.usd,
        }
        folder.update_run({"sessions": [*earlier, session], **spend.facts})


def source_facts_of(source: Path | None) -> dict[str, Any]:
    """Return the ``source`` in run.json for a dataset built from the user's runs, or {} for other sources."""
    if source is None or not PublishedSource.recognises(source):
        return {}
    from dataset_script.new_suite import source_facts  # noqa: PLC0415 - loads the builder of datasets

    facts = source_facts(source)
    if facts is None:
        return {}
    return {"source": {**msgspec.to_builtins(facts), "left_out": len(facts.left_out)}}
