"""A certificate for people: one Markdown template, and a page made from it.

The page needs no other file and no script: it can be mailed, and attached to a paper.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from arb.core.console import coefficient, interval, percent, printable
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, LABEL_TITLES, STATES

FOLDER: Final = Path(__file__).parent

_MARKUP: Final = re.compile(r"([\\`*_\[\]|])")


def to_markdown(certificate: Mapping[str, Any]) -> str:
    """Return the certificate in GitHub's Markdown."""
    states = certificate["states"]
    flips = [probe for probe in certificate["probes"] if probe["expected"] == "stands" and probe["changed"]]
    template = _templates().get_template("certificate.md.j2")
    return template.render(
        certificate,
        worst=max(flips, key=lambda probe: probe["flipped"]["value"] or 0.0, default=None),
        ended=[state for state in STATES if any(found.get(state) for found in states.values())],
        facts=_measured(certificate),
    )


def to_html(certificate: Mapping[str, Any]) -> str:
    """Return the certificate as one page, with its style inside."""
    from markdown_it import MarkdownIt

    from leaderboard.board.export import FOLDER as BOARD

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    page = _templates().get_template("certificate.html")
    return page.render(
        title=printable(f"Certificate of {certificate['judge']['name']}"),
        content=parser.render(to_markdown(certificate)),
        style=(BOARD / "site.css").read_text(encoding="utf-8"),
    )


def _measured(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the last table of the certificate says; what is empty is left out there."""
    judge, measured = certificate["judge"], certificate["measured"]
    return {
        "judge": judge["name"],
        "sees": judge["inputs"],
        "source": judge["source"],
        "calls": judge["calls"],
        "the judge's file, SHA-256": measured["judge_file_sha256"],
        "prompts": measured["prompts"],
        "prompts, SHA-256": measured["prompts_hash"],
        "view, SHA-256": measured["view_hash"],
        "recorded runs, SHA-256": measured["data_hash"],
        "trajectory ids, SHA-256": measured["trajectories_sha256"],
        "labels' version": measured["label_version"],
        "samples": f"{measured['samples']}, {measured['vote']}" if measured["vote"] else None,
        **{f"model of {role}": _settings(model) for role, model in measured["models"].items()},
        **{f"answered for {role}": _counts(each) for role, each in measured["served_models"].items()},
        **{f"not sent for {role}": _counts(each) for role, each in measured["dropped_params"].items()},
        "sent prompts, SHA-256": measured["prompts_sha256"],
        "pictures": _settings(measured["images"]),
        **{f"predictions of {name}, SHA-256": each for name, each in measured["predictions_sha256"].items()},
        "versions": "; ".join(map(_settings, measured["versions"])),
        "measured": f"{measured['from']} to {measured['to']}",
    }


def _settings(facts: Mapping[str, Any]) -> str:
    """Return settings in words, without those that are off; a temperature of 0 is not off."""
    there = {name: value for name, value in facts.items() if value is not None and value is not False}
    return ", ".join(f"{name} {value}" for name, value in there.items() if value != {})


def _counts(calls: Mapping[str, int]) -> str:
    """Return names with the number of their calls, such as ``gpt-4o (12), gpt-4o-mini (1)``."""
    return ", ".join(f"{name} ({number:,})" for name, number in calls.items())


def _escape(text: str) -> str:
    """Return text that Markdown shows as it is; some of it was written by strangers."""
    return _MARKUP.sub(r"\\\1", printable(text)).replace("&", "&amp;").replace("<", "&lt;")


@lru_cache(maxsize=1)
def _templates() -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "coefficient": coefficient,
        "count": "{:,}".format,
        "interval": interval,
        "percent": percent,
        "text": _escape,
    }
    environment.globals |= {
        "AGENT_TITLES": AGENT_TITLES,
        "BENCHMARK_TITLES": BENCHMARK_TITLES,
        "LABEL_TITLES": LABEL_TITLES,
    }
    return environment
