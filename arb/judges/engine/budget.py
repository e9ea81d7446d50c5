"""Keep the cost of a run below ``--max-usd``.

For each call in flight, the budget reserves the highest possible cost: that of one token per byte of the
prompt, of the most tokens that its pictures may have, and of the longest possible reply. No tokenizer in use
makes more than one token per byte, so the limit is never exceeded.

English text has only a quarter as many tokens. To use most of the limit nevertheless, a call that might
exceed it waits until earlier calls have ended. In the end, only one call is made at a time. If a call still
does not fit, its tokens are estimated more closely (`word_ceiling`), and its output limit may be lowered if
the model's replies are far shorter.
"""

import asyncio
import math
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from arb.judges.engine.errors import OUTPUT_LIMITS, NoMoreCallsError
from arb.judges.engine.prices import PriceTable
from arb.judges.engine.tokens import counted, token_ceiling, word_ceiling
from arb.judges.types import Message, ModelSettings, OptionsError, Request, Usage

NEARLY_USED_UP: Final = 0.9
"""Once this share of the limit is spent, any call that does not fit ends the run."""

MAX_REFUSED: Final = 64
"""After this many consecutive calls that do not fit, the run ends even if much of the limit is left."""

KNOWN_REPLIES: Final = 3
SHORTENED_TO: Final = 2
LEAST_WITH_EFFORT: Final = 2_048
"""After `KNOWN_REPLIES` replies, a model's output limit may be lowered to `SHORTENED_TO` times its longest
reply. With a reasoning effort, the limit is at least `LEAST_WITH_EFFORT`, since Anthropic rejects lower
limits."""


