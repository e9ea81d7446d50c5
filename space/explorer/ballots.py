"""How judges voted on each trajectory's success: counted from their verdicts, never from a label."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dataset_script.sources.published import PublishedDataset

if TYPE_CHECKING:
    from space.explorer.submitted import SubmittedJudge

RULE_BASED: Final = "functional"
"""The rule-based judge, as the published judgments spell it; `rewards` holds its verdict too."""


@dataclass(frozen=True, slots=True)
class Votes:
    """Verdicts on one trajectory's success; ``silent`` judges gave none that can be read."""

    yes: int = 0
    no: int = 0
    silent: int = 0

    @property
    def cast(self) -> int:
        """How many judges said yes or no."""
        return self.yes + self.no

    @property
    def fewer(self) -> int:
        """How many are on the smaller side."""
        return min(self.yes, self.no)

    @property
    def disagreement(self) -> float:
        """The share of the smaller side, from 0 to 0.5; -1 where nobody voted."""
        return self.fewer / self.cast if self.cast else -1.0


NOBODY: Final = Votes()


@dataclass(frozen=True)
class VoteCounts:
    """The votes on every trajectory that has any."""

    by_id: Mapping[str, Votes]

    def votes(self, trajectory_id: str) -> Votes:
        """The votes on one trajectory."""
        return self.by_id.get(trajectory_id, NOBODY)

    @property
    def most(self) -> int:
        """The greatest number of judges that voted on one trajectory."""
        return max((votes.cast for votes in self.by_id.values()), default=0)


def published_votes(dataset: PublishedDataset) -> dict[str, Votes]:
    """The votes of the judges whose verdicts the dataset carries; the rule-based one counts once."""
    counts: _Counts = {}
    has_rule_based: set[str] = set()
    for split in dataset.splits("judgments"):
        table = dataset.table("judgments", split, ["trajectory_id", "judge", "success"])
        for trajectory_id, judge, success in zip(*table.to_pydict().values(), strict=True):
            _count(counts, trajectory_id, success)
            if judge == RULE_BASED:
                has_rule_based.add(trajectory_id)
    for split in dataset.splits("rewards"):
        table = dataset.table("rewards", split, ["trajectory_id", "rule_based"])
        for trajectory_id, success in zip(*table.to_pydict().values(), strict=True):
            if success is not None and trajectory_id not in has_rule_based:
                _count(counts, trajectory_id, success)
    return {trajectory_id: Votes(*found) for trajectory_id, found in counts.items()}


def with_submitted(published: Mapping[str, Votes], judges: Sequence["SubmittedJudge"]) -> VoteCounts:
    """The published votes and those of judges whose files were scored here."""
    counts: _Counts = {name: [votes.yes, votes.no, votes.silent] for name, votes in published.items()}
    for judge in judges:
        for trajectory_id, success in zip(
            judge.trajectory_ids, judge.answers["success"].tolist(), strict=True
        ):
            _count(counts, trajectory_id, success)
    return VoteCounts({trajectory_id: Votes(*found) for trajectory_id, found in counts.items()})


_Counts = dict[str, list[int]]
_YES, _NO, _SILENT = range(3)


def _count(counts: _Counts, trajectory_id: str, success: int | None) -> None:
    """Count one verdict: 1 is yes, 0 is no, null and below 0 none."""
    found = counts.setdefault(trajectory_id, [0, 0, 0])
    found[_SILENT if success is None or success < 0 else _YES if success else _NO] += 1
