"""The submit page: a guide, a file with its findings, the judge's name, a receipt and the scored row."""

import hashlib
import logging
from pathlib import Path
from typing import Final

import gradio as gr

from dataset_script.vocabulary import SPLITS
from space.address import wire_address
from space.auth.declaring import declare_as
from space.auth.problems import NotAllowedHere
from space.dropped_file import take_uploads_only
from space.operations.check_limit import CheckLimit, TooManyChecks
from space.page import Opening, Services, part, place
from space.submit_html import (
    account_html,
    allowance_html,
    elsewhere_html,
    findings_html,
    guide_html,
    nothing_html,
    problems_html,
    receipt_html,
    rehearsal_html,
)
from submissions.accounts import Actor
from submissions.declaration import INPUTS, KINDS, Declaration, DeclarationError
from submissions.predictions import Upload
from submissions.refusals import SubmissionRefused
from submissions.service import SubmissionService

logger = logging.getLogger(__name__)

YES, NO = "Yes, they were used", "No, they were not used"
DROP_AGAIN = "Uploads are kept for an hour at most: drop the file again."
SPLIT_TITLES: Final = {"test": "test: scored and ranked", "dev": "dev: a rehearsal"}
BUTTON_TITLES: Final = {"test": "Submit", "dev": "Rehearse"}


def open_submit(services: Services, query: str) -> Opening:
    """What stands on the page at once; nothing of it depends on the address."""
    service = services.submissions
    html = (
        f'<div data-part="submit-guide">{guide_html(service)}</div>'
        f'<div data-part="submit-allowance">{allowance_html(service)}</div>'
        f'<div data-part="submit-elsewhere">{elsewhere_html(service)}</div>'
    )
    if services.auth.mode == "hub":
        html += f'<div data-part="submit-account">{account_html()}</div>'
    return Opening(html, hashlib.sha256(html.encode()).hexdigest())


def build_submit_page(services: Services) -> None:
    """Lay the page out in the current Blocks and wire it to the service."""
    place("submit-guide", elem_id="submit-guide")
    with gr.Row(elem_classes="submit-file"):
        with gr.Column(scale=2, min_width=300):
            file = take_uploads_only(
                gr.File(label="Prediction file", file_count="single", elem_id="prediction-file", height=150)
            )
            titles = [(SPLIT_TITLES[name], name) for name in reversed(SPLITS)]
            split = gr.Radio(titles, value="test", label="Split", elem_id="split")
        with gr.Column(scale=3, min_width=300):
            findings = part(nothing_html(), elem_id="check-result")
    with gr.Column(elem_id="declaration") as declaration:
        if services.auth.mode == "hub":
            place("submit-account", elem_id="submit-account")
        declared = _declaration_fields(asks_name=services.auth.mode == "local")
    place("submit-allowance", elem_id="submit-allowance")
    button = gr.Button(BUTTON_TITLES["test"], variant="primary", elem_id="submit-button")
    outcome = part(elem_id="outcome")
    place("submit-elsewhere", elem_id="submit-elsewhere")
    _wire(services, file, split, declared, (declaration, button), findings, outcome)


def _declaration_fields(asks_name: bool) -> list[gr.Component]:
    """What a submitter says of the judge; on a Space the account is the one that is signed in."""
    with gr.Row():
        account = gr.Textbox(
            label="Your name", max_lines=1, max_length=80, elem_id="account", visible=asks_name
        )
        judge = gr.Textbox(label="Name of the judge", max_lines=1, max_length=80, elem_id="judge")
        kind = gr.Dropdown(list(KINDS), value=None, label="Kind", elem_id="kind", min_width=140)
        inputs = gr.Dropdown(list(INPUTS), value=None, label="What it sees", elem_id="inputs", min_width=140)
    with gr.Row():
        model = gr.Textbox(label="Model (optional)", max_lines=1, max_length=120, elem_id="model")
        authors = gr.Textbox(label="Authors (optional)", max_lines=1, max_length=300, elem_id="authors")
        link = gr.Textbox(
            label="Link (optional)", placeholder="https://", max_lines=1, max_length=300, elem_id="link"
        )
    used = gr.Radio(
        [NO, YES],
        value=None,
        label="Were test labels used to build or tune the judge?",
        elem_id="test-labels",
    )
    return [account, judge, kind, inputs, model, authors, link, used]


