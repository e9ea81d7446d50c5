"""The page ``/trajectories``: the list or one trajectory, and routes for its pictures, trees and reasoning.

The URL determines everything that the page shows; ``static/trajectories.js`` moves between steps.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from markupsafe import Markup

from space.pages.labels.access import IN_YOUR_QUEUE, BlindItems
from space.pages.labels.disputes import DisputedVerdict, dispute_form
from space.pages.trajectories.dataset import (
    Explorer,
    OpenedDataset,
    PictureKind,
    Story,
    TrajectoriesUnavailable,
    TreeForm,
)
from space.pages.trajectories.filters import (
    PATH,
    TrajectoriesQuery,
    agent_title,
    browse_values,
    choose,
    known_values,
    read_choice,
)
from space.pages.trajectories.images import WIDTHS, BrokenPicture, NoPicture
from space.pages.trajectories.index import TrajectoryEntry
from space.pages.trajectories.parts import wrong_parts
from space.pages.trajectories.story import StoryStep
from space.pages.trajectories.verdicts import JudgeVerdict, link_steps
from space.web.frame import PageFrame, render
from space.web.http_errors import NO_STORE
from space.web.query import LONGEST_QUERY, QueryParam, choices_in, link_to
from space.web.responses import CachedResponse

FOR_GOOD = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"
HTML = "text/html; charset=utf-8"
Id = Annotated[str, Query(max_length=300)]
Version = Annotated[str, Query(max_length=64, description="The dataset's version; allows caching forever.")]
Width = Annotated[int | None, Query(description=f"{', '.join(map(str, WIDTHS))}; default: as recorded.")]
_SAFE = {"X-Content-Type-Options": "nosniff"}

SMALLEST_LARGE: Final = 640
"""Pictures narrower than this, in pixels, are thumbnails and are never shown large."""

MOST_STEPS: Final = 40
LONGEST_TEXT: Final = 3_000
"""Other pages show at most this many steps of a run, and this many characters of each text in a step."""
STEPS: Final = "/trajectories/steps"
SEES_ALL: Final = BlindItems()
TITLE: Final = "Trajectories"
TEMPLATE: Final = "trajectories/page.html"
UNAVAILABLE = (
    "The trajectories cannot be read now.",
    "Try again in a minute. The log of this Space has the reason.",
)
UNKNOWN = (
    "There is no such trajectory.",
    "The address may be incomplete, or the trajectory may not be in the dataset shown here.",
)


@dataclass(frozen=True)
class Fragment:
    """A part of the page, with the title and the status of the response."""

    html: Markup
    status: int = 200
    title: str = ""


def trajectories_fragment(explorer: Explorer, query: str, blind: BlindItems = SEES_ALL) -> Fragment:
    """Return the list of trajectories, the trajectory in the query, or a message why it cannot be shown."""
    trajectory_id = _parameters(query)["id"]
    if blind.hides(trajectory_id):
        return _problem(403, "You have not annotated this trajectory yet.", IN_YOUR_QUEUE)
    try:
        return (_story if trajectory_id else _list)(explorer, query, blind)
    except KeyError:
        return _problem(404, *UNKNOWN)
    except TrajectoriesUnavailable:
        return _problem(503, *UNAVAILABLE)


def _parameters(query: str) -> dict[str, str]:
    names = ("id", "suite", "judge", "step")
    return choices_in(query, [QueryParam(name, "text", "", max_length=LONGEST_QUERY) for name in names])[0]


def _list(explorer: Explorer, query: str, blind: BlindItems) -> Fragment:
    """Return the list of trajectories with its filters, without tasks that the reader has to annotate."""
    opened = explorer.of_suite(_parameters(query)["suite"])
    suites = [dataset.suite for dataset in explorer.datasets()]
    choice, refused = _choice(explorer, opened, query)
    values = browse_values(_visible(opened, blind), choice, explorer.vote_counts(opened), suites)
    html = render("trajectories/browse.html", **values, unknown=refused, is_blind=bool(blind))
    return Fragment(Markup(html), 422 if refused else 200)


def _story(explorer: Explorer, query: str, blind: BlindItems) -> Fragment:
    """Return the trajectory that a query names, at its step, with its neighbours in the filtered list."""
    parameters = _parameters(query)
    trajectory_id = parameters["id"]
    opened = explorer.holding(trajectory_id)
    choice, _ = _choice(explorer, opened, query)
    votes = explorer.vote_counts(opened)
    chosen = choose(_visible(opened, blind).index.entries, choice, votes, opened.targets)
    story = explorer.story(trajectory_id)
    opened_judge = next((each for each in story.judges if each.key == parameters["judge"]), None)
    place = next((place for place, each in enumerate(chosen) if each is story.entry), None)
    html = render(
        "trajectories/story.html",
        **story_values(story, "/api", parameters["step"], trajectory_id=trajectory_id),
        choice=choice,
        runs=[run for run in story.runs if not blind.hides(run.trajectory_id)],
        number=None if place is None else place + 1,
        n_found=len(chosen),
        previous=chosen[place - 1] if place else None,
        following=None if place is None else next(iter(chosen[place + 1 :]), None),
        step_address=lambda number: choice.address(id=trajectory_id, step=number if number > 1 else ""),
        agent_title=agent_title,
        dispute=_dispute(explorer, opened, story, opened_judge),
        errors_address=_errors_address(explorer, opened, story.entry),
        wrong_parts=wrong_parts(story.parts),
        opened_judge=opened_judge,
        opened_reasoning=_reasoning(explorer, story.entry, opened_judge),
    )
    title = " · ".join(filter(None, (agent_title(story.entry.agent), story.entry.task)))
    return Fragment(Markup(html), title=title)


def story_values(story: Story, api: str, step: str, **named: str) -> dict[str, Any]:
    """Return the template's values for a trajectory, for readers and for annotators.

    ``api`` is the path of pictures and trees, and ``named`` is the URL parameter that names the trajectory. A
    ``step`` from the URL that is not a number means the first step.
    """

    def address_in_run(path: str, **more: object) -> str:
        return link_to(f"{api}/{path}", **named, **more, v=story.opened.version)

    wished = int(step) if step.isascii() and step.isdigit() and len(step) < 6 else 1
    return {
        "story": story,
        "place": min(max(1, wished), max(1, len(story.steps))),
        "address_in_run": address_in_run,
        "large_widths": [width for width in WIDTHS if width >= SMALLEST_LARGE],
    }


def _reasoning(explorer: Explorer, entry: TrajectoryEntry, judge: JudgeVerdict | None) -> str:
    """Return the reasoning of the judge opened by the URL, with links to steps, or an empty string."""
    if judge is None or not judge.has_reasoning:
        return ""
    try:
        return link_steps(explorer.reasoning(entry.trajectory_id, judge.key), entry, judge.key)
    except (KeyError, TrajectoriesUnavailable):
        return ""


def _dispute(
    explorer: Explorer, opened: OpenedDataset, story: Story, judge: JudgeVerdict | None
) -> dict[str, Any] | None:
    """Return the form for disputing a label, or None if this trajectory's labels cannot be disputed here."""
    suite = explorer.served
    is_served = opened.suite == suite.name and suite.profile.serves("/disputes")
    known = suite.find(story.entry.trajectory_id) if is_served else None
    if known is None:
        return None
    verdict = None
    if judge is not None and judge.differs:
        verdict = DisputedVerdict(judge.row_id or judge.key, judge.name, judge.main)
    return dispute_form(suite, known, story.experts, story.entry.goal, verdict)


