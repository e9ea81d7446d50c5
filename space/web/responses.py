"""A response made once and served often: body, gzip and ETag of one content."""

import gzip
import hashlib
import re
from dataclasses import dataclass

from fastapi import Request, Response

SMALLEST_WORTH_PACKING = 1_000


@dataclass(frozen=True)
class CachedResponse:
    """A body with its packed form and its tag; the packed form has a tag of its own, being other bytes."""

    body: bytes
    packed: bytes | None
    etag: str
    media_type: str

    @property
    def packed_etag(self) -> str:
        """The tag of the packed form."""
        return f'{self.etag[:-1]}-gzip"'

    @property
    def size(self) -> int:
        """Its bytes in memory."""
        return len(self.body) + len(self.packed or b"")

    @classmethod
    def of(cls, body: bytes, media_type: str) -> "CachedResponse":
        """Pack and tag a body; mtime 0 keeps the packed bytes the same for the same body."""
        packed = gzip.compress(body, 6, mtime=0) if len(body) >= SMALLEST_WORTH_PACKING else None
        return cls(body, packed, f'"{hashlib.sha256(body).hexdigest()[:32]}"', media_type)

    def answer(self, request: Request, headers: dict[str, str] | None = None) -> Response:
        """304 when the client has this content, else the body, packed where the client takes gzip."""
        packed = self.packed if takes_gzip(request.headers.get("accept-encoding", "")) else None
        common = {
            "ETag": self.etag if packed is None else self.packed_etag,
            "Cache-Control": "no-cache",
            "Vary": "Accept-Encoding",
            **(headers or {}),
        }
        known = {
            tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")
        }
        if known & {self.etag, self.packed_etag, "*"}:
            return Response(status_code=304, headers=common)
        if packed is not None:
            return Response(
                packed, media_type=self.media_type, headers={**common, "Content-Encoding": "gzip"}
            )
        return Response(self.body, media_type=self.media_type, headers=common)


def takes_gzip(accept_encoding: str) -> bool:
    """Whether a client that sends this header takes gzip: named, or by ``*``, and not with weight 0."""
    weights = {}
    for offer in accept_encoding.lower().split(","):
        coding, *parameters = (part.strip() for part in offer.split(";"))
        weights[coding] = not any(re.fullmatch(r"q\s*=\s*0(\.0*)?", parameter) for parameter in parameters)
    return weights.get("gzip", weights.get("*", False))
