"""Hide which agent made each run of a dataset, in ids, columns and host names.

In a blind dataset an id is ``<benchmark>/run-<16 digits>/<task>``, with the task spelled the same for all
agents. The digits are a keyed hash of the real id, so every build with the same key gives the same ids. The
owner of the key can restore the real ids in a prediction file (`restore_ids`); without the key, nobody can
confirm a guess.

The columns agent and model are null. The agents of the release used different copies of the sites, whose host
names end in ``-xl-1`` or ``-xl-2``; a blind dataset calls all copies ``-xl``. Pictures and other text are not
changed.
"""

import hmac
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from arb.core.files import errors_name
from arb.core.ids import TrajectoryId, reading_key
from arb.core.suite import Suite
from dataset_script.schema import Column

KEY_BYTES: Final = 32
_DIGITS: Final = 16
_HOST_COPY: Final = re.compile(r"(?<=[A-Za-z0-9])-xl-[12](?![A-Za-z0-9])")
_BLIND_ID: Final = re.compile(rf"""[^\s"',;/\\]+\\?/run-[0-9a-f]{{{_DIGITS}}}\\?/[^\s"',;/\\]+""")


class BlindError(ValueError):
    """Raised for a key or a file that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Blinding:
    """Hides the agents in ids, columns and host names, with a key that only the suite's owner knows."""

    key: bytes = field(repr=False)

    def trajectory_id(self, trajectory_id: str) -> str:
        """Return the opaque id of a trajectory. It is the same for every spelling of the real id."""
        place = TrajectoryId.parse(trajectory_id)
        digits = hmac.digest(self.key, reading_key(trajectory_id).encode(), "sha256").hex()[:_DIGITS]
        return f"{place.folder}/run-{digits}/{place.task}"

    def row(self, row: Mapping[str, Any], columns: tuple[Column, ...]) -> dict[str, Any]:
        """Return a row whose id, task name and hosts do not show the agent. Private columns become None."""
        hidden = {column.name: self._cell(row[column.name], column) for column in columns}
        if "trajectory_id" in hidden:
            hidden["trajectory_id"] = self.trajectory_id(row["trajectory_id"])
        if "task_id" in hidden:
            hidden["task_id"] = TrajectoryId.parse(row["trajectory_id"]).task
        return hidden

    def _cell(self, value: Any, column: Column) -> Any:
        if value is None or column.private:
            return None
        if column.type == "structs":
            return [
                {part.name: self._cell(item[part.name], part) for part in column.fields} for item in value
            ]
        return same_host(value) if column.type == "string" else value


def same_host(text: str) -> str:
    return _HOST_COPY.sub("-xl", text)


def read_key(path: Path, *, create: bool = False) -> bytes:
    """Return the key in a file. Raises BlindError if the file contains none.

    With ``create``, a missing file is created with a new key, readable only by its owner.
    """
    if create and not path.exists():
        with errors_name(path):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                with os.fdopen(descriptor, "w", encoding="ascii") as file:
                    file.write(secrets.token_hex(KEY_BYTES) + "\n")
            except OSError:
                path.unlink()
                raise
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise BlindError(f"{path} contains no key; use the file that `build --blind` wrote") from error
    if len(key) != KEY_BYTES:
        raise BlindError(f"{path}: a key has {KEY_BYTES} bytes, but this one has {len(key)}")
    return key


def restore_ids(text: str, suite: Suite, blinding: Blinding) -> str:
    """Return a prediction file's text (JSON Lines or CSV) with the suite's ids in place of the blind ones.

    Raises BlindError if the text has no blind id, or one that does not belong to the suite with this key.
    """
    real = {blinding.trajectory_id(t.trajectory_id): t.trajectory_id for t in suite.trajectories}
    found = {spelled: spelled.replace("\\/", "/") for spelled in _BLIND_ID.findall(text)}
    if not found:
        raise BlindError("contains no blind ids; they may have been restored already")
    if unknown := sorted(name for name in found.values() if name not in real):
        named = ", ".join(unknown[:5])
        raise BlindError(
            f"{len(unknown)} ids do not belong to {suite.name} under this key; check --suite and --key: "
            f"{named}"
        )
    return _BLIND_ID.sub(lambda match: real[found[match[0]]], text)