def _errors_address(
    explorer: Explorer, opened: OpenedDataset, entry: TrajectoryEntry
) -> Callable[[str], str] | None:
    """Return a function from a row's id to the page of its judge's errors, or None if that page is off."""
    suite = explorer.served
    if opened.suite != suite.name or not suite.profile.serves("/errors"):
        return None
    return lambda row_id: link_to("/errors", judge=row_id, split=entry.split)


def _visible(opened: OpenedDataset, blind: BlindItems) -> OpenedDataset:
    if not blind:
        return opened
    return replace(opened, index=replace(opened.index, entries=blind.without_tasks(opened.index.entries)))


def _choice(explorer: Explorer, opened: OpenedDataset, query: str) -> tuple[TrajectoriesQuery, list[str]]:
    """Return the choice in a query, and its invalid parameters. The default dataset needs no ``suite``."""
    suites = [dataset.suite for dataset in explorer.datasets()]
    choice, refused = read_choice(query, known_values(opened, suites))
    return replace(choice, suite="" if opened.suite == suites[0] else opened.suite), refused


def _problem(status: int, title: str, advice: str) -> Fragment:
    return Fragment(Markup(render("trajectories/problem.html", title=title, advice=advice)), status, title)


def build_trajectories_router(
    explorer: Explorer, pages: PageFrame, blind_items: Callable[[Request], BlindItems]
) -> APIRouter:
    """Return the route of the list and of single trajectories."""
    router = APIRouter()

    @router.get(PATH, include_in_schema=False)
    def trajectories(request: Request) -> Response:
        blind = blind_items(request)
        part = trajectories_fragment(explorer, request.url.query, blind)
        if part.status != 200 or blind:
            return pages.answer(TEMPLATE, part.title or TITLE, PATH, part.status, part=part)
        return pages.cached(request, part.html, TEMPLATE, part.title or TITLE, PATH, lambda: {"part": part})

    return router


