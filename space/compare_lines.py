"""The lines of the compare page's tables, and how their numbers are written. Pure."""

from dataclasses import dataclass

from leaderboard.votes import Vote
from space.axis import Span
from space.board_figures import Cell


@dataclass(frozen=True)
class Side:
    """One judge of the comparison: its name, where it comes from, its figure overall and by benchmark."""

    name: str
    row_id: str
    told: str
    has_verdicts: bool
    main: Cell
    span: Span | None
    words: str
    others: tuple[Cell, ...]
    benchmarks: tuple[Cell, ...]


@dataclass(frozen=True)
class Whisker:
    """One line of the forest: the first judge less another, in points."""

    place: int
    name: str
    first: str
    second: str
    value: str
    interval: str
    span: Span | None
    words: str
    basis: str
    favours: int
    is_few: bool


@dataclass(frozen=True)
class Grove:
    """The whiskers of one cell: all trajectories, a benchmark, an agent."""

    title: str
    kind: str
    whiskers: tuple[Whisker, ...]


@dataclass(frozen=True)
class PairLine:
    """Two judges run by run; the counts are words or a dash."""

    first: str
    second: str
    value: str
    interval: str
    favours: int
    agree: str
    kappa: str
    only_first: str
    only_second: str
    p: str
    shared: str
    by_chance: str
    shared_hover: str


@dataclass(frozen=True)
class VoteLine:
    """A vote of the judges with verdicts, or one of them alone."""

    name: str
    is_vote: bool
    precision: Cell
    span: Span | None
    words: str
    recall: Cell
    f1: Cell


@dataclass(frozen=True)
class FooledLine:
    """Runs that so many of the judges get wrong, and their share of all runs in percent."""

    how_many: str
    false_alarms: int
    misses: int
    runs: int
    share: float


def points(value: float | None) -> str:
    """A difference of fractions in points, signed: ``+15.2``, ``−0.4``, a dash where undefined."""
    if value is None:
        return "–"
    text = f"{100 * value:+.1f}".replace("-", "−")
    return "0.0" if text[1:] == "0.0" else text


def interval_in_points(interval: tuple[float, float] | None) -> str:
    """``+10.6 to +20.0``; empty where there is none."""
    return "" if interval is None else f"{points(interval[0])} to {points(interval[1])}"


def p_value(p: float) -> str:
    """``0.14``, ``0.0032``, ``< 0.0001``."""
    return "< 0.0001" if p < 0.0001 else f"{p:.2g}" if p < 0.995 else "1"


def vote_name(vote: Vote) -> str:
    """``All 3 say yes``, ``At least 2 of 3 (majority)``, ``At least 1 of 3``."""
    if vote.is_unanimous:
        return "Both say yes" if vote.n_judges == 2 else f"All {vote.n_judges} say yes (unanimous)"
    name = f"At least {vote.needed} of {vote.n_judges}"
    return f"{name} (majority)" if vote.is_majority else name
