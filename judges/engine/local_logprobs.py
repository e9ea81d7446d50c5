"""Log-probabilities of a local model's tokens, taken down while it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from judges.base import TokenProbability

if TYPE_CHECKING:
    import torch

TOP_TOKENS: Final = 5
"""How many of the likeliest tokens are kept at each place, beside the one that was chosen."""


class LogprobRecorder:
    """A logits processor that changes nothing. It sees the model's own scores, before any temperature.

    ``rows`` has, for each prompt and each of its new tokens, the log-probabilities of the likeliest tokens
    and of the chosen one; the last place is there after `finish`.
    """

    def __init__(self) -> None:
        self.rows: list[list[dict[int, float]]] = []
        self._last: torch.Tensor | None = None

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Take the place before down, and keep this one until its token is known."""
        if self._last is not None:
            self._record(input_ids[:, -1])
        else:
            self.rows = [[] for _ in range(len(scores))]
        self._last = scores.float().log_softmax(dim=-1)
        return scores

    def finish(self, all_ids: torch.Tensor) -> None:
        """Take down the last place, now that its token is known."""
        if self._last is not None:
            self._record(all_ids[:, -1])

    def _record(self, chosen: torch.Tensor) -> None:
        last = self._last
        if last is None:
            return
        values, tokens = last.topk(min(TOP_TOKENS, last.shape[-1]), dim=-1)
        of_chosen = last.gather(-1, chosen.unsqueeze(-1)).squeeze(-1).tolist()
        for row, top in enumerate(zip(tokens.tolist(), values.tolist(), strict=True)):
            known = dict(zip(*top, strict=True))
            self.rows[row].append(known | {int(chosen[row]): of_chosen[row]})


def probabilities(
    tokens: Sequence[int], places: Sequence[Mapping[int, float]], decode: Callable[[int], str]
) -> tuple[TokenProbability, ...]:
    """Each token with its rivals, likeliest first; ``decode`` gives a token's text."""
    return tuple(
        TokenProbability(
            decode(token),
            place[token],
            tuple((decode(rival), place[rival]) for rival in place if rival != token),
        )
        for token, place in zip(tokens, places, strict=False)
    )
