"""The trajectories page: what an agent was asked, saw, thought and did, step by step, and what judges said.

Everything that the page shows follows from its address; ``static/trajectories.js`` asks for the next part
when a reader moves on.
"""

from typing import Final

from fastapi import APIRouter, Request, Response

from space.explorer.choice import PATH
from space.explorer.parts import browse_part, story_id, story_part
from space.page import Services
from space.plain_page import PageFrame

TITLE: Final = "Trajectories"
TEMPLATE: Final = "trajectories.html"


def build_trajectories_router(services: Services, pages: PageFrame) -> APIRouter:
    """The route: the list, or the story that the address names."""
    router, explorer = APIRouter(), services.trajectories

    @router.head(PATH, include_in_schema=False)
    @router.get(PATH, include_in_schema=False)
    def trajectories(request: Request) -> Response:
        query = request.url.query
        part = story_part(explorer, query) if story_id(query) else browse_part(explorer, query)
        if part.status != 200:
            return pages.answer(TEMPLATE, TITLE, PATH, part.status, part=part)
        return pages.cached(request, part.html, TEMPLATE, part.title or TITLE, PATH, lambda: {"part": part})

    return router
