"""What a submitter sends: a prediction file, and what is declared of its judge, and in whose name.

The file is read within limits, hashed and checked; the declaration is checked field by field. Reads no label.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from arb.core.predictions import ParserPool, read_predictions
from arb.core.predictions.check import CheckResult, check
from arb.core.predictions.findings import Finding
from arb.core.predictions.raw import FileFormat, ReadingLimits, recognise, too_large
from arb.core.suite import Suite
from arb.core.vocabulary import JUDGE_INPUTS, JUDGE_KINDS
from submissions.intake.accounts import Actor, is_same_name

if TYPE_CHECKING:
    from arb.core.settings import Settings

_LONGEST_NAME: Final = 120
_UNNAMED: Final = "predictions"


@dataclass(frozen=True, eq=False)
class Upload:
    """A file as it came and what the check says of it.

    `content` and `sha256` (hex, of the bytes as they came) are None only for a file on disk that is over the
    size limit: it is not read, and not acceptable. `file_name` is safe to print and to keep; `format` is what
    the bytes are, None when they are nothing that is read.
    """

    file_name: str
    content: bytes | None
    sha256: str | None
    format: FileFormat | None
    check: CheckResult


def read_upload(
    source: Path | bytes,
    file_name: str | None,
    settings: Settings,
    *,
    suite: Suite,
    split: str,
    parsers: ParserPool | None = None,
    apart: bool = False,
) -> Upload:
    """Read and check a file against a suite's split; `file_name` defaults to the path's own. A server names
    its `parsers`; see `read_predictions`.

    Raises OSError when the path cannot be read, SuiteError for a split that does not exist; what is wrong
    with the file itself is in the check's findings.
    """
    limits = ReadingLimits(max_bytes=settings.max_upload_bytes)
    if file_name is None and isinstance(source, Path):
        file_name = source.name
    name = safe_file_name(file_name or "")
    content = source if isinstance(source, bytes) else _read_bounded(source, limits.max_bytes)
    if content is None:
        size = Path(source).stat().st_size
        refused = too_large(size, limits.max_bytes)
        return Upload(name, None, None, None, check(None, [refused], suite, split, name))
    table, findings = read_predictions(content, name, limits, parsers, apart)
    return Upload(
        file_name=name,
        content=content,
        sha256=hashlib.sha256(content).hexdigest(),
        format=_format(content, limits),
        check=check(table, findings, suite, split, name),
    )


def safe_file_name(name: str) -> str:
    """The last part of a name a stranger gave, printable, at most 120 characters, its ending kept."""
    base = PurePosixPath(name.replace("\\", "/")).name
    printable = "".join(character for character in base if character.isprintable()).strip()
    if printable.strip(".") == "":
        return _UNNAMED
    if len(printable) <= _LONGEST_NAME:
        return printable
    ending = PurePosixPath(printable).suffix[:12]
    return printable[: _LONGEST_NAME - len(ending)] + ending


def _read_bounded(path: Path, max_bytes: int) -> bytes | None:
    """The file's bytes; None when there are more than the limit, without reading them all."""
    with Path(path).open("rb") as file:
        content = file.read(max_bytes + 1)
    return content if len(content) <= max_bytes else None


def _format(content: bytes, limits: ReadingLimits) -> FileFormat | None:
    if not content.strip() or len(content) > limits.max_bytes:
        return None
    found = recognise(content)
    return None if isinstance(found, Finding) else found


NAME_LENGTH = 80


