"""Count the tokens of a call before it is made, with the model's tokenizer or an estimate.

How many tokens a picture has depends on the model's family. The rules, in which lengths are in pixels, come
from these sources, read in November 2026:

- OpenAI, "Images and vision": tiles for GPT-4o and others, patches of 32 pixels for small and newer models.
  Where users of OpenAI's forum measured a different factor, that factor is used for the expected tokens, and
  the larger of the two for the upper bound.
- Anthropic, "Vision": patches of 28 pixels, and the scaling of large pictures.
- The image processors of Qwen2-VL and Qwen2.5-VL (28 pixels), Qwen3-VL (32) and Llama 4 (tiles of 336) in
  transformers.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import ceil, floor, sqrt
from pathlib import Path
from typing import Final

from arb.core.files import install_command
from arb.judges.types import Image, Message, ModelSettings, OptionsError, Tool

Count = Callable[[int, int, str], int]
"""A function that returns the number of tokens of a picture with a given width, height and detail."""


@dataclass(frozen=True, slots=True)
class ImageRule:
    """How a family of models counts pictures: functions for the expected tokens and for an upper bound."""

    name: str
    expected: Count
    at_most: Count


def tile_tokens(base: int, tile: int, width: int, height: int, detail: str) -> int:
    """Return ``base`` tokens plus ``tile`` tokens per 512-pixel square, or only ``base`` for low detail.

    The picture is scaled down to fit 2,048 by 2,048 pixels, and then until its shorter side is at most 768.
    """
    if detail == "low":
        return base
    scale = min(1.0, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height))
    return base + tile * ceil(int(width * scale) / 512) * ceil(int(height * scale) / 512)


def patch_tokens(factor: float, most: int, width: int, height: int, detail: str) -> int:
    """Return ``factor`` tokens per 32-pixel square, for any detail.

    A picture of more than ``most`` squares is scaled down to ``most`` squares, and then further until one
    side is an integer number of squares.
    """
    patches = ceil(width / 32) * ceil(height / 32)
    if patches > most:
        scale = sqrt(32 * 32 * most / (width * height))
        across, down = width * scale / 32, height * scale / 32
        scale *= min(floor(across) / across, floor(down) / down)
        patches = min(most, ceil(round(width * scale / 32, 6)) * ceil(round(height * scale / 32, 6)))
    return ceil(patches * factor)


def claude_tokens(long_side: int, most: int, width: int, height: int, detail: str) -> int:
    """Return 1 token per 28-pixel square.

    First the picture is scaled down until it is at most ``long_side`` pixels long and has at most ``most``
    tokens.
    """
    scale = min(1.0, long_side / max(width, height), sqrt(28 * 28 * most / (width * height)))
    while (tokens := _squares(width * scale, height * scale, 28)) > most:
        scale *= 0.999
    return tokens


def qwen_tokens(side: int, least: int, most: int, width: int, height: int, detail: str) -> int:
    """Return 1 token per square of ``side`` pixels, plus 2 for markers.

    Sides are rounded to whole squares, and the area is scaled to between ``least`` and ``most`` pixels.
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
    """Return 145 tokens per 336-pixel tile, plus 2, plus another 145 if there are several tiles."""
    tiles = min(16, ceil(width / 336) * ceil(height / 336))
    return 145 * (tiles + (tiles > 1)) + 2


def _squares(width: float, height: float, side: int) -> int:
    return ceil(max(1.0, width) / side) * ceil(max(1.0, height) / side)


def _guess(width: int, height: int, detail: str) -> int:
    """Return 1 token per 28-pixel square, as for Claude and Qwen. This suits most models for screenshots."""
    return _squares(width, height, 28)


def _guess_at_most(width: int, height: int, detail: str) -> int:
    """Return 1 token per 14-pixel square, but at least the tokens of Llama 3.2's four tiles."""
    return max(6_404, _squares(width, height, 14))


_COUNTS: Final[Mapping[str, Callable[..., int]]] = {
    "tiles": tile_tokens,
    "patches": patch_tokens,
    "claude": claude_tokens,
    "qwen": qwen_tokens,
    "llama 4": llama4_tokens,
    "guess at most": _guess_at_most,
}
"""The counting functions, by their names in ``image_rules.toml``."""

