"""The profile of a suite: title, description, citation, links, and the pages of its Space.

It is in ``suite.toml``, and every part is optional. ``suite.toml.j2`` has an example with comments.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from arb.core.formats import FORMATS

OPTIONAL_PAGES: Final = MappingProxyType(
    {
        "compare": True,
        "rates": True,
        "trajectories": True,
        "errors": True,
        "labels": True,
        "disputes": True,
        "paper": False,
        "submit": True,
        "validate": True,
    }
)
"""The pages of the Space that a suite may switch on or off, and whether they are on by default.

Their names are the first part of their addresses. The leaderboard, judges' pages and About are always on.
"""

MODALITIES: Final = ("text", "screenshot", "tree")
"""What a run may consist of: text, screenshots, and accessibility trees of pages."""

PROFILE_KEYS: Final = (
    "title", "description", "noun", "modalities", "citation", "license", "version", "date", "links", "pages",
    "trivial_judges", "error_tags",
)  # fmt: skip
"""The keys of ``suite.toml`` that belong to a profile."""

_SWITCHED_WITH: Final = MappingProxyType({"my-agent": "rates"})
"""Pages without a switch of their own, each with the page whose switch it shares."""

_LONGEST: Final = MappingProxyType(
    {"title": 80, "description": 600, "noun": 60, "citation": 10_000, "license": 200}
)
_MOST_LINKS: Final = 12
_LINK_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9 -]{0,39}")
_VERSION: Final = re.compile(r"\d{1,6}\.\d{1,6}\.\d{1,6}")
_ADDRESS: Final = re.compile(r"(https?://|mailto:)[^\s<>\"]{1,500}")
_NEEDS: Final = MappingProxyType({"errors": ("trajectories",), "disputes": ("trajectories", "labels")})
"""For each page, the pages that it links to and therefore needs."""


_MOST_ERROR_TAGS: Final = 20


@dataclass(frozen=True)
class SuiteProfile:
    """The title, texts, links and pages of a suite."""

    title: str = ""
    description: str = ""
    citation: str = ""
    links: tuple[tuple[str, str], ...] = ()
    """(name, address) pairs, in the order of the file."""
    pages: frozenset[str] = frozenset(name for name, is_on in OPTIONAL_PAGES.items() if is_on)
    """The pages of `OPTIONAL_PAGES` that are on."""
    license: str = ""
    """A licence identifier of the Hub, such as ``cc-by-4.0``, or an address; empty if none is declared."""
    version: str = ""
    date: str = ""
    """The day on which the data were published, such as ``2026-11-26``."""
    trivial_judges: bool = True
    """Whether the board lists trivial judges as references, such as one that always says yes."""
    error_tags: tuple[tuple[str, str, str], ...] = ()
    """The kinds of errors that judges make as (name, title, description); if empty, those of the paper."""
    noun: str = "agents"
    """The plural noun for the agents whose runs are judged, such as ``web agents``."""
    modalities: tuple[str, ...] = MODALITIES
    """What runs consist of: one or more of `MODALITIES`. Pages offer no filter or view for the others."""

    @property
    def place(self) -> str:
        """The words after "tasks" that say where the agents worked. Empty if the modalities do not say."""
        return " in a browser" if "tree" in self.modalities else ""

    def serves(self, path: str) -> bool:
        """Return whether the Space serves the page at an address such as ``/paper``."""
        name = path.strip("/").partition("/")[0]
        name = _SWITCHED_WITH.get(name, name)
        return name not in OPTIONAL_PAGES or name in self.pages


def read_profile(content: Mapping[str, Any], name: str) -> SuiteProfile:
    """Return the profile of a suite from the content of its ``suite.toml`` and the name of its folder.

    Raises ValueError with a message that lists every problem.
    """
    problems = [
        *_text_problems(content),
        *_release_problems(content),
        *_link_problems(content),
        *_page_problems(content),
        *_error_tag_problems(content.get("error_tags", {})),
    ]
    if not isinstance(content.get("trivial_judges", True), bool):
        problems.append("trivial_judges: write true or false")
    if problems:
        raise ValueError("; ".join(problems))
    title, description = (" ".join(content.get(key, "").split()) for key in ("title", "description"))
    return SuiteProfile(
        title=title or default_title(name),
        description=description,
        noun=" ".join(content.get("noun", "").split()) or "agents",
        modalities=tuple(content.get("modalities", MODALITIES)),
        error_tags=tuple(
            (key, tag["title"], tag["description"]) for key, tag in content.get("error_tags", {}).items()
        ),
        citation=content.get("citation", "").strip(),
        license=content.get("license", "").strip(),
        version=content.get("version", ""),
        date=str(content.get("date", "")),
        links=tuple(content.get("links", {}).items()),
        pages=_served(content.get("pages", {})),
        trivial_judges=content.get("trivial_judges", True),
    )


def _error_tag_problems(tags: Any) -> Iterator[str]:
    if not isinstance(tags, dict) or len(tags) > _MOST_ERROR_TAGS:
        yield f"error_tags: write at most {_MOST_ERROR_TAGS} tables such as [error_tags.wrong_page]"
        return
    for name, tag in tags.items():
        if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or len(name) > 60:
            yield f"error_tags, {name[:60]!r}: use lowercase letters, digits and _, at most 60"
        texts = tag.values() if isinstance(tag, dict) and tag.keys() == {"title", "description"} else [None]
        if not all(isinstance(text, str) and text.isprintable() and 0 < len(text) <= 400 for text in texts):
            yield f"error_tags, {name[:60]!r}: write a title and a description of at most 400 characters each"


def default_title(name: str) -> str:
    """Return a title made from a folder's name, such as "Our bench" from ``our-bench``."""
    words = " ".join(re.split(r"[-_\s]+", name)).strip() or name
    return words[:1].upper() + words[1:]


