"""A receipt to take along: a link that holds it, so that it can be saved without asking the server."""

import json
from urllib.parse import quote

from submissions.receipts import Receipt


def receipt_link(receipt: Receipt) -> str:
    """The signed receipt as an address that holds it: what a link with ``download`` saves."""
    text = json.dumps(receipt.to_json(), indent=2, ensure_ascii=False) + "\n"
    return f"data:application/json;charset=utf-8,{quote(text)}"
