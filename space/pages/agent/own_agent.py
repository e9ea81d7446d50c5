"""The page ``/my-agent``: the rate of a reader's own agent, from verdicts and from labels of drawn runs.

A reader sends a judge's verdicts on all runs, labels the runs that are drawn from them, and gets an interval.
One form holds all of it, because uploaded files are not stored: the labels are sent together with the files.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

import fastapi
from fastapi import APIRouter, Request, Response, UploadFile
from starlette.concurrency import run_in_threadpool

from arb.core.ids import reading_key
from arb.core.predictions.findings import Finding, error
from arb.core.suites.targets import AnswerChoice, Target
from leaderboard.success_rates.estimate import LEAST_LABELS
from leaderboard.success_rates.files import FilesDraw, FilesEstimate, labels_of
from leaderboard.success_rates.runs import RunTexts
from space.estimates import (
    LABELLING_LIMITS,
    MOST_IN_PLACE,
    CrashedChoice,
    DrawFile,
    FileEstimates,
    LabelsFile,
    TextsFile,
    VerdictFiles,
)
from space.pages.agent.success_rates import PATH as RATES
from space.pages.agent.success_rates import agent_title, view_estimates
from space.pages.rows import rated_target
from space.pages.trajectories.dataset import TrajectoriesUnavailable
from space.pages.trajectories.page import STEPS
from space.services import Services
from space.web.frame import PageFrame

PATH: Final = "/my-agent"
TITLE, TEMPLATE = "How good is my agent?", "agent/my_agent.html"
N_LABELS: Final = 30
OFFERED: Final = (10, 20, 30, 60, 100)
LONGEST_TEXT: Final = 4_000
"""The page shows at most this many characters of a goal or an answer."""
NO_LABELS: Final = "no file of labels was chosen. Choose one, or draw runs and label them on this page."
DRAWN_AGAIN: Final = (
    "The files or the number of labels changed after these runs were drawn, so runs were drawn again. "
    "Check the labels below, then send them."
)


def view_sheet(
    draw: FilesDraw,
    texts: Mapping[str, RunTexts],
    answers: Mapping[str, str],
    served: Callable[[str], RunTexts | None],
    problem: str = "",
) -> dict[str, Any]:
    """Return the template's values for the runs to label.

    ``texts`` are the run texts in the reader's file. ``served`` returns those of a run that this Space shows,
    or None for any other run. ``problem`` says why the labels in the form were not used.
    """
    runs = []
    parts_of = dict(zip(draw.runs.ids, draw.runs.parts, strict=True)) if draw.runs else {}
    for run in draw.draw.drawn:
        on_page = served(run)
        known = texts.get(reading_key(run)) or on_page or RunTexts()
        runs.append(
            {
                "trajectory_id": run,
                "agent": agent_title(parts_of[run].agent),
                "task": parts_of[run].task,
                "texts": RunTexts(known.goal[:LONGEST_TEXT], known.answer[:LONGEST_TEXT]),
                "has_page": on_page is not None,
                "label": answers.get(run, ""),
            }
        )
    return {
        "key": draw.draw.key,
        "runs": runs,
        "problem": problem,
        "n_agents": len(draw.runs.rows_of) if draw.runs else 0,
        "has_texts": any(run["texts"] != RunTexts() for run in runs),
    }


def view_results(found: FilesEstimate) -> dict[str, Any] | tuple[Finding, ...]:
    estimates = view_estimates(found.judges, found.agents, {}, found.warnings)
    return found.errors or {**estimates, "crashed": found.crashed}


def answers_with_keys(outcome: Target) -> list[tuple[AnswerChoice, str]]:
    """Return (answer, keyboard key) for each answer.

    The key is the first letter of the answer's title, if all titles begin with different letters or digits.
    Otherwise, it is the answer's `key`.
    """
    letters = {each.title[:1].lower() for each in outcome.choices if each.title[:1].isalnum()}
    are_distinct = len(letters) == len(outcome.choices)
    return [(each, each.title[:1].lower() if are_distinct else each.key) for each in outcome.choices]


def build_own_agent_router(services: Services, pages: PageFrame) -> APIRouter:
    router = APIRouter()
    files = FileEstimates(services.submissions, services.uploads)
    explorer = services.trajectories
    rated = rated_target(services.submissions.suite)
    fixed = {
        "main": rated,
        "agent_title": agent_title,
        "counts_offered": [(f"{n} runs of each agent", n) for n in OFFERED],
        "answers": answers_with_keys(rated),
        "least": LEAST_LABELS,
        "most": MOST_IN_PLACE,
        "steps_path": STEPS,
        "n_crashed": None if files.crashed is None else len(files.crashed),
    }
    empty = {**fixed, "n_labels": N_LABELS, "count_crashed": "failures", "sheet": None, "own": None}

    @router.get(PATH, include_in_schema=False)
    def own_agent_page(request: Request) -> Response:
        return pages.cached(request, "", TEMPLATE, TITLE, PATH, lambda: empty)

    @router.post(RATES, include_in_schema=False, form_limits=LABELLING_LIMITS)  # where the form was before
    @router.post(PATH, include_in_schema=False, form_limits=LABELLING_LIMITS)
    async def own_agent(  # noqa: PLR0913 - the fields of a form
        request: Request,
        verdicts: VerdictFiles,
        labels: LabelsFile | None = None,
        draw: DrawFile = None,
        texts: TextsFile = None,
        n_labels: Annotated[int, fastapi.Form(ge=LEAST_LABELS, le=MOST_IN_PLACE)] = N_LABELS,
        step: Annotated[str, fastapi.Form()] = "file",
        drawn: Annotated[str, fastapi.Form()] = "",
        crashed: CrashedChoice = "failures",
    ) -> Response:
        """Draw runs (``step=draw``), or estimate from labels on the page (``labels``) or in a file."""
        chosen = {"n_labels": n_labels, "count_crashed": crashed}
        if step == "file":
            found = await _from_file(files, request, verdicts, labels, draw, crashed)
            return await run_in_threadpool(answer, {**chosen, "own": view_results(found)})
        made, known = await files.draw(request, verdicts, n_labels, texts)
        form = await request.form()

        def labelled() -> Response:
            if made.errors:
                return answer({**chosen, "own": made.errors})
            is_same = drawn == made.draw.key
            known_runs = made.draw.drawn if is_same else ()
            sent = {run: str(form.get(f"label-{i}", "")) for i, run in enumerate(known_runs)}
            blind = services.access.blind_items(request)

            def served(run: str) -> RunTexts | None:
                if blind.hides(run):
                    return None
                try:
                    opened = explorer.holding(run)
                    return RunTexts(opened.entry(run).goal or "", opened.answer(run) or "")
                except (KeyError, TrajectoriesUnavailable):
                    return None

            if step != "labels" or not is_same:
                problem = DRAWN_AGAIN if drawn else ""
                return answer({**chosen, "sheet": view_sheet(made, known, sent, served, problem)})
            ended = files.crashed_among(made.runs.ids if made.runs else (), crashed)
            own = view_results(made.estimate(labels_of(sent, rated), ended))
            return answer({**chosen, "sheet": view_sheet(made, known, sent, served), "own": own})

        return await run_in_threadpool(labelled)

    def answer(values: Mapping[str, Any]) -> Response:
        status = 422 if isinstance(values.get("own"), tuple) else 200
        return pages.answer(TEMPLATE, TITLE, PATH, status, **{**empty, **values})

    return router


async def _from_file(
    files: FileEstimates,
    request: Request,
    verdicts: Sequence[UploadFile],
    labels: UploadFile | None,
    draw: UploadFile | None,
    crashed: CrashedChoice,
) -> FilesEstimate:
    if labels is None or not labels.filename:  # a browser sends an empty part if no file was chosen
        return FilesEstimate(errors=(error("no_labels", NO_LABELS),))
    return await files.make(request, verdicts, labels, draw, crashed)
