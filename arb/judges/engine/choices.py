"""Request several answers to one prompt in one request (``n``), so that the input is paid for only once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from arb.judges.types import ModelSettings, Reply, Usage


def may_have_choices(model: ModelSettings, unsupported_params: Collection[str] = ()) -> bool:
    """Return whether a request may ask for several answers (parameter ``n``).

    It may not do so at temperature 0, or if the user has set ``n``, or if the endpoint does not support it.
    """
    return model.temperature != 0 and "n" not in model.extra and "n" not in unsupported_params


def with_choices(model: ModelSettings, number: int) -> ModelSettings:
    """Return the settings with which one request asks for this number of answers."""
    return model if number == 1 else replace(model, extra={**model.extra, "n": number})


def shared_choices(
    reply: Reply, cost_of: Callable[[Usage], float | None], failed_usd: float = 0.0
) -> list[Reply]:
    """Return all answers in a reply, each with its share of the tokens and dollars.

    The first answer gets the input tokens and the cost of failed attempts. The endpoint reports only the sum
    of the output tokens, which is divided in proportion to the length of the texts.
    """
    usage = reply.usage
    usd = cost_of(usage)
    if not reply.others:
        return [replace(reply, cost_usd=None if usd is None else usd + failed_usd)]
    every = (reply, *reply.others)
    sizes = [len(each.text or "") + 1 for each in every]
    output, reasoning = _split(usage.output_tokens, sizes), _split(usage.reasoning_tokens, sizes)
    input_usd = cost_of(usage._replace(output_tokens=0)) or 0.0
    per_token = (usd - input_usd) / usage.output_tokens if usd is not None and usage.output_tokens else 0.0
    of_others = Usage(input_tokens=None if usage.input_tokens is None else 0)
    shared = []
    for place, each in enumerate(every):
        is_first = place == 0
        tokens = usage if is_first else of_others
        tokens = tokens._replace(output_tokens=output[place], reasoning_tokens=reasoning[place])
        cost_usd = None
        if usd is not None:
            cost_usd = per_token * (output[place] or 0)
            if is_first:
                cost_usd += input_usd
                cost_usd += failed_usd
        shared.append(replace(each, **tokens._asdict(), cost_usd=cost_usd))
    return shared


def _split(total: int | None, sizes: Sequence[int]) -> list[int | None]:
    """Split a total into integers in proportion to ``sizes``. If the total is None, all parts are None."""
    if total is None:
        return [None] * len(sizes)
    ends = [total * end // sum(sizes) for end in accumulate(sizes)]
    return [end - begin for begin, end in pairwise((0, *ends))]
