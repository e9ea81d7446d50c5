"""What experts (on dev), the dataset's judges and judges whose files are here say of one trajectory.

The latter only where the suite's labels are public: a suite with hidden labels does not publish the
verdict files that were sent to it, because a judge's metrics and its verdicts together would disclose labels.
"""

import logging
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from arb.core.predictions.table import Predictions
from arb.core.suites.questions import Question
from arb.core.vocabulary import LABEL_TITLES, LABELS
from dataset_script.sources.published import PublishedDataset
from leaderboard.board.board import Board, BoardRow
from leaderboard.paper.published import read_published_files
from space.pages.trajectories.index import (
    DEV,
    RULE_BASED,
    Counts,
    Labels,
    TrajectoryEntry,
    VoteCounts,
    Votes,
    count_vote,
    labels_of,
)
from submissions.app import SubmissionsApp
from submissions.scoring.verdicts import VerdictsUnavailable

logger = logging.getLogger(__name__)

MOST_JUDGES: Final = 20
"""So many judges, best first, are shown on a trajectory: their columns stay in memory."""

ANSWERS: Final = (*LABELS, "optimality")


@dataclass(frozen=True, eq=False)
class SubmittedJudge:
    """A judge's verdicts on the test split, without its texts; ``places`` are those of its trajectories."""

    row: BoardRow
    verdicts: Predictions
    places: Mapping[str, int]
    has_reasoning: bool


class SubmittedJudges:
    """The best submission of each judge on the board, and the judges whose files lie in ARB_PAPER_VERDICTS;
    read once for each board. Safe for threads."""

    def __init__(self, service: SubmissionsApp) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._known: tuple[object, tuple[SubmittedJudge, ...]] = ("", ())

    def of_suite(self, suite_name: str) -> tuple[SubmittedJudge, ...]:
        """The judges of the board, if this is the suite that is served and its labels are public."""
        suite = self._service.suite
        if suite.name != suite_name or not suite.labels_are_public:
            return ()
        board = self._service.records.board()
        with self._lock:
            if self._known[0] != board.key:
                before = {judge.row.id: judge for judge in self._known[1]}
                found = (before.get(row.id) or self._read(row) for row in self._best(board))
                self._known = (board.key, tuple(judge for judge in found if judge is not None))
            return self._known[1]

    def reasoning(self, suite_name: str, submission_id: str, trajectory_id: str) -> str | None:
        """What a judge of ``of_suite`` wrote on a trajectory; None where it wrote nothing."""
        judges = {judge.row.id: judge for judge in self.of_suite(suite_name)}
        judge = judges.get(submission_id)
        if judge is None or trajectory_id not in judge.places:
            return None
        try:
            texts = self._service.records.verdicts(submission_id).reasoning
        except (KeyError, VerdictsUnavailable):
            return None
        return texts[judge.places[trajectory_id]] if texts else None

    def _best(self, board: Board) -> list[BoardRow]:
        """The rows with a file that stand for their judges, best first, as many as are shown."""
        best = [row for row in board.ranking("success") if row.labels["success"]["best"]]
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
            places={name: place for place, name in enumerate(verdicts.trajectory_ids)},
            has_reasoning=verdicts.reasoning is not None and any(verdicts.reasoning),
        )


def with_submitted(published: Mapping[str, Votes], judges: Sequence[SubmittedJudge]) -> VoteCounts:
    """The votes that the dataset carries and those of other judges, whose files are here."""
    counts: Counts = {name: [votes.yes, votes.no, votes.silent] for name, votes in published.items()}
    for judge in judges:
        for trajectory_id, success in zip(judge.places, judge.verdicts.success.tolist(), strict=True):
            count_vote(counts, trajectory_id, success)
    return VoteCounts({trajectory_id: Votes(*found) for trajectory_id, found in counts.items()})


@dataclass(frozen=True, slots=True)
class Expert:
    """An annotation of a dev trajectory; the first is the one that judges are scored on.

    ``own`` maps the suite's own questions to the answers, None where there is none.
    """

    annotation: int
    labels: Labels
    own: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """A judge's verdict. ``key`` names it to the route that gives its reasoning; ``row_id`` is its page's.

    ``differs`` tells on dev whether it contradicts the experts on success; None where that is not known.
    """

    key: str
    name: str
    about: str
    row_id: str | None
    labels: Labels
    state: str
    has_reasoning: bool
    differs: bool | None = None

    @property
    def other_answers(self) -> str:
        """What the judge said besides success, on one line; empty where it said nothing else."""
        found = [
            f"{LABEL_TITLES[name].lower()} {'yes' if value else 'no'}"
            for name in ("side_effect", "repetition")
            if (value := getattr(self.labels, name)) is not None
        ]
        found += [f"optimality {self.labels.optimality} of 4"] if self.labels.optimality else []
        return ", ".join(found)


