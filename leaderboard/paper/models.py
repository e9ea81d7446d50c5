"""What is known about the models behind judges, and the costs of published rows.

`models.csv` and `costs.csv` in ``leaderboard/published/`` have a source in every line. Fields for which there
is no source are empty.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import NonNegativeFloat, PositiveInt

from leaderboard.costs import Cost
from leaderboard.paper.published_files import PUBLISHED, Line, Names, PublishedDataError, read_lines

Weights = Literal["open", "closed", "open and closed", ""]
WEIGHTS: Final[Mapping[str, str]] = {
    "open": "the model's weights can be downloaded",
    "closed": "the model is only available as a service of its maker",
    "open and closed": "the judge calls models of both kinds",
}


@dataclass(frozen=True, slots=True)
class Model:
    """A line of ``models.csv``: a model, its other names, and who made it under which licence."""

    model: str
    aliases: Names
    maker: str
    weights: Weights
    licence: str
    link: str
    source: str


@dataclass(frozen=True, slots=True)
class PublishedCost:
    """A line of ``costs.csv``: the tokens of a judge's logged replies and the prices of a day.

    Tokens are sums over the logged replies: one reply for each of ``replies`` of the ``of`` trajectories.
    Prices are in dollars per million tokens. If ``is_complete`` is not "yes", the judge makes other calls,
    whose tokens are not known.
    """

    row_id: str
    replies: PositiveInt
    of: PositiveInt
    input_tokens: PositiveInt
    output_tokens: PositiveInt
    model: str
    input_usd: NonNegativeFloat
    output_usd: NonNegativeFloat
    prices: str
    priced_on: date
    is_complete: Literal["yes", ""]
    note: str
    source: str

    def as_cost(self) -> Cost:
        """Return the cost with its basis."""
        usd = self.input_tokens * self.input_usd + self.output_tokens * self.output_usd  # millionths
        basis = f"{self.source}; {self.model} at the list prices of {self.priced_on} ({self.prices})"
        return {
            "usd_per_1000": round(usd / self.replies / 1_000, 6),
            "rows": self.replies,
            "of": self.of,
            "is_at_least": not self.is_complete,
            "basis": f"{basis}. {self.note}" if self.note else basis,
        }


def _read(path: Path, line_type: type[Line]) -> list[Line]:
    """Return the lines of a CSV file. Raises PublishedDataError with every problem."""
    problems: list[str] = []
    lines = [line for _, line in read_lines(path, line_type, problems)]
    if problems:
        raise PublishedDataError("; ".join(problems))
    return lines


@lru_cache(maxsize=2)
def read_models(path: Path = PUBLISHED / "models.csv") -> Mapping[str, Model]:
    """Return the models, keyed by each of their names in lower case. Raises PublishedDataError."""
    found: dict[str, Model] = {}
    for model in _read(path, Model):
        for name in (model.model, *model.aliases):
            if name.lower() in found and found[name.lower()] is not model:
                raise PublishedDataError(f"{path.name}, model {model.model!r}: {name} names an earlier model")
            found[name.lower()] = model
    return found


@lru_cache(maxsize=2)
def read_costs(path: Path = PUBLISHED / "costs.csv") -> Mapping[str, PublishedCost]:
    """Return the costs of published rows, keyed by row id. Raises PublishedDataError."""
    return {cost.row_id: cost for cost in _read(path, PublishedCost)}


def model_fields(name: str) -> dict[str, Any]:
    """Return the `BoardRow` fields that describe a model, or an empty dict if ``models.csv`` lacks it."""
    model = read_models().get(name.strip().lower())
    if model is None:
        return {}
    known = ("maker", "weights", "licence")
    return {"model_link": model.link} | {field: getattr(model, field) for field in known}
