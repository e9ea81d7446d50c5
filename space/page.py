"""What a page of the Space is: a title, an address, what builds it, and what it shows at once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import gradio as gr

from space.auth.auth import Auth
from space.board_pages import BoardPages
from space.compare_html import ComparePages
from space.errors.judge_columns import JudgeColumns
from space.explorer.explorer import Explorer
from space.judge_html import JudgePages
from space.operations.check_limit import CheckLimit
from space.paper_source import PaperTables
from submissions.labelling.desk import LabellingDesk
from submissions.service import SubmissionService


@dataclass(frozen=True)
class Services:
    """What pages read from; without ``checks`` as many files are checked as are sent."""

    submissions: SubmissionService
    trajectories: Explorer
    checks: CheckLimit | None = None

    @cached_property
    def auth(self) -> Auth:
        """Who is acting."""
        return Auth(self.submissions.settings)

    @cached_property
    def labelling(self) -> LabellingDesk:
        """Annotations and what was decided of them."""
        return LabellingDesk(self.submissions)

    @cached_property
    def boards(self) -> BoardPages:
        """The leaderboard."""
        return BoardPages(self.submissions)

    @cached_property
    def judges(self) -> JudgePages:
        """The judges' own pages."""
        return JudgePages(self.submissions, self.judge_columns)

    @cached_property
    def judge_columns(self) -> JudgeColumns:
        """The verdicts whose errors may be seen."""
        return JudgeColumns(self.submissions, self.trajectories)

    @cached_property
    def comparisons(self) -> ComparePages:
        """Judges held against each other."""
        return ComparePages(self.submissions, self.judge_columns)

    @cached_property
    def paper(self) -> PaperTables:
        """The paper's tables."""
        return PaperTables(self.submissions)


@dataclass(frozen=True)
class Opening:
    """What a page shows before Gradio has loaded: HTML, and a tag that is another one for other HTML."""

    html: str
    tag: str


@dataclass(frozen=True)
class Page:
    """One line of the table of pages in ``app.py``.

    ``build`` lays the page out in the current Blocks. ``opening`` takes the services and the query string of
    the address; its HTML comes with the page itself, and every element in it with ``data-part="x"`` moves
    into the element with ``data-place="x"`` (see ``place``) when the page is there.
    """

    title: str
    path: str
    build: Callable[[Services], None]
    in_menu: bool = True
    opening: Callable[[Services, str], Opening] | None = None


def part(value: str = "", elem_id: str | None = None, **options) -> gr.HTML:
    """A piece of HTML in our own style: without Gradio's styles of running text, without scripts."""
    return gr.HTML(value, elem_id=elem_id, apply_default_css=False, js_on_load=None, **options)


def place(name: str, elem_id: str | None = None) -> gr.HTML:
    """Where ``data-part=name`` of the page's opening goes; ``static/opening.js`` fills it and keeps it."""
    mark = f'<div data-place="{name}"></div>'
    return gr.HTML(
        mark, elem_id=elem_id, apply_default_css=False, js_on_load="window.arbOpening?.fill(element);"
    )
