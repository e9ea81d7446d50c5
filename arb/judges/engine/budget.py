"""Keep a run below ``--max-usd``: money is set aside before a call and counted after it.

Each call under way has the most set aside that it can cost: a token for every byte of its prompt, what its
pictures take at most, and the longest reply. No tokenizer in use gives more than a token per byte, so the
limit is never exceeded. Two things keep most of the limit usable although English takes a quarter of that.
As the limit comes near, calls wait for each other, and in the end one is made at a time. A call that still
does not fit is counted more closely (`word_ceiling`), and may be sent with a shorter output limit that its
model's replies have kept far below so far.
"""

import asyncio
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from arb.judges.engine.errors import OUTPUT_LIMITS, NoMoreCallsError
from arb.judges.engine.prices import PriceTable
from arb.judges.engine.tokens import token_ceiling, word_ceiling
from arb.judges.types import Message, ModelSettings, OptionsError, Usage

NEARLY_USED_UP: Final = 0.9
"""From this share of the limit on, a call that cannot be paid ends the run. Before, another may cost less."""

MAX_REFUSED: Final = 64
"""So many calls in a row that cannot be paid end the run, whatever is left."""

KNOWN_REPLIES: Final = 3
SHORTENED_TO: Final = 2
LEAST_WITH_EFFORT: Final = 2_048
"""From so many replies of a model on, an output limit may be shortened, though never below this many times
the longest of them. With a reasoning effort, Anthropic takes no limit below the last."""


class BudgetReached(NoMoreCallsError):
    """Raised when the next call might exceed the limit; the message says how to continue.

    ``is_final``: hardly any other call can be paid either.
    """

    how = "budget"

    def __init__(self, message: str, *, is_final: bool = True):
        super().__init__(message)
        self.is_final = is_final


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Money set aside for one attempt at a call.

    ``usd`` is the most that it can cost, ``output`` the most tokens that it may make. ``max_tokens`` is the
    output limit to send if it is shorter than the one asked for.
    """

    usd: float
    model: ModelSettings
    output: float = 0
    max_tokens: int | None = None


class Budget:
    """Keeps a run below ``max_usd``. Without it nothing is set aside, and replies cost what the prices say.

    It serves one event loop. Under a limit every model needs a price (`build_budget` checks that); a
    reservation without one raises ValueError.

    Args:
        max_usd: The limit, or None.
        prices: What tokens cost.
        ceiling: Returns more tokens than a prompt has.
        spent_usd: What the run has spent before.
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
        self.presumed_usd = 0.0  # the part of it that was, or may have been, paid with nothing to show
        self._prices = prices or PriceTable({})
        self._ceiling = ceiling
        self._open: set[Reservation] = set()
        self._change = asyncio.Event()
        # By the place of a model (`ModelSettings.place`):
        self._overrun: dict[tuple, float] = {}
        self._replies: dict[tuple, int] = {}
        self._longest: dict[tuple, int] = {}
        self._refused = 0

    async def reserve(
        self,
        model: ModelSettings,
        messages: tuple[Message, ...],
        max_output_tokens: int,
        unsupported_params: Collection[str] = (),
    ) -> Reservation:
        """Set money aside for one attempt; wait while calls under way may leave enough.

        The first call of a model is made alone: some endpoints do not keep the output limit. Every
        reservation is settled exactly once. Raises BudgetReached.

        Args:
            model: The model to ask.
            messages: The prompt.
            max_output_tokens: The longest reply. The reservation may have a shorter limit to send.
            unsupported_params: What is not sent; without an output limit the whole window is set aside.
        """
        if self.max_usd is None:
            return Reservation(0.0, model)
        prompt, is_close = self._ceiling(model, messages), False
        output, max_tokens = self._most_output(model, max_output_tokens, unsupported_params), None
        while True:
            usd = self._most_usd(model, prompt, output)
            if self.spent_usd + usd > self.max_usd and not is_close:
                prompt, is_close = min(prompt, word_ceiling(model, messages)), True
                usd = self._most_usd(model, prompt, output)
            if self.spent_usd + usd > self.max_usd:
                full_usd = usd
                max_tokens = self._shorter_limit(model, prompt, max_output_tokens)
                if max_tokens is None:
                    raise self._refusal(full_usd)
                output = max_output(model, max_tokens)
                usd = self._most_usd(model, prompt, output)
            is_unknown = model.place not in self._replies and self._is_under_way(model)
            if not is_unknown and self.spent_usd + self._reserved_usd + usd <= self.max_usd:
                break
            self._change.clear()
            await self._change.wait()
        self._refused = 0
        reservation = Reservation(usd, model, output, max_tokens)
        self._open.add(reservation)
        return reservation

    def _most_output(
        self, model: ModelSettings, max_output_tokens: int, unsupported_params: Collection[str]
    ) -> float:
        """Return the most tokens that a reply can have; infinity if nothing is known to bound it."""
        output = max_output(model, max_output_tokens, unsupported_params)
        return (self._prices.context_window(model) or math.inf) if output is None else output

    def _most_usd(self, model: ModelSettings, prompt: int, output: float) -> float:
        """Return the most that an attempt can cost, as far as the length of the model's replies is known."""
        price = self._prices.of(model)
        if price is None:
            raise ValueError(f"{model.model} has no price, so no money can be set aside for it")
        return price.most(prompt, output * self._overrun.get(model.place, 1.0))

    def _shorter_limit(self, model: ModelSettings, prompt: int, max_output_tokens: int) -> int | None:
        """Return the longest output limit that can still be paid, or None if replies may well exceed it."""
        place, is_set = model.place, any(name in model.extra for name in OUTPUT_LIMITS)
        if is_set or self._replies.get(place, 0) < KNOWN_REPLIES:
            return None
        low, high = SHORTENED_TO * self._longest[place], max_output_tokens
        low = max(low, LEAST_WITH_EFFORT) if model.reasoning_effort else low
        if low >= high or not self._fits(model, prompt, low):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._fits(model, prompt, middle) else (low, middle)
        return low

    def _fits(self, model: ModelSettings, prompt: int, max_tokens: int) -> bool:
        return self.spent_usd + self._most_usd(model, prompt, max_output(model, max_tokens)) <= self.max_usd

    def _is_under_way(self, model: ModelSettings) -> bool:
        return any(each.model.place == model.place for each in self._open)

    def settle(self, reservation: Reservation, usage: Usage | None, *, maybe_paid: bool = False) -> None:
        """Give a reservation back, less what the attempt cost.

        Args:
            reservation: What `reserve` returned.
            usage: What the endpoint counted; None if no reply came.
            maybe_paid: The endpoint may have made a reply nevertheless (a timeout, a cut connection, an
                answer that cannot be read). Then the most that it can cost counts.
        """
        if self.max_usd is None:
            return
        self._open.remove(reservation)
        if usage is not None:
            paid = self.cost_of(reservation.model, usage)
            self.spent_usd += reservation.usd if paid is None else paid
            self.presumed_usd += reservation.usd if paid is None else 0.0
            self._learn_length(reservation, usage)
        elif maybe_paid:
            self.spent_usd += reservation.usd
            self.presumed_usd += reservation.usd
        self._change.set()

    def cost_of(self, model: ModelSettings, usage: Usage) -> float | None:
        """Return what a reply cost in dollars, or None if the price or the tokens are unknown."""
        return self._prices.cost(model, usage)

    def cut_short(self, reservation: Reservation, usage: Usage) -> BudgetReached:
        """Return what ends the run after a reply that reached a shortened limit and so was paid in vain."""
        self.presumed_usd += self.cost_of(reservation.model, usage) or 0.0
        return BudgetReached(limit_message(self.max_usd, self.spent_usd, reservation.usd))

    def _learn_length(self, reservation: Reservation, usage: Usage) -> None:
        """Note how long a model's replies are, and by how much they exceed the longest that was allowed.

        Some endpoints do not count hidden reasoning into the limit.
        """
        place = reservation.model.place
        self._replies[place] = self._replies.get(place, 0) + 1
        self._longest[place] = max(self._longest.get(place, 1), usage.output_tokens or 1)
        if usage.output_tokens and reservation.output:
            found = usage.output_tokens / reservation.output
            self._overrun[place] = max(self._overrun.get(place, 1.0), found)

    def _refusal(self, usd: float) -> BudgetReached:
        self._refused += 1
        is_used_up = self.spent_usd >= NEARLY_USED_UP * self.max_usd or math.isinf(usd)
        message = limit_message(self.max_usd, self.spent_usd, usd)
        return BudgetReached(message, is_final=is_used_up or self._refused >= MAX_REFUSED)

    @property
    def _reserved_usd(self) -> float:
        return sum(each.usd for each in self._open)


