"""Check, submit, board, judges: the functions behind the Gradio endpoints, the MCP tools and the form.

They call the same service as REST, under the same limits and with the same identity: a Hugging Face token on
a Space, a name on one's own machine.
"""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, Literal, ParamSpec, TypeVar, get_args

import gradio as gr
from gradio.utils import get_upload_folder
from starlette.requests import HTTPConnection

from arb.core.judge_info import DeclarationError
from arb.core.vocabulary import JUDGE_INPUTS, JUDGE_KINDS
from space.api.board import judges_response
from space.operations.limits import (
    MOST_WAITING,
    QueueFull,
    TooManyChecks,
    client_address,
    is_counted,
    reads_apart,
)
from space.services import Services
from space.web.http_errors import AccessRefused
from submissions.errors import SubmissionError, TemporarilyClosed
from submissions.intake.accounts import Actor, declare_as
from submissions.intake.upload import Upload

Split = Literal["dev", "test"]
Kind = Literal[JUDGE_KINDS]
Inputs = Literal[JUDGE_INPUTS]
YesNo = Literal["yes", "no"]
Request = gr.Request | HTTPConnection
P, T = ParamSpec("P"), TypeVar("T")

DROP_AGAIN: Final = "Uploads are deleted after an hour at most: upload the file again."
SUBMITTING_FAILED: Final = (
    "If the file was recorded it will be scored; sending it again makes no second entry."
)
NOT_UPLOADED: Final = "The file is not an upload: send it with gradio_client.handle_file(PATH)."
OTHER_SITE: Final = "a page of another site may not submit here"
_MOST_PROBLEMS: Final = 20


class CallRefused(Exception):
    """Why a call is refused: one text for people, with what to do."""


