"""The server's secret, and the keys that are made from it: one for each purpose."""

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from dataset_script.settings import Settings

Purpose = Literal["noise", "receipts", "label-version", "session", "ranking-half"]
FILE_NAME: Final = "secret"
FEWEST_CHARACTERS: Final = 16


class SecretUnavailable(Exception):
    """No secret can be had; the message says why and what to do, and never repeats one."""


@dataclass(frozen=True)
class ServerSecret:
    """What nobody else knows. Losing it makes old receipts uncheckable and draws other noise."""

    _value: bytes = field(repr=False)

    @classmethod
    def of(cls, settings: Settings) -> "ServerSecret":
        """ARB_SECRET, else a file of the state folder that only its owner reads, made on first need.

        Raises SecretUnavailable: on a Space, whose disk does not last, the secret has to be set.
        """
        if settings.secret is not None:
            value = settings.secret.get_secret_value().strip()
            if len(value) < FEWEST_CHARACTERS:
                raise SecretUnavailable(
                    f"ARB_SECRET is shorter than {FEWEST_CHARACTERS} characters; make one with "
                    "`python -c 'import secrets; print(secrets.token_urlsafe(32))'`"
                )
            return cls(value.encode())
        if not settings.disk_is_lasting:
            raise SecretUnavailable(
                "ARB_SECRET is not set and the disk does not last: set it among the Space's secrets, to "
                "what `python -c 'import secrets; print(secrets.token_urlsafe(32))'` prints"
            )
        try:
            return cls(_kept(settings.state_dir / FILE_NAME))
        except OSError as error:
            raise SecretUnavailable(
                f"the secret cannot be kept in ARB_STATE_DIR ({error.strerror or type(error).__name__}); "
                "set ARB_SECRET, or ARB_STATE_DIR to a folder that this user may write"
            ) from error

    def key(self, purpose: Purpose) -> bytes:
        """32 bytes for one purpose: HMAC-SHA256 of its name under the secret."""
        return hmac.new(self._value, purpose.encode(), hashlib.sha256).digest()


def _kept(path: Path) -> bytes:
    """The content of the file, made whole and only once: of two processes that start, one is first."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=".secret-")  # made readable by its owner only
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_urlsafe(32).encode())
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):  # another process was first: its secret holds
                os.link(part, path)
        finally:
            Path(part).unlink()
    return path.read_bytes()
