"""What a submission's stored file holds besides its verdicts: costs, and how well its score is calibrated."""

from dataclasses import dataclass

from leaderboard.board import BoardRow
from leaderboard.calibration import Calibration, calibrate
from leaderboard.judge_precision.scores import cluster_codes
from leaderboard.report import task_names
from leaderboard.running_costs import RunningCosts, running_costs
from submissions.service import SubmissionService
from submissions.verdicts import VerdictsUnavailable

NO_FILE = "Only the printed metrics of this row are known, not its verdicts, so its costs are not known."
NO_COLUMNS = "Its file has no costs: it has no column cost_usd, input_tokens, output_tokens or latency_s."


@dataclass(frozen=True)
class FileFacts:
    """Costs and calibration, each None where not known; ``costs_absent`` and ``calibration_absent`` say why.

    ``calibration_absent`` is empty where there is nothing to say: the judge gives no score.
    """

    costs: RunningCosts | None
    costs_absent: str
    calibration: Calibration | None
    calibration_absent: str


def file_facts(service: SubmissionService, row: BoardRow, label: str) -> FileFacts:
    """What is known of a row's file; scores meet test labels only where the suite's labels are public."""
    if row.provenance != "scored":
        return FileFacts(None, NO_FILE, None, "")
    try:
        verdicts = service.verdicts(row.id)
    except (KeyError, VerdictsUnavailable):
        return FileFacts(None, "Its file cannot be read at the moment.", None, "")
    costs = running_costs(verdicts, len(verdicts.success))
    known = costs if costs.are_known else None
    calibration, why_not = None, ""
    if verdicts.score is not None and label == "success":
        labels = service.labels_for_public_figures()
        if labels is None:
            why_not = (
                "Its file has a score, the judge's probability of success. The labels of this suite are "
                "private, so scores are not evaluated against them here. Evaluate them on dev with "
                "python -m leaderboard calibrate FILE --split dev."
            )
        else:
            tasks, _ = cluster_codes(task_names(labels), len(labels.trajectories))
            calibration = calibrate(verdicts.score, labels.primary["success"], tasks)
            if calibration is None:
                why_not = "Too few rows of its file have a score to measure its calibration."
    return FileFacts(known, NO_COLUMNS, calibration, why_not)
