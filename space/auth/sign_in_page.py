"""The small pages of signing in."""

from fastapi.responses import HTMLResponse

from space.plain_page import PageFrame


class SignInPage:
    """Makes the page: a form for a name (local), or what went wrong with a way to begin again."""

    def __init__(self, pages: PageFrame) -> None:
        self._pages = pages

    def form(self, next_path: str, problem: str | None = None, status: int = 200) -> HTMLResponse:
        """Asks for a name."""
        return self._page(status, next_path=next_path, problem=problem, is_form=True)

    def problem(self, problem: str, next_path: str, status: int) -> HTMLResponse:
        """Says why nobody was signed in."""
        return self._page(status, next_path=next_path, problem=problem, is_form=False)

    def _page(self, status: int, **values) -> HTMLResponse:
        description = "Sign in to submit or to moderate."
        return self._pages.answer("sign_in.html", "Sign in", "", status, description=description, **values)