class BudgetReached(NoMoreCallsError):
    """Raised if the next call might exceed the limit. The message says how to continue.

    ``is_final`` is False if other, cheaper calls may still fit.
    """

    how = "budget"

    def __init__(self, message: str, *, is_final: bool = True):
        super().__init__(message)
        self.is_final = is_final


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Money reserved for one attempt at a call.

    ``usd`` is the maximum cost of the attempt, and ``output`` the maximum number of tokens in its reply.
    ``max_tokens`` is a lower output limit to send, or None to send the requested limit.
    """

    usd: float
    model: ModelSettings
    output: float = 0
    max_tokens: int | None = None


class Budget:
    """The budget of a run, for one event loop. Without a limit (``max_usd``), nothing is reserved.

    ``ceiling`` returns an upper bound on a prompt's tokens. ``spent_usd`` is what a resumed run has already
    spent. With a limit, `reserve` raises ValueError for a model without a price; see `build_budget`.
    """

    def __init__(
        self,
        max_usd: float | None = None,
        prices: PriceTable | None = None,
        ceiling: Callable[[ModelSettings, tuple[Message, ...]], int] = token_ceiling,
        spent_usd: float = 0.0,
    ):
        self.max_usd = max_usd
        self._limit_usd = math.inf if max_usd is None else max_usd
        self.spent_usd = spent_usd
        self.presumed_usd = 0.0  # the part of spent_usd that was, or may have been, paid without a reply
        self._prices = prices or PriceTable({})
        self._ceiling = ceiling
        self._open: set[Reservation] = set()
        self._change = asyncio.Event()
        # The keys are `ModelSettings.place`:
        self._overrun: dict[tuple, float] = {}
        self._replies: dict[tuple, int] = {}
        self._longest: dict[tuple, int] = {}
        self._refused = 0

    async def reserve(self, request: Request) -> Reservation:
        """Reserve money for one attempt. If too little is left, first wait until calls in flight have ended.

        The reservation may have a lower output limit. If the endpoint accepts no output limit, the cost of
        the whole context window is reserved. The first call to a model is made alone, to learn whether the
        endpoint exceeds output limits. Settle every reservation exactly once. Raises BudgetReached.
        """
        model = request.model
        if self.max_usd is None:
            return Reservation(0.0, model)
        messages = counted(request.messages, request.tools)
        prompt, is_close = self._ceiling(model, messages), False
        output = most_output(self._prices, request)
        max_tokens: int | None = None
        while True:
            usd = self._most_usd(model, prompt, output)
            if self.spent_usd + usd > self._limit_usd and not is_close:
                prompt, is_close = min(prompt, word_ceiling(model, messages)), True
                usd = self._most_usd(model, prompt, output)
            if self.spent_usd + usd > self._limit_usd:
                max_tokens = self._shorter_limit(model, prompt, request.max_output_tokens)
                if max_tokens is None:
                    raise self._refusal(usd)
                output = max_output(model, max_tokens)
                usd = self._most_usd(model, prompt, output)
            is_tried = any(each.model.place == model.place for each in self._open)
            is_unknown = is_tried and model.place not in self._replies
            if not is_unknown and self.spent_usd + self.reserved_usd + usd <= self._limit_usd:
                break
            self._change.clear()
            await self._change.wait()
        self._refused = 0
        reservation = Reservation(usd, model, output, max_tokens)
        self._open.add(reservation)
        return reservation

    @property
    def reserved_usd(self) -> float:
        """The most that the calls in flight can cost; 0 without a limit."""
        return sum(each.usd for each in self._open)

    def _most_usd(self, model: ModelSettings, prompt: int, output: float) -> float:
        """Return the cost of an attempt that exceeds its output limit by the largest factor seen so far."""
        price = self._prices.of(model)
        if price is None:
            raise ValueError(f"the price of {model.model} is unknown, so its cost cannot be limited")
        return price.most(prompt, output * self._overrun.get(model.place, 1.0))

    def _shorter_limit(self, model: ModelSettings, prompt: int, max_output_tokens: int) -> int | None:
        """Return the highest output limit that fits, or None if it could cut off the model's replies."""
        place, is_set = model.place, any(name in model.extra for name in OUTPUT_LIMITS)
        if is_set or self._replies.get(place, 0) < KNOWN_REPLIES:
            return None
        low = SHORTENED_TO * self._longest[place]
        low = max(low, LEAST_WITH_EFFORT) if model.reasoning_effort else low

        def spend_with(max_tokens: int) -> float:
            return self.spent_usd + self._most_usd(model, prompt, max_output(model, max_tokens))

        fitting = bisect_right(range(low, max_output_tokens), self._limit_usd, key=spend_with)
        return low + fitting - 1 if fitting else None

    def settle(self, reservation: Reservation, usage: Usage | None, *, maybe_paid: bool = False) -> None:
        """Replace a reservation with the actual cost of its attempt; ``usage`` is None if there was no reply.

        With ``maybe_paid``, the endpoint may have charged for a reply that was lost or is unreadable. Then
        the whole reservation counts as spent.
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
        """Return the cost of a reply in dollars, or None if the price or the tokens are unknown."""
        return self._prices.cost(model, usage)

    def cut_short(self, reservation: Reservation, usage: Usage) -> BudgetReached:
        """Return the error that ends the run after a lowered output limit cut off a reply."""
        self.presumed_usd += self.cost_of(reservation.model, usage) or 0.0
        return BudgetReached(limit_message(self._limit_usd, self.spent_usd, reservation.usd))

    def _learn_length(self, reservation: Reservation, usage: Usage) -> None:
        """Record a reply's length, and the factor by which it exceeds the output limit.

        A reply can exceed the limit at endpoints that do not count hidden reasoning.
        """
        place = reservation.model.place
        self._replies[place] = self._replies.get(place, 0) + 1
        self._longest[place] = max(self._longest.get(place, 1), usage.output_tokens or 1)
        if usage.output_tokens and reservation.output:
            found = usage.output_tokens / reservation.output
            self._overrun[place] = max(self._overrun.get(place, 1.0), found)

    def _refusal(self, usd: float) -> BudgetReached:
        self._refused += 1
        is_used_up = self.spent_usd >= NEARLY_USED_UP * self._limit_usd or math.isinf(usd)
        message = limit_message(self._limit_usd, self.spent_usd, usd)
        return BudgetReached(message, is_final=is_used_up or self._refused >= MAX_REFUSED)


def limit_message(max_usd: float, spent_usd: float, most_usd: float) -> str:
    """Return the message for a run that stops before a call that may cost ``most_usd``."""
    if math.isinf(most_usd):
        return (
            f"stopped at --max-usd {max_usd:g}: ${spent_usd:.4f} is spent, and the cost of the next call has "
            "no limit, since the endpoint accepts neither max_tokens nor max_completion_tokens. Finished "
            "trajectories are saved; to continue, run the same command without --max-usd"
        )
    return (
        f"stopped at --max-usd {max_usd:g}: ${spent_usd:.4f} is spent and the next call may cost "
        f"${most_usd:.4f}. Finished trajectories are saved; to continue, run the same command with a higher "
        "--max-usd"
    )


def _own_limits(model: ModelSettings) -> list[int]:
    """Return the output limits that the user set in ``extra``."""
    return [model.extra[name] for name in OUTPUT_LIMITS if isinstance(model.extra.get(name), int)]


def max_output(model: ModelSettings, max_output_tokens: int) -> int:
    """Return the maximum output tokens of a request with all its samples. Limits in ``extra`` count too."""
    choices = model.extra.get("n")
    number = choices if isinstance(choices, int) and choices > 1 else 1
    return max([max_output_tokens, *_own_limits(model)]) * number


def most_output(prices: PriceTable, request: Request) -> float:
    """Return the maximum number of output tokens of a request, or infinity if nothing limits them."""
    model = request.model
    if not _own_limits(model) and request.unsupported_params >= set(OUTPUT_LIMITS):
        return prices.context_window(model) or math.inf
    return max_output(model, request.max_output_tokens)


def build_budget(
    max_usd: float | None, prices: PriceTable, models: Mapping[str, ModelSettings], spent_usd: float = 0.0
) -> Budget:
    """Return a run's budget. Raises OptionsError if there is a limit and the price of a model is unknown."""
    unknown = sorted({model.model for model in models.values() if prices.of(model) is None})
    if max_usd is not None and unknown:
        flags = " ".join(f"--price {name}=IN,OUT" for name in unknown)
        raise OptionsError(
            f"--max-usd cannot be enforced: the price of {', '.join(unknown)} is unknown. Give it in "
            f"dollars per million tokens ({flags}), or leave out --max-usd"
        )
    return Budget(max_usd, prices, spent_usd=spent_usd)
