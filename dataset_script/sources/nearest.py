"""Say which format an unreadable file resembles, and how to turn it into one that can be read."""

import json
import re
import tomllib
from itertools import islice
from pathlib import Path
from typing import Final

from arb.core.console import printable
from dataset_script.sources.files import content_of, files_in

_KNOWN: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_MOST_FILES: Final = 200
_HEAD_BYTES: Final = 65_536
_PICKLES: Final = (".pkl.gz", ".pkl", ".pickle")
_TEXTS: Final = (".json", ".jsonl", ".ndjson", ".log", ".txt", ".traj")


def nearest_format(path: Path) -> tuple[str, bool]:
    """Return a sentence on the first file that may hold runs (else ""), and whether its form is known."""
    fallback = ""
    for file in islice(files_in(path), _MOST_FILES):
        name, head = printable(file.relative_to(path).as_posix() if path.is_dir() else file.name), b""
        if file.name.lower().endswith(_PICKLES):
            return f"{name} {_sentence(_KNOWN['pickle']['says'])}", True
        head = content_of(file, _HEAD_BYTES)
        for known in _KNOWN["formats"]:
            if re.match(known["sign"].encode("latin-1"), head, re.DOTALL):
                return f"{name} {_sentence(known['says'])}", True
        if not fallback and head.strip() and file.name.lower().endswith(_TEXTS):
            fallback = f"{name} {_unknown(head)}; the nearest format is chat messages: write {_KNOWN['chat']}"
    return fallback, False


def _sentence(text: str) -> str:
    return " ".join(text.replace("{chat}", _KNOWN["chat"]).split())


def _unknown(head: bytes) -> str:
    """Describe a file of unknown form: list its keys, or say that it is not JSON."""
    text = head.decode("utf-8-sig", "replace").strip()
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return (
            "is not complete JSON" if text[:1] in "{[" and len(head) < _HEAD_BYTES else "has an unknown form"
        )
    value = value[0] if isinstance(value, list) and value else value
    keys = ", ".join(list(value)[:8]) if isinstance(value, dict) else ""
    return f"has the keys {printable(keys)[:200]}" if keys else "has no JSON object"
