"""The batches of a run, in a file of its folder: what was submitted, and what is still to be collected."""

import json
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Literal

from core.files import atomic_write
from judges.engine.run_folder import RunFolderError

BATCHES: Final = "batches.json"

Status = Literal["handing in", "waiting", "collected", "failed"]
"""``handing in``: the endpoint may have the batch or not; it is looked for by its mark."""


@dataclass
class BatchEntry:
    """A batch. ``mark`` is what it is found by at the endpoint; ``id`` is None until that gave it one.

    ``keys`` are the keys of its calls, ``shorter`` those of them that were sent shorter; ``most_usd`` is more
    than it can cost, None where no price is known.
    """

    mark: str
    role: str
    input_file: str
    keys: list[str]
    shorter: list[str] = field(default_factory=list)
    most_usd: float | None = None
    id: str | None = None
    status: Status = "handing in"
    handed_in_at: str | None = None


class BatchLog:
    """The batches of a run folder. Every change is on the disk when `save` returns.

    Raises RunFolderError for a file that is none.
    """

    def __init__(self, folder: Path):
        self._path = folder / BATCHES
        self.entries: list[BatchEntry] = []
        self.unsupported_params: dict[str, list[str]] = {}
        """By role, the parameters that its endpoint does not know."""
        self.too_long: list[str] = []
        """The keys of calls whose prompts were too long, and are sent shorter."""
        if self._path.exists():
            self._read()

    @property
    def open(self) -> list[BatchEntry]:
        return [entry for entry in self.entries if entry.status in ("handing in", "waiting")]

    @property
    def most_usd(self) -> float:
        """More than the open batches can cost, where prices are known."""
        return sum(entry.most_usd or 0.0 for entry in self.open)

    def save(self) -> None:
        """Replace the file."""
        stored = {
            "dropped": self.unsupported_params,
            "too_long": self.too_long,
            "batches": [asdict(entry) for entry in self.entries],
        }
        atomic_write(self._path, json.dumps(stored, indent=1).encode("ascii") + b"\n")

    def _read(self) -> None:
        try:
            stored: Any = json.loads(self._path.read_bytes())
            known = {each.name for each in fields(BatchEntry)}
            self.entries = [
                BatchEntry(**{k: v for k, v in each.items() if k in known}) for each in stored["batches"]
            ]
            self.unsupported_params = {role: list(names) for role, names in stored["dropped"].items()}
            self.too_long = list(stored["too_long"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise RunFolderError(
                f"{self._path}: cannot be read ({problem}); remove it to continue without the "
                "batches it lists; their calls are then paid again"
            ) from problem
