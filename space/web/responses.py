"""Responses made once and served often: a body with its gzip and ETag, and the pages' styles and scripts.

A template names what it needs beyond the common files::

    {% set assets = ["htmx", "sheet", "judge"] %}

and gets ``static/sheet.css`` and ``static/judge.css`` in its head, since a browser paints nothing before
styles in files have come, and ``static/judge.js``, where it exists, as a script. Scripts are joined and named
by their content, so that browsers keep them for good.
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
    """A body with its packed form and its tag; the packed form has a tag of its own, being other bytes."""

    body: bytes
    packed: bytes | None
    etag: str
    media_type: str
    headers: Mapping[str, str]

    @property
    def packed_etag(self) -> str:
        """The tag of the packed form."""
        return f'{self.etag[:-1]}-gzip"'

    @property
    def size(self) -> int:
        """Its bytes in memory."""
        return len(self.body) + len(self.packed or b"")

    @classmethod
    def of(cls, body: bytes, media_type: str, headers: Mapping[str, str] = {}) -> "CachedResponse":
        """Pack and tag a body; mtime 0 keeps the packed bytes the same for the same body."""
        packed = gzip.compress(body, 6, mtime=0) if len(body) >= SMALLEST_WORTH_PACKING else None
        return cls(body, packed, f'"{hashlib.sha256(body).hexdigest()[:32]}"', media_type, headers)

    def answer(self, request: Request, headers: dict[str, str] | None = None) -> Response:
        """304 when the client has this content, else the body, packed where the client takes gzip."""
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
        return Response(packed or self.body, media_type=self.media_type, headers=common)


def takes_gzip(accept_encoding: str) -> bool:
    """Whether a client that sends this header takes gzip: named, or by ``*``, and not with weight 0."""
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
    """The files in ``static/``, joined for the pages that ask for them. Safe for threads."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder
        self._bundles: dict[str, CachedResponse] = {}
        self._joined = cache(self._read_joined)

    def style(self, assets: Sequence[str] = ()) -> Markup:
        """The styles of a page, for its ``<style>``: the common ones and its own."""
        return Markup(self._joined(tuple(f"{name}.css" for name in dict.fromkeys((*COMMON, *assets)))))

    def scripts(self, assets: Sequence[str] = ()) -> list[str]:
        """The addresses of the scripts of a page: the common ones (with HTMX where asked for) and its own."""
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
        """The route that serves them; an address is known once a page that names it was made."""
        router = APIRouter()

        @router.get("/bundles/{name}", include_in_schema=False)
        async def bundle(name: str, request: Request) -> Response:  # from memory: needs no thread
            found = self._bundles.get(f"/bundles/{name}")
            return found.answer(request, FOR_GOOD) if found else Response(status_code=404)

        return router
