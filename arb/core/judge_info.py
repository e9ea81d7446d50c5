"""What submitters declare about a judge: the fields, their titles and descriptions, and how to check them."""

import itertools
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError

from arb.core.vocabulary import JUDGE_INPUTS, JUDGE_KINDS

NAME_LENGTH: Final = 80
MARKS_ON_A_LETTER: Final = 4
"""The maximum number of combining marks on one letter. Living scripts need fewer; fully pointed Hebrew has
three."""
# Invisible characters that Unicode counts as letters or symbols: fillers and the empty Braille cell.
_BLANKS: Final = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]")
# The host must not contain @, because https://github.com@evil.example leads to evil.example.
_WEB_ADDRESS: Final = re.compile(r"(?i:https?)://[^\s<>\"'\\`/?#@]+([/?#][^\s<>\"'\\`]*)?")


def _plain(text: str) -> str:
    """Return a name in NFC with single spaces, so that names that look equal are equal. Raises ValueError."""
    text = text.strip()
    if not text.isprintable() or _BLANKS.search(text):
        raise ValueError("contains line breaks or invisible characters; remove them")
    text = unicodedata.normalize("NFC", text)
    if _most_marks(text) > MARKS_ON_A_LETTER:
        raise ValueError("has letters with too many combining marks; remove them")
    return re.sub(r" +", " ", text)


def _most_marks(text: str) -> int:
    """Return the largest number of combining marks on any letter."""
    runs = itertools.groupby(text, lambda mark: unicodedata.category(mark) in ("Mn", "Me"))
    return max((len(list(marks)) for is_mark, marks in runs if is_mark), default=0)


def _named(text: str) -> str:
    if text and not any(character.isalnum() for character in text):
        raise ValueError("contains no letters or digits; choose another name")
    return text


def _web_address(text: str) -> str:
    if text and not _WEB_ADDRESS.fullmatch(text):
        raise ValueError("is not a web address; begin it with https://, or leave it empty")
    return text


PlainText = Annotated[str, AfterValidator(_plain)]
Name = Annotated[PlainText, Field(max_length=NAME_LENGTH), AfterValidator(_named)]
# Pydantic checks the choices. Type checkers see str, because published rows may have other values.
if TYPE_CHECKING:
    Kind = str
    Inputs = str
else:
    Kind, Inputs = Literal[JUDGE_KINDS], Literal[JUDGE_INPUTS]


@dataclass(frozen=True, kw_only=True)
class JudgeInfo:
    """A judge as declared by its submitter or described in a paper. Empty strings and None mean unknown.

    `declare` checks the values that submitters enter. Published rows are not checked.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    account: Annotated[
        Name,
        Field(
            title="Your name", description="Your name. On a Space it is the name of the signed-in account."
        ),
    ] = ""
    judge: Annotated[Name, Field(title="Name of the judge", description="The judge's name.")]
    kind: Annotated[Kind, Field(title="Kind", description="What kind of judge it is.")]
    inputs: Annotated[
        Inputs, Field(title="What it sees", description="What the judge sees of a trajectory.")
    ] = ""
    model: Annotated[
        PlainText, Field(max_length=120, title="Model", description="The model that the judge uses.")
    ] = ""
    authors: Annotated[
        PlainText, Field(max_length=300, title="Authors", description="Who made the judge.")
    ] = ""
    link: Annotated[
        PlainText,
        Field(max_length=300, title="Link", description="A web page about the judge (https://)."),
        AfterValidator(_web_address),
    ] = ""
    test_labels_used: Annotated[
        bool | None,
        Field(title="Test labels", description="Whether test labels were used to build or tune the judge."),
    ] = None


class DeclarationError(ValueError):
    """Raised for an invalid declaration; ``problems`` has a (field, message) pair for every problem."""

    def __init__(self, problems: list[tuple[str, str]]) -> None:
        self.problems = problems
        super().__init__("; ".join(f"{field}: {message}" for field, message in problems))


_IF_MISSING: Final = {
    "account": "fill it in",
    "judge": "fill it in",
    "kind": "choose one",
    "inputs": "choose one",
    "test_labels_used": "say whether test labels were used to build or tune the judge",
}
REQUIRED: Final = tuple(_IF_MISSING)


@lru_cache
def _adapter() -> TypeAdapter[JudgeInfo]:
    return TypeAdapter(JudgeInfo)


@lru_cache
def declared_fields() -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each field, with its title, description, length and choices."""
    return _adapter().json_schema()["properties"]


def declare(**fields: Any) -> JudgeInfo:
    """Check a declaration and return it. ``test_labels_used`` may be the string yes, no, true or false.

    Raises:
        DeclarationError: The declaration is invalid; the exception lists every problem.
    """
    declared = {name: value for name, value in fields.items() if value is not None}
    missing = [name for name in _IF_MISSING if not str(declared.get(name, "")).strip()]
    problems = [_problem(name, _IF_MISSING[name]) for name in missing]
    for name in missing:
        declared.pop(name, None)
    try:
        info = _adapter().validate_python(declared)
    except ValidationError as error:
        for detail in error.errors():
            if detail["type"] != "missing":
                problems.append(_problem(str(detail["loc"][0]), _message(detail)))
    if problems:
        raise DeclarationError(problems)
    return info


def checked_name(field: Literal["account", "judge"], text: str) -> str:
    """Return an account's or judge's name as it is stored. Raises DeclarationError if it is not valid."""
    try:
        return TypeAdapter(Name).validate_python(text if text.strip() else "?")
    except ValidationError as error:
        raise DeclarationError([_problem(field, _message(error.errors()[0]))]) from None


def _problem(field: str, message: str) -> tuple[str, str]:
    title = declared_fields().get(field, {}).get("title", field)
    return field, f"{title}: {message}"


def _message(detail: Any) -> str:
    if detail["type"] in ("string_too_long", "too_long"):
        return f"is over {detail['ctx']['max_length']} characters; shorten it"
    if detail["type"] == "literal_error":
        return f"choose one of {detail['ctx']['expected']}"
    if detail["type"] == "value_error":
        return str(detail["ctx"]["error"])
    if detail["loc"][-1] == "test_labels_used" or detail["type"].startswith("bool"):
        return _IF_MISSING["test_labels_used"]
    return detail["msg"]
