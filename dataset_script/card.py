"""Render README.md and eval.yaml, which `build` writes next to the data.

README.md is the dataset card (`card.md.j2`), with the YAML block that `load_dataset` reads. The Hub shows a
dataset with an eval.yaml (`eval.yaml.j2`) as a benchmark.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from arb.core.console import text_environment
from arb.core.suite import OFFICIAL
from arb.core.suites.profile import SuiteProfile, default_title
from arb.core.suites.targets import Target, default_targets, scored
from arb.core.vocabulary import BENCHMARK_TITLES, SPLITS
from dataset_script.build.output import MARKER
from dataset_script.schema import CONFIGURATIONS, DEFAULT, Column, columns_of

PAPER_BIBTEX: Final = Path(__file__).with_name("paper.bib").read_text(encoding="utf-8").strip()

_LOADED: Final = re.compile(r'load_dataset\("[^"]*"')


@dataclass(frozen=True, slots=True)
class CardFacts:
    """The input of a dataset card.

    ``counts`` has the number of trajectories by split and benchmark. ``rows`` and ``sizes`` have the number
    of rows and their uncompressed bytes by configuration and split, without empty splits. ``stored`` has the
    size of each configuration's files in bytes, and ``fingerprints`` a string that identifies their content.
    ``about`` is the suite's text about its data, in Markdown.
    """

    suite: str
    counts: Mapping[str, Mapping[str, int]]
    rows: Mapping[str, Mapping[str, int]]
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    stored: Mapping[str, int] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    is_blind: bool = False
    about: str = ""
    profile: SuiteProfile = field(default_factory=SuiteProfile)
    questions: tuple[Target, ...] = ()


def render_card(facts: CardFacts) -> str:
    """Return the text of README.md without empty splits, because datasets 5.2 does not accept these."""
    official = facts.suite == OFFICIAL
    title = (facts.profile.title or default_title(facts.suite)) + (", blind" if facts.is_blind else "")
    benchmarks = {name for split in SPLITS for name in facts.counts[split]}
    known = [name for name in BENCHMARK_TITLES if name in benchmarks]
    if official:
        licence = "unknown"
    elif facts.profile.license.startswith("http"):
        licence = "other"
    else:
        licence = facts.profile.license or "unknown"
    return _render(
        "card.md.j2",
        facts=facts,
        licence=licence,
        contact=dict(facts.profile.links).get("contact", "").removeprefix("mailto:"),
        official=official,
        title=title,
        size_category=size_category(sum(facts.rows[DEFAULT].values())),
        marker=MARKER,
        configurations=CONFIGURATIONS,
        default=DEFAULT,
        benchmarks=[*known, *sorted(benchmarks.difference(known))],
        tables=[_listed_columns(name, facts) for name in facts.rows],
        cited=PAPER_BIBTEX if official else facts.profile.citation,
        bibtex=PAPER_BIBTEX,
    )


def card_for(card: str, name: str) -> str:
    """Return the text of a card that loads the dataset by ``name``: a folder, or OWNER/NAME on the Hub."""
    return _LOADED.sub(lambda _found: f'load_dataset("{name}"', card)


def _listed_columns(name: str, facts: CardFacts) -> tuple[str, bool, tuple[Column, ...]]:
    """Return a configuration's name, whether it extends the default one, and the columns to show."""
    default, columns = CONFIGURATIONS[DEFAULT].columns, columns_of(name, facts.questions)
    has_default = name != DEFAULT and columns[: len(default)] == default
    return name, has_default, columns[len(default) :] if has_default else columns


def size_category(rows: int) -> str:
    """Return the Hub's size category for a number of rows, such as ``1K<n<10K``."""
    names = (
        *("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B"),
        *("1B<n<10B", "10B<n<100B", "100B<n<1T", "n>1T"),
    )
    return names[min(max(len(str(rows)) - 3, 0), len(names) - 1)]


def render_eval_yaml(
    suite: str,
    title: str,
    splits: Collection[str],
    config: str = "trajectories",
    targets: Sequence[Target] = (),
    noun: str = "agents",
) -> str:
    """Return the text of eval.yaml, with one task for each target about runs on which judges are scored.

    ``targets`` are the suite's targets, by default AgentRewardBench's. ``splits`` are the splits with rows.
    The tasks use test, or dev if test has no rows. Raises ValueError if neither has rows.
    """
    split = next((name for name in ("test", "dev") if name in splits), None)
    if split is None:
        raise ValueError(f"{suite}: neither dev nor test has trajectories, so judges cannot be evaluated")
    of_runs = [target for target in scored(targets or default_targets()) if target.level == "run"]
    is_default = not targets or tuple(targets) == default_targets()
    return _render(
        "eval.yaml.j2", suite=suite, title=title, targets=of_runs, is_default=is_default, config=config,
        split=split, noun=noun,
    )  # fmt: skip


def _render(template: str, **values: Any) -> str:
    environment = text_environment(Path(__file__).parent, keep_trailing_newline=True)
    environment.filters["yaml_line"] = lambda value, name: yaml.safe_dump(
        {name: value}, allow_unicode=True, width=10_000
    )
    return environment.get_template(template).render(**values)
