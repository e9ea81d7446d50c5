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
from space.pages.labels.access import IN_YOUR_QUEUE
from space.pages.rows import subset_titles
from space.pages.trajectories.index import TrajectoryEntry
from space.pages.trajectories.parts import wrong_items
from space.services import Services
from space.verdicts import JudgeColumn
from space.web.frame import PageFrame
from space.web.http_errors import NO_STORE, RequestBody, recorded, require_open
from space.web.paging import Page
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
    """The filters on the list of errors, as read from the URL. An empty string selects all errors."""

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


class ErrorReader:
    """A reader of errors and tags; ``account`` is None if nobody is signed in.

    Readers see nothing about a trajectory that they still have to annotate. They see other people's tags of
    an error only after tagging it themselves, so that the first tag does not influence the second.
    """

    def __init__(self, request: Request, services: Services) -> None:
        actor = services.access.known_actor(request)
        self.account = actor.name if actor else None
        self.blind = services.access.blind_items(request)
        self._suite, self._verdicts = services.submissions.suite, services.verdicts

    def visible(self, tags: Sequence[ErrorTag]) -> list[ErrorTag]:
        """Return the tags that this reader may see."""
        own = {(tag.judge, tag.trajectory_id) for tag in tags if tag.tagger == self.account}
        return [
            tag
            for tag in tags
            if not self.blind.hides(tag.trajectory_id)
            and (self.account is None or (tag.judge, tag.trajectory_id) in own)
        ]

    def unknown_values(self, wanted: ErrorFilter, tags: Sequence[ErrorTag]) -> list[str]:
        """Return the names of filters whose values occur neither in the suite nor in a visible tag."""
        runs = self._suite.trajectories
        used_tags = {name for tag in self.visible(tags) for name in tag.categories}
        known = {
            "benchmark": {run.benchmark for run in runs},
            "agent": {run.agent for run in runs},
            "tag": {UNTAGGED, *categories_of(self._suite), *used_tags},
            "subset": subset_titles(self._suite).keys(),
        }
        return [name for name, values in known.items() if getattr(wanted, name) not in ("", *values)]

    def errors_of(self, column: JudgeColumn, split: str) -> list[WrongVerdict]:
        """Return a judge's errors on the main target that the reader may see, the clearest first.

        There are none unless the target is an outcome; `wrong_parts_of` lists wrong steps and parts.
        """
        labels = self._verdicts.labels(split)
        if labels is None or not self._verdicts.target.is_outcome:
            return []
        judges = self._verdicts.by_judge(split).values()
        others = [other.answers for other in judges if other.judge != column.judge]
        every = error_queue(self._suite, labels, column.target, column.answers, others)
        return [error for error in every if not self.blind.hides(error.trajectory_id)]

    def wrong_parts_of(self, column: JudgeColumn, split: str) -> list[tuple[Trajectory, str]]:
        """Return (step or part, title of the target) for each step or part on which a judge is wrong."""
        labels = self._verdicts.labels(split)
        every = wrong_items(self._suite, labels, column.verdicts) if labels is not None else ()
        return [(item, target.title) for item, target in every if not self.blind.hides(item.trajectory_id)]

    def queue_page(
        self, column: JudgeColumn, split: str, wanted: ErrorFilter, number: int, tags: Sequence[ErrorTag]
    ) -> dict[str, Any]:
        """Return the template's values for one page of a judge's errors.

        ``counts`` (by kind) and ``n_tagged`` cover the whole split. In a line, ``entry`` is None if the
        trajectory cannot be shown, and ``n_later`` counts tags that the reader sees only after tagging the
        error. Lines of which only the verdict is known are ``is_bare`` and come last.
        """
        every = self.errors_of(column, split)
        of_error: dict[str, list[ErrorTag]] = {}
        for tag in current_tags(tag for tag in tags if tag.judge == column.judge):
            of_error.setdefault(tag.trajectory_id, []).append(tag)
        places = {run.trajectory_id: (place, run) for place, run in enumerate(self._suite.split(split))}
        right = self._right_ids(wanted.right, split)

        def texts_of(error: WrongVerdict) -> tuple[TrajectoryEntry | None, str]:
            place, run = places[error.trajectory_id]
            return self._verdicts.entry(run), self._verdicts.reasoning(column, run, place)

        def is_wanted(error: WrongVerdict) -> bool:
            tags = of_error.get(error.trajectory_id, [])
            has_tag = not wanted.tag or any(wanted.tag in tag.categories for tag in self.visible(tags))
            if not (
                (not tags if wanted.tag == UNTAGGED else has_tag)
                and KINDS.get(wanted.kind) in (None, error.kind)
                and wanted.benchmark in ("", error.benchmark)
                and wanted.agent in ("", error.agent)
                and wanted.subset in ("", *places[error.trajectory_id][1].subsets)
                and (right is None or error.trajectory_id in right)
            ):
                return False
            if not wanted.q:
                return True
            entry, reasoning = texts_of(error)
            goal = (entry.goal if entry else "") or ""
            return wanted.q.casefold() in f"{goal}\n{reasoning}".casefold()

        page = Page.of(list(filter(is_wanted, every)), number, ON_A_PAGE)
        lines = []
        for error in page.items:
            entry, reasoning = texts_of(error)
            tags_of_it = of_error.get(error.trajectory_id, [])
            visible = self.visible(tags_of_it)
            lines.append(
                {
                    "error": error,
                    "entry": entry,
                    "reasoning": reasoning,
                    "tags": visible,
                    "n_later": len(tags_of_it) - len(visible),
                    "is_bare": not (entry or reasoning or tags_of_it),
                }
            )
        return {
            "counts": {name: sum(error.kind == kind for error in every) for name, kind in KINDS.items()},
            "n_tagged": sum(error.trajectory_id in of_error for error in every),
            "lines": sorted(lines, key=lambda line: line["is_bare"]),
            "page": page,
        }

    def _right_ids(self, judge: str, split: str) -> set[str] | None:
        """Return the trajectories on which a judge is right, or None (all) if ``judge`` is empty.

        Raises HTTPException if the judge has no verdicts on the split.
        """
        if not judge:
            return None
        column, labels = self._verdicts.find(judge, split), self._verdicts.labels(split)
        if column is None or labels is None:
            raise HTTPException(
                404, f"right: there is no judge {judge!r} with verdicts on {split}; choose another"
            )
        is_right = (column.answers >= 0) & (column.answers == labels.primary[column.target])
        return {run.trajectory_id for run, right in zip(labels.trajectories, is_right, strict=True) if right}


