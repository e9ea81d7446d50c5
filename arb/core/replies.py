"""Read the verdict in a judge's reply: from tags, a ``Status:`` line, or a ``Reward:`` line.

A reply may have the form that the prompt asked for, or a similar form that the model chose (JSON, other
names, other markup). The last answer counts. Only whole words are recognised, and the model's thoughts are
ignored. No reply raises an exception.

There are three steps: find where answers are (in tags, in JSON fields, after a name on a line), parse their
words, and derive the verdict. A place is an index into the original reply, from which the tokens of an answer
can be found. Every search takes linear time, because replies come from untrusted models.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, TypeVar

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
"""How many characters at the end of a model's thoughts are searched for an answer."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A piece of text that may be an answer, and its index in the reply."""

    text: str
    place: int


def without_thoughts(reply: str, is_cut_off: bool = False) -> str:
    """Replace the thoughts in a reply (``<reasoning>``, ``<think>`` …) with line breaks of the same length.

    Text before a closing tag without an opening tag counts as thoughts. If the reply was cut off, text after
    an opening tag without a closing tag counts as thoughts, too.
    """
    pieces, place = [], 0
    for begin, end in _thoughts(reply, is_cut_off):
        pieces += [reply[place:begin], "\n" * (end - begin)]
        place = end
    return "".join([*pieces, reply[place:]])


def end_of_thoughts(reply: str, names: str) -> str:
    """Return the answer tags at the end of the model's last thoughts, or else the last line of the thoughts.

    All earlier text is replaced by line breaks. If there are no thoughts, the result is empty.
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


def in_tags(text: str, name: str, names: str) -> Iterator[Candidate]:
    """Yield the content of each tag ``name`` up to the next tag, or up to the end of the line if unclosed.

    ``name`` and ``names`` (the tags that may end the content) are regular expressions such as ``a|b``.
    """
    pattern = rf"{_OPENING}\s*+(/?)\s*+({name}|{names})\s*+(?:{_CLOSING}|(?=[:=]))"
    tags = list(re.finditer(pattern, text, re.IGNORECASE))
    for number, tag in enumerate(tags):
        if tag[1] or re.fullmatch(name, tag[2], re.IGNORECASE) is None:
            continue
        following = tags[number + 1] if number + 1 < len(tags) else None
        end = following.start() if following is not None else len(text)
        is_closed = following is not None and bool(following[1])
        yield from _found(text[tag.end() : end], tag.end(), is_one_line=not is_closed)


def in_fields(text: str, name: str) -> Iterator[Candidate]:
    """Yield the value of ``"name": …`` in JSON, or in text that looks like JSON."""
    string = r'"(?>(?:[^"\\\n]|\\.)*)"?+' + r"|'(?>(?:[^'\\\n]|\\.)*)'?+"
    pattern = rf"(?<!\\)[\"'](?:{name})[\"']\s*+:\s*+(?P<value>{string}|[^\s,}}\]]++)"
    for match in re.finditer(pattern, text, re.IGNORECASE):
        yield from _found(match["value"], match.start("value"))


def on_lines(text: str, name: str) -> Iterator[Candidate]:
    """Yield the text after ``name:`` at the beginning of a line, or the line after a heading ``name``."""
    pattern = _line_pattern(name)
    waiting = False
    for place, line in _lines(text):
        if not line.isspace() and (head := pattern.match(line)) is not None:
            waiting = re.search(r"[^\W_]", line[head.end() :]) is None
            yield from _found(line[head.end() :].rstrip(), place + head.end())
        elif waiting and re.search(r"[^\W_]", line):
            waiting = False
            yield from _found(line.rstrip(), place)


def within_lines(text: str, name: str) -> Iterator[Candidate]:
    """Yield the text after ``name:`` anywhere, up to the end of the line."""
    pattern = rf"(?<![^\W_])(?:{name})[*_`\"'\s]{{0,6}}+[:\uff1a]"
    for head in re.finditer(pattern, text, re.IGNORECASE):
        yield from _found(text[head.end() : head.end() + 200], head.end(), is_one_line=True)


def bare_lines(text: str, words: str) -> Iterator[Candidate]:
    """For each line that is just one of ``words``, possibly after a number or "name:", yield that word."""
    pattern = re.compile(
        r"^[\W_]*+(?>(?:(?>(?:question|answer|q|a)?)[ ]?+\d++[\W_]++)?)(?>(?:\w{1,20}+\W{0,4}+:[\W_]*+)?)"
        rf"(?P<word>{words})[\W_]*+$",
        re.IGNORECASE,
    )
    for place, line in _lines(text):
        if not line.isspace() and (found := pattern.match(line.rstrip("\r\n"))) is not None:
            yield Candidate(found["word"], place + found.start("word"))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line and the index at which it begins."""
    place = 0
    for line in text.splitlines(keepends=True):
        yield place, line
        place += len(line)


