"""Verdicts on one trajectory, from the dataset and from files of judges.

Verdicts of submitted files are shown only if the suite's labels are public: a judge's metrics together with
its verdicts would disclose hidden labels.
"""

import logging
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from markupsafe import Markup, escape

from arb.core.predictions.table import Predictions
from arb.core.suites.targets import Target, default_targets, main_target
from dataset_script.schema import LABEL_COLUMNS
from dataset_script.sources.published import PublishedDataset
from leaderboard.board.board import Board, BoardRow
from leaderboard.paper.published_files import read_published_files
from space.pages.rows import is_best
from space.pages.trajectories.index import (
    RULE_BASED,
    Counts,
    Labels,
    TrajectoryEntry,
    VoteCounts,
    Votes,
    count_vote,
    labels_of,
    with_rule_based,
)
from space.web.cells import judge_name, origin, short_name
from space.web.query import link_to
from submissions.app import SubmissionsApp
from submissions.scoring.verdicts import VerdictsUnavailable

logger = logging.getLogger(__name__)

MOST_JUDGES: Final = 20
"""A trajectory shows at most this many judges with files: the best ones. Their columns stay in memory."""


@dataclass(frozen=True, eq=False)
class SubmittedJudge:
    """A judge's verdicts on test, without its reasoning; ``places`` maps run ids to indexes of verdicts."""

    row: BoardRow
    verdicts: Predictions
    places: Mapping[str, int]
    has_reasoning: bool


class SubmittedJudges:
    """The judges whose verdicts a trajectory shows. Thread-safe.

    They are the best submissions, and published judges whose verdict files are available. They are read again
    only when the board changes.
    """

    def __init__(self, service: SubmissionsApp) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._known: tuple[object, tuple[SubmittedJudge, ...]] = ("", ())

    def of_suite(self, suite_name: str) -> tuple[SubmittedJudge, ...]:
        """Return the best judges on the board; empty for another suite or private labels."""
        suite = self._service.suite
        if suite.name != suite_name or not suite.shows_labels("test"):
            return ()
        board = self._service.records.board()
        with self._lock:
            if self._known[0] != board.key:
                before = {judge.row.id: judge for judge in self._known[1]}
                found = (before.get(row.id) or self._read(row) for row in self._best(board))
                self._known = (board.key, tuple(filter(None, found)))
            return self._known[1]

    def reasoning(self, suite_name: str, submission_id: str, trajectory_id: str) -> str | None:
        """Return a submitted judge's reasoning on a trajectory, or None."""
        judge = next((each for each in self.of_suite(suite_name) if each.row.id == submission_id), None)
        if judge is None or trajectory_id not in judge.places:
            return None
        try:
            texts = self._service.records.verdicts(submission_id).reasoning
        except (KeyError, VerdictsUnavailable):
            return None
        return texts[judge.places[trajectory_id]] if texts else None

    def _best(self, board: Board) -> list[BoardRow]:
        """Return the best judges that have a verdict file, at most `MOST_JUDGES`."""
        best = [row for row in board.ranking(board.main.name) if is_best(row, board.main.name)]
        papers = self._service.records.paper_verdicts
        return [row for row in best if row.provenance == "scored" or row.id in papers][:MOST_JUDGES]

    def _read(self, row: BoardRow) -> SubmittedJudge | None:
        try:
            verdicts = self._service.records.verdicts(row.id)
        except (KeyError, VerdictsUnavailable) as reason:
            logger.warning("the verdicts of %s are not shown with trajectories: %s", row.id, reason)
            return None
        return SubmittedJudge(
            row=row,
            verdicts=replace(verdicts, reasoning=None),
            places={name: i for i, (name, step, part) in enumerate(verdicts.items()) if step is part is None},
            has_reasoning=verdicts.reasoning is not None and any(verdicts.reasoning),
        )


def with_submitted(
    published: Mapping[str, Votes], judges: Sequence[SubmittedJudge], main: Target
) -> VoteCounts:
    """Return the votes of the dataset's judges and of submitted judges on each trajectory.

    Only a binary target about whole runs has votes.
    """
    counts: Counts = {name: [votes.yes, votes.no, votes.silent] for name, votes in published.items()}
    for judge in judges if main.is_outcome else ():
        codes = judge.verdicts.codes(main.name)
        for trajectory_id, place in judge.places.items():
            count_vote(counts, trajectory_id, int(codes[place]))
    return {trajectory_id: Votes(*found) for trajectory_id, found in counts.items()}


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """A judge's verdict on a trajectory, with answers keyed by target.

    ``main`` is the answer to the main target. ``key`` names the judge in the URL of its reasoning, and
    ``row_id`` in the URL of its page. ``differs`` says whether the verdict contradicts the experts, and is
    None if that is not known.
    """

    key: str
    name: str
    about: str
    row_id: str | None
    labels: Labels
    main: str | None
    state: str
    has_reasoning: bool
    differs: bool | None = None

    def other_answers(self, questions: Sequence[Target]) -> str:
        """Return the answers to all targets except the main one, in words."""
        return ", ".join(
            f"{each.title.lower()} {each.answer_words(answer).lower()}"
            for each in questions
            if (answer := self.labels.get(each.name)) is not None and each is not main_target(questions)
        )


