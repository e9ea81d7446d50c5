"""Prompts in files of their own: ``prompts/<judge>.txt``, sections headed by a line ``=== name ===``."""

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

PROMPTS: Final = Path(__file__).parent / "prompts"
_HEADING: Final = re.compile(r"^=== (.+) ===\n", re.MULTILINE)


@cache
def read_prompts(name: str) -> Mapping[str, str]:
    """The sections of ``prompts/<name>.txt``, without the line break at their end."""
    parts = _HEADING.split((PROMPTS / f"{name}.txt").read_text(encoding="utf-8"))
    sections = zip(parts[1::2], parts[2::2], strict=True)
    return MappingProxyType({heading: text.removesuffix("\n") for heading, text in sections})


def prompts_hash(*texts: str) -> str:
    """SHA-256 over prompt texts in their order: what a judge gives as its ``prompts_hash``."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def hash_of_file(name: str) -> str:
    return prompts_hash(*(part for section in read_prompts(name).items() for part in section))
