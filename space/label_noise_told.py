"""What noise in the labels does to a judge's precision, in words and as a band beside its interval."""

from dataclasses import dataclass

from leaderboard.board import BoardRow
from leaderboard.label_noise import disagreement_rates, noise_band
from leaderboard.report_tables import interval, percent
from space.axis import Axis
from submissions.service import SubmissionService


@dataclass(frozen=True)
class LabelNoise:
    """Where the band lies on the precision's axis, in percent of its width, and what it means."""

    left: float
    width: float
    words: str
    sentence: str
    caveat: str


CAVEAT = (
    "The draws do not depend on the judge. Where people and judges find the same trajectories hard, "
    "other people’s labels would cost it less than this: the loss is overstated."
)


def describe_label_noise(
    service: SubmissionService, row: BoardRow, label: str, axis: Axis
) -> LabelNoise | None:
    """The noise of a row's label. None for references, where labels are private, and where
    no two annotators are known to differ."""
    test = service.labels_for_public_figures()
    if test is None or row.provenance == "reference":
        return None
    rates = disagreement_rates([found for found in (service.labels.dev, test) if found is not None], label)
    band = noise_band(row.labels.get(label), rates)
    if band is None or not rates.overall.differing:
        return None
    left, right = axis.place(band.low), axis.place(band.high)
    ends = interval((band.low, band.high))
    return LabelNoise(
        left=left,
        width=round(right - left, 2),
        words=f"another person's labels: {ends}",
        sentence=(
            f"Two annotators differ on {rates.overall.differing} of the {rates.overall.doubles} trajectories "
            "that both labelled. If another person, who differs as often, gave every label, its precision of "
            f"{percent(band.precision)} % would be about {percent(band.mean)} %, and within {ends} in 95 of "
            "100 draws: the pale band below the interval."
        ),
        caveat=CAVEAT,
    )
