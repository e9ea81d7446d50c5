"""The questions of a suite: read from suite.toml, refused with every problem at once, named by a hash."""

import copy
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.suite import OFFICIAL, SuiteError, load_suite
from arb.core.suites.targets import (
    PAGE_KEYS,
    RELEASED_ANSWERS,
    RESERVED_NAMES,
    UNSURE,
    AnswerChoice,
    Target,
    TargetsInvalid,
    default_guidelines,
    default_targets,
    main_target,
    parse_targets,
    questions_sha256,
)
from tests.support.small_suite import suite_with

YES_NO = [{"value": "yes", "title": "Yes"}, {"value": "no", "title": "No"}]
SUCCESS = {"name": "success", "title": "Success", "text": "Did it?", "answers": YES_NO}
ANSWERS = [{"value": "polite"}, {"value": "rude"}]
TONE = {"name": "tone", "text": "Was it polite?", "answers": ANSWERS, "metrics": []}


def problems_of(*tables) -> list[str]:
    with pytest.raises(TargetsInvalid) as refused:
        parse_targets(list(tables))
    return list(refused.value.problems)


def changed(table: dict, **fields) -> dict:
    return {**copy.deepcopy(table), **fields}


def test_a_suite_that_writes_none_has_the_four_questions_of_the_paper():
    suite = load_suite(OFFICIAL)
    assert suite.targets == default_targets()
    assert {q.name: {a.value for a in q.answers} for q in suite.targets} == {
        name: set(values) for name, values in RELEASED_ANSWERS.items()
    }
    assert suite.own_targets == ()
    assert suite.guidelines == default_guidelines() and all(q.guide and q.text for q in suite.targets)
    # the keys of the page before questions could be configured: by position, Unsure behind the last answer
    assert [[(c.key, c.value) for c in q.choices] for q in suite.targets][::3] == [
        [("1", "yes"), ("2", "no"), ("3", UNSURE)],
        [("1", "1"), ("2", "2"), ("3", "3"), ("4", "4"), ("5", UNSURE)],
    ]
    assert [q.name for q in suite.targets if q.ordered] == ["optimality"]


def test_titles_and_keys_have_defaults_and_unsure_is_always_offered():
    success, tone = parse_targets([SUCCESS, TONE])
    assert tone == Target(
        "tone",
        "Tone",
        "Was it polite?",
        (AnswerChoice("polite", "Polite", "1"), AnswerChoice("rude", "Rude", "2")),
        type="classes",
        positive=(),
        missing="wrong",
    )
    assert tone.choices[-1] == AnswerChoice(UNSURE, "Unsure", "3")
    assert (tone.is_own, success.is_own) == (True, False)
    # yes is code 1, whatever the page shows first; other answers keep their order
    assert success.values == ("no", "yes") and tone.values == ("polite", "rude")
    values = ("rude", UNSURE, None, "gone")
    assert list(map(tone.answer_title, values)) == ["Rude", "Unsure", "–", "gone"]
    assert list(map(tone.accepts, values)) == [True, True, True, False]


def test_if_judges_are_scored_on_no_question_the_error_says_what_to_add():
    (problem,) = problems_of(TONE)
    assert "judges are scored on none of them; leave out metrics = []" in problem
    (problem,) = problems_of(changed(SUCCESS, answers=ANSWERS))
    assert problem.startswith("target 1 (success), answers: write the values of the released format: yes, no")


def test_a_target_has_a_type_a_level_and_metrics_with_the_main_one_first():
    final = {"name": "final", "values": ["1", "0", "-1"], "positive": ["1"], "main": "balanced_accuracy"}
    step = {
        "name": "verdict", "level": "step", "values": ["1", "0", "-1"], "errors": ["-1"],
        "metrics": ["accuracy", "first_error_accuracy"],
    }  # fmt: skip
    grade = {"name": "grade", "type": "ordinal", "values": ["low", "high"], "aggregate": "median"}
    one, two, three, four = parse_targets([final, step, grade, {"name": "points", "type": "score"}])
    assert (one.type, one.level, one.missing, one.main_metric) == (
        "binary",
        "run",
        "negative",
        "balanced_accuracy",
    )
    # The codes of a binary target are 1 for its positive values; of classes and grades, they are indexes.
    assert [one.code(value) for value in ("1", "0", "-1", UNSURE, None)] == [1, 0, 0, -1, -1]
    assert [two.code(value) for value in ("1", "0", "-1", UNSURE)] == [0, 1, 2, -1]
    assert (two.type, two.level, two.missing) == ("classes", "step", "wrong")
    assert two.metrics == ("accuracy", "first_error_accuracy")
    assert (three.words["1. low"], three.words["high"]) == (0, 1)
    assert (three.metrics[0], three.aggregate, four.metrics) == (
        "weighted_kappa",
        "median",
        ("mae", "spearman"),
    )
    assert main_target((four, one)) is four


