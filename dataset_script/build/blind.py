"""A blind dataset: who acted cannot be read off the ids, the columns or the names of the hosts.

The release ran its agents against copies of the sites whose host names end in ``-xl-1`` or ``-xl-2``, and the
copy shows which agents ran. Blind, every copy is called ``-xl``, the columns agent and model are null, and an
id is ``<benchmark>/run-<16 digits>/<task>`` with the task in the spelling that all agents share. The digits
are a keyed hash of the real id: with the same key they stay the same from build to build, and whoever holds
the key and the suite maps verdicts back (`restore_ids`); without the key, guessing an agent proves nothing.
What agents wrote, and what a picture shows, is left as it is.
"""

import hmac
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from arb.core.ids import TrajectoryId, reading_key
from arb.core.suite import Suite
from dataset_script.schema import Column

KEY_BYTES: Final = 32
_DIGITS: Final = 16
_HOST_COPY: Final = re.compile(r"(?<=[A-Za-z0-9])-xl-[12](?![A-Za-z0-9])")
_BLIND_ID: Final = re.compile(rf"""[^\s"',;/\\]+\\?/run-[0-9a-f]{{{_DIGITS}}}\\?/[^\s"',;/\\]+""")


class BlindError(ValueError):
    """A key or a file that cannot be used; the message says why and what to do."""


@dataclass(frozen=True)
class Blinding:
    """How one blind dataset hides its agents; the key stays with the suite's owner."""

    key: bytes = field(repr=False)

    def trajectory_id(self, trajectory_id: str) -> str:
        """The opaque id of a trajectory, the same for every spelling of it."""
        place = TrajectoryId.parse(trajectory_id)
        digits = hmac.digest(self.key, reading_key(trajectory_id).encode(), "sha256").hex()[:_DIGITS]
        return f"{place.folder}/run-{digits}/{place.task}"

    def row(self, row: Mapping[str, Any], columns: tuple[Column, ...]) -> dict[str, Any]:
        """A row as its blind form: opaque id, shared task, private columns null, hosts without their copy."""
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
    """The text with every ``…-xl-1`` and ``…-xl-2`` written ``…-xl``."""
    return _HOST_COPY.sub("-xl", text)


def read_key(path: Path, *, create: bool = False) -> bytes:
    """The key in a file; with ``create`` a new one where there is no file, readable by its owner only.

    Raises BlindError when there is no key to be read.
    """
    if create and not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(KEY_BYTES) + "\n")
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except (OSError, ValueError) as error:
        raise BlindError(f"{path}: holds no key; `build --blind` writes one") from error
    if len(key) != KEY_BYTES:
        raise BlindError(f"{path}: a key has {KEY_BYTES} bytes, this has {len(key)}")
    return key


def restore_ids(text: str, suite: Suite, blinding: Blinding) -> str:
    """A prediction file's text (JSON Lines or CSV) with the suite's own ids in place of the blind ones.

    Raises BlindError naming the ids that are of no trajectory under this key, or when no id is blind.
    """
    real = {blinding.trajectory_id(t.trajectory_id): t.trajectory_id for t in suite.trajectories}
    found = {spelled: spelled.replace("\\/", "/") for spelled in _BLIND_ID.findall(text)}
    if not found:
        raise BlindError("no blind id is in the file; it may be mapped back already")
    if unknown := sorted(name for name in found.values() if name not in real):
        named = ", ".join(unknown[:5])
        raise BlindError(
            f"{len(unknown)} ids are of no trajectory of the suite {suite.name} under this key: {named}"
        )
    return _BLIND_ID.sub(lambda match: real[found[match[0]]], text)
