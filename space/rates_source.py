"""Who evaluates the agents: experts, the evaluators printed in the paper, scored submissions."""

from collections.abc import Sequence

from dataset_script.suite import OFFICIAL
from leaderboard.paper_tables.rate_tables import LLM_JUDGE, RULE_BASED, printed_evaluator
from leaderboard.rates import Evaluator, evaluate_agents
from space.row_names import distinct_names
from submissions.service import SubmissionService
from submissions.verdicts import VerdictsUnavailable

EXPERTS = "Experts"
PRINTED = ((LLM_JUDGE, "llm_judge", "GPT-4o (A), paper"), (RULE_BASED, "rule_based", "Rule-based, paper"))
MOST_EVALUATORS = 5


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

    def default(self) -> list[str]:
        """Who is shown beside the experts at first: the paper's evaluators on the official suite."""
        return [row_id for row_id, _, _ in PRINTED] if self._is_official else []

    def find(self, ids: Sequence[str]) -> tuple[list[Evaluator], list[str]]:
        """The experts, where they may be shown, and the evaluators with these ids, five at most.

        The second list holds a message for each id that is none.
        """
        experts = self.experts()
        found, problems = [experts] if experts else [], []
        names = {row_id: words for words, row_id in self.choices()}
        for row_id in dict.fromkeys(ids[:MOST_EVALUATORS]):
            try:
                found.append(self._evaluator(row_id, names.get(row_id, row_id), experts))
            except (KeyError, VerdictsUnavailable):
                problems.append(f"No evaluator has the id {row_id[:60]!r}. Choose one from the list.")
        return found, problems

    def _evaluator(self, row_id: str, name: str, experts: Evaluator | None) -> Evaluator:
        for printed_id, column, title in PRINTED:
            if row_id == printed_id and self._is_official and experts is not None:
                return printed_evaluator(column, title, experts)
        if row_id not in {row.id for row in self._service.board().rows}:  # what is not shown is not counted
            raise KeyError(row_id)
        values = self._service.verdicts(row_id).success
        return evaluate_agents(name, "verdicts scored here", values, self._service.suite.split("test"))
