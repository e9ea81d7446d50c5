"""The small pages of signing in, in the frame of the others but without Gradio."""

from collections.abc import Sequence

from fastapi.responses import HTMLResponse

from space.look import Look
from space.operations.content_policy import content_policy, script_hashes
from space.operations.security_headers import POLICY
from space.page import Page
from space.templating import render


class SignInPage:
    """Makes the page: a form for a name (local), or what went wrong with a way to begin again."""

    def __init__(self, look: Look, name: str, menu: Sequence[Page], on_space: bool) -> None:
        self._look, self._name, self._menu, self._on_space = look, name, menu, on_space

    def form(self, wished: str, problem: str | None = None, status: int = 200) -> HTMLResponse:
        """Asks for a name."""
        return self._page(status, wished=wished, problem=problem, is_form=True)

    def problem(self, problem: str, wished: str, status: int) -> HTMLResponse:
        """Says why nobody was signed in."""
        return self._page(status, wished=wished, problem=problem, is_form=False)

    def _page(self, status: int, **values) -> HTMLResponse:
        html = render(
            "sign_in.html",
            title=f"Sign in · {self._name}",
            description="Sign in to submit or to moderate.",
            style=self._look.style,
            script=self._look.script,
            name=self._name,
            menu=self._menu,
            current={"path": ""},
            **values,
        )
        # Everything else in it is escaped, so that the scripts it holds are ours.
        policy = content_policy(self._on_space, script_hashes(html))
        return HTMLResponse(html, status, {"Cache-Control": "no-store", POLICY: policy})
