"""Counting a call's tokens before it is made: with the model's tokenizer, else by rule."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from judges.base import Image, Message, ModelSettings, OptionsError
from judges.engine.image_tokens import image_rule

PER_MESSAGE: Final = 4
PER_CALL: Final = 3
"""Role and marks around a message, and before the reply, as OpenAI counts them; chat templates lie near."""

PER_MESSAGE_AT_MOST: Final = 16
PER_CALL_AT_MOST: Final = 96
"""With room for a template's own system message."""

ESTIMATE_SPREAD: Final = (0.88, 1.15)
"""Low and high factors of `estimate` on English prompts and accessibility trees, against cl100k (OpenAI),
DeepSeek's and Claude 2's tokenizers: 0.92 to 1.12 of their counts. Other languages need up to 1.6 times."""

_PIECE: Final = re.compile(
    r"[A-Za-z]{1,8}|[0-9]{1,3}|[^\sA-Za-z0-9\x80-\U0010ffff]{1,2}|[\x80-\U0010ffff]|\n"
)


@dataclass(frozen=True, slots=True)
class TextCounter:
    """Counts the tokens of a text. ``is_exact`` where it is the model's own tokenizer."""

    name: str
    is_exact: bool
    count: Callable[[str], int]


def estimate(text: str) -> int:
    """Tokens by a rule: one for up to eight letters, three digits or two marks in a row, and a line end."""
    return sum(1 for _ in _PIECE.finditer(text))


ESTIMATE: Final = TextCounter("an estimate (no tokenizer for this model was found)", False, estimate)


class TokenCounters:
    """The counter of each model, looked for once. Only tiktoken, where it is installed, may fetch something.

    ``tokenizer`` is used for every model: a folder, a ``tokenizer.json``, or the name of a repository in the
    Hugging Face cache.
    """

    def __init__(self, tokenizer: str | None = None):
        self._given = None if tokenizer is None else _requested_counter(tokenizer)
        self._found: dict[tuple[str, str], TextCounter] = {}

    def of(self, model: ModelSettings) -> TextCounter:
        """The counter of a model; the estimate where there is no better one."""
        if self._given is not None:
            return self._given
        key = (model.provider, model.model)
        if key not in self._found:
            self._found[key] = _found_counter(model) or ESTIMATE
        return self._found[key]

    def expected(self, model: ModelSettings, messages: Sequence[Message]) -> int:
        """The input tokens that a call should have, pictures included."""
        count, rule = self.of(model).count, image_rule(model.model)
        texts, images = _parts(messages)
        pictures = sum(rule.expected(image.width, image.height, image.detail) for image in images)
        return PER_CALL + PER_MESSAGE * len(messages) + sum(map(count, texts)) + pictures


def token_ceiling(model: ModelSettings, messages: Sequence[Message]) -> int:
    """More input tokens than a call can have: in every tokenizer in use a token has at least a byte."""
    texts, images = _parts(messages)
    rule = image_rule(model.model)
    pictures = sum(rule.at_most(image.width, image.height, image.detail) for image in images)
    return PER_CALL_AT_MOST + PER_MESSAGE_AT_MOST * len(messages) + sum(map(_bytes, texts)) + pictures


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) + 1  # some tokenizers put a mark before the text


def _parts(messages: Sequence[Message]) -> tuple[list[str], list[Image]]:
    parts = [
        part
        for message in messages
        for part in ((message.content,) if isinstance(message.content, str) else message.content)
    ]
    texts = [part for part in parts if isinstance(part, str)]
    return texts, [part for part in parts if isinstance(part, Image)]


def _requested_counter(tokenizer: str) -> TextCounter:
    path = Path(tokenizer)
    counter = _from_path(path) if path.exists() else _from_hub_cache(tokenizer)
    if counter is None:
        raise OptionsError(
            f"--tokenizer {tokenizer}: not a folder with a tokenizer, a tokenizer.json, or a model whose "
            "tokenizer is in the Hugging Face cache (fetch it with `hf download NAME tokenizer.json`)"
        )
    return counter


def _found_counter(model: ModelSettings) -> TextCounter | None:
    if Path(model.model).is_dir():
        return _from_path(Path(model.model))
    if model.provider == "openai" or model.model.startswith("openai/"):
        return _from_tiktoken(model.model.removeprefix("openai/"))
    return _from_hub_cache(model.model)


def _from_path(path: Path) -> TextCounter | None:
    """The tokenizer in a file or a folder; None when there is none that can be read."""
    file = path / "tokenizer.json" if path.is_dir() else path
    if file.is_file():
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception:  # the library raises bare exceptions for a file that it cannot read
            return None
        return TextCounter(
            f"the tokenizer {file}",
            True,
            lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids),
        )
    if (path / "tokenizer_config.json").is_file():  # one that transformers has to convert
        from transformers import AutoTokenizer

        slow = AutoTokenizer.from_pretrained(path, local_files_only=True)
        return TextCounter(
            f"the tokenizer in {path}",
            True,
            lambda text: len(slow(text, add_special_tokens=False)["input_ids"]),
        )
    return None


def _from_hub_cache(name: str) -> TextCounter | None:
    """The tokenizer of a repository that was fetched before."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return None
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = try_to_load_from_cache(name, "tokenizer.json")
    except HFValidationError:
        return None
    return _from_path(Path(cached)) if isinstance(cached, str) else None


def _from_tiktoken(name: str) -> TextCounter | None:
    try:
        import tiktoken

        encoding = tiktoken.encoding_for_model(name)
    except (ImportError, KeyError):  # not installed, or it does not know the model
        return None
    except Exception:  # its vocabulary could not be fetched (requests' errors, which are not ours to import)
        return None
    return TextCounter(
        f"tiktoken {encoding.name}", True, lambda text: len(encoding.encode(text, disallowed_special=()))
    )
