"""Style and scripts of all pages: one file each, named by its content, so that browsers keep it for good."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from fastapi import APIRouter, Request, Response

from space.prepared import Prepared

STATIC = Path(__file__).parent / "static"
TOKENS = "tokens.css"
FIRST = (TOKENS, "style.css")
FOR_GOOD = {"Cache-Control": "public, max-age=31536000, immutable"}


class Look:
    """Every ``static/*.css`` and ``static/*.js`` in two answers, prepared when the application starts."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._answers: dict[str, Prepared] = {}
        styles = [_style(file) for file in in_order(folder.glob("*.css"))]
        scripts = [file.read_text(encoding="utf-8") for file in in_order(folder.glob("*.js"))]
        self.style = self._add(styles, "css", "text/css; charset=utf-8")
        self.script = self._add(scripts, "js", "text/javascript; charset=utf-8")

    def _add(self, texts: Sequence[str], suffix: str, media_type: str) -> str:
        body = "\n".join(texts).encode()
        path = f"/look/{hashlib.sha256(body).hexdigest()[:16]}.{suffix}"
        self._answers[path] = Prepared.of(body, media_type)
        return path

    def router(self) -> APIRouter:
        """The route that serves both."""
        router = APIRouter()

        @router.get("/look/{name}", include_in_schema=False)
        def look(name: str, request: Request) -> Response:
            found = self._answers.get(f"/look/{name}")
            return found.answer(request, FOR_GOOD) if found else Response(status_code=404)

        return router


def _style(file: Path) -> str:
    """A style file; all but the tokens within one rule, ``body`` by the weight of two classes.

    Gradio's own styles are added to the page later and name its parts by one or two classes: ours shall win.
    Within a rule there is no ``:root``, ``.dark`` or ``@keyframes``: they belong into the tokens.
    """
    text = file.read_text(encoding="utf-8")
    return text if file.name == TOKENS else f"body:is(body, .a.b) {{\n{text}\n}}"


def in_order(files: Iterable[Path]) -> list[Path]:
    """The common ones first, then the pages' own by name."""
    return sorted(files, key=lambda file: (FIRST.index(file.name) if file.name in FIRST else 9, file.name))