def test_every_wrong_field_of_a_target_is_named():
    bad = {
        "name": "final", "values": ["1", "0"], "type": "binary", "level": "page", "missing": "yes",
        "aggregate": "mean", "metrics": ["mae"], "main": "best", "aliases": [3], "errors": ["2"],
    }  # fmt: skip
    with pytest.raises(TargetsInvalid) as refused:
        parse_targets([bad])
    fields = {problem.split(":")[0].partition(", ")[2] for problem in refused.value.problems} - {""}
    assert fields == {
        "level", "missing", "aggregate", "metrics", "main", "aliases", "errors", "positive",
    }  # fmt: skip


def test_every_problem_is_reported_at_once_with_question_and_field():
    bad = {
        "name": "Tone!",
        "text": 3,
        "ordered": "yes",
        "colour": "red",
        "answers": [
            {"value": "polite", "key": "j"},
            {"value": "Rude", "key": "RR"},
            {"value": "cold", "title": "Polite", "key": "4"},
        ],
    }
    problems = problems_of(SUCCESS, bad, changed(TONE, name="comment"), changed(TONE, answers=YES_NO[:1]))
    assert [problem.split(":")[0] for problem in problems] == [
        "target 2 (Tone!), ordered",
        "target 2 (Tone!), colour",
        "target 2 (Tone!), name",
        "target 2 (Tone!), text",
        "target 2 (Tone!), answer 1, key",
        "target 2 (Tone!), answer 2, value",
        "target 2 (Tone!), answer 2, key",
        "target 2 (Tone!), answer 3",
        "target 2 (Tone!), answer 3, key",  # 4 is the key of Unsure behind three answers
        "target 3 (comment), name",
        "target 4 (tone), answers",
    ]


@pytest.mark.parametrize("name", [*sorted(RESERVED_NAMES), "trajectory_tone"])
def test_a_name_of_another_column_is_refused(name):
    (problem,) = problems_of(SUCCESS, changed(TONE, name=name))
    assert problem.startswith(f"target 2 ({name}), name: this name is reserved for another column")


def test_two_questions_of_one_name_and_two_answers_of_one_key_are_refused():
    answers = [{"value": "polite", "key": "2"}, {"value": "rude"}]
    assert problems_of(SUCCESS, TONE, TONE) == [
        "target 3 (tone), name: an earlier target has this name; choose another name"
    ]
    assert problems_of(SUCCESS, changed(TONE, answers=answers)) == [
        "target 2 (tone), answer 2, key: 2 is already the key for answer 1; choose another key"
    ]


def test_the_released_questions_keep_their_answers():
    grades = {"name": "optimality", "text": "How direct?", "answers": YES_NO, "type": "classes"}
    assert problems_of(SUCCESS, grades) == [
        "target 2 (optimality), answers: write the values of the released format: 1, 2, 3, 4"
    ]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
FIELDS = st.sampled_from(["name", "title", "text", "answers", "guide", "type", "value", "key", "x"])


@given(st.lists(st.dictionaries(FIELDS, ANYTHING, max_size=7), max_size=3) | ANYTHING, st.booleans())
def test_whatever_a_file_holds_is_read_or_refused_by_name(tables, has_success):
    if has_success and isinstance(tables, list):
        tables = [SUCCESS, *tables]
    try:
        found = parse_targets(tables)
    except TargetsInvalid as refused:
        assert refused.problems and all(problem.startswith("target") for problem in refused.problems)
    else:
        assert len(found) == len(tables)


LINES = st.text("abc <>&*`|\"'ü", min_size=1, max_size=9).filter(str.strip)
KEYS = st.sampled_from(sorted(set("abehilmnopqrvwxyz") - set(PAGE_KEYS)))


