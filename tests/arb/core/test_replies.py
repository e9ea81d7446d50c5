import random
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arb.core.replies import Verdict, read_rating, read_reply, read_verdict
from arb.core.vocabulary import STATES
from tests.conftest import examples

CORPUS = tomllib.loads(Path(__file__).with_name("reply_corpus.toml").read_text(encoding="utf-8"))["reply"]
FORMS = ("tags", "status", "rating")
LINES = {"tags": "<success>Unsuccessful</success>", "status": "Status: failure", "rating": "Reward: 2"}


@pytest.mark.parametrize("case", CORPUS, ids=lambda case: f"{case['form']}: {case['name']}")
def test_a_reply_reads_as_a_person_would_read_it(case):
    verdict = read_verdict(case["form"], case["text"], case.get("finish"))
    assert {True: "yes", False: "no", None: verdict.state}[verdict.success] == case["says"]
    fields = {"side": "side_effect", "loop": "repetition", "optimal": "optimality", "rating": "rating"}
    for name in fields.keys() & case.keys():
        assert getattr(verdict, fields[name]) == case[name], name


def test_the_corpus_has_every_form_and_every_state_that_a_text_can_end_in():
    assert len(CORPUS) >= 100
    for form in FORMS:
        assert {"yes", "no", "unparsed"} <= {case["says"] for case in CORPUS if case["form"] == form}
    assert {case["says"] for case in CORPUS} == {"yes", "no", *STATES} - {"ok", "too_long", "error"}


@pytest.mark.parametrize(
    "case", [case for case in CORPUS if case["says"] in ("yes", "no")], ids=lambda case: case["name"]
)
def test_the_place_of_a_verdict_is_where_its_word_begins(case):
    verdict = read_verdict(case["form"], case["text"], case.get("finish"))
    first = case["text"][verdict.place :].casefold()
    words = ("success", "unsuccess", "fail", "not ", "yes", "no", "true", "false", *"12345", "five")
    assert first.startswith(words), first[:20]


BITS = (
    "<", ">", "</", "**", ":", "\n", '"', "{", "\\", "\x00", "\ud83d", "&lt;", "think>", "0", " not ",
)  # fmt: skip
UNITS = (
    "<success>", "<think>", "</think>", "[", "\n", "-", "1.", '"status": "', "Status:\n", "no ",
    "the rating ",
)  # fmt: skip


def _mutated(seed: int) -> tuple[str, str, str | None]:
    """A reply of the corpus after one to six accidents: cut, doubled, shuffled, sprinkled, other case."""
    draw = random.Random(seed)
    text = draw.choice(CORPUS)["text"]
    for _ in range(draw.randint(1, 6)):
        begin, end = sorted(draw.randint(0, len(text)) for _ in range(2))
        end = min(end, begin + draw.choice((1, 3, 20, 200)))
        piece = text[begin:end]
        other = draw.choice(CORPUS)["text"]
        text = draw.choice(
            (
                text[:begin] + text[end:],
                text[:end] + piece + text[end:],
                text[:begin] + piece.swapcase() + text[end:],
                text[:begin] + piece[::-1] + text[end:],
                text[:begin] + draw.choice(BITS) + text[begin:],
                text[:begin] + other[: draw.randint(0, len(other))] + text[end:],
            )
        )
    return draw.choice(FORMS), text, draw.choice((None, "stop", "length"))


@settings(max_examples=examples(500), suppress_health_check=list(HealthCheck), database=None)
@given(st.integers(0, 2**32))
def test_ten_thousand_mutated_replies_each_end_in_a_state(seed):
    for number in range(20):  # 500 times 20
        form, text, finish = _mutated(20 * seed + number)
        verdict = read_verdict(form, text, finish)
        assert verdict.state in STATES
        assert (verdict.success is not None) == (verdict.state == "ok")
        assert verdict.place is None or 0 <= verdict.place < len(text)
        assert (verdict.state == "truncated") <= (finish == "length")


@given(st.sampled_from(FORMS), st.text())
def test_any_text_gives_a_state_and_a_verdict_only_when_it_is_ok(form, reply):
    verdict = read_verdict(form, reply)
    assert verdict.state in STATES
    assert (verdict.success is not None) == (verdict.state == "ok")


