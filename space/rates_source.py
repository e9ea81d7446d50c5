"""Who can be asked for success rates: experts, the paper's printed evaluators, scored submissions."""

from collections.abc import Sequence
from dataclasses import dataclass

from dataset_script.suite import OFFICIAL
from leaderboard.paper_tables.rate_tables import LLM_JUDGE, RULE_BASED, printed_evaluator
from leaderboard.rates import Evaluator, evaluate_agents
from space.row_names import distinct_names
from submissions.service import SubmissionService
from submissions.verdicts import VerdictsUnavailable

EXPERTS = "Experts"
PRINTED = ((LLM_JUDGE, "llm_judge", "GPT-4o (A), paper"), (RULE_BASED, "rule_based", "Rule-based, paper"))
MOST_CHOSEN = 5


@dataclass(frozen=True)
class Asked:
    """The evaluators that were found, experts first, and what is to be said of those that were not."""

    evaluators: tuple[Evaluator, ...]
    problems: tuple[str, ...]


class RateSources:
    """Evaluators by id, over the service's records. Experts only where the suite's labels are public."""

    def __init__(self, service: SubmissionService) -> None:
        self._service = service

    def choices(self) -> list[tuple[str, str]]:
        """Every evaluator besides the experts, as (words, id): the paper's, then submissions by rank."""
        rows = [row for row in self._service.board().rows if row.provenance == "scored"]
        printed = [(name, row_id) for row_id, _, name in PRINTED] if self._is_official else []
        return [*printed, *zip(distinct_names(rows), (row.id for row in rows), strict=True)]

    @property
    def _is_official(self) -> bool:
        return self._service.suite.name == OFFICIAL

    def experts(self) -> Evaluator | None:
        """The experts' rates on test; None where the labels are hidden or away."""
        labels = self._service.labels_for_public_figures()
        if labels is None:
            return None
        return evaluate_agents(EXPERTS, "labels", labels.primary["success"], labels.trajectories, "published")

    def ask(self, ids: Sequence[str]) -> Asked:
        """The experts, where they may be shown, and the evaluators with these ids, five at most."""
        experts = self.experts()
        found, problems = [experts] if experts else [], []
        names = {row_id: words for words, row_id in self.choices()}
        for row_id in dict.fromkeys(ids[:MOST_CHOSEN]):
            try:
                found.append(self._evaluator(row_id, names.get(row_id, row_id), experts))
            except (KeyError, VerdictsUnavailable):
                problems.append(f"There are no rates by {row_id[:60]!r}: choose from the list.")
        return Asked(tuple(found), tuple(problems))

    def _evaluator(self, row_id: str, name: str, experts: Evaluator | None) -> Evaluator:
        for printed_id, column, title in PRINTED:
            if row_id == printed_id and self._is_official and experts is not None:
                return printed_evaluator(column, title, experts)
        if row_id not in {row.id for row in self._service.board().rows}:  # what is not shown is not counted
            raise KeyError(row_id)
        values = self._service.verdicts(row_id).success
        return evaluate_agents(name, "verdicts scored here", values, self._service.suite.split("test"))
