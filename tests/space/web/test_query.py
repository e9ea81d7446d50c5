import pytest
from hypothesis import given
from hypothesis import strategies as st

from space.web.query import LONGEST_LIST, QueryParam, choices_in, link_to

LABEL = QueryParam("label", "one", "success", ("success", "repetition"))
JUDGES = QueryParam("judges", "many", [], None)
KINDS = QueryParam("kind", "many", [], ("Rule-based", "LLM judge", "a, b"))
SEARCH = QueryParam("q", "text", "", max_length=10)
EVERY = QueryParam("every", "flag", False)
STEP = QueryParam("step", "number", 0, low=0, high=30)
ROWS = QueryParam("rows", "range", (1, 100))
ALL = (LABEL, JUDGES, KINDS, SEARCH, EVERY, STEP, ROWS)


def values(query: str) -> dict:
    found, refused = choices_in(query, ALL)
    assert refused == []
    return found


def test_a_link_holds_its_choices_and_leaves_out_what_is_empty():
    assert link_to("/judge", id="paper/aer-c") == "/judge?id=paper/aer-c"
    assert link_to("/compare", judges=["paper/aer-c", "b"], label="") == "/compare?judges=paper/aer-c,b"
    assert link_to("/", every=True, q=None, kind=[], search="a b&c") == "/?every=1&search=a%20b%26c"
    assert link_to("/about") == "/about"


def test_an_address_without_choices_gives_the_defaults():
    assert values("") == {
        "label": "success", "judges": [], "kind": [], "q": "", "every": False, "step": 0, "rows": (1, 100),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("query", "name", "value"),
    [
        ("label=repetition", "label", "repetition"),
        ("kind=LLM%20judge,Rule-based", "kind", ["LLM judge", "Rule-based"]),
        ("kind=a%252C%20b", "kind", ["a, b"]),
        ("kind=LLM+judge&kind=Rule-based", "kind", ["LLM judge", "Rule-based"]),  # as a form without scripts
        ("kind=Rule-based,Rule-based,", "kind", ["Rule-based"]),
        ("judges=paper/x,workarena%2B%2B", "judges", ["paper/x", "workarena++"]),
        ("q=%3Cb%3E", "q", "<b>"),
        ("every=1", "every", True),
        ("step=7", "step", 7),
        ("rows=101-200", "rows", (101, 200)),
        ("rows=7-7", "rows", (7, 7)),
        ("unknown=1", "label", "success"),
    ],
)
def test_an_address_sets_a_value_that_its_control_has(query, name, value):
    assert values(query)[name] == value


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("label=nonsense", "label"),
        ("label=", "label"),
        ("kind=Rule-based,nonsense", "kind"),
        ("every=yes", "every"),
        ("rows=0-5", "rows"),
        ("rows=5-4", "rows"),
        ("rows=5", "rows"),
        ("rows=1-2-3", "rows"),
        ("step=31", "step"),
        ("step=-1", "step"),
        ("step=abc", "step"),
        ("step=nan", "step"),
        ("q=" + "x" * 11, "q"),
        ("judges=" + ",".join(str(n) for n in range(LONGEST_LIST + 1)), "judges"),
        ("judges=" + "x" * 301, "judges"),
    ],
)
def test_a_value_that_its_control_does_not_have_is_refused_and_the_default_stands(query, name):
    found, refused = choices_in(query, ALL)
    assert refused == [name]
    assert found == values("")


@pytest.mark.parametrize(
    "query", ["&" * 500, "a=1&" * 500, "label=%FF%FE", "x" * 100_000, "=", "label=success%00"]
)
def test_no_address_is_an_error(query):
    found, _ = choices_in(query, ALL)
    assert set(found) == {control.name for control in ALL}


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(texts, st.lists(texts, unique=True, min_size=1, max_size=5), st.booleans(), st.integers(0, 30))
def test_what_a_link_says_is_what_its_address_gives(text, items, flag, number):
    link = link_to("/", q=text, judges=items, every=flag, step=number)
    found = values(link.partition("?")[2])
    assert (found["q"], found["judges"], found["every"], found["step"]) == (text, items, flag, number)
