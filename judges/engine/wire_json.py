"""JSON as endpoints send it. Pure."""

import json
from typing import Any


def read_json(text: str) -> Any:
    """What a JSON text says, halves of characters (lone surrogates, where a reply was cut) made U+FFFD.

    So whatever comes out of it can be written as UTF-8. Raises ValueError for what is no JSON.
    """
    try:
        read = json.loads(text)
        if "\\ud" in text.lower():
            whole = json.dumps(read, ensure_ascii=False).encode("utf-16", "surrogatepass")
            read = json.loads(whole.decode("utf-16", "replace"))
    except RecursionError as problem:
        raise ValueError("nested too deeply") from problem
    return read