def _thoughts(reply: str, is_cut_off: bool) -> list[tuple[int, int]]:
    """Return the start and end of each passage of thoughts, in order."""
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


def _found(text: str, place: int, is_one_line: bool = False) -> Iterator[Candidate]:
    """Yield the text from its first word or signed number on. Yield nothing if it has neither."""
    if (first := re.search(r"[^\W_]", text)) is not None:
        start = first.start()
        signed = text[start - (start > 0 and text[start - 1] == "-") :]
        yield Candidate(signed.partition("\n")[0] if is_one_line else signed.rstrip(), place + start)


@cache
def _line_pattern(name: str) -> re.Pattern[str]:
    """Return a pattern that matches the beginning of a line up to ``name:``, or a line with only the name."""
    return re.compile(
        rf"{_BEFORE_A_NAME}(?:{name})(?>(?:[^\w:=|\uff1a\u2013\u2014-]|_)*)"
        r"(?:[:=\uff1a]++|[|\u2013\u2014]|-(?=\s)|$|is\b(?=[\s:]))",
        re.IGNORECASE,
    )


T = TypeVar("T")


class ParsedAnswer(Enum):
    """The meaning of an answer's words."""

    YES = "yes"
    NO = "no"
    UNSURE = "unsure"
    CHOICES = "choices"
    """The words repeat the choices in the prompt, which is not an answer."""
    NOTHING = "nothing"
    """The words do not answer the question, or answer it only in part."""


_SPELLINGS: Final = tomllib.loads(Path(__file__).with_name("replies.toml").read_text(encoding="utf-8"))
_ANY: Final = {name: "|".join(words) for name, words in _SPELLINGS["words"].items()}
_YES, _NO, _NOT = (re.compile(_ANY[name]) for name in ("yes", "no", "not"))
_FILLER: Final = re.compile(_ANY["filler"])
_BY_HALVES: Final = re.compile(rf"\b({_ANY['by_halves']})\b")
UNDECIDED: Final = re.compile(rf"\b(?:{_ANY['undecided']}|(?:{_ANY['unable']})(?: be)? (?:{_ANY['decide']}))")
_STANDS_FIRST: Final = re.compile(_ANY["stands_first"])

_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_CLAUSE: Final = re.compile(
    r"[.,;:!?()\[\]{}|\n\u2013\u2014\u2026]|\s-+\s"
    r"|\b(?:because|since|as|but|although|though|while|with|given|due)\b"
)
_NUMBER: Final = re.compile(
    r"[^\w\-.]*+(?>(?:(?:a|an|is|of|the|rating|score|reward|level)[^\w\-.]++)*)"
    r"(?P<number>\d++(?>(?:\.\d++)?)|one|two|three|four|five)(?![\w%])"
    r"(?>(?P<range>[\s*_]*+(?:-|\u2013|to\b|or\b)[\s*_]*+\d)?)"
    r"(?>(?:[\s*_]*+(?:/|out of|of)[\s*_]*+(?P<best>\d++(?>(?:\.0++)?)))?)"
)
"""Groups are atomic, ``(?>(…)*)``, because Python before 3.11.5 has a bug with possessive ``(…)*+``."""

_NUMBERS: Final = {"one": 1.0, "two": 2.0, "three": 3.0, "four": 4.0, "five": 5.0}
_GRADES: Final = {"complete failure": 1, "suboptimal": 2, "somewhat optimal": 3, "completely optimal": 4}


