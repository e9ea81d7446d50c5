"""A middleware that puts all expensive requests into one queue, whichever interface they use.

The body is received first, however slowly it arrives, and a large one is kept in a file. Then the request
waits for a slot, and only then is the body parsed. So parsing counts towards the time that a sender takes,
and heavy senders wait for the others. The slot is released when the response begins, so a client that reads
slowly does not hold one.
"""

from collections.abc import Callable
from tempfile import SpooledTemporaryFile
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from space.operations.upload_queue import UploadQueue

BODY_IN_MEMORY: Final = 65_536
"""A waiting body with more bytes than this is kept in a temporary file."""
_CHUNK_BYTES: Final = 65_536


class Admission:
    """Middleware that passes on a POST to the paths that ``admits`` names once its sender has a slot.

    ``sender`` returns the account or address of a request. A middleware outside of this one turns QueueFull
    into a response.
    """

    def __init__(
        self,
        app: ASGIApp,
        uploads: UploadQueue,
        sender: Callable[[Request], str],
        admits: Callable[[str], bool],
    ) -> None:
        self._app, self._uploads, self._sender, self._admits = app, uploads, sender, admits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Receive the body, wait for a slot, and pass the request on.

        Raises:
            QueueFull: The queue has no place for the sender.
        """
        if scope["type"] != "http" or scope["method"] != "POST" or not self._admits(scope["path"]):
            await self._app(scope, receive, send)
            return
        sender = self._sender(Request(scope))
        self._uploads.require_room(sender)  # before the body is read
        with SpooledTemporaryFile(BODY_IN_MEMORY) as body:
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                body.write(message.get("body", b""))
                more = message.get("more_body", False)
            left: int | None = body.tell()
            body.seek(0)

            async def replay() -> Message:
                nonlocal left
                if left is None:
                    return await receive()
                chunk = body.read(_CHUNK_BYTES)
                left = left - len(chunk) or None
                return {"type": "http.request", "body": chunk, "more_body": left is not None}

            async with self._uploads.slot(sender) as slot:

                async def send_without_slot(message: Message) -> None:
                    slot.release()
                    await send(message)

                await self._app(scope, replay, send_without_slot)
