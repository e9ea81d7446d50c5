"""Write a certificate as Markdown or as an HTML page, which needs no other files and no scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markdown_it import MarkdownIt

from arb.core.console import coefficient, interval, percent, printable
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES, STATES
from leaderboard.board.export import FOLDER as BOARD

FOLDER: Final = Path(__file__).parent

_MARKUP: Final = re.compile(r"([\\`*_\[\]|])")


def to_markdown(certificate: Mapping[str, Any]) -> str:
    """Return the certificate in GitHub-flavoured Markdown."""
    states = certificate["states"]
    flips = [probe for probe in certificate["probes"] if probe["expected"] == "stands" and probe["changed"]]
    template = _templates().get_template("certificate.md.j2")
    return template.render(
        certificate,
        worst=max(flips, key=lambda probe: probe["flipped"]["value"] or 0.0, default=None),
        ended=[state for state in STATES if any(found.get(state) for found in states.values())],
    )


def to_html(certificate: Mapping[str, Any]) -> str:
    """Return the certificate as one HTML page that includes its style sheet."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    page = _templates().get_template("certificate.html")
    return page.render(
        title=printable(f"Certificate of {certificate['judge']['name']}"),
        content=parser.render(to_markdown(certificate)),
        style=(BOARD / "site.css").read_text(encoding="utf-8"),
    )


def _settings(facts: Mapping[str, Any]) -> str:
    """Return settings as text. None, False and {} are left out, but a temperature of 0 is not."""
    there = {name: value for name, value in facts.items() if value is not None and value is not False}
    return ", ".join(f"{name} {value}" for name, value in there.items() if value != {})


def _counts(calls: Mapping[str, int]) -> str:
    """Return the number of calls per name as text, such as ``gpt-4o (12), gpt-4o-mini (1)``."""
    return ", ".join(f"{name} ({number:,})" for name, number in calls.items())


def _escape(text: str) -> str:
    """Escape text for Markdown, since it may come from models or other users."""
    return _MARKUP.sub(r"\\\1", printable(text)).replace("&", "&amp;").replace("<", "&lt;")


@lru_cache(maxsize=1)
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "coefficient": coefficient,
        "count": "{:,}".format,
        "counts": _counts,
        "interval": interval,
        "percent": percent,
        "settings": _settings,
        "text": _escape,
    }
    environment.globals |= {
        "AGENT_TITLES": AGENT_TITLES,
        "BENCHMARK_TITLES": BENCHMARK_TITLES,
    }
    return environment
