"""What a judge's metrics say, in sentences made from them."""

from types import MappingProxyType
from typing import Final

from leaderboard.calibration import Calibration
from leaderboard.report_tables import percent
from leaderboard.running_costs import RunningCosts
from space.board_figures import metric_cell
from space.judge_view import BY_AGENT, BY_BENCHMARK, JudgeView

ASKED: Final = MappingProxyType(
    {
        "success": ("calls successful", "successes"),
        "side_effect": ("says had a side effect", "side effects"),
        "repetition": ("says went in circles", "repetitions"),
    }
)
NEAR: Final = 0.02
"""Two shares of yes that are nearer than this are called the same."""


def lead(view: JudgeView) -> str:
    """One or two sentences for the head of the page: right and missed of 100, and its rank."""
    said, positives = ASKED[view.label]
    precision, recall = view.overall["precision"], view.overall["recall"]
    if precision is None:
        found = "It never says yes, so its precision is undefined."
    else:
        found = f"Of 100 trajectories that it {said}, {round(100 * precision)} are."
    if recall is not None:
        found += f" Of 100 {positives} it finds {round(100 * recall)}."
    return f"{found} {rank_sentence(view)}".strip()


def rank_sentence(view: JudgeView) -> str:
    """Its rank by precision, a range where the test set leaves the order open; why it has none otherwise."""
    rank = view.found["rank"]
    if rank is None:
        reasons = {
            "reference": "It is a reference: it is shown beside the judges and has no rank.",
            "self-reported": "Its metrics are reported by its authors: they are shown, not ranked.",
            "scored": "Another submission of this judge is ranked.",
        }
        return reasons.get(view.row.provenance, "")
    low, high = rank["low"], rank["high"]
    if low == high:
        return f"By precision its rank is {low} of {view.n_ranked}, separate from its neighbours."
    return (
        f"By precision its rank is between {low} and {high} of {view.n_ranked}: "
        "the test set cannot tell those judges apart."
    )


def reading(view: JudgeView) -> list[str]:
    """How often it says yes, where it is best and worst, on which agent, and what it left unanswered."""
    found = [
        _share_of_yes(view),
        _spread(view, BY_BENCHMARK, "on"),
        _spread(view, BY_AGENT, "on trajectories of"),
    ]
    missing = view.overall["no_verdict"]
    if view.overall["tp"] is not None and missing:
        trajectories = "trajectory" if missing == 1 else "trajectories"
        found.append(f"It gave no verdict on {missing:,} {trajectories}; that counts as a no.")
    return [sentence for sentence in found if sentence]


def _share_of_yes(view: JudgeView) -> str:
    if view.yes_shares is None:
        return ""
    judge, experts = view.yes_shares
    apart = judge - experts
    verdict = (
        "about as often as" if abs(apart) < NEAR else "more often than" if apart > 0 else "less often than"
    )
    return (
        f"It says yes to {percent(judge)} % of the trajectories, {verdict} the experts, who say yes to "
        f"{percent(experts)} %."
    )


def _spread(view: JudgeView, heading: str, preposition: str) -> str:
    """The best and the worst cell by precision, of those that rest on enough trajectories."""
    cells = next((cells for title, cells in view.sections if title == heading), ())
    shown = [(title, metric_cell(cell, "precision", view.label)) for title, cell in cells]
    known = [
        (cell.value, title, cell.text) for title, cell in shown if cell.value is not None and not cell.is_few
    ]
    if len(known) < 2:
        return ""
    ordered = sorted(known, key=lambda found: found[0])
    worst, best = ordered[0], ordered[-1]
    return (
        f"Its precision is highest {preposition} {best[1]} ({best[2]}) and lowest {preposition} {worst[1]} "
        f"({worst[2]})."
    )


def describe_costs(costs: RunningCosts) -> list[tuple[str, str]]:
    """What is known of the costs, as (what, how much)."""
    found = []
    if costs.usd_per_1000 is not None:
        share = "" if costs.priced == costs.n else f" (from {costs.priced:,} of {costs.n:,} with a cost)"
        found.append(("1,000 trajectories", f"{dollars(costs.usd_per_1000)}{share}"))
        found.append(("a trajectory", dollars(costs.usd_per_1000 / 1000)))
    if costs.input_tokens is not None:
        found.append(("tokens read", f"{costs.input_tokens:,.0f} a trajectory"))
    if costs.output_tokens is not None:
        found.append(("tokens written", f"{costs.output_tokens:,.0f} a trajectory"))
    if costs.median_seconds is not None:
        found.append(("time to a verdict", f"{costs.median_seconds:,.1f} s, the median"))
    return found


def dollars(amount: float) -> str:
    """``$12.30``, and as many digits as it takes to see a small amount."""
    if amount == 0 or amount >= 0.995:
        return f"${amount:,.2f}"
    return f"${amount:.2g}" if amount >= 0.0001 else f"${amount:.1e}"


def describe_calibration(found: Calibration) -> list[str]:
    """Whether the score means what it says, what it is worth, and what a threshold would change."""
    sentences = []
    apart = found.error
    meant = "close to what it says" if apart < 0.05 else "some way off" if apart < 0.15 else "far off"
    sentences.append(
        f"Score and share of successes lie {100 * apart:.1f} points apart on average: the score is {meant}."
    )
    if found.brier_of_base_rate:
        better = found.brier < found.brier_of_base_rate
        sentences.append(
            f"Its Brier score is {found.brier:.3f}; the same score for every trajectory would reach "
            f"{found.brier_of_base_rate:.3f}, so the score says {'something' if better else 'nothing'} about "
            "a trajectory."
        )
    if found.auc is not None:
        sentences.append(
            f"Of a success and a failure drawn at random, the success has the higher score in "
            f"{100 * found.auc:.0f} of 100 pairs."
        )
    if found.without_score:
        sentences.append(
            f"{found.without_score:,} trajectories have no score; in the sweep they count as a no."
        )
    return sentences