_UNKNOWN: Final = ImageRule("a guess for an unknown model (1 per 28 px square)", _guess, _guess_at_most)


@cache
def _image_rules() -> list[tuple[str, ImageRule]]:
    """Return pairs of a pattern for model names and a rule. The first pattern that matches is used."""
    rules = []
    table = Path(__file__).with_name("image_rules.toml").read_text(encoding="utf-8")
    for entry in tomllib.loads(table)["rules"]:
        count, *first = entry["expected"]
        expected = partial(_COUNTS[count], *first)
        count, *first = entry.get("at_most", entry["expected"])
        rules.append((entry["models"], ImageRule(entry["name"], expected, partial(_COUNTS[count], *first))))
    return rules


def image_rule(model: str) -> ImageRule:
    """Return the rule for a model name, with or without a vendor prefix, or a guess for an unknown model."""
    name = model.lower().rpartition("/")[2].replace(".", "-")
    return next((rule for pattern, rule in _image_rules() if re.match(pattern, name)), _UNKNOWN)


PER_MESSAGE: Final = 4
PER_CALL: Final = 3
"""The number of tokens that OpenAI adds per message (for its role and markers) and per call (for the
beginning of the reply). The chat templates of other models add about as many."""

PER_MESSAGE_AT_MOST: Final = 16
PER_CALL_AT_MOST: Final = 96
"""Upper bounds of `PER_MESSAGE` and `PER_CALL`, including a system message that a chat template may add."""

_PIECE: Final = re.compile(
    r"[A-Za-z]{1,8}|[0-9]{1,3}|[^\sA-Za-z0-9\x80-\U0010ffff]{1,2}|[\x80-\U0010ffff]|\n"
)


@dataclass(frozen=True, slots=True)
class TextCounter:
    """A named function that counts the tokens of a text."""

    name: str
    count: Callable[[str], int]


def estimate(text: str) -> int:
    """Return an estimate of the number of tokens in a text.

    It assumes that a token is a group of up to eight letters, three digits or two symbols.
    """
    return sum(1 for _ in _PIECE.finditer(text))


ESTIMATE: Final = TextCounter("an estimate (no tokenizer for this model was found)", estimate)


class TokenCounters:
    """The token counters of models. Nothing is downloaded, except by tiktoken if it is installed.

    If ``tokenizer`` is given, it is used for every model. It may be a folder, a ``tokenizer.json``, or the
    name of a repository in the Hugging Face cache.
    """

    def __init__(self, tokenizer: str | None = None):
        self._requested = None if tokenizer is None else _requested_counter(tokenizer)
        self._found: dict[tuple[str, str], TextCounter] = {}

    def of(self, model: ModelSettings) -> TextCounter:
        """Return the counter of a model, or `ESTIMATE` if no tokenizer is found."""
        if self._requested is not None:
            return self._requested
        key = (model.provider, model.model)
        if key not in self._found:
            self._found[key] = _found_counter(model) or ESTIMATE
        return self._found[key]

    def expected(self, model: ModelSettings, messages: Sequence[Message]) -> int:
        """Return the expected input tokens of a call, including pictures."""
        count, rule = self.of(model).count, image_rule(model.model)
        texts, images = _parts(messages)
        pictures = sum(rule.expected(image.width, image.height, image.detail) for image in images)
        return PER_CALL + PER_MESSAGE * len(messages) + sum(map(count, texts)) + pictures


def counted(messages: tuple[Message, ...], tools: Sequence[Tool]) -> tuple[Message, ...]:
    """Return messages with the declarations of tools at the end, so that their tokens are counted too.

    The declarations have line breaks, which are not sent, to allow for a provider's own text about tools.
    """
    if not tools:
        return messages
    return (*messages, Message("system", json.dumps([tool.declaration for tool in tools], indent=1)))


def token_ceiling(model: ModelSettings, messages: Sequence[Message]) -> int:
    """Return an upper bound on a call's input tokens. In all tokenizers, a token has at least one byte."""
    texts, images = _parts(messages)
    rule = image_rule(model.model)
    pictures = sum(rule.at_most(image.width, image.height, image.detail) for image in images)
    return PER_CALL_AT_MOST + PER_MESSAGE_AT_MOST * len(messages) + sum(map(_bytes, texts)) + pictures


