"""The Content-Security-Policy of our pages: scripts are files of ours, or inline ones that we wrote.

Inline scripts are allowed by the hash of their text, so that markup which somebody smuggles into a page runs
nothing. Only what Gradio 6 serves (``/submit``) gets 'unsafe-eval': its `js_on_load` handlers are made with
`new Function`.
"""

import base64
import hashlib
import re
from collections.abc import Iterable
from typing import Final

HUB: Final = "https://huggingface.co"
_INLINE_SCRIPT: Final = re.compile(
    r"<script(?![^>]*\ssrc=)[^>]*>(.*?)</script\s*>", re.DOTALL | re.IGNORECASE
)


def content_policy(on_space: bool, script_hashes: Iterable[str] = (), evaluates: bool = False) -> str:
    """The policy as a header's value; on a Space the Hub may show our pages in its frame.

    ``evaluates`` lets scripts make functions of texts, which Gradio's do.
    """
    hub = (HUB,) if on_space else ()
    unsafe = ("'unsafe-eval'",) if evaluates else ()
    parts = {
        "default-src": ("'self'",),
        "script-src": ("'self'", *unsafe, *script_hashes),
        "style-src": ("'self'", "'unsafe-inline'"),
        "img-src": ("'self'", "data:", "blob:"),
        "font-src": ("'self'", "data:"),
        "connect-src": ("'self'", "data:", "blob:", *hub),
        "media-src": ("'self'", "data:", "blob:"),
        "worker-src": ("'self'", "blob:"),
        "frame-src": ("'none'",),
        "object-src": ("'none'",),
        "base-uri": ("'self'",),
        "form-action": ("'self'",),
        "frame-ancestors": ("'self'", *hub),
    }
    return "; ".join(" ".join((name, *values)) for name, values in parts.items())


def script_hashes(html: str) -> tuple[str, ...]:
    """The sources that allow the inline scripts of this HTML, which must be our own and Gradio's only."""
    texts = dict.fromkeys(_INLINE_SCRIPT.findall(html))
    return tuple(f"'sha256-{base64.b64encode(hashlib.sha256(t.encode()).digest()).decode()}'" for t in texts)
