"""Where answers stand in a reply: in tags, in the fields of JSON, after a name on a line. Pure.

Places count characters of the reply as it came, so that an answer's tokens can be found. Every search takes
time in proportion to the reply's length: replies are written by strangers' models.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

_OPENING: Final = r"(?:\\?<|&lt;|\[)"
_CLOSING: Final = r"(?:\\?>|&gt;|\])"
_THOUGHTS: Final = re.compile(
    rf"{_OPENING}\s*+(/?)\s*+(reasoning|thinking|thoughts?|think|analysis|reflection|scratchpad)\s*+{_CLOSING}",
    re.IGNORECASE,
)
_BEFORE_A_NAME: Final = (
    r"[\W_]*+(?>(?:(?:\d++[.)]|[a-d]\))[\W_]*+)?)"
    r"(?>(?:(?:the|my|final|overall|task|trajectory|agent)[\W_]++)*)"
)
_TAIL: Final = 2_000
"""How much of the end of a model's thoughts is searched for an answer that stands at their very end."""


@dataclass(frozen=True, slots=True)
class Found:
    """A text that may be an answer, and where it begins in the reply."""

    text: str
    place: int


def without_thoughts(reply: str, is_cut_off: bool = False) -> str:
    """The reply with its thoughts (``<reasoning>``, ``<think>`` ...) blanked out; all else keeps its place.

    What stands before an end without a beginning is thought; so is, in a reply that was cut off, what follows
    a beginning without an end.
    """
    pieces, place = [], 0
    for begin, end in _thoughts(reply, is_cut_off):
        pieces += [reply[place:begin], "\n" * (end - begin)]
        place = end
    return "".join([*pieces, reply[place:]])


def end_of_thoughts(reply: str, names: str) -> str:
    """The answer tags, or else the last line, with which a model's last thoughts end; the rest blanked out.

    Without thoughts it is empty.
    """
    *_, (begin, end) = ((0, 0), *_thoughts(reply, is_cut_off=False))
    begin = max(begin, end - _TAIL)
    closers = [tag for tag in _THOUGHTS.finditer(reply, begin, end) if tag[1]]
    tail = reply[begin : closers[-1].start() if closers else end].rstrip()
    tagged = re.search(
        rf"(?:{_OPENING}(?:{names}){_CLOSING}[^<>]{{0,200}}+{_OPENING}/(?:{names}){_CLOSING}\s{{0,20}}+)+$",
        tail,
        re.IGNORECASE,
    )
    start = tagged.start() if tagged else max(tail.rfind("\n"), tail.rfind(">")) + 1
    return "\n" * (begin + start) + tail[start:]


def in_tags(said: str, name: str, names: str) -> Iterator[Found]:
    """What stands in ``<name>`` up to the next tag of ``names``; up to the line's end when it is not closed.

    ``name`` and ``names`` are alternatives of a regular expression.
    """
    tags = list(_tag_pattern(f"{name}|{names}").finditer(said))
    for number, tag in enumerate(tags):
        if tag[1] or _name_pattern(name).fullmatch(tag[2]) is None:
            continue
        following = tags[number + 1] if number + 1 < len(tags) else None
        end = following.start() if following is not None else len(said)
        is_closed = following is not None and bool(following[1])
        yield from _found(said[tag.end() : end], tag.end(), is_one_line=not is_closed)


def in_fields(said: str, name: str) -> Iterator[Found]:
    """The value of ``"name": …`` in JSON, or in what looks like it."""
    for field in _field_pattern(name).finditer(said):
        yield from _found(field["value"], field.start("value"))


def on_lines(said: str, name: str) -> Iterator[Found]:
    """What follows ``name:`` at the beginning of a line; on the next line when it is a heading."""
    pattern = _line_pattern(name)
    waiting, place = False, 0
    for line in said.splitlines(keepends=True):
        head = pattern.match(line)
        if head is not None:
            waiting = re.search(r"[^\W_]", line[head.end() :]) is None
            yield from _found(line[head.end() :].rstrip(), place + head.end())
        elif waiting and re.search(r"[^\W_]", line):
            waiting = False
            yield from _found(line.rstrip(), place)
        place += len(line)


def within_lines(said: str, name: str) -> Iterator[Found]:
    """What follows ``name:`` anywhere, up to the line's end."""
    for head in _anywhere_pattern(name).finditer(said):
        yield from _found(said[head.end() : head.end() + 200], head.end(), is_one_line=True)


def bare_lines(said: str, words: str) -> Iterator[Found]:
    """Lines that are nothing but one of these words, apart from a number or a name before a colon."""
    pattern = re.compile(
        r"^[\W_]*+(?>(?:(?>(?:question|answer|q|a)?)[ ]?+\d++[\W_]++)?)(?>(?:\w{1,20}+\W{0,4}+:[\W_]*+)?)"
        rf"(?P<word>{words})[\W_]*+$",
        re.IGNORECASE,
    )
    place = 0
    for line in said.splitlines(keepends=True):
        if (found := pattern.match(line.rstrip("\r\n"))) is not None:
            yield Found(found["word"], place + found.start("word"))
        place += len(line)


def _thoughts(reply: str, is_cut_off: bool) -> list[tuple[int, int]]:
    """Where thoughts begin and end, in order."""
    spans: list[tuple[int, int]] = []
    begun: tuple[str, int] | None = None
    for tag in _THOUGHTS.finditer(reply):
        kind = tag[2].casefold()
        if not tag[1]:
            begun = begun or (kind, tag.start())
        elif begun is None:
            spans = [(0, tag.end())]
        elif begun[0] == kind:
            spans.append((begun[1], tag.end()))
            begun = None
    if begun is not None and is_cut_off:
        spans.append((begun[1], len(reply)))
    return spans


def _found(text: str, place: int, is_one_line: bool = False) -> Iterator[Found]:
    """The text from its first word on, with the sign of a number; nothing when it has no word."""
    first = re.search(r"[^\W_]", text)
    if first is not None:
        start = first.start()
        signed = text[start - (start > 0 and text[start - 1] == "-") :]
        yield Found(signed.partition("\n")[0] if is_one_line else signed.rstrip(), place + start)


@cache
def _name_pattern(name: str) -> re.Pattern[str]:
    return re.compile(name, re.IGNORECASE)


@cache
def _tag_pattern(names: str) -> re.Pattern[str]:
    return re.compile(rf"{_OPENING}\s*+(/?)\s*+({names})\s*+(?:{_CLOSING}|(?=[:=]))", re.IGNORECASE)


@cache
def _field_pattern(name: str) -> re.Pattern[str]:
    string = r'"(?>(?:[^"\\\n]|\\.)*)"?+' + r"|'(?>(?:[^'\\\n]|\\.)*)'?+"
    return re.compile(rf"(?<!\\)[\"'](?:{name})[\"']\s*+:\s*+(?P<value>{string}|[^\s,}}\]]++)", re.IGNORECASE)


@cache
def _line_pattern(name: str) -> re.Pattern[str]:
    """A line's beginning up to the name and a colon, or a line that is the name alone."""
    return re.compile(
        rf"{_BEFORE_A_NAME}(?:{name})(?>(?:[^\w:=|\uff1a\u2013\u2014-]|_)*)"
        r"(?:[:=\uff1a]++|[|\u2013\u2014]|-(?=\s)|$|is\b(?=[\s:]))",
        re.IGNORECASE,
    )


@cache
def _anywhere_pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{name})[*_`\"'\s]{{0,6}}+[:\uff1a]", re.IGNORECASE)