def word_ceiling(model: ModelSettings, messages: Sequence[Message]) -> int:
    """Return a closer upper bound on a call's input tokens than `token_ceiling` does, but more slowly.

    In every tokenizer in use, words consist of tokens of several letters. Therefore, every two letters of a
    word count as one token, and a single space before the word does not count. Everything else (digits,
    symbols, indentation, other scripts, base64, words of two letters or without a vowel) counts as one token
    per byte.
    """
    texts, _ = _parts(messages)
    words = (found.span() for text in texts for found in _WORD.finditer(text))
    return token_ceiling(model, messages) - sum((end - begin) // 2 for begin, end in words)


_WORD: Final = re.compile(
    r"(?:(?<=\S) )?(?<![A-Za-z])(?=[A-Za-z]?[a-z]*[aeiouy]|[A-Z]*[AEIOUY])"
    r"(?:[A-Za-z][a-z]{2,19}|[A-Z]{3,20})(?![A-Za-z])"
)
"""Matches a word in lower or upper case, or capitalised, together with a single space before it."""


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) + 1  # some tokenizers put a marker before the text


def _parts(messages: Sequence[Message]) -> tuple[list[str], list[Image]]:
    parts = [part for message in messages for part in message.parts]
    texts = [part for part in parts if isinstance(part, str)]
    return texts, [part for part in parts if isinstance(part, Image)]


def _requested_counter(tokenizer: str) -> TextCounter:
    path = Path(tokenizer)
    counter = _from_path(path) if path.exists() else _from_hub_cache(tokenizer)
    if counter is None:
        raise OptionsError(
            f"--tokenizer {tokenizer}: is not a folder with a tokenizer, a tokenizer.json, or a model whose "
            "tokenizer is in the Hugging Face cache (fetch it with `hf download NAME tokenizer.json`)"
        )
    return counter


def _found_counter(model: ModelSettings) -> TextCounter | None:
    if Path(model.model).is_dir():
        return _from_path(Path(model.model))
    if model.provider in ("openai", "openai-responses", "azure") or model.model.startswith("openai/"):
        return _from_tiktoken(model.model.removeprefix("openai/"))
    return _from_hub_cache(model.model)


def _from_path(path: Path) -> TextCounter | None:
    """Return a counter with the tokenizer in a file or folder, or None if it is missing or unreadable."""
    file = path / "tokenizer.json" if path.is_dir() else path
    if file.is_file():
        from tokenizers import Tokenizer  # noqa: PLC0415  only if there is a tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception:  # the library raises bare exceptions for a file that it cannot read
            return None
        return TextCounter(
            f"the tokenizer {file}", lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)
        )
    if (path / "tokenizer_config.json").is_file():  # transformers has to convert it
        try:
            from transformers import AutoTokenizer  # noqa: PLC0415  of the extra `transformers`
        except ImportError:
            raise OptionsError(
                f"only transformers can read the tokenizer in {path}; run {install_command('transformers')}"
            ) from None
        slow = AutoTokenizer.from_pretrained(path, local_files_only=True)
        return TextCounter(
            f"the tokenizer in {path}", lambda text: len(slow(text, add_special_tokens=False)["input_ids"])
        )
    return None


def _from_hub_cache(name: str) -> TextCounter | None:
    """Return a counter with a repository's tokenizer from the Hugging Face cache, or None."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return None
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415  heavy, for open models only
    from huggingface_hub.errors import HFValidationError  # noqa: PLC0415  heavy, for open models only

    try:
        cached = try_to_load_from_cache(name, "tokenizer.json")
    except HFValidationError:
        return None
    return _from_path(Path(cached)) if isinstance(cached, str) else None


def _from_tiktoken(name: str) -> TextCounter | None:
    try:
        import tiktoken  # type: ignore[import-not-found]  # noqa: PLC0415  it is rarely installed

        encoding = tiktoken.encoding_for_model(name)
    except (ImportError, KeyError):  # not installed, or it does not know the model
        return None
    except Exception:  # the download of its vocabulary failed with an error of requests
        return None
    return TextCounter(
        f"tiktoken {encoding.name}", lambda text: len(encoding.encode(text, disallowed_special=()))
    )
