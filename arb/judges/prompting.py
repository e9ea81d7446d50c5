"""What judges make messages of: prompt files, a trajectory's goal and steps as text, and its pictures.

A prompt file is ``catalog/prompts/<judge>.txt``, its sections headed by a line ``=== name ===``. Replies that
a judge builds on, such as captions, are read here too: their text, or the state that ends the judging.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from arb.judges.types import Answer, Content, Image, Reply, View, ViewStep

if TYPE_CHECKING:
    from PIL import Image as pictures

PROMPTS: Final = Path(__file__).parent / "catalog" / "prompts"
_HEADING: Final = re.compile(r"^=== (.+) ===\n", re.MULTILINE)
_NOT_RECORDED: Final = "(not recorded)"


@cache
def read_prompts(name: str) -> Mapping[str, str]:
    """Return the sections of ``prompts/<name>.txt``, without the line break at their end."""
    parts = _HEADING.split((PROMPTS / f"{name}.txt").read_text(encoding="utf-8"))
    sections = zip(parts[1::2], parts[2::2], strict=True)
    return MappingProxyType({heading: text.removesuffix("\n") for heading, text in sections})


def prompts_hash(*texts: str) -> str:
    """Return the SHA-256 over prompt texts in order, which a judge gives as its ``prompts_hash``."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def hash_of_file(name: str) -> str:
    return prompts_hash(*(part for section in read_prompts(name).items() for part in section))


def content_of(parts: Iterable[str | Image]) -> Content:
    """Return texts and pictures as a message's content; adjacent texts are joined by an empty line.

    Without any picture the content is one text.
    """
    joined: list[str | Image] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] = f"{joined[-1]}\n\n{part}"
        else:
            joined.append(part)
    return joined[0] if len(joined) == 1 and isinstance(joined[0], str) else tuple(joined)


def goal_parts(view: View, heading: str = "The user's goal:") -> list[str | Image]:
    """Return the goal, and the pictures that belong to it."""
    text = f"{heading}\n{view.goal.strip()}"
    if not view.goal_images:
        return [text]
    return [f"{text}\n\nPictures that belong to the goal:", *view.goal_images]


ANSWER: Final = "The agent's final answer:\n{answer}"


def steps_text(steps: Sequence[ViewStep], answer: str | None = None) -> str:
    """Return every step as text, and the agent's answer after them.

    A step has its number, what was observed (the page's address, or a text), the action and the reasoning.
    The last observation, from which no action was taken, has neither action nor reasoning.
    """
    has_pages = any(step.url for step in steps) or all(step.text is None for step in steps)
    texts = [_step_text(step, step is steps[-1], has_pages) for step in steps]
    texts = texts or ["(no step was recorded)"]
    return "\n\n".join([*texts, ANSWER.format(answer=answer.strip())] if answer else texts)


ONE_TEXT: Final = 10_000
"""Characters of an observation, an action or the answer of a run without web pages that judges are shown."""

ALL_TEXTS: Final = 200_000
"""The same of all its observations together: about 50,000 tokens, as many as a large accessibility tree."""

SHORTER: Final = 0.2
"""The share of either that is shown where a prompt was too long."""

_MARK: Final = re.compile(r"\n\[… ([\d,]{1,15}) characters left out …\]\n")
_BELOW: Final = "(the last one; it stands below)"


def with_bounded_texts(view: View, share: float = 1.0) -> View:
    """Return the view with long observations, actions and answer cut in the middle.

    A view without observation text stays as it is, whatever its length. ``share`` scales the bounds above.
    """
    lengths = [len(step.text) for step in view.steps if step.text is not None]
    if not lengths:
        return view
    each = int(ONE_TEXT * share)
    of_texts = _length_for(lengths, int(ALL_TEXTS * share), each)
    steps = (
        replace(step, text=cut_middle(step.text, of_texts), action=cut_middle(step.action, each))
        for step in view.steps
    )
    return replace(view, steps=tuple(steps), answer=cut_middle(view.answer, each))


def _length_for(lengths: Sequence[int], together: int, each: int) -> int:
    """Return the length to cut texts to, so that together they fit ``together`` and none is over ``each``.

    Short texts leave their room to the others: 10, 100 and 100 within 150 are cut to 70.
    """
    for place, length in enumerate(sorted(lengths)):
        room = together // (len(lengths) - place)
        if length > room:
            return min(room, each)
        together -= length
    return each


def cut_middle(text: str | None, most: int) -> str | None:
    """Return at most ``most`` characters of a text, with a mark where the others were."""
    if text is None or len(text) <= most:
        return text
    head, tail = most - most // 2, len(text) - most // 2
    count = tail - head
    for mark in _MARK.finditer(text, head, tail):  # of a text that was cut before
        count += int(mark[1].replace(",", "")) - len(mark[0])
    return f"{text[:head]}\n[… {count:,} characters left out …]\n{text[tail:]}"


