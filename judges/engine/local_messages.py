"""Messages as chat templates take them."""

import io
from collections.abc import Sequence
from typing import Any

from judges.base import Image, Message


def template_message(message: Message, *, is_vision: bool) -> dict[str, Any]:
    """A message: in parts for a vision model, as one text, a line break between its parts, for the others."""
    parts = (message.content,) if isinstance(message.content, str) else message.content
    if not is_vision:
        return {"role": message.role, "content": "\n".join(part for part in parts if isinstance(part, str))}
    return {"role": message.role, "content": [_part(part) for part in parts]}


def without_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with what the system says put in front of what the user says first."""
    system, first, *others = messages
    contents = [
        (each.content,) if isinstance(each.content, str) else each.content for each in (system, first)
    ]
    return [Message(first.role, (*contents[0], *contents[1])), *others]


def _part(part: str | Image) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    from PIL import Image as pictures

    with pictures.open(io.BytesIO(part.content)) as picture:
        return {"type": "image", "image": picture.convert("RGB")}
