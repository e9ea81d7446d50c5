"""The functions check, submit, board and judges, for the Gradio endpoints, the MCP tools and the form.

They call the same services as the REST API, with the same limits. A caller is identified by a Hugging Face
token on a Space, and by the declared name on one's own machine.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, ParamSpec, TypeVar, get_args

import gradio as gr
from gradio.events import api as add_endpoint
from gradio.utils import get_upload_folder
from starlette.requests import Request

from arb.core.judge_info import REQUIRED, DeclarationError, declared_fields
from leaderboard.board.board import Board
from space.api.board import judges_response
from space.operations.limits import SenderRefused, client_address, is_counted
from space.operations.upload_queue import MOST_WAITING, UploadSlot, reads_apart
from space.services import Services
from space.suites import no_such_suite
from space.web.body_limits import TOO_LARGE
from space.web.http_errors import AccessRefused
from space.web.suite_path import PARAMETER, root_of
from submissions.app import SubmissionsApp
from submissions.errors import SubmissionError
from submissions.intake.accounts import Actor, declare_as
from submissions.intake.upload import Upload

Split = Literal["dev", "test"]
AnyRequest = gr.Request | Request
P = ParamSpec("P")
T = TypeVar("T")

DROP_AGAIN: Final = "Uploads are deleted after at most an hour. Upload the file again."
SUBMITTING_FAILED: Final = (
    "If the file was recorded, it will be scored. Sending it again makes no second entry."
)
NOT_UPLOADED: Final = "The file is not an upload. Send it with gradio_client.handle_file(PATH)."
OTHER_SITE: Final = "a page of another site may not submit here; open /submit instead"
_MOST_PROBLEMS: Final = 20


class CallRefused(SubmissionError):
    """Raised when a call is refused; the message says why and what to do."""


CALL_ERRORS: Final = (SubmissionError, DeclarationError, SenderRefused, AccessRefused)
"""Exceptions whose text is shown to the caller."""


def error_text(error: Exception) -> str:
    """Return the text of one of `CALL_ERRORS`, with one line per problem."""
    if isinstance(error, DeclarationError):
        return "\n".join(message for _, message in error.problems)
    return str(getattr(error, "detail", error))


@contextmanager
def errors_as(make_error: Callable[[str], Exception]) -> Iterator[None]:
    """Re-raise one of `CALL_ERRORS` as the exception that ``make_error`` returns for its text."""
    try:
        yield
    except CALL_ERRORS as refused:
        raise make_error(error_text(refused)) from None


gradio_errors = partial(errors_as, partial(gr.Error, print_exception=False))


class Endpoints:
    """The functions that Gradio and MCP offer to callers."""

    def __init__(self, services: Services) -> None:
        """``services`` are those of the default suite."""
        self._services, self._auth, self._checks = services, services.auth, services.checks
        self._settings = services.submissions.settings
        self._suites = services.suites or {services.submissions.suite.name: services}
        self._uploads, self._on_space = services.uploads, self._settings.space_id is not None

    def of_suite(self, name: str) -> SubmissionsApp:
        """Return the application of a suite, by default the default suite; raise one of `CALL_ERRORS`."""
        if not name:
            return self._services.submissions
        if name not in self._suites:
            raise CallRefused(f"suite: {no_such_suite(name, self._suites)}")
        return self._suites[name].submissions

    def root_of(self, name: str) -> str:
        """Return the URL prefix of a suite, or "" for the default suite or an unknown suite."""
        return root_of(name) if name in list(self._suites)[1:] else ""

    def count(self, request: AnyRequest, actor: Actor | None = None) -> None:
        """Count one check for the account, or for the address if there is no account.

        If the request was counted for its address before its body was read, it is not counted for the address
        again. Raise TooManyChecks above the limit.
        """
        plain = _plain(request)
        if self._checks is None or (actor is None and is_counted(plain)):
            return
        self._checks.take(plain, actor)

    async def run(
        self, request: AnyRequest, function: Callable[P, T], *args: P.args, **options: P.kwargs
    ) -> T:
        """Call a function in a thread once the sender gets a slot. Return its result, or raise QueueFull."""
        return await self._uploads.run(self._sender(request), function, *args, **options)

    def slot(self, request: AnyRequest) -> AbstractAsyncContextManager[UploadSlot]:
        return self._uploads.slot(self._sender(request))

    def _sender(self, request: AnyRequest) -> str:
        return client_address(_plain(request), self._on_space)

    def check(self, content: bytes, name: str, split: str, suite: str = "") -> Upload:
        """Check a file; raise CallRefused if the suite or split does not exist or the file is too large."""
        if split not in get_args(Split):
            raise CallRefused("split: choose dev or test")
        limit = self._settings.max_upload_bytes
        if len(content) > limit:
            raise CallRefused(TOO_LARGE.format(limit))
        return self.of_suite(suite).intake.check(content, name, split, reads_apart())

    def check_path(self, path: Any, name: str, split: str, suite: str = "") -> Upload:
        """Check a file that was uploaded to this server; raise CallRefused if it is missing or too large."""
        try:
            with uploaded_path(path).open("rb") as file:
                content = file.read(self._settings.max_upload_bytes + 1)
        except OSError:
            raise CallRefused(DROP_AGAIN) from None
        return self.check(content, name, split, suite)

    def submitter(self, request: AnyRequest) -> Actor | None:
        """Return the submitting account, or None if the name in the declaration is enough.

        Raise one of `CALL_ERRORS` if the sender is unknown, over the limit, or a page of another site.
        """
        plain = _plain(request)
        if plain.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise CallRefused(OTHER_SITE)
        submitter = self._auth.submitter_of(plain)
        if submitter is not None:
            self.count(request, submitter)
        return submitter

    def submit(
        self, request: AnyRequest, read: Callable[[], Upload], suite: str = "", **fields: str
    ) -> dict[str, Any]:
        """Submit a file and return the response of ``POST /api/submissions``.

        ``read`` returns the checked file and is called only once the submitter is known. ``fields`` are those
        of the declaration. Raise one of `CALL_ERRORS` if the submission is refused.
        """
        self.count(request)
        submitter = self.submitter(request)
        upload = read()
        if not upload.check.acceptable:
            raise CallRefused(_findings_text(upload))
        return self.of_suite(suite).intake.submit(upload, *declare_as(submitter, **fields)).to_json()

    def board(self, suite: str) -> Board:
        """Return the current board of a suite; raise one of `CALL_ERRORS`."""
        return self.of_suite(suite).records.board()


def uploaded_path(path: Any) -> Path:
    """Return the resolved path of an upload; raise CallRefused for any path outside the upload folder."""
    try:
        found = Path(path).resolve()
    except (TypeError, ValueError, OSError, RuntimeError):
        raise CallRefused(NOT_UPLOADED) from None
    if not found.is_relative_to(Path(get_upload_folder()).resolve()):
        raise CallRefused(NOT_UPLOADED)
    return found


def add_endpoints(endpoints: Endpoints) -> None:
    """Add the named endpoints, as ``gradio_client`` calls them, to the current Blocks."""

    async def check(file: gr.FileData, split: Split, request: gr.Request, suite: str = "") -> dict:
        """Check a prediction file and return every finding; nothing is recorded and no label is read.

        Parameters:
            file: JSONL, CSV or Parquet with one row per trajectory: gradio_client.handle_file("my.jsonl").
            split: the split that the file is for, "dev" or "test".
            suite: the suite, by default the Space's default suite.

        Returns:
            the report of POST /api/check.
        """
        with gradio_errors():
            endpoints.count(request)
            return (await endpoints.run(request, _upload, endpoints, file, split, suite)).check.to_json()

    @with_declaration
    async def submit(file: gr.FileData, request: gr.Request, suite: str = "", **fields: str) -> dict:
        """Submit a judge's verdicts on test; sending the same file again makes no second submission.

        On a Space, pass a Hugging Face token: Client(url, token="hf_..."). Elsewhere, account is your name.

        Parameters:
            file: JSONL, CSV or Parquet with one row per trajectory of test.
            suite: the suite, by default the Space's default suite.
            {fields}

        Returns:
            the receipt and the metrics, as from POST /api/submissions.
        """
        with gradio_errors():
            return await endpoints.run(
                request,
                endpoints.submit,
                request,
                lambda: _upload(endpoints, file, "test", suite),
                suite,
                **fields,
            )

    def board(suite: str = "") -> dict:
        """Return the leaderboard as data (rows, metrics, intervals, digest), as GET /api/board.json does.

        Parameters:
            suite: the suite, by default the Space's default suite.
        """
        with gradio_errors():
            return json.loads(endpoints.board(suite).to_bytes())

    def judges(suite: str = "") -> dict:
        """Return the judges in the order of the leaderboard, as GET /api/judges does.

        Parameters:
            suite: the suite, by default the Space's default suite.
        """
        with gradio_errors():
            return judges_response(endpoints.board(suite))

    # Gradio starts all calls with a file immediately; they wait in our upload queue instead.
    add_endpoint(check, api_name="check", concurrency_limit=MOST_WAITING, concurrency_id="files")
    add_endpoint(submit, api_name="submit", concurrency_limit=MOST_WAITING, concurrency_id="files")
    add_endpoint(board, api_name="board")
    add_endpoint(judges, api_name="judges")


def with_declaration(
    submit: Callable[..., Awaitable[dict[str, Any]]],
) -> Callable[..., Awaitable[dict[str, Any]]]:
    """Return ``submit`` with one parameter per field of the declaration instead of its ``**fields``.

    Gradio and MCP make the schema of a call from its signature and its docstring. The descriptions of the
    fields replace ``{fields}`` in the docstring.
    """
    own = [each for each in inspect.signature(submit).parameters.values() if each.name != "fields"]
    parameters = [*own, *map(_parameter, declared_fields())]
    # Defaults come last, and the suite at the end, where it moves no parameter of an earlier version.
    parameters.sort(key=lambda each: (each.default is not inspect.Parameter.empty, each.name == PARAMETER))
    signature = inspect.Signature(parameters, return_annotation=dict[str, Any])

    async def call(*args: Any, **options: Any) -> dict[str, Any]:
        return await submit(**signature.bind(*args, **options).arguments)

    descriptions = [f"{name}: {schema['description']}" for name, schema in declared_fields().items()]
    call.__name__, call.__qualname__ = submit.__name__, submit.__qualname__
    text = inspect.getdoc(submit) or ""
    indentation = text.partition("{fields}")[0].rpartition("\n")[2]
    call.__doc__ = text.replace("{fields}", f"\n{indentation}".join(descriptions))
    call.__signature__ = signature  # type: ignore[attr-defined]  # known to `inspect`, not to typeshed
    call.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": dict[str, Any]}
    return call


def _parameter(name: str) -> inspect.Parameter:
    """Return a declaration field as a parameter; the account is optional, as a Space knows the caller."""
    choices = ("yes", "no") if name == "test_labels_used" else declared_fields()[name].get("enum")
    is_optional = name == "account" or name not in REQUIRED
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default="" if is_optional else inspect.Parameter.empty,
        annotation=Literal[tuple(choices)] if choices else str,
    )


def _upload(endpoints: Endpoints, file: Any, split: str, suite: str) -> Upload:
    path = file.get("path") if isinstance(file, Mapping) else getattr(file, "path", None)
    name = file.get("orig_name") if isinstance(file, Mapping) else getattr(file, "orig_name", None)
    return endpoints.check_path(path, str(name or Path(str(path)).name), split, suite)


def _plain(request: AnyRequest) -> Request:
    """Return the Starlette request, which Gradio wraps in a request object of its own."""
    if not isinstance(request, gr.Request):
        return request
    if request.request is None:
        raise RuntimeError("Gradio called a function without a request")
    return request.request


def _findings_text(upload: Upload) -> str:
    errors = [finding.message for finding in upload.check.findings if finding.level == "error"]
    more = len(errors) - _MOST_PROBLEMS
    lines = ["the file is not valid; fix these errors:", *errors[:_MOST_PROBLEMS]]
    return "\n".join([*lines, f"and {more} more"] if more > 0 else lines)
