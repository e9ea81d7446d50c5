from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.judge_info import NAME_LENGTH, DeclarationError, declare
from arb.core.vocabulary import JUDGE_INPUTS, JUDGE_KINDS
from submissions.intake.accounts import Actor, declare_as
from tests.support.submissions import FORM

ADA = Actor("ada", how="session")


@pytest.mark.parametrize("said", ["", None, "ada", " Ada "])
def test_whoever_is_signed_in_is_the_account(said):
    declaration, actor = declare_as(ADA, **{**FORM, "account": said})
    assert (declaration.account, actor) == ("ada", ADA)


def test_naming_somebody_else_is_a_problem_beside_the_others():
    with pytest.raises(DeclarationError) as caught:
        declare_as(ADA, **{**FORM, "account": "grace", "judge": ""})
    messages = dict(caught.value.problems)
    assert "signed in as ada" in messages["account"]
    assert "fill it in" in messages["judge"]


def test_without_anybody_signed_in_the_forms_name_is_believed():
    declaration, actor = declare_as(None, **FORM)
    assert declaration.account == FORM["account"] == actor.name
    assert (actor.how, actor.is_maintainer) == ("local", False)


def problems(**changes) -> dict[str, str]:
    with pytest.raises(DeclarationError) as raised:
        declare(**{**FORM, **changes})
    return dict(raised.value.problems)


def test_what_is_optional_may_be_left_empty_or_out():
    optional = {"model": "", "authors": "", "link": ""}
    for form in ({**FORM, **optional}, {**FORM, **dict.fromkeys(optional)}):
        assert asdict(declare(**form)) == {**FORM, **optional}
    without = {name: value for name, value in FORM.items() if name not in optional}
    assert asdict(declare(**without)) == {**FORM, **optional}


def test_every_problem_of_a_form_is_said_at_once_each_under_its_field():
    found = problems(
        account=" ",
        judge="x" * (NAME_LENGTH + 1),
        kind=None,
        inputs="telepathy",
        model="a\nb",
        authors="x" * 301,
        link="javascript:alert(1)",
        test_labels_used=None,
    )
    assert set(found) == set(FORM)
    assert found["account"] == "Your name: fill it in"
    assert found["judge"] == "Name of the judge: is over 80 characters; shorten it"
    assert found["kind"] == "Kind: choose one"
    assert found["inputs"].startswith("What it sees: choose one of 'tree'")
    assert "invisible characters; remove them" in found["model"]
    assert found["authors"] == "Authors: is over 300 characters; shorten it"
    assert "begin it with https://" in found["link"]
    assert found["test_labels_used"].startswith("Test labels: say whether")


def test_an_empty_form_asks_for_what_is_required_and_for_nothing_twice():
    with pytest.raises(DeclarationError) as raised:
        declare()
    asked = [field for field, _ in raised.value.problems]
    assert asked == ["account", "judge", "kind", "inputs", "test_labels_used"]


INVISIBLE = (
    "\x00", "\x07", "\x1b[31m", "\n", "\r", "\x85", "\u2028", "\u200b", "\u200d", "\u202e", "\u2066",
    "\ufeff", "\ue000", "\ud800", "\u3164", "\u2800", "\u115f", "\u034f",
)  # fmt: skip


@pytest.mark.parametrize("hidden", INVISIBLE)
@pytest.mark.parametrize("field", ["account", "judge", "model", "authors", "link"])
def test_what_cannot_be_seen_is_refused_in_every_text(field, hidden):
    assert set(problems(**{field: f"{FORM[field][:9]}{hidden}b"})) == {field}


@pytest.mark.parametrize("name", ["-", "…", "🙂", "´", "( )", "=+-@"])
def test_a_name_needs_a_letter_or_a_digit(name):
    assert set(problems(judge=name, account=name)) == {"judge", "account"}


