"""How many tokens a picture costs, by family of models. Sizes are in pixels.

Sources, read in November 2026: OpenAI, "Images and vision" (tiles for GPT-4o and others, patches of 32 pixels
for the small and the newer models; where users of its forum measured another factor, that one is expected and
the larger is the most); Anthropic, "Vision" (patches of 28 pixels, and how large pictures are scaled); the
image processors of Qwen2-VL, Qwen2.5-VL (28), Qwen3-VL (32) and Llama 4 (tiles of 336) in transformers.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, floor, sqrt
from typing import Final

Count = Callable[[int, int, str], int]
"""Tokens of a picture by width, height and detail flag."""


@dataclass(frozen=True, slots=True)
class ImageRule:
    """``expected`` is what a picture should cost, ``at_most`` more than it ever does; ``name`` for people."""

    name: str
    expected: Count
    at_most: Count


def image_rule(model: str) -> ImageRule:
    """The rule of a model, by its name with or without its vendor's; a guess for the others."""
    name = model.lower().rpartition("/")[2].replace(".", "-")
    return next((rule for pattern, rule in _RULES if re.match(pattern, name)), _UNKNOWN)


def tile_tokens(base: int, tile: int, width: int, height: int, detail: str) -> int:
    """``base``, and ``tile`` for each 512-pixel square; with low detail ``base`` alone.

    The picture is first fitted into 2,048 by 2,048, then its short side is brought down to 768.
    """
    if detail == "low":
        return base
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return base + tile * ceil(int(width * scale) / 512) * ceil(int(height * scale) / 512)


def patch_tokens(factor: float, most: int, width: int, height: int, detail: str) -> int:
    """``factor`` for each 32-pixel square, whatever the detail.

    A picture of more than ``most`` squares is scaled down until it has no more, and then until its tighter
    side has whole squares.
    """
    patches = ceil(width / 32) * ceil(height / 32)
    if patches > most:
        scale = sqrt(32 * 32 * most / (width * height))
        across, down = width * scale / 32, height * scale / 32
        scale *= min(floor(across) / across, floor(down) / down)
        patches = min(most, ceil(round(width * scale / 32, 6)) * ceil(round(height * scale / 32, 6)))
    return ceil(patches * factor)


def claude_tokens(long_side: int, most: int, width: int, height: int, detail: str) -> int:
    """One for each 28-pixel square, once the picture is scaled down to ``long_side`` and ``most`` squares."""
    scale = min(1.0, long_side / max(width, height), sqrt(28 * 28 * most / (width * height)))
    while (tokens := _squares(width * scale, height * scale, 28)) > most:
        scale *= 0.999
    return tokens


def qwen_tokens(side: int, least: int, most: int, width: int, height: int, detail: str) -> int:
    """One for each square of ``side``, and two marks.

    Sides are rounded to whole squares; the area is scaled to lie between ``least`` and ``most`` pixels.
    """
    down, across = max(1, round(height / side)), max(1, round(width / side))
    if down * across * side * side > most:
        scale = sqrt(width * height / most)
        down, across = max(1, floor(height / scale / side)), max(1, floor(width / scale / side))
    elif down * across * side * side < least:
        scale = sqrt(least / (width * height))
        down, across = ceil(height * scale / side), ceil(width * scale / side)
    return down * across + 2


def llama4_tokens(width: int, height: int, detail: str) -> int:
    """144 and a mark for each 336-pixel tile, at most 16, and for the whole picture once more."""
    tiles = min(16, ceil(width / 336) * ceil(height / 336))
    return 145 * (tiles + (tiles > 1)) + 2


def _squares(width: float, height: float, side: int) -> int:
    return ceil(max(1.0, width) / side) * ceil(max(1.0, height) / side)


def _guess(width: int, height: int, detail: str) -> int:
    """As Claude and Qwen count: most models lie near it for screenshots."""
    return _squares(width, height, 28)


def _guess_at_most(width: int, height: int, detail: str) -> int:
    """One for each 14-pixel square, as encoders cut them; at least Llama 3.2's four tiles."""
    return max(6_404, _squares(width, height, 14))


def _same(name: str, count: Count) -> ImageRule:
    return ImageRule(name, count, count)


def _tiles(base: int, tile: int) -> ImageRule:
    return _same(f"OpenAI tiles of 512 px ({base} + {tile} each)", partial(tile_tokens, base, tile))


def _patches(factor: float, at_most: float, most: int = 1_536, most_original: int = 1_536) -> ImageRule:
    name = f"OpenAI patches of 32 px ({factor} each, at most {most:,})"
    return ImageRule(name, partial(patch_tokens, factor, most), partial(patch_tokens, at_most, most_original))


_CLAUDE = ImageRule(
    "Claude patches of 28 px (at most 1,568)",
    partial(claude_tokens, 1_568, 1_568),
    partial(claude_tokens, 2_576, 4_784),
)
_CLAUDE_HIGH_RESOLUTION = _same(
    "Claude patches of 28 px (at most 4,784)", partial(claude_tokens, 2_576, 4_784)
)
_UNKNOWN: Final = ImageRule("unknown model: a guess, one for each 28 px square", _guess, _guess_at_most)

# The first pattern that the name begins with decides; points in names are dashes here.
_RULES: Final[tuple[tuple[str, ImageRule], ...]] = (
    (r"gpt-4o-mini", _tiles(2_833, 5_667)),
    (r"gpt-4o|chatgpt-4o|gpt-4-turbo|gpt-4-5", _tiles(85, 170)),
    (r"gpt-4-1-mini", _patches(1.62, 1.62)),
    (r"gpt-4-1-nano", _patches(2.46, 2.46)),
    (r"gpt-4-1", _tiles(85, 170)),
    (r"o4-mini", _patches(1.72, 1.72)),
    (r"o1|o3", _tiles(75, 150)),
    (r"gpt-5-mini", _patches(1.2, 1.62)),
    (r"gpt-5-nano", _patches(1.5, 2.46)),
    (r"gpt-5-[23456]-(mini|nano|luna)", _patches(1.2, 2.46, 1_536, 10_000)),
    (r"gpt-5-[23]", _patches(1.2, 2.46)),
    (r"gpt-5-[456]", _patches(1.2, 2.46, 2_500, 10_000)),
    (r"gpt-5", _tiles(70, 140)),
    (r"claude-(3|opus-4-([0156]|2025)|opus-4$|sonnet-4|haiku-4)", _CLAUDE),
    (r"claude", _CLAUDE_HIGH_RESOLUTION),
    (
        r"qwen2(-5)?-vl|qwen-2(-5)?-vl",
        _same("Qwen-VL squares of 28 px", partial(qwen_tokens, 28, 3_136, 12_845_056)),
    ),
    (r"qwen3-vl", _same("Qwen3-VL squares of 32 px", partial(qwen_tokens, 32, 65_536, 16_777_216))),
    (r"llama-4", ImageRule("Llama 4 tiles of 336 px", llama4_tokens, _guess_at_most)),
)
