"""A common axis for intervals drawn in the rows of a table: where a value stands on it, in percent."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor

MOST_TICKS = 3
"""Steps between the first tick and the last; more would run into each other in a table."""

_LAST_DIGIT = 1e-9
"""Sums of fractions may differ in their last digits; a value on the edge is on the axis."""


@dataclass(frozen=True, slots=True)
class Span:
    """A dot with its interval, as percentages of the axis.

    ``off`` says on which side the dot itself lies off the axis: -1, 0, 1; ``runs_left`` and ``runs_right``
    whether the interval was cut at an end.
    """

    dot: float
    left: float
    width: float
    off: int = 0
    runs_left: bool = False
    runs_right: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of fractions and its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def around(
        cls, values: Iterable[float | None], step: float = 0.1, include: Sequence[float] = ()
    ) -> "Axis":
        """From the whole step below the lowest to the one above the highest; 0 to 1 where there is none."""
        known = [value for value in (*values, *include) if value is not None]
        if not known:
            return cls.over(0, round(1 / step), step)
        low, high = floor(min(known) / step + _LAST_DIGIT), ceil(max(known) / step - _LAST_DIGIT)
        return cls.over(low, high if high > low else low + 1, step)

    @classmethod
    def over(cls, low: int, high: int, step: float) -> "Axis":
        """From ``low`` to ``high`` steps, with a few ticks on whole steps."""
        every = max(1, ceil((high - low) / MOST_TICKS))
        if low < 0 < high:  # a tick on zero
            places = sorted({*range(0, high + 1, every), *range(0, low - 1, -every)})
        else:
            places = list(range(low, high + 1, every))
        return cls(low * step, high * step, tuple(round(place * step, 6) for place in places))

    def place(self, value: float) -> float:
        """Where a value stands, in percent of the width; cut at the ends."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)

    def span(self, value: float | None, interval: Sequence[float] | None) -> Span | None:
        """A value with its interval; None where there is no value."""
        if value is None:
            return None
        low, high = interval or (value, value)
        left = self.place(low)
        return Span(
            dot=self.place(value),
            left=left,
            width=round(self.place(high) - left, 2),
            off=int(self._is_above(value)) - int(self._is_below(value)),
            runs_left=self._is_below(low),
            runs_right=self._is_above(high),
        )

    def _is_below(self, value: float) -> bool:
        return value < self.low - _LAST_DIGIT

    def _is_above(self, value: float) -> bool:
        return value > self.high + _LAST_DIGIT
