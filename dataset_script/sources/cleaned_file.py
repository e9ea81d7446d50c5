"""One cleaned trajectory file, read with types: what is not named here is stepped over, not held.

A file may have 184 MB, nearly all of it raw trees, boxes and prompts. The boxes of a page stay undecoded
until one of them is asked for.
"""

from pathlib import Path
from typing import Annotated, Final, TypeVar

import msgspec

from dataset_script.sources.base import UnusableFileError
from dataset_script.sources.loose_json import repair_json

Typed = TypeVar("Typed")
_NO_BOXES: Final = msgspec.Raw(b"null")


class CleanedStep(msgspec.Struct):
    """An observation and the action chosen from it; None where nothing was recorded."""

    num: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    url: str | None = None
    action: str | None = None
    reasoning: str | None = None
    last_action_error: str | None = None
    focused_element: str | None = None
    axtree: str | None = None
    axtree_pruned: str | None = None
    screenshot_path: str | None = None
    bounding_boxes: msgspec.Raw = _NO_BOXES
    extra_element_properties: msgspec.Raw = _NO_BOXES

    def sides_of(self, bid: str) -> list[float | None] | None:
        """The recorded box of an element, unchecked; None when there is no such element, or no box for it.

        Raises UnusableFileError saying what is wrong with the page's boxes.
        """
        for boxes in (self.bounding_boxes, self.extra_element_properties):
            try:
                elements = msgspec.json.decode(boxes, type=dict[str, msgspec.Raw] | None)
                if elements is None:
                    continue
                element = elements.get(bid)
                return msgspec.json.decode(element, type=_Element).bbox if element is not None else None
            except (msgspec.DecodeError, ValueError, RecursionError) as error:
                raise UnusableFileError("bad_box", str(error)) from error
        return None


class _Element(msgspec.Struct):
    bbox: list[float | None] | None = None


class SummaryInfo(msgspec.Struct):
    """How the run ended, by the benchmark's rules."""

    cum_reward: float | None = None


class CleanedFile(msgspec.Struct):
    """The part of a cleaned file that the dataset is made of."""

    benchmark: str | None = None
    agent: str | None = None
    model: str | None = None
    valid: bool | None = None
    goal: str | None = None
    summary_info: SummaryInfo | None = None
    steps: list[CleanedStep] | None = None


def read_cleaned(path: Path) -> tuple[CleanedFile, bool]:
    """Read one cleaned file; the flag tells whether it was strict JSON.

    Raises UnusableFileError: "unreadable", "not_json", "not_a_trajectory".
    """
    return read_typed(path, CleanedFile, "not_a_trajectory")


def read_typed(path: Path, kind: type[Typed], wrong: str) -> tuple[Typed, bool]:
    """Read a JSON file as ``kind``; the flag tells whether it was strict JSON.

    Python's own writer puts NaN and halves of surrogate pairs into JSON; those are put right and read.
    Raises UnusableFileError: "unreadable", "not_json", or ``wrong`` when it is of another form.
    """
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait for ever
            raise UnusableFileError("unreadable", "is no ordinary file")
        data = path.read_bytes()
    except OSError as error:
        raise UnusableFileError("unreadable", error.strerror or "") from error
    try:
        return _decode(data, kind)
    except msgspec.ValidationError as error:
        raise UnusableFileError(wrong, str(error)) from error
    except UnicodeDecodeError as error:
        raise UnusableFileError("not_json", "not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise UnusableFileError("not_json", str(error)) from error


def _decode(data: bytes, kind: type[Typed]) -> tuple[Typed, bool]:
    try:
        return msgspec.json.decode(data, type=kind), True
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        if not data[-64:].rstrip().endswith(b"}"):  # cut off: nothing to put right
            raise
    return msgspec.json.decode(repair_json(data), type=kind), False
