"""How the server counts tokens: a stated rule, or the tokenizer that a test hands in."""

import base64
import io
import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


def quarter_of_the_bytes(text: str) -> int:
    """A token for every four bytes of UTF-8, rounded up."""
    return (len(text.encode()) + 3) // 4


def tiles(width: int, height: int, detail: str) -> int:
    """As OpenAI counts for GPT-4o: 85, and 170 for each tile of 512 pixels unless the detail is low.

    A picture is first fitted into 2,048 by 2,048, then its short side brought down to 768.
    """
    if detail == "low":
        return 85
    scale = min(1, 2048 / max(width, height))
    scale = min(scale, 768 / min(width, height)) if min(width, height) else scale
    across, down = (-(-int(side * scale) // 512) for side in (width, height))
    return 85 + 170 * across * down


@dataclass(frozen=True)
class TokenRule:
    """``usage``: every message costs ``per_message`` and its content, the whole call ``per_call`` more.

    ``text`` counts a text, ``image`` a picture by width, height and detail.
    """

    text: Callable[[str], int] = quarter_of_the_bytes
    image: Callable[[int, int, str], int] = tiles
    per_message: int = 3
    per_call: int = 3

    def of_messages(self, messages: Sequence[dict], tools: Sequence[dict] | None = None) -> int:
        """The input tokens of a call, those of its tools among them."""
        declared = self.text(json.dumps(tools)) if tools else 0
        return self.per_call + declared + sum(self.per_message + self.of_reply(each) for each in messages)

    def of_reply(self, message: dict) -> int:
        """The tokens of a message's content and of the tools that it calls."""
        calls = [each.get("function", {}) for each in message.get("tool_calls", ())]
        return self._of_content(message["content"]) + sum(self.text(json.dumps(each)) for each in calls)

    def _of_content(self, content: str | list[dict] | None) -> int:
        if isinstance(content, str) or content is None:
            return self.text(content or "")
        return sum(
            self.text(part["text"]) if part["type"] == "text" else self._of_image(part["image_url"])
            for part in content
        )

    def _of_image(self, image: dict) -> int:
        return self.image(*size_of(image["url"]), image.get("detail", "auto"))


@dataclass
class InputCache:
    """What a provider keeps of prompts, as OpenAI describes it: the longest beginning that it has seen, in
    steps of 128 tokens, from 1,024 tokens on. Here a token is four characters of the texts.
    """

    step: int = 128
    least: int = 1_024
    seen: set[int] = field(default_factory=set)

    def read(self, text: str, input_tokens: int) -> int:
        """How many of the tokens were in the cache; afterwards all are."""
        size = 4 * self.step
        beginnings = [hash(text[:end]) for end in range(size, len(text) + 1, size)]
        known = next((n for n, each in enumerate(beginnings) if each not in self.seen), len(beginnings))
        self.seen.update(beginnings)
        tokens = min(known * self.step, input_tokens - input_tokens % self.step)
        return tokens if tokens >= self.least else 0


def size_of(data_url: str) -> tuple[int, int]:
    """Width and height of a picture in a data address; of a PNG only the head is looked at."""
    start, comma, content = data_url.partition(",")
    if not comma or ";base64" not in start:
        raise ValueError("this server takes pictures as base64 data addresses only")
    head = base64.b64decode(content[:32])
    if head.startswith(b"\x89PNG"):
        return struct.unpack(">II", head[16:24])
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
        return picture.size
