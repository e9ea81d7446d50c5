"""The page /submit: Gradio's form in our frame, with problems shown at the fields."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import gradio as gr
from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse

from arb.core.console import counted, percent
from arb.core.judge_info import REQUIRED, DeclarationError, declared_fields
from arb.core.predictions.columns import prediction_columns
from arb.core.suite import Suite
from arb.core.suites.profile import MODALITIES
from arb.core.vocabulary import BENCHMARK_TITLES, JUDGE_INPUTS, JUDGE_KINDS, SPLITS
from space.gradio_app.endpoints import CALL_ERRORS, SUBMITTING_FAILED, Endpoints, error_text
from space.gradio_app.findings import grouped_findings, understood
from space.operations.upload_queue import MOST_WAITING
from space.pages.rows import MISSING, ranked_by
from space.services import Services
from space.web.frame import PageFrame, render
from space.web.http_errors import sentence
from space.web.submission_text import allowance_sentence, receipt_link, report_html, rules_sentence
from space.web.suite_path import under
from submissions.app import SubmissionsApp
from submissions.errors import DatabaseAway
from submissions.intake.accounts import declare_as
from submissions.intake.receipts import Receipt, SubmissionView, status_sentence
from submissions.intake.upload import Upload

logger = logging.getLogger(__name__)

PATH: Final = "/submit"
FORMATS: Final = (("jsonl", "JSONL"), ("csv", "CSV"), ("parquet", "Parquet"))
SPLIT_TITLES: Final = {"test": "test: scored and ranked", "dev": "dev: dry run"}
BUTTON_TITLES: Final = {"test": "Submit", "dev": "Dry run on dev"}
YES, NO = "Yes, they were used", "No, they were not used"
FIELDS: Final = tuple(declared_fields())
"""The fields of the declaration, in the order of the form."""
SHOW_FORM: Final = "() => document.dispatchEvent(new Event('submit-form-ready'))"
WITH_SUITE: Final = "(...inputs) => [...inputs.slice(0, -1), arbPath('').split('/')[2] ?? '']"
"""JavaScript that puts the page's suite into the last input of a call; "" is the default suite."""
GRADIO_SCRIPT: Final = Path(gr.__file__).parent / "templates" / "frontend" / "gradio.js"
"""Gradio's script for pages that embed an app. It only imports the main script, whose name has a hash."""


def build_submit_router(services: Services, pages: PageFrame) -> APIRouter:
    """Return the routes of the page around the form, and of the script that draws the form."""
    router = APIRouter()
    service = services.submissions
    values = page_values(service)
    key = hashlib.sha256(repr(values).encode()).hexdigest()

    @router.get(PATH, include_in_schema=False)
    def submit(request: Request) -> Response:
        reason = service.intake.read_only_reason
        return pages.cached(
            request,
            (key, reason),
            "submit/page.html",
            "Submit",
            PATH,
            lambda: {**values, "read_only_reason": reason},
            evaluates=True,  # Gradio's gr.HTML makes functions of its templates, which needs 'unsafe-eval'
        )

    @router.get("/gradio.js", include_in_schema=False)
    def script() -> FileResponse:
        return FileResponse(GRADIO_SCRIPT, media_type="text/javascript")

    return router


def page_values(service: SubmissionsApp) -> Mapping[str, Any]:
    """Return the values of the page's template that do not change while the Space runs."""
    settings = service.settings
    token = None
    if not settings.is_local:
        token = "HF_TOKEN" if settings.has_oauth else "ARB_TOKEN"
    space_host = (settings.space_host or settings.allowed_hosts).partition(",")[0].strip()
    columns, main = prediction_columns(service.suite.targets), service.suite.main_target
    return {
        "formats": FORMATS,
        "columns": tuple((name, column.description) for name, column in columns.items()),
        "limit": f"{settings.max_upload_bytes / 1e6:g} MB",
        "max_bytes": settings.max_upload_bytes,
        "verdicts_are_shown": service.suite.labels_are_public,
        "token": token,
        "allowance": rules_sentence(service.suite.rules),
        "address": f"https://{space_host}" if space_host else f"http://{settings.host}:{settings.port}",
        "main": main,
        "noun": {"run": "trajectory", "step": "step", "part": "part"}[main.level],
        "values": ("true", "false") if set(main.values) == {"yes", "no"} else main.values or ("a number",),
        "missing": MISSING[main.missing],
        "kind": JUDGE_KINDS[0],
        "inputs": _inputs_of(service.suite)[0],
    }


def _inputs_of(suite: Suite) -> list[str]:
    """Return the choices for a judge's inputs, except those that need a modality that the runs lack."""
    absent = [each for each in MODALITIES if each not in suite.profile.modalities]
    return [name for name in JUDGE_INPUTS if not any(each in name for each in absent)]


