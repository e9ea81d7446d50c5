import pytest
from hypothesis import given
from hypothesis import strategies as st

from submissions.look_alikes import skeletons_of

PUBLISHED = ("AER-C", "GPT-4o (tree)", "NNetNav", "Claude 3.7 Sonnet", "AI judge", "modern judge", "判定者")


def looks_like(name: str, others) -> str | None:
    """The first of the other names that has a shape in common with this one."""
    return next((other for other in others if skeletons_of(name) & skeletons_of(other)), None)


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("AER-C", "AER-C"),  # the very name is alike too
        ("aer-c", "AER-C"),
        ("AER\u2013C", "AER-C"),  # an en dash
        ("AER C", "AER-C"),
        ("AERC", "AER-C"),
        ("А\u0415R-C", "AER-C"),  # Cyrillic A and E
        ("ΑER-C", "AER-C"),  # Greek Alpha
        ("AER-С", "AER-C"),  # Cyrillic Es
        ("\uff21\uff25\uff32-\uff23", "AER-C"),  # full width, as East Asian keyboards write
        ("𝐀𝐄𝐑-𝐂", "AER-C"),  # mathematical bold
        ("AER-C\ufe0f", "AER-C"),  # a selector of a variant, of which nothing is seen
        ("AER\u200b-C", "AER-C"),  # a space without width
        ("AER-\u202eC", "AER-C"),  # a mark of direction
        ("GPT-40 (tree)", "GPT-4o (tree)"),
        ("GPT-4о (tree)", "GPT-4o (tree)"),  # Cyrillic o
        ("Al judge", "AI judge"),  # a small L
        ("ai judge", "AI judge"),
        ("A1 judge", "AI judge"),
        ("modem judge", "modern judge"),  # m and rn
        ("«NNetNav»", "NNetNav"),
    ],
)
def test_a_name_that_people_would_take_for_another_is_told(name, taken):
    assert looks_like(name, PUBLISHED) == taken


@pytest.mark.parametrize(
    "name",
    [
        "AER-V",
        "GPT-4o (screenshot)",
        "GPT-4",
        "Claude 37 Sonnet",  # a point is seen
        "NNetNav 2",
        "NNetNav+",
        "判定人",
        "Žižkův soudce",
        "",
    ],
)
def test_names_that_look_different_are_free(name):
    assert looks_like(name, PUBLISHED) is None


def test_a_dash_between_digits_is_kept_and_any_dash_is_one():
    assert looks_like("v1-1", ["v11"]) is None
    assert looks_like("v1\u20131", ["v11", "v1-1"]) == "v1-1"


def test_accents_are_seen_but_their_spelling_is_not():
    assert looks_like("Juge e\u0301", ["Juge e"]) is None
    assert looks_like("Juge e\u0301", ["Juge \u00e9"]) == "Juge \u00e9"


def test_without_others_every_name_is_free():
    assert looks_like("AER-C", []) is None


@given(st.text(max_size=80))
def test_any_name_looks_like_itself_in_any_case(name):
    assert looks_like(name, [name]) == name
    assert looks_like(name.casefold(), [name]) == name


@given(st.text(max_size=30), st.text(max_size=30))
def test_to_look_alike_is_mutual(one, other):
    assert (looks_like(one, [other]) is None) is (looks_like(other, [one]) is None)
