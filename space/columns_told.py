"""The columns of a prediction file in a submitter's words."""

from types import MappingProxyType
from typing import Final

from dataset_script.vocabulary import STATES

COLUMNS_TOLD: Final = MappingProxyType(
    {
        "trajectory_id": "As released: benchmark/agent/task. Required.",
        "success": "true, false or null. Required.",
        "side_effect": "Did the agent do something else besides? true, false or null.",
        "repetition": "Did it go in circles? true, false or null.",
        "optimality": "1 to 4, or null; kept, not ranked.",
        "score": "The judge’s own probability of success, 0 to 1: its calibration is shown.",
        "state": f"How the answer ended: {', '.join(STATES)}.",
        "reasoning": "The judge’s words.",
        "cost_usd": "Dollars for this trajectory: the board shows the cost of 1,000.",
        "input_tokens": "Whole number.",
        "output_tokens": "Whole number.",
        "latency_s": "Seconds for the answer.",
    }
)
