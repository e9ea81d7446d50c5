"""What the benchmark of the Space has measured, in words: two pages beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from bench.readers import Target
from bench.recorded_load import Load

MOST_TIMES_AT_MEDIAN = 1.0
MOST_TIMES_AT_95TH = 1.2


@dataclass(frozen=True)
class Measured:
    """One page: what Chromium asked for, and seconds to its filled table in each of the three ways."""

    target: Target
    load: Load
    over_http: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    among: list[float] = field(default_factory=list)


def report(ours: Measured, bare: Measured, n_readers: int) -> bool:
    """Print both sides and their ratios; whether the targets hold, which are for the readers over HTTP."""
    ways = {
        f"{n_readers} readers over HTTP": (ours.over_http, bare.over_http),
        "Chromium, alone": (ours.alone, bare.alone),
        f"Chromium among {n_readers}": (ours.among, bare.among),
    }
    for place, one in enumerate((ours, bare)):
        (filled_bytes, filled), (all_bytes, in_all) = one.load.to_filled, one.load.in_all
        print(
            f"  {one.target.name}: {filled_bytes / 1e3:.0f} kB in {filled} requests to the filled table,",
            end=" ",
        )
        print(f"{all_bytes / 1e3:.0f} kB in {in_all} until the page rests")
        for way, sides in ways.items():
            print(f"    {way:<26}{in_words(sides[place])}   ({len(sides[place])} of them)")
        for address in one.load.left_out:
            print(f"    not asked again: {address}")
    ratio_of_bytes = [
        ours.load.to_filled[0] / bare.load.to_filled[0],
        ours.load.in_all[0] / bare.load.in_all[0],
    ]
    print(f"  ratios: bytes {ratio_of_bytes[0]:.2f} to the filled table, {ratio_of_bytes[1]:.2f} in all")
    for way, (our_seconds, bare_seconds) in ways.items():
        print(f"    {way:<26}median {median(our_seconds) / median(bare_seconds):6.2f}     95th", end=" ")
        print(f"{at_95th(our_seconds) / at_95th(bare_seconds):6.2f}")
    print(f"    (targets for the readers: median at most {MOST_TIMES_AT_MEDIAN}, 95th {MOST_TIMES_AT_95TH})")
    return holds(ours.over_http, bare.over_http)


def holds(ours: Sequence[float], bare: Sequence[float]) -> bool:
    """Whether our readers wait no longer at the median, and at the 95th percentile hardly longer."""
    at_median = median(ours) / median(bare)
    return at_median <= MOST_TIMES_AT_MEDIAN and at_95th(ours) / at_95th(bare) <= MOST_TIMES_AT_95TH


def in_words(seconds: Sequence[float]) -> str:
    return f"median {median(seconds):6.2f} s   95th {at_95th(seconds):6.2f} s"


def at_95th(seconds: Sequence[float]) -> float:
    """The 95th percentile, between the two nearest; of a single figure, the figure."""
    return quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]