def _served(pages: Mapping[str, bool]) -> frozenset[str]:
    return frozenset(name for name, is_on in {**OPTIONAL_PAGES, **pages}.items() if is_on)


def _text_problems(content: Mapping[str, Any]) -> Iterator[str]:
    for key, longest in _LONGEST.items():
        text = content.get(key, "")
        if not isinstance(text, str) or len(text) > longest:
            yield f"{key}: write a text of at most {longest:,} characters"
        elif key in ("title", "noun") and not text.isprintable():
            yield f"{key}: write it on one line, without control characters"
    modalities = content.get("modalities", ["text"])
    if not isinstance(modalities, list) or not modalities or not all(m in MODALITIES for m in modalities):
        yield f"modalities: write a list of one or more of {', '.join(MODALITIES)}"


def _release_problems(content: Mapping[str, Any]) -> Iterator[str]:
    version, day = content.get("version", ""), content.get("date", "")
    if not isinstance(version, str) or (version and not _VERSION.fullmatch(version)):
        yield 'version: write three numbers, such as "1.0.0"'
    try:
        date.fromisoformat(str(day or "2026-11-26"))  # TOML has dates without quotes too
    except ValueError:
        yield 'date: write a day, such as "2026-11-26"'


def _link_problems(content: Mapping[str, Any]) -> Iterator[str]:
    links = content.get("links", {})
    if not isinstance(links, Mapping) or len(links) > _MOST_LINKS:
        yield f"links: write a table, [links], of at most {_MOST_LINKS} names with their addresses"
        return
    for name, address in links.items():
        if not _LINK_NAME.fullmatch(name):
            yield f"links.{name[:40]!r}: use up to 40 letters, digits, spaces and -, beginning with a letter"
        if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
            yield f'links.{name[:40]}: write an address that begins with "https://" or "mailto:"'


def _page_problems(content: Mapping[str, Any]) -> Iterator[str]:
    pages = content.get("pages", {})
    if not isinstance(pages, Mapping):
        yield "pages: write a table, [pages], with lines such as paper = false"
        return
    for name, is_on in pages.items():
        if name not in OPTIONAL_PAGES:
            yield f"pages.{name[:40]}: cannot be switched on or off; use one of {', '.join(OPTIONAL_PAGES)}"
        elif not isinstance(is_on, bool):
            yield f"pages.{name}: write true or false"
    served = _served(pages)
    for name, needed in _NEEDS.items():
        for page in needed if name in served else ():
            if page not in served:
                yield f"pages.{name}: needs the page {page}, which is off; also write {name} = false"


def render_suite_toml(made: str, title: str, rules: Any) -> str:
    """Return the ``suite.toml`` of a new suite. ``made`` is its first line, on how the suite was made."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - only for `new-suite`

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters["toml"] = partial(json.dumps, ensure_ascii=False)  # these values look alike in TOML
    template = environment.get_template("suite.toml.j2")
    version = FORMATS["suite.toml"]
    return template.render(format=version, made=made, title=title, rules=rules, pages=OPTIONAL_PAGES)