def parse_success(text: str) -> ParsedAnswer:
    """Return the meaning of an answer to "was it successful?", judging by its first clause."""
    plain = _plain(text)
    words = _WORD.findall(plain)
    if len(_polarities(words)) == 2 and _are_only(words, _YES, _NO, _FILLER):
        return ParsedAnswer.CHOICES
    clause = _first_clause(plain)
    if UNDECIDED.search(clause):
        return ParsedAnswer.UNSURE
    words = _WORD.findall(clause)
    found = _polarities(words)
    if len(found) != 1 or _BY_HALVES.search(clause):
        return ParsedAnswer.NOTHING
    is_plain = _are_only(words, _YES, _NO, _NOT, _FILLER) or _STANDS_FIRST.fullmatch(words[0])
    return found.pop() if is_plain else ParsedAnswer.NOTHING


def parse_yes_no(text: str) -> bool | None:
    """Return True or False if the text begins with yes, no, true or false, else None."""
    words = _WORD.findall(_first_clause(_plain(text)))
    return {"yes": True, "true": True, "no": False, "false": False}.get(words[0]) if words else None


def parse_grade(text: str) -> int | None:
    """Return the optimality (1 to 4) from its number or its words, or None if they differ or are missing."""
    plain = _plain(text)
    number = re.match(r"[\W_]*+(?>(?:(?:option|choice|answer)[\W_]*+)?)([1-4])(?![\d])", plain)
    by_words = {_GRADES[found] for found in re.findall(rf"\b(?:{'|'.join(_GRADES)})\b", plain)}
    grades = by_words | ({int(number[1])} if number else set())
    return grades.pop() if len(grades) == 1 else None


def parse_number(text: str, low: float = 1, high: float = 5) -> float | ParsedAnswer:
    """Return a rating from ``low`` to ``high``, written as ``4``, ``4/5``, ``4 out of 5`` or ``four``.

    A rating on another scale, a range or a number out of bounds gives NOTHING. A range that is the whole
    scale gives CHOICES, and "cannot tell" gives UNSURE.
    """
    plain = _plain(text)
    found = _NUMBER.match(plain)
    if found is None:
        return ParsedAnswer.UNSURE if UNDECIDED.search(_first_clause(plain)) else ParsedAnswer.NOTHING
    number = _NUMBERS.get(found["number"]) or float(found["number"])
    if found["range"] is not None:
        is_scale = number == low and found["range"].endswith(f"{high:g}")
        return ParsedAnswer.CHOICES if is_scale else ParsedAnswer.NOTHING
    if not low <= number <= high or (found["best"] is not None and float(found["best"]) != high):
        return ParsedAnswer.NOTHING
    return number


def _plain(text: str) -> str:
    return text.casefold().replace("\u2019", "'").strip()


def _first_clause(plain: str) -> str:
    """Return the first clause that has a letter, or an empty string."""
    clauses = _CLAUSE.split(plain)
    return next((clause.strip() for clause in clauses if re.search(r"[^\W\d_]", clause)), "")


def _polarities(words: list[str]) -> set[ParsedAnswer]:
    """Return which of YES and NO the words express. A "not" reverses the next such word."""
    found, is_negated = set[ParsedAnswer](), False
    for place, word in enumerate(words):
        is_yes = _YES.fullmatch(word) is not None
        following = words[place + 1 : place + 4]
        if _NOT.fullmatch(word) and (word != "no" or any(each.startswith("succe") for each in following)):
            is_negated = True
        elif is_yes or _NO.fullmatch(word):
            found.add(ParsedAnswer.YES if is_yes != is_negated else ParsedAnswer.NO)
            is_negated = False
    return found


def _are_only(words: list[str], *kinds: re.Pattern[str]) -> bool:
    return all(any(kind.fullmatch(word) for kind in kinds) for word in words)


Form = Literal["tags", "status", "rating", "judge", "verdict", "criteria"]

_FORMS: Final[Mapping[str, Form]] = _SPELLINGS["forms"]

LEAST_REWARD: Final = 4
"""The lowest NNetNav reward, from 1 to 5, that counts as a success."""

