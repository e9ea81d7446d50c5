"""Recognise models that reason before they answer, and give them a larger output limit.

Reasoning counts towards the output limit, so the paper's limit of 1,024 tokens would cut such replies off.
"""

from __future__ import annotations

import re
from typing import Final

from arb.judges.types import ModelSettings

OUTPUT_TOKENS: Final = 8_192
_OUTPUT_TOKENS_BY_EFFORT: Final = {"medium": 16_384, "high": 32_000, "xhigh": 32_000, "max": 32_000}
"""The output limit of each reasoning effort. It is at most 32,000, since Claude Opus 4 accepts no more."""

_REASONING_MODELS: Final = re.compile(
    r"o[134](-|$)|gpt-5(?!.*chat)|gpt-oss|deepseek-r(1|easoner)|qwq|qvq|gemini-(2\.5-(?!flash-lite)|[3-9])"
    r"|grok-(3-mini|4)|magistral|minimax-m|.*(thinking|reason)",
    re.IGNORECASE,
)


def is_reasoning(model: str) -> bool:
    """Return whether a model with this name reasons by default."""
    return _REASONING_MODELS.match(model.rpartition("/")[2]) is not None


def reasons(model: ModelSettings) -> bool:
    """Return whether a model with these settings uses hidden reasoning tokens, which are billed."""
    if model.reasoning_effort is None:
        return is_reasoning(model.model)
    return model.reasoning_effort != "none"


def output_room(model: ModelSettings) -> int:
    """Return the output limit that a reasoning model needs, or 0 for a model that does not reason."""
    if not reasons(model):
        return 0
    return _OUTPUT_TOKENS_BY_EFFORT.get(model.reasoning_effort or "", OUTPUT_TOKENS)