def experts_of(
    dataset: PublishedDataset, entry: TrajectoryEntry, questions: Sequence[Question]
) -> tuple[Expert, ...]:
    """The annotations of a dev trajectory, the primary one first; none for any other.

    A dataset may be older than some of the suite's ``questions``.
    """
    if entry.split != DEV or entry.labels is None:
        return ()
    rows = dataset.rows_of("annotations", entry.trajectory_id)
    own = [question.name for question in questions if question.is_own]
    found = [Expert(r["annotation"], labels_of(r), {name: r.get(name) for name in own}) for r in rows]
    return tuple(sorted(found, key=lambda expert: expert.annotation)) or (Expert(1, entry.labels, {}),)


def judges_of(
    dataset: PublishedDataset,
    entry: TrajectoryEntry,
    submitted: Sequence[SubmittedJudge],
    rows_of_board: Collection[str],
) -> tuple[JudgeVerdict, ...]:
    """The verdicts that the dataset carries, the rule-based one first, then those of other judges' files.

    ``rows_of_board`` are the judges that have a page.
    """
    columns = ["judge", "judge_model", "has_screenshot", "has_axtree", "state", *ANSWERS]
    rows = dataset.rows_of("judgments", entry.trajectory_id, columns)
    found = [_published(row) for row in sorted(rows, key=lambda row: row["judge"] != RULE_BASED)]
    if all(row["judge"] != RULE_BASED for row in rows):
        rewards = dataset.rows_of("rewards", entry.trajectory_id, ["rule_based"])
        found[:0] = [_rule_based(row["rule_based"]) for row in rewards if row["rule_based"] is not None]
    carried = {verdict.row_id for verdict in found}
    found += [
        _submitted(judge, entry)
        for judge in submitted
        if entry.trajectory_id in judge.places and judge.row.id not in carried
    ]
    return tuple(
        replace(
            verdict,
            row_id=verdict.row_id if verdict.row_id in rows_of_board else None,
            differs=_differs(verdict.labels, entry),
        )
        for verdict in found
    )


def _published(row: Mapping[str, Any]) -> JudgeVerdict:
    name, row_id = judge_names().get(row["judge"], (row["judge"], None))
    seen = [word for word, key in (("screenshot", "has_screenshot"), ("tree", "has_axtree")) if row[key]]
    labels = labels_of(row)
    return JudgeVerdict(
        key=row["judge"],
        name=name,
        about=" · ".join(filter(None, (row["judge_model"] or "", " and ".join(seen)))),
        row_id=row_id,
        labels=labels,
        state=row["state"] or "ok",
        has_reasoning=row["judge"] != RULE_BASED,
    )


def _rule_based(success: int) -> JudgeVerdict:
    labels = Labels(bool(success), None, None, None)
    name, row_id = judge_names().get(RULE_BASED, ("Rule-based", None))
    return JudgeVerdict(RULE_BASED, name, "the benchmark's own rules", row_id, labels, "ok", False)


def _submitted(judge: SubmittedJudge, entry: TrajectoryEntry) -> JudgeVerdict:
    place, verdicts = judge.places[entry.trajectory_id], judge.verdicts
    answers = {name: int(codes[place]) for name, codes in verdicts.targets.items()}
    optimality = answers.get("optimality", 0)
    labels = Labels(
        *(bool(answers[name]) if answers.get(name, -1) >= 0 else None for name in LABELS),
        optimality=optimality if optimality > 0 else None,
    )
    state = verdicts.state[place] if verdicts.state else None
    sender = f"sent by {judge.row.account}" if judge.row.account else "paper"
    return JudgeVerdict(
        key=judge.row.id,
        name=judge.row.judge,
        about=" · ".join(filter(None, (judge.row.model, judge.row.inputs, sender))),
        row_id=judge.row.id,
        labels=labels,
        state=state or ("ok" if labels.success is not None else "unparsed"),
        has_reasoning=judge.has_reasoning,
    )


def _differs(labels: Labels, entry: TrajectoryEntry) -> bool | None:
    if entry.labels is None or entry.labels.success is None or labels.success is None:
        return None
    return labels.success is not entry.labels.success


def reasoning_in(reply: str) -> str:
    """What a reply says besides its verdict: the text in its tag of reasoning, else the whole reply."""
    tagged = re.search(r"<(reasoning|think|thinking)>(.*?)</\1>", reply, re.DOTALL | re.IGNORECASE)
    return (tagged[2] if tagged and tagged[2].strip() else reply).strip()


@lru_cache(maxsize=1)
def judge_names() -> Mapping[str, tuple[str, str]]:
    """The name and the row on the board of each published judge, by the folder of its judgments."""
    names: dict[str, tuple[str, str]] = {}
    for judge in read_published_files().judges:
        inputs = {"tree": " (A)", "screenshot": " (S)"}.get(judge.inputs, "")
        title = f"{judge.judge}{inputs if judge.group == 'Simplified' else ''}"
        names.update(dict.fromkeys(judge.aliases, (title, judge.row_id)))
    return MappingProxyType(names)