def observation_apart(view: View) -> tuple[Sequence[ViewStep], str | None]:
    """Return the steps without the last observation's text, and that text as a part of its own.

    It stands in place of the last page's tree. Without any text the steps stay as they are, with None.
    """
    number = max((step.number for step in view.steps if step.text is not None), default=None)
    if number is None:
        return view.steps, None
    steps = [replace(step, text=_BELOW) if step.number == number else step for step in view.steps]
    (text,) = (step.text for step in view.steps if step.number == number)
    return steps, f"The last observation, of a run without web pages:\n\n{(text or '').strip()}"


def last_step(view: View) -> ViewStep:
    """Return the last observation, or an empty one if the view has none."""
    return view.steps[-1] if view.steps else ViewStep(0, None, None, None, None)


def _step_text(step: ViewStep, is_last: bool, has_pages: bool) -> str:
    lines = [f"Step {step.number}"]
    lines += [f"URL: {step.url or _NOT_RECORDED}"] if has_pages or step.url else []
    lines += [] if step.text is None else [f"Observation: {step.text.strip() or '(empty)'}"]
    if is_last and step.action is None:
        lines[0] += " (the end: no further action)"
        return "\n".join(lines)
    lines.append(f"Action: {step.action or _NOT_RECORDED}")
    if step.reasoning:
        lines.append(f"Reasoning: {step.reasoning.strip()}")
    return "\n".join(lines)


ImageFormat = Literal["png", "jpeg", "webp"]
Detail = Literal["auto", "low", "high"]

LOSSY_QUALITY: Final = 90
"""Of JPEG and WebP, on Pillow's scale to 100, where no other is asked for."""

_FORMATS: Final = ("PNG", "JPEG", "WEBP")
"""What endpoints take; any other picture is sent as PNG."""


class UnreadableImageError(ValueError):
    """Raised for bytes that are no picture, or only part of one; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """How pictures are sent. None keeps the size, or the format, as it was recorded.

    With a ``quality``, pictures that already have the ``format`` are encoded again too.
    """

    max_side: int | None = None
    format: ImageFormat | None = None
    detail: Detail = "auto"
    quality: int | None = None

    def prepare(self, content: bytes) -> Image:
        """Return a picture with no side longer than ``max_side`` pixels, in ``format``.

        PNG, JPEG and WebP pictures that need no change keep their bytes, so the cache finds them again. Of a
        moving picture the first frame is sent. Raises UnreadableImageError.
        """
        from PIL import Image as pictures

        from dataset_script.build.pictures import BrokenImageError, check_picture

        try:
            with pictures.open(io.BytesIO(content)) as picture:
                found = picture.format or ""
                if found in _FORMATS:
                    check_picture(content)  # a picture that was cut off still opens
                wanted = self.format.upper() if self.format else found if found in _FORMATS else "PNG"
                is_too_large = self.max_side is not None and max(picture.size) > self.max_side
                if wanted == found and not is_too_large and self.quality is None:
                    return Image(content, f"image/{found.lower()}", *picture.size, self.detail)
                return self._converted(picture, self.max_side if is_too_large else None, wanted)
        except (BrokenImageError, OSError, SyntaxError, ValueError, pictures.DecompressionBombError) as error:
            raise UnreadableImageError(f"the picture cannot be read ({error})") from error

    def _converted(self, picture: pictures.Image, max_side: int | None, wanted: str) -> Image:
        from PIL import Image as pictures
        from PIL import ImageOps

        upright = ImageOps.exif_transpose(picture)
        mode = "RGBA" if upright.has_transparency_data else "RGB"
        drawn = upright if upright.mode == mode else upright.convert(mode)
        if max_side is not None:
            drawn.thumbnail((max_side, max_side), pictures.Resampling.LANCZOS)
        if wanted == "JPEG" and mode == "RGBA":  # JPEG knows no transparency: white shows through
            ground = pictures.new("RGB", drawn.size, "white")
            ground.paste(drawn, mask=drawn.getchannel("A"))
            drawn = ground
        file = io.BytesIO()
        drawn.save(file, wanted, quality=self.quality or LOSSY_QUALITY)
        return Image(file.getvalue(), f"image/{wanted.lower()}", *drawn.size, self.detail)


def text_of(reply: Reply) -> str | None:
    """Return the text of a reply; None if the call failed, the model refused, or the text is empty."""
    if reply.state != "ok" or reply.refusal or reply.finish_reason == "content_filter":
        return None
    return reply.text if (reply.text or "").strip() else None


def failed_answer(reply: Reply) -> Answer:
    """Return the answer of a judge that needs the text of this reply, which has none."""
    if reply.state != "ok":
        return Answer(reply.state)
    if reply.refusal or reply.finish_reason == "content_filter":
        return Answer("refused")
    if reply.finish_reason == "length":
        return Answer("truncated")
    return Answer("unparsed" if reply.finish_reason else "error")