def limit_message(max_usd: float, spent_usd: float, most_usd: float) -> str:
    """Return the message of a run that stopped before a call of this cost."""
    if math.isinf(most_usd):
        return (
            f"stopped at --max-usd {max_usd:g}: ${spent_usd:.4f} is spent, and the next call may cost any "
            "amount, since the endpoint accepts neither max_tokens nor max_completion_tokens. Finished "
            "trajectories are saved; to continue, run the same command without --max-usd"
        )
    return (
        f"stopped at --max-usd {max_usd:g}: ${spent_usd:.4f} is spent and the next call may cost "
        f"${most_usd:.4f}. Finished trajectories are saved; to continue, run the same command with a higher "
        "--max-usd"
    )


def max_output(
    model: ModelSettings, max_output_tokens: int, unsupported_params: Collection[str] = ()
) -> int | None:
    """Return the most tokens of a reply, or None if no output limit is sent.

    A limit that the user adds to the request may raise it.
    """
    limits = [model.extra[name] for name in OUTPUT_LIMITS if isinstance(model.extra.get(name), int)]
    if not limits and unsupported_params and all(name in unsupported_params for name in OUTPUT_LIMITS):
        return None
    choices = model.extra.get("n")
    return max([max_output_tokens, *limits]) * (choices if isinstance(choices, int) and choices > 1 else 1)


def build_budget(
    max_usd: float | None,
    prices: PriceTable,
    models: Mapping[str, ModelSettings],
    spent_usd: float = 0.0,
) -> Budget:
    """Return the budget of a run whose folder has cost ``spent_usd`` so far.

    Raises OptionsError if there is a limit and the price of a model is unknown.
    """
    unknown = sorted({model.model for model in models.values() if prices.of(model) is None})
    if max_usd is not None and unknown:
        flags = " ".join(f"--price {name}=IN,OUT" for name in unknown)
        raise OptionsError(
            f"--max-usd cannot be enforced: the price of {', '.join(unknown)} is unknown. Give it in "
            f"dollars for a million tokens ({flags}), or leave --max-usd out"
        )
    return Budget(max_usd, prices, spent_usd=spent_usd)
