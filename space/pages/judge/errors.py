"""The page ``/errors``, where people read and tag the errors of judges, and REST routes for the tags."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from arb.core.ids import Trajectory
from arb.core.suite import OFFICIAL
from arb.core.vocabulary import AGENT_TITLES, BENCHMARK_TITLES
from leaderboard.errors import (
    MOST_CATEGORIES,
    Category,
    ErrorTag,
    Kind,
    TagComparison,
    WrongVerdict,
    categories_of,
    compare_taggers,
    count_tags,
    current_tags,
    error_queue,
    tags_to_csv,
)
from space.pages.labels.access import IN_YOUR_QUEUE, BlindItems
from space.pages.rows import subset_titles
from space.pages.trajectories.index import TrajectoryEntry
from space.pages.trajectories.parts import wrong_items
from space.services import Services
from space.verdicts import JudgeColumn
from space.web.frame import PageFrame
from space.web.http_errors import NO_STORE, RequestBody, recorded, require_open
from space.web.query import link_to
from submissions.intake.accounts import Actor
from submissions.records.statuses import error_tags

PATH: Final = "/errors"
KINDS: Final[Mapping[str, Kind]] = {"fp": "false positive", "fn": "false negative"}
ON_A_PAGE: Final = 10
MOST_PAIRS: Final = 6


UNTAGGED: Final = "untagged"

Split = Literal["", "dev", "test"]
Group = Annotated[str, Query(max_length=120)]


@dataclass(frozen=True)
class ErrorFilter:
    """Which errors to list, as in the address. An empty text selects all."""

    kind: Annotated[
        Literal["", "fp", "fn"], Query(description="False positives (fp) or false negatives (fn).")
    ] = ""
    benchmark: Group = ""
    agent: Group = ""
    q: Annotated[str, Query(max_length=200, description="Text in the goal or the judge's reasoning.")] = ""
    tag: Annotated[
        str, Query(max_length=60, description="Errors with this tag that you may see, or untagged.")
    ] = ""
    right: Annotated[str, Query(max_length=120, description="Errors where this other judge is right.")] = ""
    subset: Annotated[
        str, Query(max_length=200, description="A subset of the suite, such as difficulty=hard.")
    ] = ""


@dataclass(frozen=True)
class TagReader:
    """A reader of errors and tags; ``account`` is None if nobody is signed in.

    Readers see nothing about a trajectory that they still have to annotate. They see other people's tags of
    an error only after tagging it themselves, so that the first tag does not influence the second.
    """

    account: str | None
    blind: BlindItems

    @classmethod
    def of(cls, request: Request, services: Services) -> "TagReader":
        actor = services.access.known_actor(request)
        return cls(actor.name if actor else None, services.access.blind_items(request))

    def visible(self, tags: Sequence[ErrorTag]) -> list[ErrorTag]:
        """Return the tags that this reader may see."""
        own = {(tag.judge, tag.trajectory_id) for tag in tags if tag.tagger == self.account}
        return [
            tag
            for tag in tags
            if not self.blind.hides(tag.trajectory_id)
            and (self.account is None or (tag.judge, tag.trajectory_id) in own)
        ]


def errors_of(
    services: Services, column: JudgeColumn, split: str, blind: BlindItems
) -> tuple[WrongVerdict, ...]:
    """Return a judge's errors on the main target, the clearest first, except those hidden from the reader.

    If the target is not an outcome, there are none; wrong steps and parts are listed apart.
    """
    labels = services.verdicts.labels(split)
    if labels is None or not services.verdicts.target.is_outcome:
        return ()
    others = [
        other.answers for other in services.verdicts.by_judge(split).values() if other.judge != column.judge
    ]
    every = error_queue(services.submissions.suite, labels, column.target, column.answers, others)
    return tuple(error for error in every if not blind.hides(error.trajectory_id))


def wrong_parts_of(
    services: Services, column: JudgeColumn, split: str, blind: BlindItems
) -> list[tuple[Trajectory, str]]:
    """Return the steps and parts on which a judge is wrong, with the target's title; no hidden ones."""
    labels, suite = services.verdicts.labels(split), services.submissions.suite
    every = wrong_items(suite, labels, column.verdicts) if labels is not None else ()
    return [(item, target.title) for item, target in every if not blind.hides(item.trajectory_id)]