def judges_of(
    dataset: PublishedDataset,
    entry: TrajectoryEntry,
    submitted: Sequence[SubmittedJudge],
    rows_of_board: Collection[str],
    questions: Sequence[Target] = (),
) -> tuple[JudgeVerdict, ...]:
    """Return the verdicts in the dataset, the rule-based one first, then those of submitted judges.

    ``rows_of_board`` has the ids of the judges that have a page. ``questions`` are the targets of the suite,
    by default AgentRewardBench's.
    """
    questions = questions or default_targets()
    main = main_target(questions).name
    columns = ["judge", "judge_model", "has_screenshot", "has_axtree", "state", *LABEL_COLUMNS]
    rows = with_rule_based(
        dataset.rows_of("judgments", entry.trajectory_id, ["trajectory_id", *columns]),
        dataset.rows_of("rewards", entry.trajectory_id, ["trajectory_id", "rule_based"]),
    )
    found = [_published(row, main) for row in sorted(rows, key=lambda row: row["judge"] != RULE_BASED)]
    carried = {verdict.row_id for verdict in found}
    found += [
        _submitted(judge, entry, questions)
        for judge in submitted
        if entry.trajectory_id in judge.places and judge.row.id not in carried
    ]
    return tuple(
        replace(
            verdict,
            row_id=verdict.row_id if verdict.row_id in rows_of_board else None,
            differs=_differs(verdict.main, entry.labels.get(main) if entry.labels else None),
        )
        for verdict in found
    )


def _published(row: Mapping[str, Any], main: str) -> JudgeVerdict:
    name, row_id = judge_names().get(row["judge"], (row["judge"], None))
    seen = [word for word, key in (("screenshot", "has_screenshot"), ("tree", "has_axtree")) if row.get(key)]
    about = " · ".join(filter(None, (row.get("judge_model"), " and ".join(seen))))
    labels = labels_of(row)
    return JudgeVerdict(
        key=row["judge"],
        name=name,
        about="the benchmark's own rules" if row["judge"] == RULE_BASED else about,
        row_id=row_id,
        labels=labels,
        main=labels.get(main),
        state=row.get("state") or "ok",
        has_reasoning=row["judge"] != RULE_BASED,
    )


def _submitted(judge: SubmittedJudge, entry: TrajectoryEntry, questions: Sequence[Target]) -> JudgeVerdict:
    place, verdicts = judge.places[entry.trajectory_id], judge.verdicts
    runs = (each for each in questions if each.level == "run" and each.type != "score")
    labels = {each.name: each.value_of(int(verdicts.codes(each.name)[place])) for each in runs}
    main = labels.get(main_target(questions).name)
    state = verdicts.state[place] if verdicts.state else None
    sender = f"submitted by {judge.row.account}" if judge.row.account else origin(judge.row)
    return JudgeVerdict(
        key=judge.row.id,
        name=short_name(judge.row),
        about=" · ".join(filter(None, (judge.row.model, sender))),
        row_id=judge.row.id,
        labels=labels,
        main=main,
        state=state or ("ok" if main is not None else "unparsed"),
        has_reasoning=judge.has_reasoning,
    )


def _differs(answer: str | None, label: str | None) -> bool | None:
    return None if answer is None or label is None else answer != label


def reasoning_in(reply: str) -> str:
    """Return the text in a reply's reasoning tag, or the whole reply if it has none."""
    tagged = re.search(r"<(reasoning|think|thinking)>(.*?)</\1>", reply, re.DOTALL | re.IGNORECASE)
    return (tagged[2] if tagged and tagged[2].strip() else reply).strip()


def link_steps(text: str, entry: TrajectoryEntry, judge: str) -> Markup:
    """Return a judge's text as HTML in which mentions of recorded steps ("step 3") lead to these steps."""
    pieces: list[str] = []
    place = 0
    for found in re.finditer(r"\bstep (\d{1,4})\b", text, re.IGNORECASE):
        number = int(found[1])
        if 1 <= number <= entry.n_actions + 1:
            address = link_to("/trajectories", id=entry.trajectory_id, step=number, judge=judge)
            link = Markup('<a href="{}">{}</a>').format(address, found[0])
            pieces += [escape(text[place : found.start()]), link]
            place = found.end()
    return Markup("").join([*pieces, escape(text[place:])])


@lru_cache(maxsize=1)
def judge_names() -> Mapping[str, tuple[str, str]]:
    """Return the name and the row id of each published judge, keyed by the folder of its judgments."""
    names: dict[str, tuple[str, str]] = {}
    for judge in read_published_files().judges:
        title = (judge_name(judge.judge, judge.inputs), judge.row_id)
        names.update(dict.fromkeys(judge.aliases, title))
    return MappingProxyType(names)