_SIDE: Final = "side(?:[ _]?effects?)?"
_OPTIMAL: Final = "optimal|optimality"
_LOOP: Final = "loop|loops|looping|repetition"
_VERDICT: Final = "status|verdict|result|answer|outcome|conclusion|decision|judge?ment"
_NAMES: Final = MappingProxyType(
    {
        "tags": ("success|trajectory[ _]success", _VERDICT),
        "status": ("status", f"{_VERDICT}|success"),
        "rating": ("reward", "rating|score"),
        "judge": ("judge", f"{_VERDICT}|success"),
        "verdict": ("verdict", f"{_VERDICT}|success"),
    }
)
"""The name of the answer in each form, and other names that models use."""
_ALL_TAGS: Final = (*(name for names in _NAMES.values() for name in names), _SIDE, _OPTIMAL, _LOOP)

_REFUSAL: Final = re.compile(
    r"\W*(?:(?:i'?m|i am) (?:really |very |so )?sorry|sorry|i apologi[sz]e|unfortunately|as an ai"
    r"|i (?:can't|cannot|can not|won't|will not|must decline|am unable|am not able)|i'm (?:unable|not able))"
    r"[^\n]{0,200}"
)
_DECLINES: Final = re.compile(r"\b(?:can't|cannot|can not|unable to|not able to|won't|will not|decline)\b")

_FEW_WORDS: Final = 4
"""A reply with at most this many words may consist of just the answer, unless it looks like markup."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict in a reply. ``success`` is None unless the state is ``ok``.

    ``rating`` is the number in a reply of the form "rating". ``place`` is the index of the verdict's words in
    the reply.
    """

    state: str
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: int | None = None
    rating: float | None = field(default=None, compare=False)
    place: int | None = field(default=None, compare=False)


def read_reply(
    judge: str, reply: str | None, finish_reason: str | None = None, refusal: str | None = None
) -> Verdict:
    """Return the verdict in a judge's reply. ``judge`` is the judge's folder name in the released data."""
    return read_verdict(_FORMS.get(judge.partition("-")[0], "tags"), reply, finish_reason, refusal)


def read_verdict(
    form: Form, reply: str | None, finish_reason: str | None = None, refusal: str | None = None
) -> Verdict:
    """Return the verdict in a reply of this form.

    Its state is ``ok``, ``unsure``, ``refused``, ``truncated`` (cut off before the verdict), ``unparsed``
    (the verdict cannot be read) or ``error`` (no reply).
    """
    if refusal or finish_reason == "content_filter":
        return Verdict("refused")
    if not reply or not reply.strip():
        return Verdict("truncated" if finish_reason == "length" else "error")
    is_cut_off = finish_reason == "length"
    text = without_thoughts(reply, is_cut_off)
    verdict = _verdict(form, text, is_cut_off)
    if verdict is None and not is_cut_off:
        verdict = _verdict(form, end_of_thoughts(reply, "|".join(_ALL_TAGS)), is_cut_off=True)
    return Verdict(_without_verdict(text, finish_reason)) if verdict is None else verdict


def read_rating(reply: str, names: str = "score|rating|reward") -> float | None:
    """Return the last rating from 1 to 5 that follows one of ``names`` in a reply, or None."""
    found = _last_answer(_places_of("rating", without_thoughts(reply), False, (names,)), parse_number)
    return found[0] if found is not None and not isinstance(found[0], ParsedAnswer) else None


def _verdict(form: Form, text: str, is_cut_off: bool) -> Verdict | None:
    """Return the verdict, which may be unsure or unparsed, or None if the text has no candidates."""
    if form == "criteria":
        required = [each.met for each in read_criteria(text) if each.is_required]
        return Verdict("ok", all(required)) if required and not is_cut_off else None
    reads: Callable[[str], float | ParsedAnswer] = parse_number if form == "rating" else parse_success
    found = _last_answer(_places_of(form, text, is_cut_off, _NAMES[form]), reads)
    if found is None:
        return None
    answer, place = found
    if isinstance(answer, float):
        return Verdict("ok", answer >= LEAST_REWARD, rating=answer, place=place)
    if answer is ParsedAnswer.UNSURE:
        return Verdict("unsure", place=place)
    if answer is ParsedAnswer.NOTHING:
        return Verdict("unparsed", place=place)
    if form in ("status", "judge", "verdict"):
        return Verdict("ok", answer is ParsedAnswer.YES, place=place)
    return Verdict(
        "ok",
        answer is ParsedAnswer.YES,
        side_effect=_other(text, _SIDE, parse_yes_no),
        repetition=_other(text, _LOOP, parse_yes_no),
        optimality=_other(text, _OPTIMAL, parse_grade),
        place=place,
    )