def queue_page(
    services: Services,
    column: JudgeColumn,
    split: str,
    wanted: ErrorFilter,
    number: int,
    tags: Sequence[ErrorTag],
    reader: TagReader,
) -> dict[str, Any]:
    """Return the template's values for one page of a judge's errors.

    ``counts`` (by kind) and ``n_tagged`` cover the whole split. In a line, ``entry`` is None if the
    trajectory cannot be shown, and ``n_later`` counts tags that the reader sees only after tagging the error.
    ``bare`` has the errors about which nothing but the verdict is known.
    """
    every = errors_of(services, column, split, reader.blind)
    of_error: dict[str, list[ErrorTag]] = {}
    for tag in current_tags(tag for tag in tags if tag.judge == column.judge):
        of_error.setdefault(tag.trajectory_id, []).append(tag)
    places = {t.trajectory_id: (place, t) for place, t in enumerate(services.submissions.suite.split(split))}
    right = _right_ids(services, wanted.right, split)
    found = []
    for error in every:
        if right is not None and error.trajectory_id not in right:
            continue
        if wanted.subset and wanted.subset not in places[error.trajectory_id][1].subsets:
            continue
        tags_of_it = of_error.get(error.trajectory_id, [])
        if _is_wanted(error, wanted, reader.visible(tags_of_it), is_tagged=bool(tags_of_it)):
            found.append(error)
    if wanted.q:
        found = [
            error for error in found if _matches(services, column, places[error.trajectory_id], wanted.q)
        ]
    n_pages = max(1, -(-len(found) // ON_A_PAGE))
    number = min(number, n_pages)
    lines, bare = [], []
    for error in found[(number - 1) * ON_A_PAGE : number * ON_A_PAGE]:
        place, trajectory = places[error.trajectory_id]
        entry = services.verdicts.entry(trajectory)
        reasoning = services.verdicts.reasoning(column, trajectory, place)
        tags_of_it = of_error.get(error.trajectory_id, [])
        visible = reader.visible(tags_of_it)
        if not (entry or reasoning or tags_of_it):
            bare.append(error)
            continue
        line = {"error": error, "entry": entry, "reasoning": reasoning, "tags": visible}
        line["address"] = last_step_address(entry, column) if entry else ""
        lines.append({**line, "n_later": len(tags_of_it) - len(visible)})
    return {
        "counts": {name: sum(error.kind == kind for error in every) for name, kind in KINDS.items()},
        "n_tagged": sum(error.trajectory_id in of_error for error in every),
        "n_chosen": len(found),
        "lines": lines,
        "bare": bare,
        "number": number,
        "n_pages": n_pages,
    }


def _is_wanted(
    error: WrongVerdict, wanted: ErrorFilter, visible: Sequence[ErrorTag], *, is_tagged: bool
) -> bool:
    """Return whether an error has the wanted kind, benchmark, agent and tag."""
    if wanted.tag == UNTAGGED:
        has_tag = not is_tagged
    else:
        has_tag = not wanted.tag or any(wanted.tag in tag.categories for tag in visible)
    return (
        has_tag
        and KINDS.get(wanted.kind) in (None, error.kind)
        and wanted.benchmark in ("", error.benchmark)
        and wanted.agent in ("", error.agent)
    )


def _right_ids(services: Services, judge: str, split: str) -> set[str] | None:
    """Return the trajectories on which a judge is right, or None for all. Raises HTTPException."""
    if not judge:
        return None
    column, labels = services.verdicts.find(judge, split), services.verdicts.labels(split)
    if column is None or labels is None:
        raise HTTPException(
            404, f"right: there is no judge {judge!r} with verdicts on {split}; choose another"
        )
    is_right = (column.answers >= 0) & (column.answers == labels.primary[column.target])
    return {run.trajectory_id for run, right in zip(labels.trajectories, is_right, strict=True) if right}


def _matches(services: Services, column: JudgeColumn, place: tuple[int, Trajectory], text: str) -> bool:
    """Return whether a text is in the goal of a trajectory or in the judge's reasoning, ignoring case."""
    entry = services.verdicts.entry(place[1])
    goal = (entry.goal if entry else "") or ""
    reasoning = services.verdicts.reasoning(column, place[1], place[0])
    return text.casefold() in f"{goal}\n{reasoning}".casefold()


def last_step_address(entry: TrajectoryEntry, column: JudgeColumn) -> str:
    """Return the address of the run's last step, with the judge's reasoning open."""
    judge = column.dataset_name or column.judge
    return link_to("/trajectories", id=entry.trajectory_id, step=entry.n_actions + 1, judge=judge)


def judge_choices(
    services: Services, split: str, tags: Sequence[ErrorTag], blind: BlindItems
) -> list[tuple[JudgeColumn, int, int]]:
    """Return (judge, number of errors, number of tagged errors) of all judges on a split, by name."""
    tagged = {(tag.judge, tag.trajectory_id) for tag in tags}
    found = []
    for column in services.verdicts.by_judge(split).values():
        errors = errors_of(services, column, split, blind)
        n_tagged = sum((column.judge, error.trajectory_id) in tagged for error in errors)
        found.append((column, len(errors), n_tagged))
    return sorted(found, key=lambda choice: (choice[0].name.casefold(), choice[0].judge))


def others_of(services: Services, column: JudgeColumn | None, split: str) -> list[JudgeColumn]:
    """Return the other judges on a split by name, or none without a judge."""
    every = services.verdicts.by_judge(split).values() if column else ()
    others = (other for other in every if column and other.judge != column.judge)
    return sorted(others, key=lambda other: (other.name.casefold(), other.judge))


def pairs_of(tags: Sequence[ErrorTag], reader: TagReader) -> list[tuple[str, str, TagComparison]]:
    """Return (tagger, tagger, comparison) for people who tagged the same errors, the most errors first.

    Agreement covers all their tags; the differences include only tags that the reader may see.
    """
    taggers = sorted({tag.tagger for tag in tags})[:50]
    found = [(*pair, compare_taggers(tags, *pair)) for pair in combinations(taggers, 2)]
    most = sorted((pair for pair in found if pair[2].n), key=lambda pair: -pair[2].n)[:MOST_PAIRS]
    visible = {(tag.judge, tag.trajectory_id) for tag in reader.visible(tags)}
    comparisons = []
    for first, second, each in most:
        pairs = ((own, other) for own, other in each.differing if (own.judge, own.trajectory_id) in visible)
        comparisons.append((first, second, replace(each, differing=tuple(pairs))))
    return comparisons


def count_tables(
    tags: Sequence[ErrorTag], names: Mapping[str, str]
) -> list[tuple[str, list[str], list[tuple[str, list[int]]]]]:
    """Return tables (heading, categories, (name, counts) rows) of tags by judge, benchmark and agent."""
    counts = count_tags(tags)
    categories = list(counts.overall)
    groups = (
        ("Judge", counts.by_judge, names),
        ("Benchmark", counts.by_benchmark, BENCHMARK_TITLES),
        ("Agent", counts.by_agent, AGENT_TITLES),
    )
    tables = []
    for heading, group, titles in groups:
        rows = [
            (titles.get(name, name), [found.get(category, 0) for category in categories])
            for name, found in group.items()
        ]
        if heading == "Judge":
            rows.append(("All", [counts.overall[category] for category in categories]))
        tables.append((heading, categories, rows))
    return tables if categories else []


def category_title(category: str, categories: Mapping[str, Category]) -> str:
    """Return the title of a suite's category, or a custom category in words; also of some joined by " + "."""
    titles = []
    for name in category.split(" + "):
        titles.append(categories[name].title if name in categories else name.replace("_", " ").capitalize())
    return " + ".join(titles)


NOTE_LENGTH = 2_000
OWN = "own"
NO_ERROR = "this is not an error: the judge has no verdict on this trajectory or agrees with the experts"


class NewTag(RequestBody):
    """The category of an error."""

    judge: str = Field(max_length=120, description="The judge's row id, or its name in the dataset.")
    trajectory_id: str = Field(max_length=300, description="`<benchmark>/<agent>/<task_id>`.")
    category: str = Field(
        max_length=60, description="A tag of the suite (by default grounding_mismatch, misleading_reasoning, "
        "missed_instruction, misunderstood_action), a custom name, or own.",
    )  # fmt: skip
    own: str = Field("", max_length=60, description="The custom name, if category is own.")
    more: str = Field(
        "",
        max_length=400,
        description=f"Up to {MOST_CATEGORIES - 1} further categories, separated by commas.",
    )
    note: str = Field("", max_length=NOTE_LENGTH, description="A note; optional.")


def build_errors_router(services: Services) -> APIRouter:
    router, service, verdicts = APIRouter(), services.submissions, services.verdicts

    @router.post("/api/errors", summary="Tag an error of a judge with its category", status_code=201)
    def tag(
        request: Request, actor: Annotated[Actor, Depends(services.auth.require_actor)], body: NewTag
    ) -> JSONResponse:
        """Any account may tag, up to a daily limit. Your latest tag of an error replaces the one before.

        Errors can be tagged on dev, and on test if the suite's labels are public.
        """
        category = own_name(body.own) if body.category == OWN else body.category
        titles = {own_name(each.title): name for name, each in categories_of(service.suite).items()}
        named = [own_name(name) for name in body.more.split(",") if name.strip()]
        more = [titles.get(name, name) for name in named]
        trajectory = service.suite.find(body.trajectory_id)
        blind = services.access.blind_items(request)
        if trajectory is not None and blind.hides(trajectory.trajectory_id):
            raise HTTPException(403, IN_YOUR_QUEUE)
        # `actions` refuses hidden splits before any label is read.
        if trajectory is not None and verdicts.labels(trajectory.split) is not None:
            column = verdicts.find(body.judge, trajectory.split)
            errors = errors_of(services, column, trajectory.split, blind) if column else ()
            if trajectory.trajectory_id not in {error.trajectory_id for error in errors}:
                raise HTTPException(404, NO_ERROR)
        require_open(service)
        try:
            found = services.actions.tag(body.judge, body.trajectory_id, category, body.note, actor, more)
        except KeyError:
            raise HTTPException(404, NO_ERROR) from None
        fields: dict[str, object] = {
            "judge": found.judge,
            "trajectory_id": found.trajectory_id,
            "category": found.category,
        }
        fields["more"] = list(found.more)
        return recorded(service, 201, **fields)

    @router.get("/api/errors", summary="A judge's errors, a page at a time")
    def listed(
        request: Request,
        wanted: Annotated[ErrorFilter, Depends()],
        judge: Annotated[
            str, Query(max_length=120, description="The judge's row id, or its name in the dataset.")
        ],
        split: Annotated[
            Literal["dev", "test"], Query(description="A split whose labels are shown.")
        ] = "dev",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> JSONResponse:
        """The same errors, in the same order, as on the page `/errors` with this query."""
        column = verdicts.find(judge, split) if split in verdicts.splits() else None
        if column is None:
            raise HTTPException(404, f"there is no judge {judge!r} with errors that can be shown on {split}")
        tags = [each for each in error_tags(service.engine, service.suite.name) if each.judge == judge]
        reader = TagReader.of(request, services)
        found = queue_page(services, column, split, wanted, page, tags, reader)
        lines = [*found["lines"], *({"error": error} for error in found["bare"])]
        errors = [
            {
                "trajectory_id": line["error"].trajectory_id,
                "kind": line["error"].kind,
                "others_right": line["error"].others_right,
                "others": line["error"].others,
                "reasoning": line.get("reasoning", ""),
                "tags": [
                    {"tagger": tag.tagger, "categories": list(tag.categories), "note": tag.note}
                    for tag in line.get("tags", ())
                ],
            }
            for line in lines
        ]
        body = {"errors": errors, "of": found["n_chosen"], "page": found["number"], "pages": found["n_pages"]}
        return JSONResponse(body, headers=NO_STORE)

    @router.get("/api/errors.csv", summary="All tags of judges' errors, as CSV")
    def as_csv(
        request: Request,
        judge: Annotated[str, Query(max_length=120, description="Only this judge; empty for all.")] = "",
    ) -> Response:
        """The oldest tags come first. Tags that were replaced are included: the last tag of a person counts.

        An account that is signed in gets only tags of errors that it has tagged itself.
        """
        reader = TagReader.of(request, services)
        tags = reader.visible(error_tags(service.engine, service.suite.name))
        text = tags_to_csv(tag for tag in tags if not judge or tag.judge == judge)
        named = {"Content-Disposition": 'attachment; filename="errors.csv"'}
        return Response(text, media_type="text/csv; charset=utf-8", headers={**NO_STORE, **named})

    return router


def own_name(name: str) -> str:
    """Return a custom category as it is stored: ``Wrong page`` becomes ``wrong_page``."""
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")


def build_errors_pages(services: Services, pages: PageFrame) -> APIRouter:
    router, service, verdicts = APIRouter(), services.submissions, services.verdicts

    @router.get(PATH, include_in_schema=False)
    def errors(
        request: Request,
        wanted: Annotated[ErrorFilter, Depends()],
        judge: Annotated[str, Query(max_length=120)] = "",
        split: Split = "",
        page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    ) -> Response:
        with_judge = [name for name in verdicts.splits() if verdicts.find(judge, name)] if judge else []
        splits = with_judge or verdicts.splits()
        chosen = split if split in splits else next(reversed(splits), "")
        column = verdicts.find(judge, chosen) if with_judge else None
        categories = categories_of(service.suite)
        reader = TagReader.of(request, services)
        every = error_tags(service.engine, service.suite.name)
        tags = [tag for tag in every if not judge or tag.judge == judge]
        names = {each.judge: each.name for each in verdicts.by_judge(chosen).values()} if chosen else {}
        return pages.answer(
            "judge/errors.html",
            f"Errors of {column.name}" if column else "Errors of judges",
            PATH,
            status=404 if judge and column is None else 200,
            judge=judge,
            target=verdicts.target,
            column=column,
            queue=queue_page(services, column, chosen, wanted, page, tags, reader) if column else None,
            choices=[] if column else judge_choices(services, chosen, every, reader.blind),
            split=chosen,
            splits=splits,
            wanted=wanted,
            kinds=list(KINDS.items()),
            agent_titles=AGENT_TITLES,
            subsets=subset_titles(service.suite),
            has_dataset=verdicts.has_dataset,
            suite=service.suite.name,
            is_official=service.suite.name == OFFICIAL,
            address=lambda **changes: link_to(
                PATH, **{"judge": judge, "split": chosen, **asdict(wanted), **changes}
            ),
            csv_address=link_to("/api/errors.csv", judge=judge),
            categories=list(categories.items()),
            own=OWN,
            has_own_categories=bool(service.suite.profile.error_tags),
            note_length=NOTE_LENGTH,
            title_of=partial(category_title, categories=categories),
            others=others_of(services, column, chosen),
            used_tags=sorted({name for tag in reader.visible(current_tags(tags)) for name in tag.categories}),
            n_tags=len(tags),
            tables=count_tables(tags, names),
            pairs=pairs_of(tags, reader),
            wrong_parts=wrong_parts_of(services, column, chosen, reader.blind) if column else [],
            is_blind=bool(reader.blind),
            is_private=not service.suite.labels_are_public,
        )

    return router
