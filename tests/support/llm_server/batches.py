"""Files and batches, as OpenAI's Batch API has them, with progress in the hands of the test.

`Batches.mode`: ``at_once`` (done when first looked at) or ``by_hand`` (moves only by `advance`, `expire`,
`fail`). The lines of a batch go through the same script, counts, rules and fault plan as single calls; a
line that fails there stands in the error file.
"""

import json
import re
from dataclasses import dataclass, field
from email.parser import BytesParser
from typing import Any, Literal

from tests.support.llm_server.chat import Chat
from tests.support.llm_server.errors import error_answer
from tests.support.llm_server.http import Answer, HttpRequest

ENDED = ("completed", "failed", "expired", "cancelled")


@dataclass
class Batch:
    """A batch: its lines in order, how many were run, what came of them."""

    id: str
    input_file_id: str
    lines: list[dict[str, Any]]
    metadata: dict[str, str] | None
    status: str = "validating"
    output: list[dict] = field(default_factory=list)
    errors: list[dict] = field(default_factory=list)
    output_file_id: str | None = None
    error_file_id: str | None = None
    problems: list[dict] | None = None

    @property
    def done(self) -> int:
        return len(self.output) + len(self.errors)


@dataclass
class Batches:
    """The files and batches of a server. A test reads ``batches`` and moves them on.

    ``batches`` may be changed from the test's thread while no request is under way.
    """

    chat: Chat
    mode: Literal["at_once", "by_hand"] = "at_once"
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)

    def advance(self, batch_id: str, lines: int | None = None) -> Batch:
        """Run so many more lines (None: all that are left). After the last the batch is completed."""
        batch = self.batches[batch_id]
        if batch.status in ENDED:
            return batch
        batch.status = "in_progress"
        end = len(batch.lines) if lines is None else batch.done + lines
        for line in batch.lines[batch.done : end]:
            self._run(batch, line)
        if batch.done == len(batch.lines):
            self._end(batch, "completed")
        return batch

    def expire(self, batch_id: str) -> Batch:
        """The 24 hours are over: lines not run are errors with the code ``batch_expired``."""
        batch = self.batches[batch_id]
        error = {"code": "batch_expired", "message": "This request could not be executed in time."}
        for line in batch.lines[batch.done :]:
            batch.errors.append({**_named(line), "response": None, "error": error})
        return self._end(batch, "expired")

    def fail(self, batch_id: str, message: str = "The input file is not valid.") -> Batch:
        """The batch is refused as a whole; nothing was run."""
        batch = self.batches[batch_id]
        batch.problems = [{"code": "invalid_request", "message": message, "param": None, "line": None}]
        batch.status = "failed"
        return batch

    def cancel(self, batch_id: str) -> Batch:
        """What was run is kept, the rest is not."""
        batch = self.batches[batch_id]
        return batch if batch.status in ENDED else self._end(batch, "cancelled")

    def answer(self, request: HttpRequest) -> Answer | None:
        """The answer to a request for files or batches; None when it is for neither."""
        path, _, query = request.path.removeprefix("/v1/").partition("?")
        match request.method, *path.split("/"):
            case "POST", "files":
                return _json({"id": self._keep(_multipart(request)["file"])})
            case "GET", "files", file_id, "content" if file_id in self.files:
                return Answer(body=self.files[file_id], content_type="application/octet-stream")
            case "POST", "batches":
                return self._create(json.loads(request.body))
            case "GET", "batches":
                return self._list(query)
            case "GET" | "POST", "batches", batch_id, *rest if batch_id in self.batches:
                return self._batch(batch_id, rest)
        return None

    def _create(self, asked: dict[str, Any]) -> Answer:
        file_id = asked["input_file_id"]
        if file_id not in self.files:
            return error_answer(400, f"No such File object: {file_id}", param="input_file_id")
        lines = [json.loads(line) for line in self.files[file_id].splitlines() if line.strip()]
        batch = Batch(f"batch_{len(self.batches) + 1}", file_id, lines, asked.get("metadata"))
        self.batches[batch.id] = batch
        if len({line["custom_id"] for line in lines}) < len(lines):
            self.fail(batch.id, "The custom_id of a line is not unique.")
        return _json(_batch_object(batch))

    def _batch(self, batch_id: str, rest: list[str]) -> Answer:
        if rest == ["cancel"]:
            self.cancel(batch_id)
        elif self.mode == "at_once":
            self.advance(batch_id)
        return _json(_batch_object(self.batches[batch_id]))

    def _list(self, query: str) -> Answer:
        newest_first = list(reversed(self.batches.values()))
        after, limit = (re.search(rf"\b{name}=(\w+)", query) for name in ("after", "limit"))
        if after:
            ids = [batch.id for batch in newest_first]
            newest_first = newest_first[ids.index(after[1]) + 1 :]
        page = newest_first[: int(limit[1]) if limit else 20]
        data = [_batch_object(batch) for batch in page]
        return _json({"object": "list", "data": data, "has_more": len(page) < len(newest_first)})

    def _run(self, batch: Batch, line: dict[str, Any]) -> None:
        answer, _ = self.chat.at_once(self.chat.read(json.dumps(line["body"]).encode()))
        if answer.delivery in ("hang", "reset"):
            error = {"code": "server_error", "message": "The request could not be executed."}
            batch.errors.append({**_named(line), "response": None, "error": error})
            return
        try:
            body = json.loads(answer.body)
        except ValueError:  # a reply whose JSON was cut stands there as a text
            body = answer.body.decode(errors="replace")
        response = {"status_code": answer.status, "request_id": f"req_{batch.done}", "body": body}
        if answer.on_sent:
            answer.on_sent()
        into = batch.output if answer.status == 200 else batch.errors
        into.append({**_named(line), "response": response, "error": None})

    def _end(self, batch: Batch, status: str) -> Batch:
        batch.status = status
        if batch.output:
            batch.output_file_id = self._keep(_jsonl(batch.output))
        if batch.errors:
            batch.error_file_id = self._keep(_jsonl(batch.errors))
        return batch

    def _keep(self, content: bytes) -> str:
        file_id = f"file-{len(self.files) + 1}"
        self.files[file_id] = content
        return file_id


def _batch_object(batch: Batch) -> dict[str, Any]:
    return {
        "id": batch.id,
        "errors": {"object": "list", "data": batch.problems} if batch.problems else None,
        "input_file_id": batch.input_file_id,
        "status": batch.status,
        "output_file_id": batch.output_file_id,
        "error_file_id": batch.error_file_id,
        "metadata": batch.metadata,
        "request_counts": {
            "total": len(batch.lines),
            "completed": len(batch.output),
            "failed": len(batch.errors),
        },
    }


def _named(line: dict[str, Any]) -> dict[str, str]:
    return {"id": f"batch_req_{line['custom_id']}", "custom_id": line["custom_id"]}


def _jsonl(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _json(answer: dict[str, Any]) -> Answer:
    return Answer(body=json.dumps(answer).encode())


def _multipart(request: HttpRequest) -> dict[str, bytes]:
    """The parts of a form by name."""
    head = f"content-type: {request.headers['content-type']}\r\n\r\n".encode()
    form = BytesParser().parsebytes(head + request.body)
    return {
        part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
        for part in form.get_payload()
    }