class Endpoints:
    """What callers of Gradio and MCP can do."""

    def __init__(self, services: Services) -> None:
        self.service, self._auth, self._checks = services.submissions, services.auth, services.checks
        self._uploads, self._on_space = services.uploads, services.submissions.settings.space_id is not None

    def count(self, request: Request, actor: Actor | None = None) -> None:
        """Count one check of this address, or of an account.

        Raises:
            CallRefused: The sender sent too many files in the last minute.
        """
        if self._checks is None or (actor is None and is_counted(_connection(request))):
            return
        try:
            self._checks.take(_connection(request), actor)
        except TooManyChecks as refused:
            raise CallRefused(str(refused)) from None

    async def run(self, request: Request, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call a function that reads a file, in a thread, once its sender has a slot.

        Raises:
            CallRefused: Too many requests wait.
        """
        async with self.slot(request):
            return await self._uploads.run(self._sender(request), function, *args, **options)

    @asynccontextmanager
    async def slot(self, request: Request) -> AsyncIterator[None]:
        """Hold a slot of the queue for the block, or use the one that the request holds already.

        Raises:
            CallRefused: Too many requests wait.
        """
        try:
            async with self._uploads.slot(self._sender(request)):
                yield
        except QueueFull as full:
            raise CallRefused(str(full)) from None

    def _sender(self, request: Request) -> str:
        return client_address(_connection(request), self._on_space)

    def check(self, content: bytes, name: str, split: str) -> Upload:
        """The file, checked for a split. Raises CallRefused for another split and for too many bytes."""
        if split not in get_args(Split):
            raise CallRefused("split: choose dev or test")
        limit = self.service.settings.max_upload_bytes
        if len(content) > limit:
            raise CallRefused(f"more than {limit:,} bytes: send a smaller file (without reasoning, say)")
        return self.service.intake.check(content, name, split, reads_apart())

    def check_path(self, path: str, name: str, split: str) -> Upload:
        """A file that was uploaded to this server, checked; never more of it is read than the limit."""
        try:
            with uploaded_path(path).open("rb") as file:
                content = file.read(self.service.settings.max_upload_bytes + 1)
        except OSError:
            raise CallRefused(DROP_AGAIN) from None
        return self.check(content, name, split)

    def submitter(self, request: Request) -> Actor | None:
        """Who submits; None where the name in the declaration will do. Raises CallRefused."""
        connection = _connection(request)
        if connection.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise CallRefused(OTHER_SITE)
        try:
            submitter = self._auth.submitter_of(connection)
        except AccessRefused as error:
            raise CallRefused(str(error.detail)) from None
        if submitter is not None:
            self.count(request, submitter)
        return submitter

    def submit(self, request: Request, read: Callable[[], Upload], **fields: str) -> dict[str, Any]:
        """What ``POST /api/submissions`` gives; ``read`` is called once it is known who submits.

        Raises CallRefused with every problem.
        """
        self.count(request)
        submitter = self.submitter(request)
        upload = read()
        if not upload.check.acceptable:
            raise CallRefused(_findings_text(upload))
        try:
            return self.service.intake.submit(upload, *declare_as(submitter, **fields)).to_json()
        except DeclarationError as error:
            raise CallRefused("\n".join(message for _, message in error.problems)) from None
        except SubmissionError as error:
            raise CallRefused(str(error)) from None

    def board(self) -> dict[str, Any]:
        """What ``GET /api/board.json`` gives."""
        return json.loads(self.service.records.board().to_bytes())

    def judges(self) -> dict[str, Any]:
        """What ``GET /api/judges`` gives."""
        return judges_response(self.service.records.board())


def uploaded_path(path: Any) -> Path:
    """The path where it lies in the folder for uploads; a stranger can send any. Raises CallRefused."""
    try:
        found = Path(path).resolve()
    except (TypeError, ValueError, OSError, RuntimeError):
        raise CallRefused(NOT_UPLOADED) from None
    if not found.is_relative_to(Path(get_upload_folder()).resolve()):
        raise CallRefused(NOT_UPLOADED)
    return found


def add_endpoints(endpoints: Endpoints) -> None:
    """The named endpoints of the current Blocks, as ``gradio_client`` calls them."""

    async def check(file: gr.FileData, split: Split, request: gr.Request) -> dict:
        """Check a prediction file and return every finding; nothing is recorded and no label is read.

        Parameters:
            file: JSONL, CSV or Parquet with a row per trajectory: gradio_client.handle_file("my.jsonl").
            split: the split that the file is for, "dev" or "test".
        Returns:
            the report that POST /api/check gives.
        """
        with gradio_errors():
            endpoints.count(request)
            return (await endpoints.run(request, _upload, endpoints, file, split)).check.to_json()

    async def submit(
        file: gr.FileData,
        judge: str,
        kind: Kind,
        inputs: Inputs,
        test_labels_used: YesNo,
        request: gr.Request,
        account: str = "",
        model: str = "",
        authors: str = "",
        link: str = "",
    ) -> dict:
        """Submit a judge's verdicts on test; the same file of the same judge is one submission.

        On a Space pass a Hugging Face token: Client(url, token="hf_..."). Elsewhere account is your name.

        Parameters:
            file: JSONL, CSV or Parquet with a row per trajectory of test.
            judge: the judge's name.
            kind: what kind of judge it is.
            inputs: what the judge sees of a trajectory.
            test_labels_used: "yes" or "no": whether test labels were used to build or tune it.
            account: your name; on a Space that of the token's account counts.
            model: the model behind it.
            authors: who made it.
            link: an https:// address about it.
        Returns:
            the receipt and the metrics that POST /api/submissions gives.
        """
        with gradio_errors():
            return await endpoints.run(
                request, endpoints.submit, request, lambda: _upload(endpoints, file, "test"), account=account,
                judge=judge, kind=kind, inputs=inputs, model=model, authors=authors, link=link,
                test_labels_used=test_labels_used,
            )  # fmt: skip

    def board() -> dict:
        """The leaderboard as data: rows, metrics, intervals, digest; what GET /api/board.json gives."""
        with gradio_errors():
            return endpoints.board()

    def judges() -> dict:
        """The judges in the order of the leaderboard, each with its best row; what GET /api/judges gives."""
        with gradio_errors():
            return endpoints.judges()

    for function in (check, submit):
        # Gradio lets all of them in: they wait in the queue that REST and MCP have too.
        gr.api(function, api_name=function.__name__, concurrency_limit=MOST_WAITING, concurrency_id="files")
    for function in (board, judges):
        gr.api(function, api_name=function.__name__)


@contextmanager
def gradio_errors() -> Iterator[None]:
    """Turn a refusal into the one exception whose text Gradio passes on; all others stay hidden."""
    try:
        yield
    except (CallRefused, TemporarilyClosed) as refused:
        raise gr.Error(str(refused), print_exception=False) from None


def _upload(endpoints: Endpoints, file: Any, split: str) -> Upload:
    path = file.get("path") if isinstance(file, Mapping) else getattr(file, "path", None)
    name = file.get("orig_name") if isinstance(file, Mapping) else getattr(file, "orig_name", None)
    return endpoints.check_path(path, str(name or Path(str(path)).name), split)


def _connection(request: Request) -> HTTPConnection:
    return request.request if isinstance(request, gr.Request) else request


def _findings_text(upload: Upload) -> str:
    errors = [finding.message for finding in upload.check.findings if finding.level == "error"]
    more = len(errors) - _MOST_PROBLEMS
    lines = ["the file is not valid; check it first:", *errors[:_MOST_PROBLEMS]]
    return "\n".join([*lines, f"and {more} more"] if more > 0 else lines)