@dataclass(frozen=True, slots=True)
class CriterionRating:
    """What a reply says about one criterion, and the number of the step that shows it."""

    number: int
    is_required: bool
    met: bool
    step: int | None
    text: str


_ROW: Final = re.compile(r"[\s|*>#-]*+(?:criterion\s*+)?(\d{1,3})[\s.):*]*+\|(.*)", re.IGNORECASE)
_STEP: Final = re.compile(r"(?<!\d)\d{1,4}(?!\d)")


def numbered_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the other cells (three or more) of lines such as ``2 | met | step 3 | why``."""
    for _, line in _lines(text):
        found = _ROW.match(line.rstrip())
        cells = [cell.strip(" *_`\t") for cell in found[2].rstrip(" |").split("|")] if found else []
        if found and len(cells) >= 3:
            yield int(found[1]), cells


def read_criteria(text: str) -> list[CriterionRating]:
    """Return the ratings in lines ``number | required | met | step 3 | why``, the last one for each number.

    ``required`` may be ``optional``, and ``met`` may be ``not met``. Other lines are ignored.
    """
    found = {}
    for number, (kind, is_met, seen_at, *why) in numbered_rows(text):
        if kind.casefold() in ("required", "optional") and is_met.casefold() in ("met", "not met"):
            step = _STEP.search(seen_at)
            found[number] = CriterionRating(
                number,
                is_required=kind.casefold() == "required",
                met=is_met.casefold() == "met",
                step=int(step[0]) if step else None,
                text=" | ".join(why),
            )
    return [found[number] for number in sorted(found)]


def _last_answer(
    found: Iterator[tuple[bool, list[Candidate]]], reads: Callable[[str], float | ParsedAnswer]
) -> tuple[float | ParsedAnswer, int] | None:
    """From the first group of candidates with an answer, return the last answer and its place, or None.

    Repeated choices are skipped. A candidate that cannot be read counts only if its group has the form that
    the prompt asked for.
    """
    for is_asked_for, candidates in found:
        for candidate in reversed(candidates):
            answer = reads(candidate.text)
            if answer is ParsedAnswer.CHOICES:
                continue
            if answer is ParsedAnswer.NOTHING and not is_asked_for:
                break
            return answer, candidate.place
    return None


def _places_of(
    form: Form, text: str, is_cut_off: bool, names: tuple[str, ...]
) -> Iterator[tuple[bool, list[Candidate]]]:
    """Yield groups of candidates, likeliest first, and whether the prompt asked for the form of each.

    Within a group, candidates are in the order of the text. Prose is not searched if the reply was cut off.
    """
    for name in names:
        tagged, fields, lines = _of_a_name(text, name)
        for way in (tagged, fields, lines) if form == "tags" else (lines, tagged, fields):
            yield name == names[0], list(way)
        if form != "tags" and not is_cut_off:
            yield False, list(within_lines(text, name))
    if form == "tags":
        yield False, list(bare_lines(text, "successful|unsuccessful"))
    if len(text.split()) <= _FEW_WORDS and not re.search(r"[<>\[\]{}:=&]", text):
        yield False, [Candidate(text.strip(), len(text) - len(text.lstrip()))]


def _of_a_name(text: str, name: str) -> tuple[Iterator[Candidate], ...]:
    tags = "|".join((name, *_ALL_TAGS))
    return in_tags(text, name, tags), in_fields(text, name), on_lines(text, name)


def _other(text: str, name: str, reads: Callable[[str], T | None]) -> T | None:
    """Return the answer to one of the questions other than success, or None if it is missing."""
    for way in _of_a_name(text, name):
        if found := list(way):
            return reads(found[-1].text)
    return None


def _without_verdict(text: str, finish_reason: str | None) -> str:
    plain = text.strip()[:400].casefold().replace("\u2019", "'")
    if (refusal := _REFUSAL.match(plain)) is not None:
        if UNDECIDED.search(plain):
            return "unsure"
        if _DECLINES.search(refusal[0]):
            return "refused"
    return "truncated" if finish_reason == "length" else "unparsed"
