"""Title, links and pages of a suite: what may be left out, what is refused, and all of it at once."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suite import SuiteError, load_suite, shipped_suites
from arb.core.suites.profile import OPTIONAL_PAGES, PROFILE_KEYS, SuiteProfile, default_title, read_profile
from tests.support.small_suite import suite_with

TOML = """title = "Our  Bench"
description = '''
Runs of four agents
on two sites.'''
citation = '@misc{ours}'

[links]
paper = "https://example.org/paper"
contact = "mailto:ada@example.org"

[pages]
paper = true
submit = false
"""


def test_a_profile_is_what_the_file_says():
    found = read_profile(tomllib.loads(TOML), "our-bench")
    assert found == SuiteProfile(
        "Our Bench",
        "Runs of four agents on two sites.",
        "@misc{ours}",
        (("paper", "https://example.org/paper"), ("contact", "mailto:ada@example.org")),
        frozenset(OPTIONAL_PAGES) - {"submit"},
    )


def test_a_suite_declares_the_licence_version_and_date_of_its_data():
    found = read_profile(tomllib.loads('license = "cc-by-4.0"\nversion = "1.2.0"\ndate = 2026-11-26'), "ours")
    assert (found.license, found.version, found.date) == ("cc-by-4.0", "1.2.0", "2026-11-26")
    with pytest.raises(ValueError) as refused:
        read_profile({"license": 4, "version": "1.2", "date": "November"}, "ours")
    assert str(refused.value) == (
        "license: write a text of at most 200 characters; "
        'version: write three numbers, such as "1.0.0"; date: write a day, such as "2026-11-26"'
    )


def test_what_is_left_out_comes_from_the_folders_name_and_the_defaults():
    found = read_profile({}, "our-bench")
    assert (found.title, found.description, found.citation, found.links) == ("Our bench", "", "", ())
    assert found.pages == set(OPTIONAL_PAGES) - {"paper"}


def test_disputes_are_published_on_the_page_of_label_versions():
    with pytest.raises(ValueError) as refused:
        read_profile({"pages": {"labels": False}}, "ours")
    assert (
        str(refused.value)
        == "pages.disputes: needs the page labels, which is off; also write disputes = false"
    )


@pytest.mark.parametrize(
    ("name", "title"),
    [("our-bench", "Our bench"), ("WebShop_v2", "WebShop v2"), ("x", "X"), ("-", "-"), ("a--b", "A b")],
)
def test_a_folders_name_becomes_a_title(name, title):
    assert default_title(name) == title


def test_the_leaderboard_the_judges_and_about_are_always_served():
    found = read_profile({"pages": dict.fromkeys(OPTIONAL_PAGES, False)}, "ours")
    assert all(map(found.serves, ("/", "/judge", "/about", "/api")))
    assert not any(found.serves(f"/{name}") for name in OPTIONAL_PAGES)


def test_every_problem_is_named_at_once():
    content = {
        "title": "two\nlines",
        "description": 3,
        "citation": "x" * 10_001,
        "links": {"<b>": "https://example.org", "code": "javascript:alert(1)", "data": "https://a b"},
        "pages": {"about": False, "paper": "no", "trajectories": False, "errors": False},
    }
    with pytest.raises(ValueError) as refused:
        read_profile(content, "ours")
    problems = [
        "title: write it on one line, without control characters",
        "description: write a text of at most 600 characters",
        "citation: write a text of at most 10,000 characters",
        "links.'<b>': use up to 40 letters, digits, spaces and -, beginning with a letter",
        'links.code: write an address that begins with "https://" or "mailto:"',
        'links.data: write an address that begins with "https://" or "mailto:"',
        "pages.about: cannot be switched on or off; use one of compare, rates, trajectories, errors, labels, "
        "disputes, paper, submit, validate",
        "pages.paper: write true or false",
        "pages.disputes: needs the page trajectories, which is off; also write disputes = false",
    ]
    assert str(refused.value) == "; ".join(problems)


THIRTEEN = {f"link {n}": "https://example.org" for n in range(13)}


@pytest.mark.parametrize("content", [{"links": ["a"]}, {"pages": ["paper"]}, {"links": THIRTEEN}])
def test_what_is_no_table_is_refused_with_how_to_write_one(content):
    with pytest.raises(ValueError, match=r"write a table, \[(links|pages)\]"):
        read_profile(content, "ours")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=90),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=50), inner, max_size=3),
    max_leaves=6,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(PROFILE_KEYS, _VALUES)))
def test_whatever_is_written_is_a_profile_or_a_refusal_in_words(content):
    try:
        found = read_profile(content, "ours")
    except ValueError as problem:
        assert str(problem)
    else:
        assert found.title and found.title.isprintable() and hash(found) is not None


def test_a_suites_file_is_refused_with_all_that_is_wrong_in_it(tmp_path):
    with pytest.raises(SuiteError) as refused:
        suite_with(tmp_path, 'labels = "secret"\ntittle = "x"\ntitle = 3\n[rules]\nspeed = 1\n')
    message = str(refused.value)
    assert "suite.toml, tittle: is not a known key; use one of format, labels, subsets" in message
    assert all(words in message for words in ("labels 'secret'", "rules.speed", "title: write a text"))


def test_the_paper_is_a_page_of_the_official_suite_alone():
    shipped = {name: load_suite(name).profile for name in shipped_suites()}
    assert [name for name, profile in shipped.items() if profile.serves("/paper")] == ["agent-reward-bench"]
    assert shipped["agent-reward-bench"].title == "AgentRewardBench"
