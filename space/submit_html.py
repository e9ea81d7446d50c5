"""The parts of the submit page as HTML: guide, findings, receipt, report, problems."""

from collections.abc import Sequence

from dataset_script.prediction_file.findings import counted
from dataset_script.vocabulary import BENCHMARK_TITLES, LABEL_TITLES, LABELS
from leaderboard.board import Board, BoardRow
from leaderboard.report_tables import interval, percent
from space.address import link_to
from space.board_view import Choice, view_board
from space.columns_told import COLUMNS_TOLD
from space.own.allowance_told import allowance_sentence, rules_sentence
from space.own.receipt_link import receipt_link
from space.standing_words import status_sentence
from space.templating import render
from space.upload_view import view_upload
from submissions.declaration import INPUTS, KINDS
from submissions.predictions import Upload
from submissions.service import Receipt, SubmissionService
from submissions.told import ToldSubmission

FORMATS = (("jsonl", "JSONL"), ("csv", "CSV"), ("parquet", "Parquet"))


def guide_html(service: SubmissionService) -> str:
    """What stands above the form: four steps, the files to fill in, and whether anything can be submitted."""
    return render(
        "submit_guide.html",
        formats=FORMATS,
        columns=COLUMNS_TOLD.items(),
        limit=f"{service.settings.max_upload_bytes / 1e6:g} MB",
        verdicts_are_shown=service.suite.labels_are_public,
        read_only_reason=service.read_only_reason,
    )


def elsewhere_html(service: SubmissionService) -> str:
    """The same by command and by curl; the page puts its own address in the place of this machine's."""
    settings = service.settings
    space_host = (settings.space_host or "").partition(",")[0]
    return render(
        "submit_elsewhere.html",
        address=f"https://{space_host}" if space_host else f"http://{settings.host}:{settings.port}",
        asks_token=settings.space_id is not None,
        kind=KINDS[0],
        inputs=INPUTS[0],
    )


def allowance_html(service: SubmissionService) -> str:
    """What an account may submit; ``static/allowance.js`` says what is left to the reader's."""
    return render("submit_allowance.html", limits=rules_sentence(service.suite.rules))


def account_html() -> str:
    """Under which account one submits on a Space; ``static/account.js`` shows which line holds."""
    return render("submit_account.html")


def nothing_html() -> str:
    """What stands in the place of findings before a file was dropped."""
    return render("submit_nothing.html")


def findings_html(upload: Upload) -> str:
    """The findings of a checked file with their rows, and what was understood of it."""
    view = view_upload(upload)
    return render("submit_findings.html", upload=upload, view=view, percent=percent, counted=counted)


def receipt_html(service: SubmissionService, receipt: Receipt, told: ToldSubmission) -> str:
    """What was recorded and whether it lasts, where it stands, and the figures that its owner may see."""
    board, left = service.board(), service.allowance(receipt.account)
    row = next((row for row in board.rows if row.id == receipt.submission_id), None)
    html = render(
        "receipt.html",
        receipt=receipt,
        judge=told.judge,
        sentence=status_sentence(receipt.status, told.standing.reasons),
        is_private=not service.suite.labels_are_public,
        is_scored=told.report is not None,
        place=_place(board, row) if row is not None else "",
        board_page=link_to("/judge", id=row.id) if row is not None else "",
        receipt_link=receipt_link(receipt),
        left=allowance_sentence(left, service.suite.rules) if left else "",
    )
    return html + (report_html(told.report) if told.report is not None else "")


def _place(board: Board, row: BoardRow) -> str:
    success = row.labels["success"]
    if success["rank"]:
        rank = next(line.rank_text for line in view_board(board, Choice()).rows if line.row.id == row.id)
        return f"Its place by precision on success: {rank}."
    if success["best"]:
        return "It has no place: a judge that never says yes has no precision."
    return "The judge has a better submission on the board."


def report_html(report: dict) -> str:
    """The figures of a score report by benchmark, a table a label."""
    labels = {label: report["labels"][label] for label in LABELS if label in report["labels"]}
    return render(
        "report.html",
        report={"labels": labels},
        titles=BENCHMARK_TITLES,
        label_titles=LABEL_TITLES,
        percent=percent,
        interval=interval,
    )


def rehearsal_html(report: dict) -> str:
    """The report of a dev file, and that it was not recorded."""
    return render("submit_rehearsed.html") + report_html(report)


def problems_html(title: str, problems: Sequence[str]) -> str:
    """Everything that keeps a file from being taken."""
    return render("problems.html", title=title, problems=problems)
