"""A `datasets` builder for the dataset, with one BuilderConfig per configuration of the schema.

With any version of `datasets`, create ``AgentRewardBench(config_name="steps", data_dir=FOLDER)``, then call
``download_and_prepare()`` and ``as_dataset()``, or ``as_streaming_dataset()``. In `datasets` 2 and 3, this
file is also a loading script, if the checkout is on the Python path:
``load_dataset("dataset_script/agent_reward_bench.py", "steps", data_dir=FOLDER, trust_remote_code=True)``.
FOLDER contains recorded runs in any format that `build` reads, or a dataset that `build` wrote. Both give the
same rows.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq

from arb.core.suite import load_dev_labels, load_suite
from arb.core.suites.targets import Target
from dataset_script.build.parts import PartTask, choose_suite, group_files, make_tables
from dataset_script.build.report import BuildReport
from dataset_script.build.rows import Row, annotation_row, task_row
from dataset_script.schema import ANNOTATIONS, CONFIGURATIONS, DEFAULT, features
from dataset_script.sources import open_source
from dataset_script.sources.published import MANIFEST, PublishedDataset, PublishedSource
from dataset_script.tasks import load_tasks

logger = logging.getLogger(__name__)

_VERSION = datasets.Version("1.0.0")


@dataclass
class AgentRewardBenchConfig(datasets.BuilderConfig):
    """A configuration. ``suite`` is a shipped suite or a folder, by default the shipped suite of the runs."""

    suite: str | None = None


class AgentRewardBench(datasets.GeneratorBasedBuilder):
    """A `datasets` builder for web agents' trajectories, with expert labels on dev (see the dataset card)."""

    VERSION = _VERSION
    BUILDER_CONFIG_CLASS = AgentRewardBenchConfig
    BUILDER_CONFIGS = [  # noqa: RUF012 - `datasets` requires this name and type
        AgentRewardBenchConfig(
            name=name,
            version=_VERSION,
            description=f"A row is {configuration.row}; for {configuration.purpose}.",
        )
        for name, configuration in CONFIGURATIONS.items()
    ]
    DEFAULT_CONFIG_NAME = DEFAULT

    def _info(self) -> datasets.DatasetInfo:
        configuration = CONFIGURATIONS[self.config.name]
        return datasets.DatasetInfo(
            description=f"Runs of web agents, {self.config.name}: a row is {configuration.row}.",
            features=features(self.config.name, _questions(self.config)),
            homepage="https://arxiv.org/abs/2504.08942",
        )

    def _split_generators(self, dl_manager: object) -> list[datasets.SplitGenerator]:
        if self.config.data_dir is None:
            raise ValueError("data_dir is missing; set it to the folder with the runs")
        found = _items_by_split(Path(self.config.data_dir), self.config.name, self.config.suite)
        return [
            datasets.SplitGenerator(name=datasets.Split(split), gen_kwargs={"items": found[split]})
            for split in CONFIGURATIONS[self.config.name].splits
            if found.get(split)
        ]

    def _generate_examples(self, items: list["Item"]) -> Iterator[tuple[str, dict[str, Any]]]:
        for number, item in enumerate(items):
            for position, row in enumerate(item()):
                yield f"{number}-{position}", row


Item = Callable[[], Iterable[Row]]
"""A function that returns rows. `datasets` distributes a list of such functions over its processes."""


def _questions(config: AgentRewardBenchConfig) -> tuple[Target, ...]:
    """Return the suite's own questions for the configuration `annotations`, and none for the others."""
    if config.name != ANNOTATIONS or config.data_dir is None:
        return ()
    folder = Path(config.data_dir)
    if (folder / MANIFEST).is_file():
        files = PublishedDataset(folder).files(ANNOTATIONS)
        known = {column.name for column in CONFIGURATIONS[ANNOTATIONS].columns}
        names = pq.read_schema(files[0]).names if files else []
        return tuple(Target(name, name, "", ()) for name in names if name not in known)
    return load_suite(config.suite).targets if config.suite else ()


def _items_by_split(folder: Path, configuration: str, suite_name: str | None) -> Mapping[str, list[Item]]:
    source = open_source(folder)
    if isinstance(source, PublishedSource):
        return _published(PublishedDataset(folder), configuration)
    listing = source.list_runs()
    suite = load_suite(suite_name) if suite_name else choose_suite(listing.files)
    found: dict[str, list[Item]] = {}
    if configuration == "tasks":
        for task in load_tasks(suite):
            found.setdefault(task.split, []).append(partial(iter, (task_row(task),)))
        return found
    labels = load_dev_labels(suite)
    is_judgments = configuration == "judgments"
    if is_judgments:
        listing = source.list_judgments()
    primary = {each.trajectory_id: each for each in labels if each.is_primary and each.level == "run"}
    parts = [
        PartTask(Path(), source, trajectory, files, primary.get(trajectory.trajectory_id), None, is_judgments)
        for trajectory, files in group_files(suite, listing, BuildReport(suite.name)).items()
    ]
    parts.sort(key=lambda part: part.published_id)
    for part in parts:
        annotations: list[Row] = []
        if configuration == ANNOTATIONS:
            own = (one for one in labels if one.trajectory_id == part.trajectory.trajectory_id)
            annotations = [annotation_row(one, suite.targets) for one in own]
            if not annotations:
                continue
        item = partial(_rows_of_part, part, configuration, annotations)
        found.setdefault(part.trajectory.split, []).append(item)
    return found


def _published(dataset: PublishedDataset, configuration: str) -> dict[str, list[Item]]:
    return {
        split: [
            partial(_published_rows, path, number)
            for path in dataset.files(configuration, split)
            for number in range(pq.read_metadata(path).num_row_groups)
        ]
        for split in dataset.splits(configuration)
    }


def _published_rows(path: Path, number: int) -> Sequence[Row]:
    with pq.ParquetFile(path, pre_buffer=False) as file:
        return file.read_row_group(number).to_pylist()


def _rows_of_part(task: PartTask, configuration: str, annotations: Sequence[Row]) -> Iterable[Row]:
    """Return the rows of one trajectory in a configuration, and log the files that were left out.

    If ``annotations`` are given, return these rows instead, or no rows if the run cannot be used.
    """
    tables, left_out, notes = make_tables(task)
    for finding in left_out:
        logger.warning(f"left out: {finding.file}: {finding.code} {finding.message}"[:400])
    for note in notes:
        if note.code == "broken_image":
            logger.warning(f"{note.file}: {note.message}"[:400])
    if annotations:
        return annotations if tables else ()
    return tables[configuration].to_pylist() if configuration in tables else ()
