"""Money that a run may spend: set aside before a call, for the most that it can cost, and counted after it.

`Budget.reserve` waits while money is set aside for calls under way, since most of them cost less than their
most; it gives up only when the call could not be paid whatever they cost. So the limit is never passed, and
little of it is left over.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from judges.types import Message, ModelSettings, OptionsError, Reply

if TYPE_CHECKING:
    from judges.engine.prices import PriceTable

Ceiling = Callable[[ModelSettings, tuple[Message, ...]], int]
"""More tokens than this a prompt never has."""


class BudgetReached(Exception):
    """The next call might pass the limit; the message says what was spent and how to go on."""


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Money set aside for one attempt at a call: ``usd`` is the most that it can cost."""

    usd: float
    model: ModelSettings


class Spending(Protocol):
    """The budget as the executor uses it. Around every attempt: `reserve`, then `settle` exactly once."""

    async def reserve(
        self, model: ModelSettings, messages: tuple[Message, ...], max_output_tokens: int
    ) -> Reservation:
        """Set money aside for one attempt; waits for it when needed. Raises BudgetReached."""

    def settle(self, reservation: Reservation, reply: Reply | None, *, maybe_paid: bool = False) -> None:
        """Give a reservation back, less what the attempt cost.

        ``reply`` is None when none came. ``maybe_paid`` says that the endpoint may have made one all the same
        (a timeout, a cut connection, an answer that cannot be read): then the most it can cost counts.
        """

    def cost_of(
        self, model: ModelSettings, input_tokens: int | None, output_tokens: int | None
    ) -> float | None:
        """What a reply cost in dollars; None when the price or the tokens are unknown."""


class Budget:
    """Keeps a run below ``max_usd``. For one event loop; ``spent_usd`` is what the run had spent before.

    Every model asked needs a price (`build_budget` sees to it): a reservation without one raises ValueError.
    """

    def __init__(self, max_usd: float, prices: "PriceTable", ceiling: Ceiling, spent_usd: float = 0.0):
        self.max_usd = max_usd
        self.spent_usd = spent_usd
        self.presumed_usd = 0.0  # the part of it for attempts that may have been paid, with nothing to show
        self._prices = prices
        self._ceiling = ceiling
        self._open: set[Reservation] = set()
        self._change = asyncio.Event()

    async def reserve(
        self, model: ModelSettings, messages: tuple[Message, ...], max_output_tokens: int
    ) -> Reservation:
        """Set money aside for one attempt; waits while calls under way may leave enough.

        Raises BudgetReached.
        """
        price = self._prices.of(model)
        if price is None:
            raise ValueError(f"{model.model} has no price, so no money can be set aside for it")
        most = price.cost(self._ceiling(model, messages), max_output(model, max_output_tokens))
        while self.spent_usd + self._reserved_usd + most > self.max_usd:
            if not self._open or self.spent_usd + most > self.max_usd:
                raise BudgetReached(reached(self.max_usd, self.spent_usd, most))
            self._change.clear()
            await self._change.wait()
        reservation = Reservation(most, model)
        self._open.add(reservation)
        return reservation

    def settle(self, reservation: Reservation, reply: Reply | None, *, maybe_paid: bool = False) -> None:
        """Give a reservation back, less what the attempt cost; see `Spending.settle`."""
        if reservation not in self._open:
            raise ValueError("a reservation is settled once")
        self._open.discard(reservation)
        if reply is not None:
            paid = self.cost_of(reservation.model, reply.input_tokens, reply.output_tokens)
            self.spent_usd += reservation.usd if paid is None else paid
            self.presumed_usd += reservation.usd if paid is None else 0.0
        elif maybe_paid:
            self.spent_usd += reservation.usd
            self.presumed_usd += reservation.usd
        self._change.set()

    def cost_of(
        self, model: ModelSettings, input_tokens: int | None, output_tokens: int | None
    ) -> float | None:
        return cost_of(self._prices, model, input_tokens, output_tokens)

    @property
    def _reserved_usd(self) -> float:
        return sum(each.usd for each in self._open)


class NoBudget:
    """No limit: reserves nothing, and tells what replies cost where prices are known."""

    def __init__(self, prices: "PriceTable | None" = None):
        self._prices = prices

    async def reserve(
        self, model: ModelSettings, messages: tuple[Message, ...], max_output_tokens: int
    ) -> Reservation:
        return Reservation(0.0, model)

    def settle(self, reservation: Reservation, reply: Reply | None, *, maybe_paid: bool = False) -> None: ...

    def cost_of(
        self, model: ModelSettings, input_tokens: int | None, output_tokens: int | None
    ) -> float | None:
        return None if self._prices is None else cost_of(self._prices, model, input_tokens, output_tokens)


def reached(max_usd: float, spent_usd: float, most_usd: float) -> str:
    """The message of a run that stopped before a call of this cost."""
    return (
        f"stopped at --max-usd {max_usd:g}: ${spent_usd:.4f} is spent and the next call may cost "
        f"${most_usd:.4f}. Finished trajectories are saved; to continue, run the same command with a higher "
        "--max-usd"
    )


def cost_of(
    prices: "PriceTable", model: ModelSettings, input_tokens: int | None, output_tokens: int | None
) -> float | None:
    price = prices.of(model)
    if price is None or input_tokens is None or output_tokens is None:
        return None
    return price.cost(input_tokens, output_tokens)


def max_output(model: ModelSettings, max_output_tokens: int) -> int:
    """The most tokens of a reply; what the user adds to the request may raise them."""
    given = [model.extra.get(name) for name in ("max_tokens", "max_completion_tokens")]
    choices = model.extra.get("n")
    longest = max([max_output_tokens, *(each for each in given if isinstance(each, int))])
    return longest * (choices if isinstance(choices, int) and choices > 1 else 1)


def build_budget(
    max_usd: float | None,
    prices: "PriceTable",
    models: Mapping[str, ModelSettings],
    spent_usd: float = 0.0,
) -> Budget | NoBudget:
    """The budget of a run. ``spent_usd`` is what its folder has cost so far.

    Raises OptionsError for a limit where the price of a model is unknown.
    """
    from judges.engine.tokens import token_ceiling

    if max_usd is None:
        return NoBudget(prices)
    unknown = sorted({model.model for model in models.values() if prices.of(model) is None})
    if unknown:
        flags = " ".join(f"--price {name}=IN,OUT" for name in unknown)
        raise OptionsError(
            f"--max-usd cannot be enforced: the price of {', '.join(unknown)} is unknown. Give it in "
            f"dollars for a million tokens ({flags}), or leave --max-usd out"
        )
    return Budget(max_usd, prices, token_ceiling, spent_usd)
