"""Runs of the sample without a browser, and the shipped sample's rows."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from dataset_script import sample
from tests.tools.sample_recorder.text_browser import TextBrowser
from tools.sample_recorder.agents import CHARACTERS, ScriptedAgent
from tools.sample_recorder.record import MOST_STEPS, Run, runs
from tools.sample_recorder.rewards import LastMessage, reward
from tools.sample_recorder.sites import PLACES

SHIPPED_DATA = Path(sample.__file__).parent / "data"


@dataclass(frozen=True)
class Followed:
    """What came of a run: the site as it was left, the actions, the last words, the reward."""

    site: Any
    actions: tuple[str, ...]
    reasoning: tuple[str, ...]
    said: LastMessage
    reward: float


def _follow(run: Run) -> Followed:
    task, place = run.task, PLACES[run.task.benchmark]
    site = place.make(**task.state)
    browser = TextBrowser(site.app(), place.url)
    browser.open(task.path)
    agent = ScriptedAgent(run.character, task.moves[run.character.name], task.reads, place.url)
    decisions = []
    while browser.said is None:
        decisions.append(agent.act(browser.tree()))
        assert len(decisions) <= MOST_STEPS
        browser.act(decisions[-1].action)
    verb, text = browser.said
    said = LastMessage(text, verb == "report_infeasible")
    return Followed(
        site,
        tuple(decision.action for decision in decisions),
        tuple(decision.reasoning for decision in decisions),
        said,
        reward(task.task_id, site, said),
    )


@pytest.fixture(scope="session")
def follow():
    """Follow one agent's script on one task: ``follow("sample-shop.1", "careful")``."""
    every = {(run.task.task_id, run.character.name): run for run in runs()}
    return cache(lambda task_id, name: _follow(every[task_id, name]))


@pytest.fixture(scope="session")
def open_site():
    """A site of one's own in the browser of a few lines: gives (site, browser)."""

    def opened(benchmark: str, path: str = "/", **state: Any):
        place = PLACES[benchmark]
        site = place.make(**state)
        browser = TextBrowser(site.app(), place.url)
        browser.open(path)
        return site, browser

    return opened


@pytest.fixture
def character():
    return {character.name: character for character in CHARACTERS}


@pytest.fixture(scope="session")
def shipped_rows():
    """The rows of one configuration of the shipped sample, both splits, as Parquet has them."""
    import pyarrow.parquet as pq

    @cache
    def rows(configuration: str) -> tuple[dict[str, Any], ...]:
        shards = sorted((SHIPPED_DATA / "data" / configuration).glob("*.parquet"))
        return tuple(row for shard in shards for row in pq.read_table(shard).to_pylist())

    return rows