@pytest.mark.parametrize("name", ["GPT-4o", "7", "判定者", "Žižkův soudce", "судья №1", "judge 🙂"])
def test_names_in_any_script_are_taken(name):
    assert declare(**{**FORM, "judge": name}).judge == name


HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{7*7}}", "${7*7}", "=1+1",
    "'; DROP TABLE judges;--",
)  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_markup_and_formulas_are_text_and_kept_as_written(hostile):
    kept = declare(**{**FORM, "judge": hostile, "account": hostile, "model": hostile, "authors": hostile})
    assert {kept.judge, kept.account, kept.model, kept.authors} == {hostile}


@pytest.mark.parametrize("field", ["account", "judge", "model", "authors"])
def test_letters_under_piles_of_marks_are_refused(field):
    assert "combining marks" in problems(**{field: "Judge" + "\u0336" * 5})[field]
    pointed = "Ada \u05e9\u05c1\u05b8\u05bc Vi\u1ec7t"  # in Hebrew and Vietnamese letters have several
    assert len(getattr(declare(**{**FORM, field: pointed}), field)) == len(pointed)


def test_names_that_differ_only_in_spaces_or_accent_spelling_are_one():
    # e with an acute accent, as one character and as two
    first = declare(**{**FORM, "judge": "  Ren\u00e9e   Judge "})
    assert first.judge == declare(**{**FORM, "judge": "Rene\u0301e Judge"}).judge == "Ren\u00e9e Judge"


def test_a_name_of_just_the_length_is_taken_and_spaces_around_do_not_count():
    assert declare(**{**FORM, "judge": " " + "x" * NAME_LENGTH + " "}).judge == "x" * NAME_LENGTH


NO_WEB_ADDRESSES = (
    "javascript:alert(1)", "JaVaScRiPt://https://x", "data:text/html,x", "//example.org",
    "ftp://example.org", "https://", "https:example.org", 'https://x" onmouseover="alert(1)',
    "https://x'y", "https://<b>", "https://a b", " javascript:alert(1)", "https:\\\\example.org",
    "vbscript:x", "https://x`y", "https://github.com@evil.example/judge",
    "https://ada:secret@example.org", "https:///evil.example",
)  # fmt: skip


@pytest.mark.parametrize("link", NO_WEB_ADDRESSES)
def test_only_web_addresses_are_links(link):
    assert set(problems(link=link)) == {"link"}


@pytest.mark.parametrize(
    "link",
    [
        "https://example.org",
        "http://example.org/a?b=c&d=e#f",
        "HTTPS://example.org",
        "https://例え.jp/パス",
        "https://example.org:8080/@ada",
        "https://example.org?at=@ada",
    ],
)
def test_web_addresses_are_kept_as_written(link):
    assert declare(**{**FORM, "link": link}).link == link


def test_a_field_that_nobody_asked_for_is_refused():
    assert set(problems(is_admin=True)) == {"is_admin"}


@pytest.mark.parametrize("value", [5, ["Ada"], {"a": 1}, True])
def test_a_value_of_another_type_is_a_problem_and_no_crash(value):
    assert set(problems(judge=value, kind=value, inputs=value)) == {"judge", "kind", "inputs"}


def test_no_problem_repeats_what_was_sent():
    found = problems(
        judge="Zebra\x1b" * 100, link="Zebra://x", kind="Zebra", inputs="Zebra", test_labels_used="Zebra"
    )
    assert len(found) == 5
    assert "Zebra" not in str(found)


@given(st.dictionaries(st.sampled_from(sorted(FORM)), st.none() | st.booleans() | st.text(max_size=400)))
def test_any_form_gives_a_declaration_that_is_safe_to_print_or_problems(form):
    try:
        found = declare(**form)
    except DeclarationError as error:
        assert error.problems
        assert all(message.isprintable() for _, message in error.problems)
        return
    assert found.kind in JUDGE_KINDS and found.inputs in JUDGE_INPUTS
    assert all(str(value).isprintable() for value in asdict(found).values())
    assert declare(**asdict(found)) == found