def build_form(blocks: gr.Blocks, services: Services, endpoints: Endpoints) -> None:
    """Lay out the form on the current page of the Blocks and connect its events."""
    service = services.submissions
    _html('<h2 id="step-file">1. The file</h2>')
    with gr.Row(elem_id="file-step"):
        with gr.Column(scale=2, min_width=300):
            titles = [(SPLIT_TITLES[name], name) for name in reversed(SPLITS)]
            split = gr.Radio(titles, value="test", label="Split", elem_id="split")
            file = gr.File(label="Prediction file", elem_id="prediction-file", height=150)
        with gr.Column(scale=3, min_width=300):
            _html("<div data-file-problem></div>", elem_id="file-problem")
            outcome = _html(elem_id="outcome")
            findings = _html(render("submit/no_file.html"), elem_id="check-result")
    with gr.Column(elem_id="declaration") as declaration:
        _html('<h2 id="step-declaration">2. The declaration</h2>')
        declared = _declaration_fields(service.suite, asks_name=services.auth.mode == "local")
    suite = gr.Textbox(visible=False)  # filled in by the scripts below
    heading = _html(_button_heading("test"), elem_id="step-submit")
    # The form is the same for all suites: at first, the button is that of the default suite.
    can_submit = not service.intake.is_off
    button = gr.Button(
        BUTTON_TITLES["test"], variant="primary", elem_id="submit-button", interactive=can_submit
    )

    def follow(chosen: str, name: str) -> tuple[gr.Column, str, gr.Button]:
        chosen = chosen if chosen in SPLITS else "test"
        is_on = chosen == "dev" or not endpoints.of_suite(name).intake.is_off
        return (
            gr.Column(visible=chosen == "test"),
            _button_heading(chosen),
            gr.Button(BUTTON_TITLES[chosen], interactive=is_on),
        )

    async def check(path: str | None, chosen: str, name: str, request: gr.Request) -> str:
        with under(endpoints.root_of(name)):
            return await endpoints.run(request, check_html, endpoints, path, chosen, request, name)

    async def submit(
        path: str | None, chosen: str, request: gr.Request, *fields_and_suite: Any
    ) -> tuple[Any, ...]:
        *fields, name = fields_and_suite
        with under(endpoints.root_of(name)):
            html, problems = await endpoints.run(
                request, submission_html, endpoints, path, chosen, fields, request, name
            )
        return html, *(_with_problem(problems.get(name)) for name in FIELDS)

    quiet: dict[str, Any] = {"api_visibility": "private", "show_progress": "minimal"}
    at_once = {**quiet, "show_progress": "hidden", "trigger_mode": "always_last"}
    files: dict[str, Any] = {"concurrency_limit": MOST_WAITING, "concurrency_id": "files"}
    followers = [declaration, heading, button]
    # Until this event, Gradio's page loses events of components that it already shows. It runs in the
    # browser, where static/submit.js then chooses the split in the address.
    blocks.load(None, None, None, js=SHOW_FORM, **at_once)
    split.input(follow, [split, suite], followers, js=WITH_SUITE, **at_once)
    if not can_submit and len(services.suites) > 1:  # the page may be that of a suite that takes files
        blocks.load(follow, [split, suite], followers, js=WITH_SUITE, **at_once)
    changes = [file.change, split.change]
    files["js"] = WITH_SUITE
    gr.on(changes, check, [file, split, suite], findings, trigger_mode="always_last", **quiet, **files)
    # Done in the browser: a response of the server could arrive after the button's response, and erase it.
    gr.on(changes, None, None, outcome, js="() => ''", **at_once)
    button.click(submit, [file, split, *declared, suite], [outcome, *declared], **quiet, **files)


def _html(value: str = "", elem_id: str | None = None) -> gr.HTML:
    """Return an HTML component without scripts and without Gradio's text styles."""
    return gr.HTML(value, elem_id=elem_id, apply_default_css=False, js_on_load=None)


def _button_heading(split: str) -> str:
    return "<h2>3. Submit</h2>" if split == "test" else "<h2>2. Dry run</h2>"


def _declaration_fields(suite: Suite, asks_name: bool) -> list[gr.Component]:
    """Add the declaration's fields to the page and return them; ``asks_name`` shows the account field."""
    with gr.Row():
        account = _text_field("account", visible=asks_name)
        judge = _text_field("judge")
        kind, inputs = _choice_field("kind"), _choice_field("inputs", _inputs_of(suite))
    with gr.Row():
        model, authors = _text_field("model"), _text_field("authors")
        link = _text_field("link", placeholder="https://")
    used = gr.Radio(
        [NO, YES],
        value=None,
        label="Were test labels used to build or tune the judge?",
        elem_id="test-labels",
    )
    return [account, judge, kind, inputs, model, authors, link, used]


