"""The trajectories page: what an agent was asked, saw, thought and did, step by step, and what judges said.

Everything that the page shows follows from its address, so the server writes it into the page's first HTML;
``static/trajectories.js`` asks for the next part when a reader moves on.
"""

import hashlib

from space.explorer.parts import browse_part, story_id, story_part
from space.page import Opening, Services, place

PLACE = "trajectories"


def build_trajectories_page(services: Services) -> None:
    """Lay the page out in the current Blocks: one place, for what the page opens with."""
    place(PLACE, elem_id="trajectories")


def open_trajectories(services: Services, query: str) -> Opening:
    """The list, or the story that the address names."""
    part_of = story_part if story_id(query) else browse_part
    part = part_of(services.trajectories, query)
    html = f'<div class="trajectories" data-part="{PLACE}">{part.html}</div>'
    return Opening(html, hashlib.sha256(html.encode()).hexdigest())