@given(st.sampled_from(FORMS), st.sampled_from(CORPUS), st.text("abcde .,\n*:-", max_size=80))
def test_the_last_answer_wins_whatever_stands_before_it(form, case, more):
    before = case["text"] if "eason" not in case["text"] and "think" not in case["text"] else ""
    verdict = read_verdict(form, f"{before}\n{more}\n{LINES[form]}")
    assert verdict.success is False
    assert verdict.state == "ok"


@given(st.sampled_from(("success", "yes", "true")), st.text("abdhkmnqz", min_size=1, max_size=5))
def test_a_longer_word_that_ends_or_begins_with_one_of_ours_is_another_word(word, more):
    for other in (word + more, more + word):
        for reply in (f"<success>{other}</success>", f"Status: {other}", f'{{"success": "{other}"}}'):
            assert read_verdict("tags", reply).success is not True
            assert read_verdict("status", reply).success is not True


@given(st.text("abcdefgh <>/:\n", max_size=60))
def test_what_a_model_says_to_itself_does_not_decide(thoughts):
    reply = f"<think>{thoughts}<success>Successful</success></think><success>Unsuccessful</success>"
    assert read_verdict("tags", reply).success is False


@pytest.mark.parametrize("unit", UNITS)
def test_a_reply_of_fifty_thousand_characters_of_one_kind_is_read_too(unit):
    # With a search that takes the square of the length, this would take minutes.
    reply = unit * (50_000 // len(unit))
    for form in FORMS:
        for begun in ("", "Status: ", "Reward: ", "<success>"):
            assert read_verdict(form, begun + reply).state in STATES


@pytest.mark.parametrize(
    ("said", "optimality"),
    [
        ("4. Completely Optimal", 4),
        ("3", 3),
        ("suboptimal", 2),
        ("Option 1", 1),
        ("1. Completely Optimal", None),  # the number and the words say different things
        ("14", None),
        ("5", None),
        ("rather good", None),
    ],
)
def test_optimality_is_read_by_its_number_and_its_words(said, optimality):
    reply = f"<success>Successful</success><optimal>{said}</optimal>"
    assert read_verdict("tags", reply).optimality == optimality


def test_the_folder_of_a_released_judge_says_how_it_answers():
    assert read_reply("aer", LINES["status"]) == read_reply("aerv", LINES["status"]) == Verdict("ok", False)
    assert read_reply("nnetnav", LINES["rating"]) == Verdict("ok", False)
    assert read_reply("gpt-4o-mini", LINES["tags"]) == Verdict("ok", False)


def test_what_ended_a_reply_early_is_its_state():
    assert read_reply("aer", None).state == "error"
    assert read_reply("aer", "", "length").state == "truncated"
    assert read_reply("aer", "Thoughts: and so on", "length").state == "truncated"
    assert read_reply("aer", "Status: success", "length") == Verdict("ok", True)
    assert read_reply("aer", None, "content_filter").state == "refused"
    assert read_reply("aer", None, "stop", "I cannot help with that.").state == "refused"


def test_a_verdict_in_the_finished_thoughts_of_a_reply_that_was_cut_off_does_not_count():
    thoughts = "<think>It ended well.\n<success>Successful</success></think>"
    assert read_verdict("tags", thoughts).success is True  # the last that the model said
    assert read_verdict("tags", f"{thoughts}\nThe agent", "length") == Verdict("truncated")
    assert read_verdict("tags", thoughts, "length") == Verdict("truncated")


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        ("Reasoning: a basket\nScore: 4", 4),
        ("### Reasoning\nA list of 3 filters\n### Score\n**5**", 5),
        ("**Score**: 3/5", 3),
        ("Score: 2. Later: Score: 1", 2),  # the line begins with it; what stands within comes second
        ("Rating - 4", 4),
        ("the score is 7", None),
        ("Score: 6/10", None),
        ("it shows 4 things", None),
        ("", None),
    ],
)
def test_a_rating_of_a_screenshot_is_read_after_its_name(text, rating):
    assert read_rating(text) == rating


@pytest.mark.parametrize("judge", ["aer-c-my-model-own-wording", "webjudge-style-m-own-wording", "aerv"])
def test_another_model_or_wording_of_a_method_is_read_in_the_form_of_the_method(judge):
    assert read_reply(judge, "Thoughts: fine\nStatus: success").success is True
    assert read_reply("nnetnav-m-own-wording", "Reasoning: fine\nReward: 4").success is True
    assert read_reply("nnetnav-m-own-wording", "Reasoning: poor\nReward: 3").success is False
