"""Annotations for tests: made by hand in a line, or drawn by hypothesis."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from leaderboard.labels.annotations import ANSWERS, QUESTIONS, UNSURE, Annotation

IDS = tuple(f"webarena/agent-a/webarena.{number}" for number in range(40))


def annotation(number: int, annotator: str | None, success: str | None = "no", **answers) -> Annotation:
    """One annotation of the trajectory ``IDS[number]``; the other questions "no" and "2" if not given."""
    given = {"side_effect": "no", "repetition": "no", "optimality": "2", **answers}
    return Annotation(IDS[number], annotator, success, **given)


NAMES = st.text(
    st.characters(categories=("L", "N", "P", "S"), include_characters=" "), min_size=1, max_size=12
).filter(lambda text: text.isprintable() and text.strip())
_PARTS = st.text(st.characters(categories=("L", "N", "P"), exclude_characters="/"), min_size=1, max_size=8)
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))


def annotations(is_complete: bool = False, is_timed: bool = True):
    """Annotations that a file can hold; ``is_complete``: every question answered, perhaps with Unsure."""
    blank = () if is_complete else (None,)
    answers = {question: st.sampled_from((*ANSWERS[question], UNSURE, *blank)) for question in QUESTIONS}
    more = {
        "comment": st.text(st.characters(codec="utf-8"), max_size=20),
        "at": st.none() | TIMES,
        "seconds": st.none() | st.floats(0, 1e6),
    }
    return st.builds(
        Annotation,
        trajectory_id=st.tuples(_PARTS, _PARTS, _PARTS).map("/".join),
        annotator=st.none() | NAMES,
        experiment=st.just("") | NAMES,
        **answers,
        **(more if is_timed else {}),
    )
