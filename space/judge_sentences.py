"""What a judge's figures say, in sentences made from them."""

from types import MappingProxyType
from typing import Final

from leaderboard.calibration import Calibration
from leaderboard.report_tables import percent
from leaderboard.running_costs import RunningCosts
from space.judge_view import JudgeView, Line

ASKED: Final = MappingProxyType(
    {
        "success": ("calls successful", "successes"),
        "side_effect": ("says had a side effect", "side effects"),
        "repetition": ("says went in circles", "repetitions"),
    }
)
NEAR: Final = 0.02
"""Two shares of yes that are nearer than this are told as alike."""


def lead(view: JudgeView) -> str:
    """One or two sentences for the head of the page: right and missed of 100, and its place."""
    overall = view.sections[0].lines[0].rates
    said, positives = ASKED[view.label]
    precision, recall = overall["precision"].value, overall["recall"].value
    if precision is None:
        found = "It never says yes, so its precision is undefined."
    else:
        found = f"Of 100 runs that it {said}, {round(100 * precision)} are."
    if recall is not None:
        found += f" Of 100 {positives} it finds {round(100 * recall)}."
    return f"{found} {place(view)}".strip()


def place(view: JudgeView) -> str:
    """Its rank by precision, a range where the test set leaves the order open; why it has none otherwise."""
    if view.rank is None:
        reasons = {
            "reference": "A reference: it stands beside the judges and has no rank.",
            "self-reported": "Its figures are its authors' own: shown, not ranked.",
            "scored": "Another submission of this judge is ranked.",
        }
        return reasons.get(view.row.provenance, "")
    low, high = view.rank["low"], view.rank["high"]
    if low == high:
        return f"By precision it stands in place {low} of {view.n_ranked}, apart from its neighbours."
    return (
        f"By precision it may stand anywhere from place {low} to {high} of {view.n_ranked}: "
        "the test set cannot tell those judges apart."
    )


def reading(view: JudgeView) -> list[str]:
    """How often it says yes, where it is best and worst, on which agent, and what it left unanswered."""
    found = [
        _share_of_yes(view),
        _spread(view, "By benchmark", "on"),
        _spread(view, "By agent", "on runs of"),
    ]
    if view.confusion and view.confusion.no_verdict:
        runs = "run" if view.confusion.no_verdict == 1 else "runs"
        found.append(f"It gave no verdict on {view.confusion.no_verdict:,} {runs}; that counts as a no.")
    return [sentence for sentence in found if sentence]


def _share_of_yes(view: JudgeView) -> str:
    counts = view.confusion
    if counts is None or counts.said_yes_share is None or counts.true_share is None:
        return ""
    apart = counts.said_yes_share - counts.true_share
    verdict = (
        "about as often as" if abs(apart) < NEAR else "more often than" if apart > 0 else "less often than"
    )
    return (
        f"It says yes to {percent(counts.said_yes_share)} % of the runs, {verdict} the experts, who do to "
        f"{percent(counts.true_share)} %."
    )


def _spread(view: JudgeView, section: str, preposition: str) -> str:
    """The best and the worst line by precision, of those that rest on enough runs."""
    lines = next((found.lines for found in view.sections if found.title == section), ())
    known: list[Line] = [
        line
        for line in lines
        if line.rates["precision"].value is not None and not line.rates["precision"].is_few
    ]
    if len(known) < 2:
        return ""
    ordered = sorted(known, key=lambda line: line.rates["precision"].value)
    worst, best = ordered[0], ordered[-1]
    return (
        f"Its precision is highest {preposition} {best.title} ({best.rates['precision'].text}) and lowest "
        f"{preposition} {worst.title} ({worst.rates['precision'].text})."
    )


def costs_in_words(costs: RunningCosts) -> list[tuple[str, str]]:
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


def calibration_in_words(found: Calibration) -> list[str]:
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
            f"Its Brier score is {found.brier:.3f}; one and the same score for every run would reach "
            f"{found.brier_of_base_rate:.3f}, so the score says {'something' if better else 'nothing'} about "
            "a run."
        )
    if found.auc is not None:
        sentences.append(
            f"Of a success and a failure drawn at random, the success has the higher score in "
            f"{100 * found.auc:.0f} of 100 pairs."
        )
    if found.without_score:
        sentences.append(f"{found.without_score:,} runs have no score; in the sweep they are a no.")
    return sentences
