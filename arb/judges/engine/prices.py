"""Find the prices of tokens.

These sources are searched in order: the options ``--price``, the table in ``--prices``, the shipped table
`prices.csv` (see `prices.md`), and the package genai-prices. If a model is in none of them, its price is
unknown; it does not count as free.
"""

from __future__ import annotations

import csv
import io
import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from arb.judges.types import ModelSettings, OptionsError, Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices

ANY_PROVIDER: Final = "*"
"""The provider of a price that applies to a model at every provider."""

_REQUIRED: Final = ("provider", "model", "input", "output", "checked", "source")
_OPTIONAL: Final = ("cached_input", "cache_write", "batch_share", "long_from", "long_input", "long_output")
COLUMNS: Final = (*_REQUIRED, *_OPTIONAL)
_SHIPPED: Final = Path(__file__).parent / "prices.csv"

_SELLERS: Final = tomllib.loads(Path(__file__).with_name("sellers.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model in dollars per million tokens.

    ``cached_input`` is the price of input that the provider read from its cache, and ``cache_write`` that of
    input that it wrote to its cache; None means the same as ``input``. All tokens of a call with more than
    ``long_from`` input tokens have the price ``long``. Batches have the price ``batch`` if it is known.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    long_from: int | None = None
    long: Price | None = None
    batch: Price | None = None
    checked: date | None = None
    source: str = ""

    def cost(
        self,
        input_tokens: float,
        output_tokens: float,
        *,
        cached_tokens: float = 0,
        written_tokens: float = 0,
        is_batch: bool = False,
    ) -> float:
        """Return the cost of a call in dollars. ``input_tokens`` includes cached and written tokens."""
        price = self._that_holds(input_tokens, is_batch)
        cached = min(cached_tokens, input_tokens)
        written = min(written_tokens, input_tokens - cached)
        return (
            (input_tokens - cached - written) * price.input
            + cached * (price.input if price.cached_input is None else price.cached_input)
            + written * (price.input if price.cache_write is None else price.cache_write)
            + output_tokens * price.output
        ) / 1_000_000

    def most(self, input_tokens: float, output_tokens: float, *, is_batch: bool = False) -> float:
        """Return the highest possible cost of a call in dollars, with the most expensive use of the cache."""
        price = self._that_holds(input_tokens, is_batch)
        per_input = max(price.input, price.cached_input or 0.0, price.cache_write or 0.0)
        made = output_tokens * price.output if price.output else 0.0  # avoids inf * 0
        return (input_tokens * per_input + made) / 1_000_000

    def _that_holds(self, input_tokens: float, is_batch: bool) -> Price:
        price = self.batch if is_batch and self.batch is not None else self
        while price.long is not None and price.long_from is not None and input_tokens > price.long_from:
            price = price.long
        return price

    def scaled(self, share: float) -> Price:
        names = ("input", "output", "cached_input", "cache_write")
        figures = {name: getattr(self, name) for name in names}
        scaled = {name: share * figure for name, figure in figures.items() if figure}
        return replace(self, **scaled, long=self.long and self.long.scaled(share))


class PriceTable:
    """Prices by provider and model. Upper and lower case do not matter.

    With ``uses_library``, missing prices come from the package genai-prices. At an unknown provider
    (``any``), such as a gateway, a model has its maker's list price if only its maker sells it.
    """

    def __init__(self, prices: Mapping[tuple[str, str], Price], uses_library: bool = False):
        self._prices = {
            (provider.lower(), model.lower()): price for (provider, model), price in prices.items()
        }
        self._uses_library = uses_library
        self._found: dict[tuple[str, str | None, str], Price | None] = {}

    def of(self, model: ModelSettings) -> Price | None:
        """Return the price of a model at its provider, or None if it is unknown."""
        if model.place not in self._found:
            self._found[model.place] = self._price_of_model(model)
        return self._found[model.place]

    def cost(self, model: ModelSettings, usage: Usage, *, is_batch: bool = False) -> float | None:
        """Return the cost of a reply in dollars, or None if the price or the tokens are unknown."""
        price = self.of(model)
        if price is None or usage.input_tokens is None or usage.output_tokens is None:
            return None
        return price.cost(
            usage.input_tokens,
            usage.output_tokens,
            cached_tokens=usage.cached_input_tokens or 0,
            written_tokens=usage.cache_write_tokens or 0,
            is_batch=is_batch,
        )

    def context_window(self, model: ModelSettings) -> int | None:
        """Return the size of a model's context window in tokens, or None if genai-prices does not know it."""
        name, provider = model.model.lower(), _provider_of(model)
        if provider == "any":
            maker, name = _maker_of(name)
            provider = maker or provider
        found = _library_entry(provider, name)
        return found and found[1].context_window

    def _price_of_model(self, model: ModelSettings) -> Price | None:
        name, provider = model.model.lower(), _provider_of(model)
        found = self._prices.get((ANY_PROVIDER, name)) or self._prices.get((provider, name))
        if found is not None or not self._uses_library or provider == SELF_HOSTED:
            return found
        if provider != "any":
            return _library_price(provider, name)
        maker, name = _maker_of(name)
        found = None if maker is None else _library_price(maker, name)
        return found and replace(found, source=f"{found.source}, {maker}'s list: {LIST_PRICE}")


LIST_PRICE: Final = "the endpoint's own price is unknown; give it with --price"

SELF_HOSTED: Final = "vllm"
"""The provider name of the user's own servers, which have no price."""


def _maker_of(name: str) -> tuple[str | None, str]:
    """Return the only seller of a model (None if there are several), and its name without vendor prefix."""
    own = name.rpartition("/")[2]
    makers = (maker for maker, names in _SELLERS["makers"].items() if re.match(names, own))
    return next(makers, None), own


def _library_entry(provider: str, model: str) -> tuple[Provider, ModelInfo] | None:
    """Return a model's entry in genai-prices, or None. Nothing is downloaded."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415  heavy, only for priced models

    try:
        return get_snapshot().find_provider_model(model, None, provider, None)
    except LookupError:
        return None


def _library_price(provider: str, model: str) -> Price | None:
    """Return the current price in genai-prices, or None. Some prices depend on the date or time of day."""
    if (known := _library_entry(provider, model)) is None:
        return None
    from genai_prices import __version__  # noqa: PLC0415  heavy, only for priced models

    found, entry = known
    now = datetime.now(UTC)
    price = _of_library(entry.get_prices(now))
    if price is None:
        return None
    batch = entry.get_prices(now, {"processing": "batch"}) if entry.price_variants else None
    return replace(
        price,
        batch=None if batch is None else _of_library(batch),
        source=f"genai-prices {__version__} ({found.id}: {entry.id})",
    )


def _of_library(rates: ModelPrice) -> Price | None:
    """Convert a price of genai-prices with its tiers; return None if input or output has no price."""
    fields = {
        "input": rates.input_mtok,
        "output": rates.output_mtok,
        "cached_input": rates.cache_read_mtok,
        "cache_write": rates.cache_write_mtok,
    }
    known = {name: rate for name, rate in fields.items() if rate is not None}
    if "input" not in known or "output" not in known:
        return None
    starts = {_ALL_CALLS}
    for rate in known.values():
        starts |= set() if isinstance(rate, Decimal) else {tier.start for tier in rate.tiers}
    price, beyond_from = None, None
    for start in sorted(starts, reverse=True):
        dollars: dict[str, Any] = {name: _rate(rate, start) for name, rate in known.items()}
        price = Price(**dollars, long_from=beyond_from, long=price)
        beyond_from = start
    return price


_ALL_CALLS: Final = -1
"""A start below that of every tier, at which the base price of a model applies."""


def _rate(rate: Decimal | TieredPrices, start: int) -> float:
    """Return the price in dollars per million tokens of a call with ``start`` or more input tokens."""
    if isinstance(rate, Decimal):
        return float(rate)
    return float(next((tier.price for tier in reversed(rate.tiers) if start >= tier.start), rate.base))


def price_facts(prices: PriceTable, models: Mapping[str, ModelSettings]) -> dict[str, Any]:
    """Return the prices of a run's models by role, for run.json. An unknown price is None."""
    facts: dict[str, Any] = {}
    for role, model in sorted(models.items()):
        price = prices.of(model)
        names = ("input", "output", "cached_input", "source")
        facts[role] = price and {"model": model.model} | {name: getattr(price, name) for name in names}
    return facts


def read_prices(table: Path | None = None, overrides: Sequence[str] = ()) -> PriceTable:
    """Return the shipped prices with those of the user's table and overrides (``MODEL=IN,OUT[,CACHED]``).

    Raises OptionsError, which lists all bad rows and overrides.
    """
    problems: list[str] = []
    prices = _read_table(_SHIPPED, problems)
    if table is not None:
        prices |= _read_table(table, problems)
    prices |= _read_overrides(overrides, problems)
    if problems:
        raise OptionsError("; ".join(problems))
    return PriceTable(prices, uses_library=True)


def _provider_of(model: ModelSettings) -> str:
    if model.provider == "any" and model.base_url:
        return _SELLERS["hosts"].get(urlsplit(model.base_url).hostname or "", "any")
    return _SELLERS["providers"].get(model.provider, model.provider.lower())


def _read_overrides(overrides: Iterable[str], problems: list[str]) -> dict[tuple[str, str], Price]:
    read: dict[tuple[str, str], Price] = {}
    for text in overrides:
        model, _, figures = text.rpartition("=")
        read_figures = [_dollars(figure) for figure in figures.split(",")]
        dollars = [figure for figure in read_figures if figure is not None]
        if not model or len(dollars) not in (2, 3) or len(dollars) < len(read_figures):
            problems.append(
                f"--price {text}: write MODEL=IN,OUT or MODEL=IN,OUT,CACHED, in dollars per million "
                "tokens, such as gpt-4o=2.50,10"
            )
            continue
        cached = dollars[2] if len(dollars) == 3 else None
        read[ANY_PROVIDER, model.strip()] = Price(dollars[0], dollars[1], cached, source="--price")
    return read


def _read_table(path: Path, problems: list[str]) -> dict[tuple[str, str], Price]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        problems.append(f"the price table {path} cannot be read ({problem.strerror})")
        return {}
    except UnicodeDecodeError:
        problems.append(f"the price table {path} is not UTF-8 text; save it as CSV in UTF-8")
        return {}
    rows = csv.DictReader(io.StringIO(text))
    header = rows.fieldnames or []
    if missing := [name for name in _REQUIRED if name not in header]:
        problems.append(f"the price table {path} has no column {', '.join(missing)}")
        return {}
    if unknown := [name for name in header if name not in COLUMNS]:
        problems.append(f"the price table {path} has unknown columns: {', '.join(unknown)}")
    prices: dict[tuple[str, str], Price] = {}
    for row in rows:
        where = f"{path}, line {rows.line_num}"
        before = len(problems)
        price = _price_of(row, where, problems)
        if len(problems) == before:
            prices[row["provider"].strip(), row["model"].strip()] = price
    return prices


def _price_of(row: Mapping[str | None, str | None], where: str, problems: list[str]) -> Price:
    def number(name: str, most: float = math.inf) -> float | None:
        text = (row.get(name) or "").strip()
        found = _dollars(text) if text else None
        if (text and (found is None or found > most)) or (not text and name in _REQUIRED):
            problems.append(f"{where}, {name} {text!r}: not a valid number")
        return found

    if None in row or not (row["provider"] or "").strip() or not (row["model"] or "").strip():
        problems.append(f"{where}: give provider, model and no more than {len(COLUMNS)} fields")
    try:
        checked = date.fromisoformat((row["checked"] or "").strip())
    except ValueError:
        problems.append(f"{where}, checked {row['checked']!r}: not a date such as 2026-11-20")
        checked = None
    per_input, per_output = number("input") or 0.0, number("output") or 0.0
    cached, written = number("cached_input"), number("cache_write")
    long_from, long_input, long_output = number("long_from"), number("long_input"), number("long_output")
    share, beyond = number("batch_share", most=1.0), None
    if long_from is not None:
        long_input, long_output = long_input or per_input, long_output or per_output
        times = long_input / per_input if per_input else 1.0  # cached tokens get dearer by the same factor
        beyond = Price(long_input, long_output, cached and cached * times, written and written * times)
    price = Price(
        per_input,
        per_output,
        cached,
        written,
        long_from=None if long_from is None else int(long_from),
        long=beyond,
        checked=checked,
        source=(row["source"] or "").strip(),
    )
    return price if share is None else replace(price, batch=price.scaled(share))


def _dollars(text: str) -> float | None:
    try:
        found = float(text.strip())
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= 0 else None
