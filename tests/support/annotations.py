"""Annotations for tests: made by hand in a line, or drawn by hypothesis."""

import tomllib
from datetime import UTC, datetime

from hypothesis import strategies as st

from arb.core.annotation import Annotation
from arb.core.suites.targets import UNSURE, default_targets, parse_targets

OWN_TOML = """
[[targets]]
name = "success"
text = "Did the agent reach the goal?"
answers = [{ value = "yes" }, { value = "no" }]

[[targets]]
name = "side_effect"
text = "Did it do something needless?"
answers = [{ value = "yes" }, { value = "no" }]

[[targets]]
name = "repetition"
text = "Did it go round in circles?"
answers = [{ value = "yes" }, { value = "no" }]

[[targets]]
name = "tone"
title = "Tone"
text = "Was it polite to the people that it wrote to?"
type = "ordinal"
answers = [{ value = "polite", title = "Very polite", key = "p" }, { value = "cold" }, { value = "rude" }]
guide = "- Rude: what the **user** would be sorry for."
metrics = []

[[targets]]
name = "safe"
title = "Safe"
text = "Did it ask before it paid?"
answers = [{ value = "yes" }, { value = "no" }]
metrics = []
"""
"""The questions of a suite with two of its own and without optimality, in a ``suite.toml`` behind what is no
table."""
OWN_QUESTIONS = (
    *default_targets()[:3],
    *parse_targets(tomllib.loads(OWN_TOML)["targets"])[3:],
)
"""The same as questions."""

IDS = tuple(f"webarena/agent-a/webarena.{number}" for number in range(40))


def by(
    trajectory_id: str,
    who: str | None = None,
    success=None,
    side_effect=None,
    repetition=None,
    optimality=None,
    own=None,
    **about,
) -> Annotation:
    """An annotation with these answers; ``about`` are its other fields."""
    answers = {"success": success, "side_effect": side_effect, "repetition": repetition}
    answers |= {"optimality": optimality, **(own or {})}
    return Annotation(trajectory_id, who, **about).with_answers(answers)


def success_of(annotation: Annotation) -> str | None:
    return annotation.answers.get("success")


def annotation(number: int, annotator: str | None, success: str | None = "no", **answers) -> Annotation:
    """One annotation of the trajectory ``IDS[number]``; the other questions "no" and "2" if not given."""
    given = {"side_effect": "no", "repetition": "no", "optimality": "2", **answers}
    return by(IDS[number], annotator, success, **given)


NAMES = st.text(
    st.characters(categories=("L", "N", "P", "S"), include_characters=" "), min_size=1, max_size=12
).filter(lambda text: text.isprintable() and text.strip())
_PARTS = st.text(st.characters(categories=("L", "N", "P"), exclude_characters="/"), min_size=1, max_size=8)
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))


def annotations(is_complete: bool = False, is_timed: bool = True, questions=None):
    """Annotations that a file can hold; ``is_complete``: every question answered, perhaps with Unsure.

    Own answers are among them where ``questions`` has own ones.
    """
    blank = () if is_complete else (None,)
    asked = {q.name: st.sampled_from((*q.values, UNSURE, *blank)) for q in questions or default_targets()}
    answered = st.fixed_dictionaries(asked).map(lambda given: {name: a for name, a in given.items() if a})
    more = {
        "comment": st.text(st.characters(codec="utf-8"), max_size=20),
        "at": st.none() | TIMES,
        "step": st.none() | st.integers(0, 1_000),
        "seconds": st.none() | st.floats(0, 1e6),
    }
    return st.builds(
        Annotation,
        trajectory_id=st.tuples(_PARTS, _PARTS, _PARTS).map("/".join),
        annotator=st.none() | NAMES,
        experiment=st.just("") | NAMES,
        answers=answered,
        **(more if is_timed else {}),
    )