def _text_field(name: str, **options: Any) -> gr.Textbox:
    schema = declared_fields()[name]
    label = schema["title"] if name in REQUIRED else f"{schema['title']} (optional)"
    return gr.Textbox(label=label, max_length=schema["maxLength"], elem_id=name, max_lines=1, **options)


def _choice_field(name: str, choices: Sequence[str] = ()) -> gr.Dropdown:
    schema = declared_fields()[name]
    names = list(choices) or schema["enum"]
    return gr.Dropdown(names, value=None, label=schema["title"], elem_id=name, min_width=140)


def _with_problem(problem: str | None) -> dict[str, Any]:
    """Return a Gradio update that shows a field's problem (without the field's name) or removes it.

    Gradio leaves an ``info`` of None as it is, so "" removes the text of an earlier problem.
    """
    text = problem.partition(": ")[2] if problem else ""
    return gr.update(info=text, elem_classes=["field-problem"] if text else [])


def check_html(
    endpoints: Endpoints, path: str | None, split: str, request: gr.Request, suite: str = ""
) -> str:
    """Check an uploaded file and return its findings as HTML; without a file, return a hint."""
    if path is None:
        return render("submit/no_file.html")
    try:
        endpoints.count(request)
        upload = endpoints.check_path(path, Path(path).name, split, suite)
        return findings_html(upload, endpoints.of_suite(suite).suite)
    except CALL_ERRORS as refused:
        return problems_html("The file was not checked.", [error_text(refused)])


def submission_html(
    endpoints: Endpoints,
    path: str | None,
    split: str,
    fields: Sequence[Any],
    request: gr.Request,
    suite: str = "",
) -> tuple[str, Mapping[str, str]]:
    """Submit a file, or try it on dev; return the outcome as HTML, and the declaration's problems by field.

    The outcome is a receipt with the scored row, a report on dev, or a list of all problems.
    """
    problems: list[str] = []
    upload, declared = None, None
    by_field: Mapping[str, str] = {}
    try:
        endpoints.count(request)
        if path is not None:
            upload = endpoints.check_path(path, Path(path).name, split, suite)
        if upload is None:
            problems.append("Upload a prediction file first.")
        elif not upload.check.acceptable:
            problems.append("The file has errors. Fix them and upload it again.")
        if split == "test":
            *texts, used = fields
            values = dict(zip(FIELDS, (*texts, {YES: True, NO: False}.get(used)), strict=True))
            try:
                declared = declare_as(endpoints.submitter(request), **values)
            except DeclarationError as error:
                by_field = dict(reversed(error.problems))
                problems += [message for _, message in error.problems]
        if problems or upload is None:
            return problems_html("Nothing was submitted.", problems), by_field
        service = endpoints.of_suite(suite)
        if declared is None:
            report = report_html(service.intake.dry_run(upload), service.suite)
            return render("submit/dry_run.html") + report, {}
        view = service.intake.submit(upload, *declared)
        return receipt_html(service, view.receipt, view), {}
    except DatabaseAway as away:
        return problems_html(
            "The database cannot be reached.", [sentence(str(away)), SUBMITTING_FAILED]
        ), by_field
    except CALL_ERRORS as refused:
        return problems_html("Nothing was submitted.", [error_text(refused)]), by_field
    except Exception:
        logger.exception("submitting failed")
        return problems_html("Something failed on our side.", [SUBMITTING_FAILED]), {}


def findings_html(upload: Upload, suite: Suite) -> str:
    """Return HTML with the findings of a checked file, their rows, and a summary of the file."""
    return render(
        "submit/findings.html",
        upload=upload,
        groups=grouped_findings(upload),
        understood=understood(upload, suite),
        benchmark_titles=BENCHMARK_TITLES,
        percent=percent,
        counted=counted,
    )


def receipt_html(service: SubmissionsApp, receipt: Receipt, view: SubmissionView) -> str:
    """Return HTML with the receipt, its status and rank, and the metrics that its owner may see."""
    board, left = service.records.board(), service.records.quota(receipt.account)
    row = None
    if view.report is not None:
        row = next((each for each in board.rows if each.id == receipt.submission_id), None)
    html = render(
        "submit/receipt.html",
        receipt=receipt,
        judge=view.judge,
        sentence=status_sentence(receipt.status, view.status.reasons),
        is_private=not service.suite.labels_are_public,
        is_scored=view.report is not None,
        row=row,
        main=service.suite.main_target,
        ranked_by=ranked_by(service.suite.main_target),
        receipt_link=receipt_link(receipt),
        left=allowance_sentence(left, service.suite.rules) if left else "",
    )
    return html + (report_html(view.report, service.suite) if view.report is not None else "")


def problems_html(title: str, problems: Sequence[str]) -> str:
    return render("submit/problems.html", title=title, problems=problems)