def build_explorer_router(explorer: Explorer, blind_items: Callable[[Request], BlindItems]) -> APIRouter:
    """Return the routes from which a story loads pictures, trees and reasoning."""
    router = APIRouter()
    add_story_routes(router, "/api", explorer, Id, "a published trajectory")

    def answer(request: Request, trajectory_id: str, make: Callable[[], str]) -> Response:
        """Return HTML about a run, or plain text that says why it cannot be shown."""
        if blind_items(request).hides(trajectory_id):
            return PlainTextResponse(IN_YOUR_QUEUE, 403, NO_STORE)
        try:
            return CachedResponse.of(make().encode(), HTML).answer(request)
        except KeyError:
            return PlainTextResponse("There is no such trajectory.", status_code=404)
        except TrajectoriesUnavailable:
            return PlainTextResponse("The dataset cannot be read now.", status_code=503)

    @router.get(STEPS, include_in_schema=False)
    def steps(request: Request, trajectory_id: Id) -> Response:
        """Return the steps of a run without verdicts and labels, for use on another page."""

        def make() -> str:
            story = explorer.blind_story(trajectory_id)
            values = story_values(story, "/api", "", trajectory_id=trajectory_id)
            return render("trajectories/steps.html", **values, shown=_ends(story.steps), longest=LONGEST_TEXT)

        return answer(request, trajectory_id, make)

    @router.get("/api/parts", summary="The steps and other parts of a run: labels and answers of judges")
    def parts(request: Request, trajectory_id: Id) -> JSONResponse:
        """Return the steps and parts that the suite asks about, without hidden labels and answers to them."""
        if blind_items(request).hides(trajectory_id):
            return JSONResponse({"detail": IN_YOUR_QUEUE}, 403, NO_STORE)
        if explorer.served.find(trajectory_id) is None:
            return _error(404, "there is no such trajectory")
        found = [asdict(part) for part in explorer.parts(trajectory_id)]
        return JSONResponse({"parts": found}, headers={"Cache-Control": ASK_AGAIN})

    @router.get("/trajectories/reasoning", include_in_schema=False)
    def reasoning(request: Request, trajectory_id: Id, judge: Id) -> Response:
        def make() -> str:
            text = explorer.reasoning(trajectory_id, judge)
            entry = explorer.holding(trajectory_id).entry(trajectory_id)
            return render("trajectories/reasoning.html", text=link_steps(text, entry, judge))

        return answer(request, trajectory_id, make)

    return router