class DeclarationError(ValueError):
    """A declaration that cannot be taken; ``problems`` holds a (field, message) for every problem."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{field}: {message}" for field, message in problems))


# Letters and symbols to Unicode, but nothing is seen of them: fillers and the empty Braille cell.
_BLANKS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]")
MARKS_ON_A_LETTER = 4
"""No script in use needs more beside the letter itself; Hebrew with all its points has up to three."""
# Nothing before an @ in the host: https://github.com@evil.example leads to evil.example.
_WEB_ADDRESS = re.compile(r"(?i:https?)://[^\s<>\"'\\`/?#@]+([/?#][^\s<>\"'\\`]*)?")


def _plain(text: str) -> str:
    """One line, in one spelling: two names that look the same by their accents are the same."""
    text = text.strip()
    if not text.isprintable() or _BLANKS.search(text):
        raise ValueError("holds line breaks or invisible characters; write it on one line")
    text = unicodedata.normalize("NFC", text)
    if _most_marks(text) > MARKS_ON_A_LETTER:
        raise ValueError("has letters with too many combining marks; remove them")
    return re.sub(r" +", " ", text)


def _most_marks(text: str) -> int:
    """How many marks stand on one letter at most."""
    runs = itertools.groupby(text, lambda mark: unicodedata.category(mark) in ("Mn", "Me"))
    return max((len(list(marks)) for is_mark, marks in runs if is_mark), default=0)


def _named(text: str) -> str:
    if text and not any(character.isalnum() for character in text):
        raise ValueError("has neither a letter nor a digit; give it a name that people can say")
    return text


def _web_address(text: str) -> str:
    if text and not _WEB_ADDRESS.fullmatch(text):
        raise ValueError("is not a web address; begin with https:// or leave it empty")
    return text


PlainText = Annotated[str, AfterValidator(_plain)]
Name = Annotated[PlainText, Field(max_length=NAME_LENGTH), AfterValidator(_named)]


class Declaration(BaseModel):
    """A judge as its submitter declares it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    account: Name
    judge: Name
    kind: Literal[JUDGE_KINDS]
    inputs: Literal[JUDGE_INPUTS]
    model: Annotated[PlainText, Field(max_length=120)] = ""
    authors: Annotated[PlainText, Field(max_length=300)] = ""
    link: Annotated[PlainText, Field(max_length=300), AfterValidator(_web_address)] = ""
    test_labels_used: bool


def judge_name(text: str) -> str:
    """Return a judge's name as it is stored. Raises DeclarationError if it is not a name."""
    return _name("judge", text)


def account_name(text: str) -> str:
    """Return an account's name as it is stored. Raises DeclarationError if it is not a name."""
    return _name("account", text)


def _name(field: Literal["judge", "account"], text: str) -> str:
    try:
        return TypeAdapter(Name).validate_python(text if text.strip() else "?")
    except ValidationError as error:
        raise DeclarationError([(field, f"{_TITLES[field]}: {_message(error.errors()[0])}")]) from None


_TITLES = {
    "account": "Your name",
    "judge": "Name of the judge",
    "kind": "Kind",
    "inputs": "What it sees",
    "model": "Model",
    "authors": "Authors",
    "link": "Link",
    "test_labels_used": "Test labels",
}


def declare(**fields) -> Declaration:
    """A declaration from what a form holds; raises DeclarationError with every problem at once."""
    problems = []
    for name in ("account", "judge"):
        if not str(fields.get(name) or "").strip():
            problems.append((name, f"{_TITLES[name]}: fill it in"))
    for name in ("kind", "inputs"):
        if not fields.get(name):
            problems.append((name, f"{_TITLES[name]}: choose one"))
    if fields.get("test_labels_used") is None:
        problems.append(
            ("test_labels_used", "Test labels: say whether they were used to build or tune the judge")
        )
    named = {name for name, _ in problems}
    try:
        declaration = Declaration(**{name: value for name, value in fields.items() if value is not None})
    except ValidationError as error:
        for detail in error.errors():
            name = str(detail["loc"][0])
            if name not in named:
                problems.append((name, f"{_TITLES.get(name, name)}: {_message(detail)}"))
    if problems:
        raise DeclarationError(problems)
    return declaration


def _message(detail) -> str:
    if detail["type"] in ("string_too_long", "too_long"):
        return f"is over {detail['ctx']['max_length']} characters; shorten it"
    if detail["type"] == "literal_error":
        return f"is not one of {detail['ctx']['expected']}"
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    return detail["msg"]


def declare_as(actor: Actor | None, **fields) -> tuple[Declaration, Actor]:
    """The declaration and who makes it. The account is the name of the actor, whatever the form says.

    Without an actor (on one's own machine) the form's name counts. Raises DeclarationError with every
    problem at once, also where the form names somebody else.
    """
    if actor is None:
        declaration = declare(**fields)
        return declaration, Actor(declaration.account)
    named = str(fields.get("account") or "").strip()
    problems = []
    if named and not any(is_same_name(named, name) for name in (actor.name, actor.display_name)):
        known = actor.display_name
        message = f"Your name: you are signed in as {known}; leave it empty, or sign in as {named}"
        problems.append(("account", message))
    try:
        declaration = declare(**{**fields, "account": actor.name})
    except DeclarationError as error:
        raise DeclarationError([*problems, *error.problems]) from None
    if problems:
        raise DeclarationError(problems)
    return declaration, actor