@st.composite
def own_targets(draw) -> dict:
    values = draw(
        st.lists(st.from_regex(r"[a-m][a-z0-9_-]{0,5}", fullmatch=True), min_size=2, max_size=8, unique=True)
    )
    keys = draw(st.lists(KEYS, min_size=len(values), max_size=len(values), unique=True))
    answers = [
        {"value": value, "title": f"{number}. {draw(LINES)}", **({"key": key} if draw(st.booleans()) else {})}
        for number, (value, key) in enumerate(zip(values, keys, strict=True))
    ]
    name = draw(st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True))
    return {"name": f"own_{name}", "text": draw(LINES), "answers": answers, "guide": draw(LINES)}


@given(st.lists(own_targets(), max_size=3, unique_by=lambda table: table["name"]))
def test_questions_that_follow_the_rules_are_read_as_written(tables):
    found = parse_targets([*tables, SUCCESS])[:-1]
    assert [(q.name, q.text, q.is_own) for q in found] == [(t["name"], t["text"], True) for t in tables]
    for question, table in zip(found, tables, strict=True):
        assert [a.value for a in question.answers] == [a["value"] for a in table["answers"]]
        keys = [choice.key for choice in question.choices]
        assert len(set(keys)) == len(keys) == len(table["answers"]) + 1
        assert not set(keys) & set(PAGE_KEYS)
        assert all(
            a.key == t.get("key", a.key) for a, t in zip(question.answers, table["answers"], strict=True)
        )


def test_the_hash_names_what_is_asked_and_how_to_decide_but_not_the_keys():
    def named(*tables, guidelines="g") -> str:
        return questions_sha256(parse_targets(list(tables)), guidelines)

    base = named(SUCCESS, TONE)
    keyed = changed(TONE, answers=[{"value": "polite", "key": "p"}, {"value": "rude"}])
    assert named(SUCCESS, keyed) == base
    others = [
        named(SUCCESS),
        named(TONE, SUCCESS),
        named(SUCCESS, TONE, guidelines="h"),
        named(SUCCESS, changed(TONE, text="Was it kind?")),
        named(SUCCESS, changed(TONE, guide="- Rude: …")),
        named(SUCCESS, changed(TONE, answers=[*ANSWERS, {"value": "cold"}])),
    ]
    assert len({base, *others}) == 7


SUITE_TOML = """
labels = "public"
guidelines = "Read *everything*."

[[targets]]
name = "success"
text = "Did it work?"
answers = [{ value = "yes" }, { value = "no" }]

[[targets]]
name = "tone"
text = "Was it polite?"
answers = [{ value = "polite", key = "p" }, { value = "rude" }]
metrics = []

[rules]
files_a_day = 3
"""


def test_a_suite_has_the_questions_and_the_guidelines_of_its_file(tmp_path):
    suite = suite_with(tmp_path, SUITE_TOML)
    assert suite.targets == parse_targets(tomllib.loads(SUITE_TOML)["targets"])
    assert [q.name for q in suite.own_targets] == ["tone"]
    assert suite.guidelines == "Read *everything*." and suite.rules.files_a_day == 3
    assert suite.guidelines_sha256 == questions_sha256(suite.targets, suite.guidelines)


def test_guidelines_are_a_file_or_a_text_and_not_both(tmp_path):
    (tmp_path / "guidelines.md").write_text("# Ours\n", encoding="utf-8")
    assert suite_with(tmp_path, 'labels = "public"').guidelines == "# Ours"
    with pytest.raises(SuiteError, match=r"suite\.toml, guidelines: the file guidelines\.md exists too"):
        suite_with(tmp_path, SUITE_TOML)
    (tmp_path / "guidelines.md").write_bytes(b"\xff")
    with pytest.raises(SuiteError, match=r"guidelines\.md: is not UTF-8"):
        suite_with(tmp_path, 'labels = "public"')


def test_problems_of_questions_labels_and_rules_are_in_one_error_that_names_the_file(tmp_path):
    text = SUITE_TOML.replace('"public"', '"pubic"').replace('key = "p"', 'key = "pp"').replace("= 3", "= -3")
    with pytest.raises(SuiteError) as refused:
        suite_with(tmp_path, text)
    message = str(refused.value)
    assert message.startswith("suite.toml, labels 'pubic'")
    assert "target 2 (tone), answer 1, key" in message and "rules.files_a_day" in message
