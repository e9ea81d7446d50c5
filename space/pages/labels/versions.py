"""The page ``/labels``: the published label versions, and the next one with its effect on every judge.

If labels are private, a changed label together with its dispute would disclose the label. Only maintainers
then see changes, reasons and ranks under other labels.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from arb.core.suite import Suite
from space.pages.labels.access import BlindItems
from space.pages.labels.disputes import answer_words
from space.pages.rows import ranked_by
from space.services import Services
from space.web.cells import origin, short_name
from space.web.frame import PageFrame
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.labels.corrections import next_labels, outdated_dev_labels
from submissions.labels.decisions import Decision
from submissions.labels.versions import have_questions_changed, published_versions
from submissions.moderation.overview import judge_names
from submissions.records.database import Event
from submissions.scoring.rescore import REASON_LENGTH, label_effects, rescorings

PATH: Final = "/labels"
MOST_RESCORINGS: Final = 10


@dataclass(frozen=True)
class CorrectionList:
    """The corrections that a reader may see. For maintainers, ``hidden`` has the dispute ids of the rest."""

    visible: Sequence[Decision] = ()
    hidden: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.visible) + len(self.hidden)


def visible_corrections(
    corrections: Iterable[Decision], suite: Suite, is_maintainer: bool, blind: BlindItems
) -> CorrectionList:
    """Return the corrections that a reader may see, except those of trajectories still to be annotated."""
    found = [each for each in corrections if not blind.hides(each.trajectory_id)]
    visible = [each for each in found if suite.shows_labels(each.split)]
    hidden = [each.dispute_id for each in found if is_maintainer and each not in visible]
    return CorrectionList(visible, hidden)


def view_rescoring(record: Event, main: str) -> dict[str, Any]:
    """Return the template's values for the re-scoring after a new label set.

    ``moved`` counts the ranks on the main target that changed, out of ``rows``. ``effects`` maps each
    question to a `JudgeEffect` per judge.
    """
    ranks, effects = record.body["ranks"], record.body.get("effects")
    if ranks and not effects:  # the earlier labels could not be read any more: only ranks are recorded
        rows = [{"id": row_id, "places": places} for row_id, places in ranks.items()]
        effects = {main: sorted(rows, key=lambda row: (row["places"][1] is None, row["places"][1] or 0))}
    return {
        "before": record.body["from"],
        "after": record.body["to"],
        "at": record.at,
        "moved": sum(before != after for before, after in ranks.values()),
        "rows": len(ranks),
        "effects": effects if ranks else {},
    }


def build_label_versions(services: Services, pages: PageFrame) -> APIRouter:
    router, service = APIRouter(), services.submissions

    @router.get(PATH, include_in_schema=False)
    def labels(request: Request) -> Response:
        is_public = service.suite.labels_are_public
        is_maintainer = services.auth.is_maintainer(request)
        sees_all, blind = is_public or is_maintainer, services.access.blind_items(request)
        versions = published_versions(service.engine, service.suite.name)

        def visible(corrections: Iterable[Decision]) -> CorrectionList:
            return visible_corrections(corrections, service.suite, is_maintainer, blind)

        found = rescorings(service)[-MOST_RESCORINGS:] if sees_all else []
        return pages.answer(
            "labels/versions.html",
            "Label versions",
            PATH,
            suite=service.suite.name,
            served=service.label_version,
            origin=service.labels.origin if service.label_version else None,
            versions=[(each, visible(each.corrections)) for each in reversed(versions)],
            questions_changed=have_questions_changed(service.suite, versions),
            titles=service.suite.target_titles,
            ranked_by=ranked_by(service.suite.main_target),
            words_of=partial(answer_words, service.suite),
            rescorings=[view_rescoring(record, service.suite.main_target.name) for record in reversed(found)],
            names=_names(service) if sees_all else {},
            sees_all=sees_all,
            is_private=not is_public,
            dev=visible(outdated_dev_labels(service)),
            is_maintainer=is_maintainer,
            job=services.rescoring.state,
            why_length=REASON_LENGTH,
            **(_next(service, visible) if is_maintainer else {}),
        )

    return router


def _next(service: SubmissionsApp, visible: Callable[[Iterable[Decision]], CorrectionList]) -> dict[str, Any]:
    try:
        found = next_labels(service)
    except SubmissionError as problem:
        return {"why_no_next": str(problem)}
    lists = {name: visible(getattr(found, name)) for name in ("applied", "conflicts", "missing")}
    effects = label_effects(service, found.served, found.test) if found.applied else {}
    return {"why_no_next": "", "next": found, **lists, "effects": effects}


def _names(service: SubmissionsApp) -> dict[str, str]:
    """Return a name for each submission and row, keyed by id."""
    with service.snapshot() as session:
        names = judge_names(session, service.suite.name)
    rows = {row.id: f"{short_name(row)}, {origin(row)}" for row in service.records.board().rows}
    return {name: f"{judge}, by {account}" for name, (judge, account) in names.items()} | rows