def _ends(steps: Sequence[StoryStep]) -> Sequence[StoryStep]:
    """Return all steps of a short run, or the first and the last steps of a long one."""
    if len(steps) <= MOST_STEPS:
        return steps
    half = MOST_STEPS // 2
    return [*steps[:half], *steps[-half:]]


def add_story_routes(
    router: APIRouter, path: str, explorer: Explorer, StoryId: Any, whose: str, for_good: str = FOR_GOOD
) -> None:
    """Add the routes of pictures and trees below ``path``.

    ``StoryId`` is the parameter that names the trajectory, and may check the reader. ``whose`` describes the
    trajectories in OpenAPI. ``for_good`` is the cache header of addresses with the dataset's version.
    """

    def cached(trajectory_id: str, v: str) -> tuple[str, dict[str, str]]:
        """Return the version of the trajectory's dataset, and the headers of a response."""
        version = explorer.holding(trajectory_id).version
        return version, {"Cache-Control": for_good if v == version else ASK_AGAIN, **_SAFE}

    def picture(
        request: Request, kind: PictureKind, trajectory_id: str, num: str, width: int | None, v: str
    ) -> Response:
        is_last = num == "last" and kind == "step"
        is_number = num.isascii() and num.isdigit() and len(num) < 7
        if width not in (None, *WIDTHS) or not (is_last or is_number):
            wanted = "the number of a step, or last" if kind == "step" else "a number from 0"
            return _error(
                422, f"num must be {wanted}, and width one of {', '.join(map(str, WIDTHS))} or left out"
            )
        try:
            version, headers = cached(trajectory_id, v)
            # The ETag is made from the name in the URL, since a hash of the id would reveal the agent.
            named = version, kind, request.query_params.get("item") or trajectory_id, num, width
            headers["ETag"] = f'"{hashlib.sha256(repr(named).encode()).hexdigest()[:32]}"'
            if request.headers.get("if-none-match") == headers["ETag"]:
                return Response(status_code=304, headers=headers)
            found = explorer.picture(kind, trajectory_id, None if is_last else int(num), width)
        except NoPicture:
            return Response(status_code=204) if is_last else _error(404, "the trajectory has no such picture")
        except KeyError:
            return _error(404, "there is no such trajectory")
        except BrokenPicture as reason:
            return _error(404, f"the picture cannot be shown: {reason}")
        except TrajectoriesUnavailable as reason:
            return _error(503, str(reason))
        return Response(found.content, media_type=found.media_type, headers=headers)

    @router.get(f"{path}/screenshot", summary=f"The screenshot of a step of {whose}")
    def screenshot(
        request: Request, trajectory_id: StoryId, num: str, width: Width = None, v: Version = ""
    ) -> Response:
        """``num`` is the number of a step, or ``last``, which gives 204 if no screenshot was recorded."""
        return picture(request, "step", trajectory_id, num, width, v)

    @router.get(f"{path}/goal_image", summary=f"A picture that belongs to the goal of {whose}")
    def goal_image(
        request: Request, trajectory_id: StoryId, num: str, width: Width = None, v: Version = ""
    ) -> Response:
        return picture(request, "goal", trajectory_id, num, width, v)

    @router.get(f"{path}/tree", summary=f"The accessibility tree of a step of {whose}")
    def tree(
        request: Request, trajectory_id: StoryId, num: int, form: TreeForm = "full", v: Version = ""
    ) -> Response:
        try:
            _, headers = cached(trajectory_id, v)
            text = explorer.tree(trajectory_id, num, form)
        except KeyError:
            return _error(404, "the step has no such tree, or there is no such step")
        except TrajectoriesUnavailable as reason:
            return _error(503, str(reason))
        return CachedResponse.of(text.encode(), "text/plain; charset=utf-8").answer(request, headers)


def _error(status: int, message: str) -> JSONResponse:
    return JSONResponse({"detail": message}, status_code=status)