def pairs_of(tags: Sequence[ErrorTag], reader: ErrorReader) -> list[tuple[str, str, TagComparison]]:
    """Return (tagger, tagger, comparison) for pairs of people who tagged the same errors, most errors first.

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
    """Return tables that count the tags by judge, by benchmark and by agent, or none if there are no tags.

    Each table is (heading, categories, rows), and each row is (name, number of tags in each category).
    """
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
    """Return the title of a category (or of several joined by " + "). Custom categories become words."""
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
        reader = ErrorReader(request, services)
        if trajectory is not None and reader.blind.hides(trajectory.trajectory_id):
            raise HTTPException(403, IN_YOUR_QUEUE)
        # `actions` refuses hidden splits before any label is read.
        if trajectory is not None and verdicts.labels(trajectory.split) is not None:
            column = verdicts.find(body.judge, trajectory.split)
            errors = reader.errors_of(column, trajectory.split) if column else ()
            if trajectory.trajectory_id not in {error.trajectory_id for error in errors}:
                raise HTTPException(404, NO_ERROR)
        require_open(service)
        try:
            found = services.actions.tag(body.judge, body.trajectory_id, category, body.note, actor, more)
        except KeyError:
            raise HTTPException(404, NO_ERROR) from None
        fields = {name: getattr(found, name) for name in ("judge", "trajectory_id", "category")}
        return recorded(service, 201, **fields, more=list(found.more))

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
        reader = ErrorReader(request, services)
        if unknown := reader.unknown_values(wanted, tags):
            raise HTTPException(422, "; ".join(f"{name}: there is no such {name}" for name in unknown))
        found = reader.queue_page(column, split, wanted, page, tags)
        errors = [
            {
                "trajectory_id": line["error"].trajectory_id,
                "kind": line["error"].kind,
                "others_right": line["error"].others_right,
                "others": line["error"].others,
                "reasoning": line["reasoning"],
                "tags": [
                    {"tagger": tag.tagger, "categories": list(tag.categories), "note": tag.note}
                    for tag in line["tags"]
                ],
            }
            for line in found["lines"]
        ]
        on_page = found["page"]
        body = {"errors": errors, "of": on_page.n_items, "page": on_page.number, "pages": on_page.n_pages}
        return JSONResponse(body, headers=NO_STORE)

    @router.get("/api/errors.csv", summary="All tags of judges' errors, as CSV")
    def as_csv(
        request: Request,
        judge: Annotated[str, Query(max_length=120, description="Only this judge; empty for all.")] = "",
    ) -> Response:
        """The oldest tags come first. Tags that were replaced are included: the last tag of a person counts.

        An account that is signed in gets only tags of errors that it has tagged itself.
        """
        tags = ErrorReader(request, services).visible(error_tags(service.engine, service.suite.name))
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
        reader = ErrorReader(request, services)
        every = error_tags(service.engine, service.suite.name)
        tags = [tag for tag in every if not judge or tag.judge == judge]
        unknown = reader.unknown_values(wanted, tags)
        defaults: dict[str, Any] = dict.fromkeys(unknown, "")
        wanted = replace(wanted, **defaults)
        judges = list(verdicts.by_judge(chosen).values()) if chosen else []
        judges.sort(key=lambda each: (each.name.casefold(), each.judge))
        tagged = {(tag.judge, tag.trajectory_id) for tag in every}

        def choices() -> list[tuple[JudgeColumn, int, int]]:
            """Return (judge, number of errors, number of tagged errors) for each judge on the split."""
            found = []
            for each in judges:
                ids = [(each.judge, error.trajectory_id) for error in reader.errors_of(each, chosen)]
                found.append((each, len(ids), len(tagged.intersection(ids))))
            return found

        return pages.answer(
            "judge/errors.html",
            f"Errors of {column.name}" if column else "Errors of judges",
            PATH,
            status=404 if judge and column is None else 422 if unknown else 200,
            unknown=unknown,
            judge=judge,
            target=verdicts.target,
            column=column,
            queue=reader.queue_page(column, chosen, wanted, page, tags) if column else None,
            choices=[] if column else choices(),
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
            others=[each for each in judges if column and each.judge != column.judge],
            used_tags=sorted({name for tag in reader.visible(current_tags(tags)) for name in tag.categories}),
            n_tags=len(tags),
            tables=count_tables(tags, {each.judge: each.name for each in judges}),
            pairs=pairs_of(tags, reader),
            wrong_parts=reader.wrong_parts_of(column, chosen) if column else [],
            is_blind=bool(reader.blind),
            is_private=not service.suite.labels_are_public,
        )

    return router
