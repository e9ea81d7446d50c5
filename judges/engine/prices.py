"""What tokens cost: a dated table (`prices.csv`; see `prices.md`), a table of the user's own, and overrides.

A model without a row has no price: unknown, never nothing.
"""

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from judges.types import ModelSettings, OptionsError

ANY_PROVIDER: Final = "*"
"""The provider of a price that holds wherever the model is asked."""

COLUMNS: Final = (
    "provider",
    "model",
    "input",
    "output",
    "cached_input",
    "batch_share",
    "long_from",
    "long_input",
    "long_output",
    "checked",
    "source",
)
_REQUIRED: Final = ("provider", "model", "input", "output", "checked", "source")
_SHIPPED: Final = Path(__file__).parent / "prices.csv"

_PROVIDERS_BY_HOST: Final = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "openrouter.ai": "openrouter",
    "api.together.xyz": "together",
    "api.together.ai": "together",
}


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars for a million tokens of a model.

    Prompts longer than ``long_from`` tokens cost ``long_input`` and ``long_output``. ``batch_share`` is what
    a batch costs of it, None where there are no batches. ``cached_input`` is the price of input that the
    provider had in its own cache: for information, since no plan can count on it.
    """

    input: float
    output: float
    cached_input: float | None = None
    batch_share: float | None = None
    long_from: int | None = None
    long_input: float | None = None
    long_output: float | None = None
    checked: date | None = None
    source: str = ""

    def cost(self, input_tokens: float, output_tokens: float, *, is_batch: bool = False) -> float:
        """Dollars for a call; in a batch less, where that is known."""
        is_long = self.long_from is not None and input_tokens > self.long_from
        per_input = self.long_input if is_long and self.long_input is not None else self.input
        per_output = self.long_output if is_long and self.long_output is not None else self.output
        share = self.batch_share if is_batch and self.batch_share is not None else 1.0
        return share * (input_tokens * per_input + output_tokens * per_output) / 1_000_000


class PriceTable:
    """Prices by provider and model, whatever their case."""

    def __init__(self, prices: Mapping[tuple[str, str], Price]):
        self._prices = {
            (provider.lower(), model.lower()): price for (provider, model), price in prices.items()
        }

    def of(self, model: ModelSettings) -> Price | None:
        """The price of a model where it is asked; None when it is unknown."""
        name = model.model.lower()
        return self._prices.get((ANY_PROVIDER, name)) or self._prices.get((_provider_of(model), name))

    def cost(
        self,
        model: ModelSettings,
        input_tokens: int | None,
        output_tokens: int | None,
        *,
        is_batch: bool = False,
    ) -> float | None:
        """Dollars for a reply; None when the price or the tokens are unknown."""
        price = self.of(model)
        if price is None or input_tokens is None or output_tokens is None:
            return None
        return price.cost(input_tokens, output_tokens, is_batch=is_batch)

    def __or__(self, other: "PriceTable") -> "PriceTable":
        """The prices of both; where both have one, the other's."""
        return PriceTable(self._prices | other._prices)

    def __len__(self) -> int:
        return len(self._prices)


def read_prices(table: Path | None = None, overrides: Sequence[str] = ()) -> PriceTable:
    """The shipped table, over it the rows of ``table``, over them ``MODEL=IN,OUT[,CACHED]``.

    Raises OptionsError that names every bad row and every bad override.
    """
    problems: list[str] = []
    prices = _read_table(_SHIPPED, problems)
    if table is not None:
        prices |= _read_table(table, problems)
    prices |= _read_overrides(overrides, problems)
    if problems:
        raise OptionsError("; ".join(problems))
    return prices


def _provider_of(model: ModelSettings) -> str:
    if model.provider == "any" and model.base_url:
        return _PROVIDERS_BY_HOST.get(urlsplit(model.base_url).hostname or "", "any")
    return model.provider.lower()


def _read_overrides(overrides: Iterable[str], problems: list[str]) -> PriceTable:
    read: dict[tuple[str, str], Price] = {}
    for text in overrides:
        model, _, figures = text.rpartition("=")
        dollars = [_dollars(figure) for figure in figures.split(",")]
        if not model or len(dollars) not in (2, 3) or None in dollars:
            problems.append(
                f"--price {text}: write MODEL=IN,OUT or MODEL=IN,OUT,CACHED, in dollars for a million "
                "tokens, such as gpt-4o=2.50,10"
            )
            continue
        read[ANY_PROVIDER, model.strip()] = Price(*dollars, source="--price")
    return PriceTable(read)


def _read_table(path: Path, problems: list[str]) -> PriceTable:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        problems.append(f"the price table {path} cannot be read ({problem})")
        return PriceTable({})
    rows = csv.DictReader(io.StringIO(text))
    header = rows.fieldnames or []
    if missing := [name for name in _REQUIRED if name not in header]:
        problems.append(f"the price table {path} has no column {', '.join(missing)}")
        return PriceTable({})
    if unknown := [name for name in header if name not in COLUMNS]:
        problems.append(f"the price table {path} has columns it should not: {', '.join(unknown)}")
    prices: dict[tuple[str, str], Price] = {}
    for row in rows:
        where = f"{path}, line {rows.line_num}"
        before = len(problems)
        price = _price_of(row, where, problems)
        if len(problems) == before:
            prices[row["provider"].strip(), row["model"].strip()] = price
    return PriceTable(prices)


def _price_of(row: Mapping[str | None, str | None], where: str, problems: list[str]) -> Price:
    def number(name: str, most: float = math.inf) -> float | None:
        text = (row.get(name) or "").strip()
        found = _dollars(text) if text else None
        if (text and (found is None or found > most)) or (not text and name in _REQUIRED):
            problems.append(f"{where}, {name} {text!r}: not a valid number")
        return found

    if None in row or not (row["provider"] or "").strip() or not (row["model"] or "").strip():
        problems.append(f"{where}: a row has provider, model and {len(COLUMNS)} fields at most")
    try:
        checked = date.fromisoformat((row["checked"] or "").strip())
    except ValueError:
        problems.append(f"{where}, checked {row['checked']!r}: not a date such as 2026-11-20")
        checked = None
    long_from = number("long_from")
    return Price(
        input=number("input") or 0.0,
        output=number("output") or 0.0,
        cached_input=number("cached_input"),
        batch_share=number("batch_share", most=1.0),
        long_from=None if long_from is None else int(long_from),
        long_input=number("long_input"),
        long_output=number("long_output"),
        checked=checked,
        source=(row["source"] or "").strip(),
    )


def _dollars(text: str) -> float | None:
    try:
        found = float(text.strip())
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= 0 else None
