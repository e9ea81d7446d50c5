"""Where a request comes from, and where a reader may be sent: never from or to another site. Pure."""

import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]*")
"""A path of this site. Browsers drop tabs and line breaks and read ``\\`` as ``/``: such are not taken."""
LONGEST_PATH = 2_000


def local_path(path: str | None) -> str:
    """The path (with query) to go to, when it is one of this site; ``/`` for everything else."""
    is_local = path is not None and len(path) <= LONGEST_PATH and _LOCAL.fullmatch(path) is not None
    return path if is_local else "/"


def is_same_origin(headers: Mapping[str, str], own_hosts: Collection[str]) -> bool:
    """Whether a page of ours made this request, as the browser tells.

    ``own_hosts`` are host names with port, in small letters. Every browser sends ``Sec-Fetch-Site`` or, with
    each POST, ``Origin``; a request with neither carries no cookie that somebody else could misuse, so that
    it is not ours.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    return urlsplit(headers.get("origin") or "").netloc.lower() in own_hosts
