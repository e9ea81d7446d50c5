"""Pages that are another one for every reader: in the frame of the others, without Gradio, never kept."""

from collections.abc import Sequence
from typing import Any

from fastapi.responses import HTMLResponse

from space.look import Look
from space.operations.content_policy import content_policy, script_hashes
from space.operations.security_headers import POLICY
from space.page import Page
from space.templating import render


class PlainPages:
    """Makes whole pages from templates that extend ``plain.html``."""

    def __init__(self, look: Look, name: str, menu: Sequence[Page], on_space: bool) -> None:
        self._look, self._name, self._menu, self._on_space = look, name, menu, on_space

    def answer(self, template: str, title: str, path: str, status: int = 200, **values: Any) -> HTMLResponse:
        """The page as an answer that no cache keeps; its policy allows the scripts of the frame only."""
        html = render(
            template,
            title=f"{title} · {self._name}",
            description=title,
            style=self._look.style,
            script=self._look.script,
            name=self._name,
            menu=self._menu,
            current={"path": path},
            **values,
        )
        # Whatever people wrote is escaped, so that the scripts in it are ours.
        policy = content_policy(self._on_space, script_hashes(html))
        return HTMLResponse(html, status, {"Cache-Control": "no-store", POLICY: policy})

    def refusal(self, heading: str, said: str, path: str, status: int) -> HTMLResponse:
        """A page that says why there is nothing to see, and how to sign in."""
        return self.answer("plain_refusal.html", heading, path, status, heading=heading, said=said)
