"""What stands beside the data of a build, as pure functions: README.md, the dataset card with the YAML
block that `load_dataset` reads, and eval.yaml, by which the Hub shows a dataset as a benchmark. And the
paper's citation.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from arb.core.suite import OFFICIAL
from arb.core.suites.profile import SuiteProfile, default_title
from arb.core.suites.questions import Question
from arb.core.vocabulary import BENCHMARK_TITLES, LABELS, SPLITS
from dataset_script.build.output import MARKER
from dataset_script.schema import CONFIGURATIONS, DEFAULT, Column, columns_of

PAPER_BIBTEX: Final = """@article{lu2025agentrewardbench,
  title         = {AgentRewardBench: Evaluating Automatic Evaluations of Web Agent Trajectories},
  author        = {L{\\`u}, Xing Han and Kazemnejad, Amirhossein and Meade, Nicholas and Patel, Arkil and
                   Shin, Dongchan and Zambrano, Alejandra and Sta{\\'n}czak, Karolina and Shaw, Peter and
                   Pal, Christopher J. and Reddy, Siva},
  year          = {2025},
  eprint        = {2504.08942},
  archivePrefix = {arXiv},
  url           = {https://arxiv.org/abs/2504.08942}
}"""

_LOADING: Final = """```python
from datasets import load_dataset

dataset = load_dataset("{suite}")  # the name of this folder, from the folder that it lies in
steps = load_dataset("{suite}", "steps", split="dev", streaming=True)
steps = steps.reshard()  # a trajectory at a time
```"""

_OFFICIAL_SOURCE: Final = """The trajectories and the dev labels were released by the authors of the
AgentRewardBench paper as
[McGill-NLP/agent-reward-bench](https://huggingface.co/datasets/McGill-NLP/agent-reward-bench). That release
declares no SPDX licence, so this dataset's is marked `unknown`. The upstream card asks that the data not be
used unlawfully or against the rights of others, says that third parties may hold rights in parts of it,
allows research use where that is fair use, and asks that these terms go along with what is derived from it,
as this dataset is."""

_OTHER_SOURCE: Final = "Recorded runs of the suite `{suite}`."

_SOFTWARE: Final = "Made with the software of AgentRewardBench; whoever uses it may cite:"

_NO_LICENCE: Final = "No licence was declared when it was built."

_TEST: Final = """On **test** every label is null: the test split ranks judges, and a label beside its
trajectory would sooner or later be trained on or tuned to. Verdicts on test are scored on the leaderboard's
server. Rewards recorded along with the runs (the verdict of the rule-based evaluation) are in the
configuration `rewards` and nowhere else, and are **not for judges**. The prompts of agents and judges are
left out."""

_BLIND: Final = """**Blind**: ids hide which agent ran, the columns `agent` and `model` are null, and hosts
that were copies for some of the agents (`…-xl-1`, `…-xl-2`) are written alike. What agents wrote, and what a
picture shows, is left as it is. Whoever built it holds the key that maps ids back."""

_IN_COMMON: Final = "The columns of [`{name}`](#{name}), and:"

_OFFICIAL_TEST: Final = """The official labels are public upstream, so nothing hides them altogether; whoever
submits verdicts is asked whether test labels were used."""


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a card says of a build: trajectories by split and reporting benchmark, and rows by configuration
    and split, without those that have none. ``about`` is what the suite says of its data, in Markdown;
    ``questions`` are the suite's.
    """

    suite: str
    counts: Mapping[str, Mapping[str, int]]
    rows: Mapping[str, Mapping[str, int]]
    is_blind: bool = False
    about: str = ""
    profile: SuiteProfile = field(default_factory=SuiteProfile)
    questions: tuple[Question, ...] = ()


def render_card(facts: CardFacts) -> str:
    """README.md of a build.

    A split without rows is not listed in ``configs``: datasets 5.2 refuses a dataset that lists one.
    """
    official = facts.suite == OFFICIAL
    profile = facts.profile
    title = (profile.title or default_title(facts.suite)) + (", blind" if facts.is_blind else "")
    cited = PAPER_BIBTEX if official else profile.citation
    parts = [
        f"---\n{_front_matter(title, facts)}\n---",
        MARKER,
        f"# {title}",
        *([profile.description] if profile.description else []),
        "Runs of web agents on tasks in a browser, made for judging judges: a row is one trajectory, as "
        "text, and on **dev** it carries what an expert said of it. Other configurations have the "
        "screenshots, every step, and what published judges said.",
        _LOADING.format(suite=facts.suite),
        "## Configurations",
        _configuration_table(facts),
        *([_BLIND] if facts.is_blind else []),
        "## Splits",
        _count_table(facts.counts),
        f"{_TEST} {_OFFICIAL_TEST}" if official else _TEST,
        "## Columns",
        "A class column holds the index of its name, or null.",
        *_column_tables(facts),
        "## Source and terms",
        _OFFICIAL_SOURCE if official else _OTHER_SOURCE.format(suite=facts.suite),
        *([] if official else [facts.about or _NO_LICENCE, *_links(profile)]),
        "## Citation",
        *([f"```bibtex\n{cited}\n```"] if cited else []),
        *([] if official else [_SOFTWARE, f"```bibtex\n{PAPER_BIBTEX}\n```"]),
    ]
    return "\n\n".join(parts) + "\n"


def size_category(rows: int) -> str:
    """The Hub's name for a number of rows: powers of ten, from under a thousand on."""
    names = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M", "100M<n<1B")
    names += ("1B<n<10B", "10B<n<100B", "100B<n<1T", "n>1T")
    return names[min(max(len(str(rows)) - 3, 0), len(names) - 1)]


def _links(profile: SuiteProfile) -> list[str]:
    """The suite's links as a list, if it has any."""
    lines = [f"- {name}: <{address}>" for name, address in profile.links]
    return ["\n".join(lines)] if lines else []


def _front_matter(title: str, facts: CardFacts) -> str:
    import yaml

    total = sum(facts.rows[DEFAULT].values())
    card = {
        "pretty_name": title,
        "license": "unknown",
        "language": ["en"],
        "size_categories": [size_category(total)],
        "tags": ["web-agents", "llm-as-a-judge", "reward-models", "trajectories", "evaluation"],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if name == DEFAULT else {}),
                "data_files": [
                    {"split": split, "path": f"data/{name}/{split}-*.parquet"} for split in facts.rows[name]
                ],
            }
            for name in CONFIGURATIONS
            if name in facts.rows
        ],
    }
    return yaml.safe_dump(card, sort_keys=False, allow_unicode=True, width=110).rstrip("\n")


def _configuration_table(facts: CardFacts) -> str:
    rows = [
        (
            f"[`{name}`](#{name})" + (" (default)" if name == DEFAULT else ""),
            CONFIGURATIONS[name].row,
            CONFIGURATIONS[name].purpose,
            *(str(splits.get(split, 0)) for split in SPLITS),
        )
        for name, splits in facts.rows.items()
    ]
    return _table(("configuration", "a row is", "for", *SPLITS), rows)


def _count_table(counts: Mapping[str, Mapping[str, int]]) -> str:
    known = [name for name in BENCHMARK_TITLES if any(name in counts[split] for split in SPLITS)]
    others = sorted({name for split in SPLITS for name in counts[split]} - set(known))
    rows = [(name, *(str(counts[split].get(name, 0)) for split in SPLITS)) for name in [*known, *others]]
    total = ("**all**", *(str(sum(counts[split].values())) for split in SPLITS))
    return _table(("benchmark", *SPLITS), [*rows, total])


def _column_tables(facts: CardFacts) -> Iterable[str]:
    """The columns of every configuration there is, those of the default one once."""
    default = CONFIGURATIONS[DEFAULT].columns
    for name in facts.rows:
        yield f"### {name}"
        columns = columns_of(name, facts.questions)
        if name != DEFAULT and columns[: len(default)] == default:
            yield _IN_COMMON.format(name=DEFAULT)
            columns = columns[len(default) :]
        yield _column_table("column", columns)
        for column in columns:
            if column.fields:
                yield f"Each of the `{column.name}`:"
                yield _column_table("field", column.fields)


def _column_table(heading: str, columns: tuple[Column, ...]) -> str:
    return _table(
        (heading, "type", "what it is"),
        [(f"`{column.name}`", column.type_description, column.sentence) for column in columns],
    )


def _table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [headings, ("---",) * len(headings), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


_ABOUT: Final = {
    "success": "whether the agent reached the goal",
    "side_effect": "whether needless actions risked an unintended effect",
    "repetition": "whether the agent went in circles",
}


def render_eval_yaml(suite: str, title: str, splits: Collection[str], config: str = "trajectories") -> str:
    """eval.yaml with one task for each label that judges are scored on.

    ``splits`` are those that the configuration ``config`` has rows in; judges are ranked on test, and a suite
    without test rows is rehearsed on dev. ``title`` is the suite's. Raises ValueError without any.
    """
    import yaml

    split = next((name for name in ("test", "dev") if name in splits), None)
    if split is None:
        raise ValueError(f"{suite}: no split with trajectories, so there is nothing to evaluate on")
    asked = "; ".join(f"{label}: {_ABOUT[label]}" for label in LABELS)
    content = {
        "name": title,
        "description": "Judges of web agents, scored against expert labels: a judge reads a trajectory and "
        f"says what happened ({asked}). Precision is the primary figure.",
        "evaluation_framework": suite,
        "tasks": [{"id": label, "config": config, "split": split} for label in LABELS],
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=110)
