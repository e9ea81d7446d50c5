"""What the benchmark of the Space has measured: two pages beside each other, and the targets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from bench.readers import FirstLoad, Target
from bench.recorded_load import Load

MOST_TIMES_AT_MEDIAN = 0.15
MOST_TIMES_AT_95TH = 0.2
MOST_BYTES, MOST_REQUESTS, MOST_TIMES_AT_PAINT = 100_000, 8, 0.25
OLD = {"table filled": "0.37", "bytes": "0.41 to 0.78"}
"""Ratios to the bare page while the leaderboard was still a page of Gradio."""


@dataclass(frozen=True)
class Measured:
    """One page: what Chromium asked for, how it opened alone, and seconds to its filled table otherwise."""

    target: Target
    load: Load
    over_http: list[float] = field(default_factory=list)
    alone: list[FirstLoad] = field(default_factory=list)
    among: list[float] = field(default_factory=list)


def report(ours: Measured, bare: Measured, n_readers: int) -> bool:
    """Print both sides and their ratios; whether the targets hold."""
    filled_alone = [[load.filled for load in side.alone] for side in (ours, bare)]
    ways = {
        f"{n_readers} readers over HTTP": (ours.over_http, bare.over_http),
        "Chromium, alone": tuple(filled_alone),
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
            print(f"    {way:<26}{describe_seconds(sides[place])}   ({len(sides[place])} of them)")
        for address in one.load.left_out:
            print(f"    not asked again: {address}")
    ratio_of_bytes = [
        ours.load.to_filled[0] / bare.load.to_filled[0],
        ours.load.in_all[0] / bare.load.in_all[0],
    ]
    print(
        f"  ratios: bytes {ratio_of_bytes[0]:.2f} to the filled table, {ratio_of_bytes[1]:.2f} in all", end=""
    )
    print(f" (as a page of Gradio: {OLD['bytes']}; table filled {OLD['table filled']})")
    for way, (our_seconds, bare_seconds) in ways.items():
        print(f"    {way:<26}median {median(our_seconds) / median(bare_seconds):6.2f}     95th", end=" ")
        print(f"{at_95th(our_seconds) / at_95th(bare_seconds):6.2f}")
    print(f"    (targets for the readers: median at most {MOST_TIMES_AT_MEDIAN}, 95th {MOST_TIMES_AT_95TH})")
    return first_load_holds(ours, bare) and holds(ours.over_http, bare.over_http)


def first_load_holds(ours: Measured, bare: Measured) -> bool:
    """Print the first load of our page in Chromium; whether its targets hold."""
    n_bytes, n_requests = ours.load.in_all
    paint, bare_paint = (median(load.largest_paint for load in side.alone) for side in (ours, bare))
    shift = max(load.layout_shift for load in ours.alone)
    scrolled = max(load.requests_when_scrolled for load in ours.alone)
    print(f"  first load in Chromium: {n_bytes / 1e3:.0f} kB in {n_requests} requests", end=" ")
    print(f"(targets {MOST_BYTES / 1e3:.0f} kB, {MOST_REQUESTS}), {scrolled} more when scrolled (0)")
    print(f"    largest paint after {paint:.2f} s, of the bare page after {bare_paint:.2f} s:", end=" ")
    print(f"{paint / bare_paint:.2f} (target {MOST_TIMES_AT_PAINT}); layout shift {shift:.3f} (0)")
    few = n_bytes <= MOST_BYTES and n_requests <= MOST_REQUESTS and scrolled == 0
    return few and paint / bare_paint <= MOST_TIMES_AT_PAINT and round(shift, 3) == 0


def holds(ours: Sequence[float], bare: Sequence[float]) -> bool:
    """Whether our readers wait for the targets' share of the time, at the median and the 95th percentile."""
    at_median = median(ours) / median(bare)
    return at_median <= MOST_TIMES_AT_MEDIAN and at_95th(ours) / at_95th(bare) <= MOST_TIMES_AT_95TH


def describe_seconds(seconds: Sequence[float]) -> str:
    return f"median {median(seconds):6.2f} s   95th {at_95th(seconds):6.2f} s"


def at_95th(seconds: Sequence[float]) -> float:
    """The 95th percentile, between the two nearest; of a single figure, the figure."""
    return quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else seconds[0]
