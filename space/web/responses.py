"""Responses that are made once and served often, and the styles and scripts of the pages.

A template names the files that it needs in addition to the common ones::

    {% set assets = ["htmx", "sheet", "judge"] %}

The contents of ``static/sheet.css`` and ``static/judge.css`` then go into the page itself, because a browser
paints nothing until separate style sheets have arrived. ``static/judge.js`` is linked as a script, if it
exists. Scripts are joined and named by a hash of their content, so browsers may keep them forever.
"""

import gzip
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

SMALLEST_WORTH_PACKING = 1_000


@dataclass(frozen=True)
class CachedResponse:
    """A response body with its gzip form, ETag and headers. The gzip form has a separate ETag."""

    body: bytes
    packed: bytes | None
    etag: str
    media_type: str
    headers: Mapping[str, str]

    @property
    def packed_etag(self) -> str:
        return f'{self.etag[:-1]}-gzip"'

    @property
    def size(self) -> int:
        return len(self.body) + len(self.packed or b"")

    @classmethod
    def of(cls, body: bytes, media_type: str, headers: Mapping[str, str] = {}) -> "CachedResponse":
        """Return a response with a body. The same body always gives the same gzip form and ETags."""
        packed = gzip.compress(body, 6, mtime=0) if len(body) >= SMALLEST_WORTH_PACKING else None
        return cls(body, packed, f'"{hashlib.sha256(body).hexdigest()[:32]}"', media_type, headers)

    def answer(self, request: Request, headers: dict[str, str] | None = None, status: int = 200) -> Response:
        """Return 304 if the client has this content, else the body, as gzip if the client accepts it."""
        packed = self.packed if takes_gzip(request.headers.get("accept-encoding", "")) else None
        common = {
            "ETag": self.etag if packed is None else self.packed_etag,
            "Cache-Control": "no-cache",
            "Vary": "Accept-Encoding",
            **self.headers,
            **(headers or {}),
        }
        known = {
            tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")
        }
        if known & {self.etag, self.packed_etag, "*"}:
            return Response(status_code=304, headers=common)
        if packed is not None:
            common["Content-Encoding"] = "gzip"
        return Response(packed or self.body, status, media_type=self.media_type, headers=common)


def takes_gzip(accept_encoding: str) -> bool:
    """Return whether a header accepts gzip, by name or by ``*``, with a weight above 0."""
    weights = {}
    for offer in accept_encoding.lower().split(","):
        coding, *parameters = (part.strip() for part in offer.split(";"))
        weights[coding] = not any(re.fullmatch(r"q\s*=\s*0(\.0*)?", parameter) for parameter in parameters)
    return weights.get("gzip", weights.get("*", False))


STATIC: Final = Path(__file__).parents[1] / "static"
COMMON: Final = ("tokens", "style", "theme", "account")
HTMX: Final = "htmx"
_HTMX_SCRIPTS: Final = ("vendor/htmx.min", "forms")
FOR_GOOD: Final = {"Cache-Control": "public, max-age=31536000, immutable"}
SCRIPT: Final = "text/javascript; charset=utf-8"


class StaticAssets:
    """The files in ``static/``, joined for the pages that need them. Thread-safe."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder
        self._bundles: dict[str, CachedResponse] = {}
        self._joined = cache(self._read_joined)

    def style(self, assets: Sequence[str] = ()) -> Markup:
        """Return the styles of a page for its ``<style>``: the common ones and its own."""
        return Markup(self._joined(tuple(f"{name}.css" for name in dict.fromkeys((*COMMON, *assets)))))

    def scripts(self, assets: Sequence[str] = ()) -> list[str]:
        """Return the addresses of a page's scripts: one for the common ones, and one for its own, if any."""
        common = (*COMMON, *_HTMX_SCRIPTS) if HTMX in assets else COMMON
        own = [name for name in assets if name not in (*COMMON, HTMX)]
        addresses = []
        for group in (common, own):
            body = self._joined(tuple(f"{name}.js" for name in group)).encode()
            if body:
                address = f"/bundles/{hashlib.sha256(body).hexdigest()[:16]}.js"
                addresses.append(address)
                if address not in self._bundles:
                    self._bundles[address] = CachedResponse.of(body, SCRIPT)
        return addresses

    def _read_joined(self, names: tuple[str, ...]) -> str:
        files = [self._folder / name for name in names]
        return "\n".join(file.read_text(encoding="utf-8") for file in files if file.is_file())

    def router(self) -> APIRouter:
        """Return the route of the scripts. A script is served once a page that uses it has been rendered."""
        router = APIRouter()

        @router.get("/bundles/{name}", include_in_schema=False)
        async def bundle(
            name: str, request: Request
        ) -> Response:  # served from memory, so it needs no thread
            found = self._bundles.get(f"/bundles/{name}")
            return found.answer(request, FOR_GOOD) if found else Response(status_code=404)

        return router
