"""The verdict in a judge's reply: tags, a ``Status:`` line, or a ``Reward:`` line. Pure, and never fails.

Read as a person would: in the form that was asked for, else in the nearest one that the model made of it
(JSON, other names, other marks around the words). The last answer counts, words count whole, and what the
model says to itself does not count.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from dataset_script.sources import answer_places as places
from dataset_script.sources.answer_places import Found
from dataset_script.sources.answer_words import (
    UNDECIDED,
    Said,
    grade_said,
    number_said,
    success_said,
    yes_or_no,
)

Form = Literal["tags", "status", "rating"]

_FORMS: Final = MappingProxyType({"aer": "status", "aerv": "status", "nnetnav": "rating"})
"""How judges answer, by the name of their released folder; all others in tags."""

LEAST_REWARD: Final = 4
"""A NNetNav reward of 4 or 5, out of 5, is a success."""

_SIDE: Final = "side(?:[ _]?effects?)?"
_OPTIMAL: Final = "optimal|optimality"
_LOOP: Final = "loop|loops|looping|repetition"
_VERDICT: Final = "status|verdict|result|answer|outcome|conclusion|decision|judge?ment"
_NAMES: Final = MappingProxyType(
    {
        "tags": ("success|trajectory[ _]success", _VERDICT),
        "status": ("status", f"{_VERDICT}|success"),
        "rating": ("reward", "rating|score"),
    }
)
"""The name that each form gives its answer, and names that models give it instead."""
_ALL_TAGS: Final = (*(name for names in _NAMES.values() for name in names), _SIDE, _OPTIMAL, _LOOP)

_REFUSAL: Final = re.compile(
    r"\W*(?:(?:i'?m|i am) (?:really |very |so )?sorry|sorry|i apologi[sz]e|unfortunately|as an ai"
    r"|i (?:can't|cannot|can not|won't|will not|must decline|am unable|am not able)|i'm (?:unable|not able))"
    r"[^\n]{0,200}"
)
_DECLINES: Final = re.compile(r"\b(?:can't|cannot|can not|unable to|not able to|won't|will not|decline)\b")

_FEW_WORDS: Final = 4
"""A reply this short may be the answer alone, where it is no name without an answer."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reply says. ``success`` is None unless the state is ``ok``.

    ``rating`` is the number of a reply in the form "rating". ``place`` is where in the reply the word begins
    that decides.
    """

    state: str
    success: bool | None = None
    side_effect: bool | None = None
    repetition: bool | None = None
    optimality: int | None = None
    rating: float | None = field(default=None, compare=False)
    place: int | None = field(default=None, compare=False)


def form_of(judge: str) -> Form:
    """How the judge of a released folder answers."""
    return _FORMS.get(judge, "tags")


def read_reply(
    judge: str, reply: str | None, finish_reason: str | None = None, refusal: str | None = None
) -> Verdict:
    """The verdict in a reply, read in the way that the judge of this released folder answers."""
    return read_verdict(form_of(judge), reply, finish_reason, refusal)


def read_verdict(
    form: Form, reply: str | None, finish_reason: str | None = None, refusal: str | None = None
) -> Verdict:
    """The verdict in a reply of this form.

    States: ``ok``; ``unsure`` when it says so; ``refused``; ``truncated`` when the reply was cut off before a
    verdict; ``unparsed`` when there is none that can be read; ``error`` when there is no reply at all.
    """
    if refusal or finish_reason == "content_filter":
        return Verdict("refused")
    if not reply or not reply.strip():
        return Verdict("truncated" if finish_reason == "length" else "error")
    is_cut_off = finish_reason == "length"
    said = places.without_thoughts(reply, is_cut_off)
    verdict = _verdict(form, said, is_cut_off)
    if verdict is None and not is_cut_off:
        verdict = _verdict(form, places.end_of_thoughts(reply, "|".join(_ALL_TAGS)), is_cut_off=True)
    return Verdict(_without_verdict(said, finish_reason)) if verdict is None else verdict


def read_rating(reply: str, names: str = "score|rating|reward") -> float | None:
    """The last rating from 1 to 5 that stands in a reply after one of these names; None for none."""
    found = _answer(_places_of("rating", places.without_thoughts(reply), False, (names,)), number_said)
    return found[0] if found is not None and not isinstance(found[0], Said) else None


def _verdict(form: Form, said: str, is_cut_off: bool) -> Verdict | None:
    """The verdict, unsure and unparsed ones too; None when nothing that is said stands for one."""
    reads = number_said if form == "rating" else success_said
    found = _answer(_places_of(form, said, is_cut_off, _NAMES[form]), reads)
    if found is None:
        return None
    answer, place = found
    if answer in (Said.UNSURE, Said.NOTHING):
        return Verdict("unsure" if answer is Said.UNSURE else "unparsed", place=place)
    if form == "rating":
        return Verdict("ok", answer >= LEAST_REWARD, rating=answer, place=place)
    if form == "status":
        return Verdict("ok", answer is Said.YES, place=place)
    return Verdict(
        "ok",
        answer is Said.YES,
        side_effect=_other(said, _SIDE, yes_or_no),
        repetition=_other(said, _LOOP, yes_or_no),
        optimality=_other(said, _OPTIMAL, grade_said),
        place=place,
    )


def _answer(found: Iterator[tuple[bool, list[Found]]], reads: Callable) -> tuple | None:
    """What the last answer says, and where, in the first way of looking that finds one.

    Choices repeated are no answer; what cannot be read is one only where answers were asked for.
    """
    for is_asked_for, candidates in found:
        read = ((reads(each.text), each.place) for each in reversed(candidates))
        said, place = next((each for each in read if each[0] is not Said.CHOICES), (Said.NOTHING, None))
        if said is not Said.NOTHING or (is_asked_for and place is not None):
            return said, place
    return None


def _places_of(
    form: Form, said: str, is_cut_off: bool, names: tuple[str, ...]
) -> Iterator[tuple[bool, list[Found]]]:
    """Where an answer may stand, the likeliest places first: whether it was asked for there, and each place's
    answers in order. In the rest of a reply that was cut off, prose is not searched.
    """
    for name in names:
        in_tags, *others = _of_a_name(said, name)
        for way in (in_tags, *others) if form == "tags" else (others[1], in_tags, others[0]):
            yield name == names[0], list(way)
        if form != "tags" and not is_cut_off:
            yield False, list(places.within_lines(said, name))
    if form == "tags":
        yield False, list(places.bare_lines(said, "successful|unsuccessful"))
    if len(said.split()) <= _FEW_WORDS and not re.search(r"[<>\[\]{}:=&]", said):
        yield False, [Found(said.strip(), len(said) - len(said.lstrip()))]


def _of_a_name(said: str, name: str) -> tuple[Iterator[Found], ...]:
    tags = "|".join((name, *_ALL_TAGS))
    return places.in_tags(said, name, tags), places.in_fields(said, name), places.on_lines(said, name)


def _other(said: str, name: str, reads: Callable):
    """The answer to another of the four questions; None when it is not given."""
    for way in _of_a_name(said, name):
        if found := list(way):
            return reads(found[-1].text)
    return None


def _without_verdict(said: str, finish_reason: str | None) -> str:
    """The state of a reply that has no verdict."""
    plain = said.strip()[:400].casefold().replace("\u2019", "'")
    refusal = _REFUSAL.match(plain)
    if refusal is not None:
        if UNDECIDED.search(plain):
            return "unsure"
        if _DECLINES.search(refusal[0]):
            return "refused"
    return "truncated" if finish_reason == "length" else "unparsed"
