"""Money that a run may spend: set aside before a call, and counted after it.

Each call under way has the most set aside that it can cost: a token for every byte of its prompt, what its
pictures take at most, and the longest reply. No tokenizer in use gives more than a token a byte, so the limit
is not passed. English takes a quarter of that: as the limit comes near, calls wait for each other, and in the
end one is made at a time. Less is left over than any refused call could cost: no more than a tenth of a limit
that is ten times that.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from judges.engine.prices import PriceTable
from judges.engine.tokens import token_ceiling
from judges.types import Message, ModelSettings, OptionsError, Usage

NEARLY_SPENT: Final = 0.9
"""From this share of the limit on, a call that cannot be paid ends the run. Before, another may cost less."""

MAX_REFUSED: Final = 64
"""So many calls in a row that cannot be paid end the run, whatever is left."""


class BudgetReached(Exception):
    """The next call might pass the limit; the message says what was spent and how to continue.

    ``is_final``: hardly any other call can be paid either.
    """

    def __init__(self, message: str, *, is_final: bool = True):
        super().__init__(message)
        self.is_final = is_final


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Money set aside for one attempt at a call: ``usd`` is the most that it can cost, ``output`` the most
    tokens that it may make.
    """

    usd: float
    model: ModelSettings
    output: int = 0


class Budget:
    """Keeps a run below ``max_usd``; without it nothing is set aside, and replies cost what the prices say.

    For one event loop. ``spent_usd`` is what the run had spent before; ``ceiling`` gives more tokens than a
    prompt has. Under a limit every model needs a price (`build_budget` sees to it): a reservation without one
    raises ValueError.
    """

    def __init__(
        self,
        max_usd: float | None = None,
        prices: PriceTable | None = None,
        ceiling: Callable[[ModelSettings, tuple[Message, ...]], int] = token_ceiling,
        spent_usd: float = 0.0,
    ):
        self.max_usd = max_usd
        self.spent_usd = spent_usd
        self.presumed_usd = 0.0  # the part of it for attempts that may have been paid, with nothing to show
        self._prices = prices or PriceTable({})
        self._ceiling = ceiling
        self._open: set[Reservation] = set()
        self._change = asyncio.Event()
        self._overrun: dict[tuple[str, str | None, str], float] = {}
        self._refused = 0

    async def reserve(
        self, model: ModelSettings, messages: tuple[Message, ...], max_output_tokens: int
    ) -> Reservation:
        """Set money aside for one attempt; waits while calls under way may leave enough.

        Every reservation is settled exactly once. Raises BudgetReached.
        """
        if self.max_usd is None:
            return Reservation(0.0, model)
        prompt, output = self._ceiling(model, messages), max_output(model, max_output_tokens)
        while True:
            usd = self._most_usd(model, prompt, output)
            if self.spent_usd + usd > self.max_usd:
                raise self._refusal(usd)
            if self.spent_usd + self._reserved_usd + usd <= self.max_usd:
                break
            self._change.clear()
            await self._change.wait()
        self._refused = 0
        reservation = Reservation(usd, model, output)
        self._open.add(reservation)
        return reservation

    def _most_usd(self, model: ModelSettings, prompt: int, output: int) -> float:
        """The most that an attempt can cost, as far as is known of how long the model's replies are."""
        price = self._prices.of(model)
        if price is None:
            raise ValueError(f"{model.model} has no price, so no money can be set aside for it")
        return price.most(prompt, output * self._overrun.get(_place(model), 1.0))

    def settle(self, reservation: Reservation, usage: Usage | None, *, maybe_paid: bool = False) -> None:
        """Give a reservation back, less what the attempt cost.

        ``usage`` is None when no reply came, and nothing was counted. ``maybe_paid`` says that the endpoint
        may have made one nevertheless (a timeout, a cut connection, an answer that cannot be read): then the
        most it can cost counts.
        """
        if self.max_usd is None:
            return
        if reservation not in self._open:
            raise ValueError("a reservation is settled once")
        self._open.discard(reservation)
        if usage is not None:
            paid = self.cost_of(reservation.model, usage)
            self.spent_usd += reservation.usd if paid is None else paid
            self.presumed_usd += reservation.usd if paid is None else 0.0
            self._learn_overrun(reservation, usage)
        elif maybe_paid:
            self.spent_usd += reservation.usd
            self.presumed_usd += reservation.usd
        self._change.set()

    def cost_of(self, model: ModelSettings, usage: Usage) -> float | None:
        """What a reply cost in dollars; None when the price or the tokens are unknown."""
        return self._prices.cost(model, usage)

    def _learn_overrun(self, reservation: Reservation, usage: Usage) -> None:
        """How many times the longest reply that was allowed a model makes: some do not count hidden reasoning
        into it.
        """
        if usage.output_tokens and reservation.output:
            place = _place(reservation.model)
            found = usage.output_tokens / reservation.output
            self._overrun[place] = max(self._overrun.get(place, 1.0), found)

    def _refusal(self, usd: float) -> BudgetReached:
        self._refused += 1
        is_spent = self.spent_usd >= NEARLY_SPENT * self.max_usd
        message = limit_message(self.max_usd, self.spent_usd, usd)
        return BudgetReached(message, is_final=is_spent or self._refused >= MAX_REFUSED)

    @property
    def _reserved_usd(self) -> float:
        return sum(each.usd for each in self._open)


def _place(model: ModelSettings) -> tuple[str, str | None, str]:
    return model.provider, model.base_url, model.model


def limit_message(max_usd: float, spent_usd: float, most_usd: float) -> str:
    """The message of a run that stopped before a call of this cost."""
    return (
        f"stopped at --max-usd {max_usd:g}: ${spent_usd:.4f} is spent and the next call may cost "
        f"${most_usd:.4f}. Finished trajectories are saved; to continue, run the same command with a higher "
        "--max-usd"
    )


def max_output(model: ModelSettings, max_output_tokens: int) -> int:
    """The most tokens of a reply; what the user adds to the request may raise them."""
    limits = [model.extra.get(name) for name in ("max_tokens", "max_completion_tokens")]
    choices = model.extra.get("n")
    longest = max([max_output_tokens, *(each for each in limits if isinstance(each, int))])
    return longest * (choices if isinstance(choices, int) and choices > 1 else 1)


def build_budget(
    max_usd: float | None,
    prices: PriceTable,
    models: Mapping[str, ModelSettings],
    spent_usd: float = 0.0,
) -> Budget:
    """The budget of a run. ``spent_usd`` is what its folder has cost so far.

    Raises OptionsError for a limit where the price of a model is unknown.
    """
    unknown = sorted({model.model for model in models.values() if prices.of(model) is None})
    if max_usd is not None and unknown:
        flags = " ".join(f"--price {name}=IN,OUT" for name in unknown)
        raise OptionsError(
            f"--max-usd cannot be enforced: the price of {', '.join(unknown)} is unknown. Give it in "
            f"dollars for a million tokens ({flags}), or leave --max-usd out"
        )
    return Budget(max_usd, prices, spent_usd=spent_usd)
