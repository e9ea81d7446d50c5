"""What the about page states, each figure from the code that uses it."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from dataset_script.suite import OFFICIAL
from leaderboard.board_cells import DESIGN_EFFECTS
from leaderboard.judge_precision.intervals import CONFIDENCE, N_RESAMPLES
from space.board_figures import FEW
from submissions.service import SubmissionService

CHANGE_LOG: Final = Path(__file__).parents[1] / "CHANGELOG.md"
PACKAGES: Final = (
    "datasets",
    "evaluate",
    "gradio",
    "huggingface_hub",
    "numpy",
    "pandas",
    "pyarrow",
    "sqlalchemy",
)


@dataclass(frozen=True)
class Release:
    """An entry of the change log: its date and its lines."""

    date: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class AboutFacts:
    """Everything on the page that is no fixed sentence."""

    suite: str
    is_official: bool
    labels_are_public: bool
    label_version: str | None
    n_trajectories: int
    n_test: int
    n_tasks: int
    n_agents: int
    n_benchmarks: int
    n_resamples: int
    confidence: int
    few: int
    design_effects: dict[str, float]
    max_upload_bytes: int
    board_digest: str
    versions: tuple[tuple[str, str], ...]
    releases: tuple[Release, ...]


def about_facts(service: SubmissionService) -> AboutFacts:
    """The facts as they are now."""
    suite, test = service.suite, service.suite.split("test")
    return AboutFacts(
        suite=suite.name,
        is_official=suite.name == OFFICIAL,
        labels_are_public=suite.labels_are_public,
        label_version=service.label_version,
        n_trajectories=len(suite.trajectories),
        n_test=len(test),
        n_tasks=len({(each.benchmark, each.task) for each in test}),
        n_agents=len({each.agent for each in test}),
        n_benchmarks=len({each.benchmark for each in test}),
        n_resamples=N_RESAMPLES,
        confidence=round(100 * CONFIDENCE),
        few=FEW,
        design_effects=dict(DESIGN_EFFECTS),
        max_upload_bytes=service.settings.max_upload_bytes,
        board_digest=service.board().digest,
        versions=tuple(_versions()),
        releases=read_change_log(),
    )


def read_change_log(path: Path = CHANGE_LOG) -> tuple[Release, ...]:
    """The entries of the change log, newest first; empty where the file is not there."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return ()
    releases = []
    for entry in text.split("\n## ")[1:]:
        date, _, body = entry.partition("\n")
        lines = (" ".join(item.split()) for item in f"\n{body}".split("\n- ")[1:])
        releases.append(Release(date.strip(), tuple(lines)))
    return tuple(releases)


def _versions():
    for package in PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            continue
