"""Check, submit, board, judges: the functions behind the Gradio endpoints, the MCP tools and the form.

They call the same service as REST, under the same limits and with the same identity: a Hugging Face token on
a Space, a name on one's own machine.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, ParamSpec, TypeVar, get_args

import gradio as gr
from gradio.utils import get_upload_folder
from starlette.requests import HTTPConnection

from arb.core.judge_info import REQUIRED, DeclarationError, declared_fields
from space.api.board import judges_response
from space.operations.limits import (
    MOST_WAITING,
    SenderRefused,
    UploadSlot,
    client_address,
    is_counted,
    reads_apart,
)
from space.services import Services
from space.web.http_errors import AccessRefused
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor, declare_as
from submissions.intake.upload import Upload

Split = Literal["dev", "test"]
Request = gr.Request | HTTPConnection
P, T = ParamSpec("P"), TypeVar("T")

DROP_AGAIN: Final = "Uploads are deleted after an hour at most: upload the file again."
SUBMITTING_FAILED: Final = (
    "If the file was recorded it will be scored; sending it again makes no second entry."
)
NOT_UPLOADED: Final = "The file is not an upload: send it with gradio_client.handle_file(PATH)."
OTHER_SITE: Final = "a page of another site may not submit here"
_MOST_PROBLEMS: Final = 20


class CallRefused(SubmissionError):
    """Raised when a call is refused; the message says why and what to do."""


CALL_ERRORS: Final = (SubmissionError, DeclarationError, SenderRefused, AccessRefused)
"""Exceptions whose text is for whoever calls."""


def error_text(error: Exception) -> str:
    """Return the text of one of `CALL_ERRORS`, a line per problem."""
    if isinstance(error, DeclarationError):
        return "\n".join(message for _, message in error.problems)
    return str(getattr(error, "detail", error))


@contextmanager
def errors_as(make_error: Callable[[str], Exception]) -> Iterator[None]:
    """Turn a refusal into the one exception whose text a server passes on; all others stay hidden."""
    try:
        yield
    except CALL_ERRORS as refused:
        raise make_error(error_text(refused)) from None


gradio_errors = partial(errors_as, partial(gr.Error, print_exception=False))


class Endpoints:
    """What callers of Gradio and MCP can do."""

    def __init__(self, services: Services) -> None:
        self.service, self._auth, self._checks = services.submissions, services.auth, services.checks
        self._uploads, self._on_space = services.uploads, services.submissions.settings.space_id is not None

    def count(self, request: Request, actor: Actor | None = None) -> None:
        """Count one check of this address, or of an account.

        Raises:
            TooManyChecks: The sender sent too many files in the last minute.
        """
        if self._checks is None or (actor is None and is_counted(_connection(request))):
            return
        self._checks.take(_connection(request), actor)

    async def run(self, request: Request, function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Call a function that reads a file, in a thread, once its sender has a slot.

        Raises:
            QueueFull: Too many requests wait.
        """
        return await self._uploads.run(self._sender(request), function, *args, **options)

    def slot(self, request: Request) -> AbstractAsyncContextManager[UploadSlot]:
        """Return a context that holds a slot of the queue, as `UploadQueue.slot` does."""
        return self._uploads.slot(self._sender(request))

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
        """Return who submits; None where the name in the declaration will do.

        Raises:
            CallRefused: A page of another site makes the request.
            AccessRefused: Nobody is known to make it.
            TooManyChecks: The account sent too many files in the last minute.
        """
        connection = _connection(request)
        if connection.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise CallRefused(OTHER_SITE)
        submitter = self._auth.submitter_of(connection)
        if submitter is not None:
            self.count(request, submitter)
        return submitter

    def submit(self, request: Request, read: Callable[[], Upload], **fields: str) -> dict[str, Any]:
        """Return what ``POST /api/submissions`` gives; ``read`` is called once it is known who submits.

        Raises one of `CALL_ERRORS`.
        """
        self.count(request)
        submitter = self.submitter(request)
        upload = read()
        if not upload.check.acceptable:
            raise CallRefused(_findings_text(upload))
        return self.service.intake.submit(upload, *declare_as(submitter, **fields)).to_json()

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

    @with_declaration
    async def submit(file: gr.FileData, request: gr.Request, **fields: str) -> dict:
        """Submit a judge's verdicts on test; the same file of the same judge is one submission.

        On a Space pass a Hugging Face token: Client(url, token="hf_..."). Elsewhere account is your name.

        Parameters:
            file: JSONL, CSV or Parquet with a row per trajectory of test.
            {fields}
        Returns:
            the receipt and the metrics that POST /api/submissions gives.
        """
        with gradio_errors():
            return await endpoints.run(
                request, endpoints.submit, request, lambda: _upload(endpoints, file, "test"), **fields
            )

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


def with_declaration(
    submit: Callable[..., Awaitable[dict[str, Any]]],
) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return ``submit`` with a parameter per field of the declaration in place of its ``**fields``.

    Gradio and MCP make the schema of a call from its signature and its docstring. Descriptions take the place
    of ``{fields}`` in the docstring.
    """
    own = [each for each in inspect.signature(submit).parameters.values() if each.name != "fields"]
    parameters = sorted([*own, *map(_parameter, declared_fields())], key=_has_default)
    signature = inspect.Signature(parameters, return_annotation=dict[str, Any])

    async def call(*args: Any, **options: Any) -> dict[str, Any]:
        return await submit(**signature.bind(*args, **options).arguments)

    descriptions = [f"{name}: {schema['description']}" for name, schema in declared_fields().items()]
    call.__name__, call.__qualname__ = submit.__name__, submit.__qualname__
    text = inspect.getdoc(submit) or ""
    indentation = text.partition("{fields}")[0].rpartition("\n")[2]
    call.__doc__ = text.replace("{fields}", f"\n{indentation}".join(descriptions))
    call.__signature__ = signature
    call.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": dict[str, Any]}
    return call


def _has_default(parameter: inspect.Parameter) -> bool:
    return parameter.default is not inspect.Parameter.empty


def _parameter(name: str) -> inspect.Parameter:
    """Return a field of the declaration as a parameter; a Space knows the account, so it may be missing."""
    choices = ("yes", "no") if name == "test_labels_used" else declared_fields()[name].get("enum")
    is_optional = name == "account" or name not in REQUIRED
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default="" if is_optional else inspect.Parameter.empty,
        annotation=Literal[tuple(choices)] if choices else str,
    )


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