def _wire(services: Services, file, split, declared, followers, findings, outcome) -> None:
    """Events: the address sets the split, a file is checked at once, the button submits or rehearses."""
    service, checks = services.submissions, services.checks
    _, button = followers

    def check(path: str | None, chosen: str, request: gr.Request) -> str:
        return too_many_html(checks, path, request) or check_html(service, path, chosen)

    def submit(path: str | None, chosen: str, request: gr.Request, *fields) -> str:
        if chosen == "dev":
            refused = too_many_html(checks, path, request)
            return refused or submission_html(service, path, chosen, fields)
        try:
            submitter = services.auth.submitter_of(request)
        except NotAllowedHere as refusal:
            return problems_html("Nothing was submitted.", [refusal.detail])
        return submission_html(service, path, chosen, fields, submitter)

    def follow(chosen: str):
        can_submit = chosen == "dev" or service.read_only_reason is None
        return gr.Column(visible=chosen == "test"), gr.Button(BUTTON_TITLES[chosen], interactive=can_submit)

    quiet = {"api_visibility": "private", "show_progress": "minimal"}
    at_once = {**quiet, "show_progress": "hidden", "trigger_mode": "always_last"}
    ready = wire_address(gr.context.Context.root_block, {"split": split})
    ready.then(follow, split, list(followers), **at_once)
    split.input(follow, split, list(followers), **at_once)
    changes = [file.change, split.change]
    gr.on(changes, check, [file, split], findings, trigger_mode="always_last", **quiet)
    gr.on(changes, lambda: "", None, outcome, **at_once)
    button.click(submit, [file, split, *declared], outcome, concurrency_limit=4, **quiet)


def too_many_html(checks: CheckLimit | None, path: str | None, request: gr.Request) -> str:
    """Why this address has no file checked now; empty when it may, or there is none to check."""
    if checks is None or path is None or request.request is None:
        return ""
    try:
        checks.take(request.request)
    except TooManyChecks as refused:
        return problems_html("Not checked.", [str(refused)])
    return ""


def check_html(service: SubmissionService, path: str | None, split: str) -> str:
    """What a dropped file shows: its findings; without a file, what will be seen there."""
    if path is None:
        return nothing_html()
    try:
        return findings_html(_upload(service, path, split))
    except FileNotFoundError:
        return problems_html("The file is no longer here.", [DROP_AGAIN])


def submission_html(
    service: SubmissionService, path: str | None, split: str, fields: tuple, submitter: Actor | None = None
) -> str:
    """What the submit button shows: a receipt with the scored row, a dev report, or every problem at once.

    Without a submitter the form's own name counts, as it may on one's own machine.
    """
    try:
        upload, declared, problems = _understood(service, path, split, fields, submitter)
        if problems:
            return problems_html("Nothing was submitted yet.", problems)
        if split == "dev":
            return rehearsal_html(service.rehearse(upload))
        receipt = service.submit(upload, *declared)
        return receipt_html(service, receipt, service.submission(receipt.submission_id, declared[1]))
    except SubmissionRefused as error:
        return problems_html("Nothing was submitted.", [str(error)])
    except Exception:
        logger.exception("submitting failed")
        return problems_html(
            "Something failed on our side.",
            ["If the file was recorded it will be scored; sending it again makes no second entry."],
        )


def _understood(
    service: SubmissionService, path: str | None, split: str, fields: tuple, submitter: Actor | None
):
    """The upload, the declaration and its actor (test only), every problem in the order of the page."""
    upload, declared, problems = None, None, []
    if path is None:
        problems.append("Drop a prediction file first.")
    else:
        try:
            upload = _upload(service, path, split)
        except FileNotFoundError:
            problems.append(DROP_AGAIN)
        else:
            if not upload.check.acceptable:
                problems.append("The file has errors: mend the findings and drop it again.")
    if split == "test":
        try:
            declared = _declaration(fields, submitter)
        except DeclarationError as error:
            problems += [message for _, message in error.problems]
    return upload, declared, problems


def _upload(service: SubmissionService, path: str, split: str) -> Upload:
    """The dropped file, checked; never more of it is read than may be accepted."""
    with Path(path).open("rb") as file:
        content = file.read(service.settings.max_upload_bytes + 1)
    return service.check(content, Path(path).name, split)


def _declaration(fields: tuple, submitter: Actor | None) -> tuple[Declaration, Actor]:
    names = ("account", "judge", "kind", "inputs", "model", "authors", "link")
    *texts, used = fields
    said = dict(zip(names, texts, strict=True))
    return declare_as(submitter, **said, test_labels_used={YES: True, NO: False}.get(used))
