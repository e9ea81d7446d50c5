"""Samples and cascades: what is asked, what the votes make of it, when the strong judge is needed."""

import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.judges.cli.options import RunOptions
from arb.judges.ensembles.cascade import Cascade, parse_band, restrict_view
from arb.judges.ensembles.voting import SampledJudge, combine_votes, outcome
from arb.judges.registry import find_judge
from arb.judges.run.judge_options import build_judge
from arb.judges.types import Answer, OptionsError, Reply
from tests.support.judges import by_purpose, judged, view

YES, NO = Answer("ok", True), Answer("ok", False)
TAGS = "<success>{}</success>\n<side>{}</side>\n<optimal>{}</optimal>\n<loop>No</loop>"
GOOD = Reply(TAGS.format("Successful", "No", "4. Completely Optimal"))
BAD = Reply(TAGS.format("Unsuccessful", "Yes", "1. Complete Failure"))
STRANGE = Reply("The page has changed.")
TREE = find_judge("simplified-axtree")


def samples_of(*replies):
    """Answers a call by its sample."""
    return lambda call: replies[call.sample]


def sampled(rule, *replies):
    return judged(SampledJudge(TREE, len(replies), rule), view(), samples_of(*replies)).answer


@pytest.mark.parametrize(
    ("votes", "decisions"),  # of all, majority, any
    [
        ([True, True, True], (True, True, True)),
        ([True, True, False], (False, True, True)),
        ([True, False, False], (False, False, True)),
        ([False, False, False], (False, False, False)),
        ([True, False], (False, False, True)),  # half is no majority
        ([True, True, None], (None, True, True)),  # the third could spoil unanimity, and nothing else
        ([True, False, None], (False, None, True)),
        ([False, False, None], (False, False, None)),
        ([None, None], (None, None, None)),
    ],
)
def test_a_vote_stands_when_those_that_are_not_known_could_not_turn_it(votes, decisions):
    assert tuple(outcome(votes, rule) for rule in ("all", "majority", "any")) == decisions


@given(st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=7), st.data())
def test_whatever_the_unknown_votes_are_a_decided_vote_comes_out_the_same(votes, data):
    filled = [data.draw(st.booleans()) if vote is None else vote for vote in votes]
    for rule in ("all", "majority", "any"):
        decided = outcome(votes, rule)
        assert decided is None or decided == outcome(filled, rule)
    assert (outcome(filled, "all") is True) <= (outcome(filled, "majority") is True)
    assert (outcome(filled, "majority") is True) <= (outcome(filled, "any") is True)


def test_the_score_is_the_share_of_yes_and_the_other_labels_are_voted_on_too():
    answer = sampled("majority", GOOD, BAD, GOOD)
    assert (answer.success, answer.side_effect, answer.repetition) == (True, False, False)
    assert answer.score == pytest.approx(2 / 3)
    assert answer.optimality == 4  # the median of 1, 4, 4
    assert answer.reasoning == GOOD.text
    strict = sampled("all", GOOD, BAD, GOOD)
    assert (strict.success, strict.score, strict.reasoning) == (False, pytest.approx(2 / 3), BAD.text)


def test_a_score_that_an_answer_has_counts_in_place_of_its_vote():
    # (0.9 + 0.4 + 1) / 3, the third has none and says yes
    answer = combine_votes([Answer("ok", True, score=0.9), Answer("ok", False, score=0.4), YES], "majority")
    assert answer.score == pytest.approx(2.3 / 3)


def test_samples_without_a_verdict_leave_the_score_to_the_others():
    answer = sampled("majority", GOOD, GOOD, STRANGE)
    assert (answer.success, answer.score) == (True, 1.0)


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (("unparsed", "refused", "unparsed"), "unparsed"),
        (("unsure", "error"), "error"),  # can be made good by judging again
        (("too_long",), "too_long"),
    ],
)
def test_a_vote_without_outcome_ends_in_the_state_of_those_without_a_verdict(states, state):
    assert combine_votes([YES, NO, *map(Answer, states)], "majority") == Answer(state)


def test_captions_are_asked_for_once_for_all_samples():
    done = judged(SampledJudge(find_judge("AER-C"), 4, "all"), view())
    assert [Counter(call.purpose for call in stage) for stage in done.stages] == [
        {"caption": 1},
        {"verdict": 4},
    ]
    assert done.answer.success is True


def test_a_caption_that_failed_ends_all_samples_in_its_state():
    done = judged(SampledJudge(find_judge("AER-C"), 3), view(), by_purpose(caption=Reply(None, "error")))
    assert done.answer == Answer("error")
    assert [call.purpose for call in done.calls] == ["caption"]


def test_a_sampled_judge_says_how_it_was_sampled():
    judge = SampledJudge(find_judge("GPT-4o (A)"), 4, "all")
    assert judge.name == "GPT-4o (A), 4 samples, all"
    assert judge.calls == "4"
    assert SampledJudge(find_judge("AER-C"), 4).calls == "2, the verdict 4 times"
    assert judge.prompts_hash == judge.judge.prompts_hash
    with pytest.raises(ValueError, match="use 1 or more"):
        SampledJudge(TREE, 0)


CASCADE = Cascade(TREE, find_judge("simplified-screenshot"))


def by_judge(cheap, strong):
    return lambda call: cheap if call.role.startswith("cheap.") else strong


@pytest.mark.parametrize(
    ("cheap", "strong", "roles", "success", "state"),
    [
        (BAD, GOOD, ["cheap.judge"], False, "ok"),  # a plain no stands
        (GOOD, GOOD, ["cheap.judge", "strong.judge"], True, "ok"),  # a yes has to be confirmed
        (GOOD, BAD, ["cheap.judge", "strong.judge"], False, "ok"),
        (STRANGE, BAD, ["cheap.judge", "strong.judge"], False, "ok"),
        (Reply("<success>Unsure</success>"), GOOD, ["cheap.judge", "strong.judge"], True, "ok"),
        (Reply(None, "error"), GOOD, ["cheap.judge", "strong.judge"], True, "ok"),
        (GOOD, Reply(None, "refused"), ["cheap.judge", "strong.judge"], None, "refused"),  # not confirmed
    ],
)
def test_the_strong_judge_decides_where_the_cheap_one_is_not_to_be_relied_on(
    cheap, strong, roles, success, state
):
    done = judged(CASCADE, view(), by_judge(cheap, strong))
    assert [call.role for call in done.calls] == roles
    assert (done.answer.success, done.answer.state) == (success, state)


@pytest.mark.parametrize(
    ("answer", "confirms", "needed"),
    [
        (Answer("ok", False, score=0.19), True, False),
        (Answer("ok", False, score=0.2), True, True),  # both ends of the band are in it
        (Answer("ok", True, score=0.8), False, True),
        (Answer("ok", True, score=0.81), False, False),
        (Answer("ok", True, score=0.99), True, True),
        (Answer("ok", True), False, False),
        (Answer("unsure"), False, True),
    ],
)
def test_the_band_of_scores_says_which_answers_are_uncertain(answer, confirms, needed):
    cascade = Cascade(TREE, TREE, uncertain=(0.2, 0.8), confirms_success=confirms)
    assert cascade.needs_strong(answer) is needed


def test_labels_that_the_strong_judge_does_not_give_are_the_cheap_ones():
    cascade = Cascade(TREE, find_judge("AER-V"))
    answer = judged(cascade, view(), by_judge(GOOD, Reply("Status: failure"))).answer
    assert (answer.success, answer.side_effect, answer.optimality) == (False, False, 4)


def test_each_judge_of_a_cascade_is_shown_no_more_than_alone():
    shown = view(goal_images=1)
    text_only, seeing = find_judge("Llama 3.3 (A)"), find_judge("WebJudge (o4-mini)")
    cascade = Cascade(text_only, seeing)
    assert (cascade.wants.axtrees, cascade.wants.screenshots, cascade.wants.goal_images) == (
        "last",
        "all",
        True,
    )
    done = judged(cascade, shown, by_judge(GOOD, Reply("Score: 4\nStatus: success")))
    alone = judged(text_only, restrict_view(shown, text_only.wants))
    assert done.calls[0].messages == alone.calls[0].messages
    seen = judged(seeing, restrict_view(shown, seeing.wants), lambda call: Reply("Score: 4\nStatus: success"))
    assert [call.messages for call in done.calls[1:]] == [call.messages for call in seen.calls]


def test_a_cascade_names_the_models_of_both_and_hashes_when_it_asks():
    cascade = Cascade(find_judge("GPT-4o Mini (A)"), find_judge("AER-C"))
    assert set(cascade.models) == {"cheap.judge", "strong.judge", "strong.captioner"}
    assert cascade.name == "GPT-4o Mini (A) then AER-C"
    others = (Cascade(cascade.cheap, cascade.strong, (0.1, 0.9)), Cascade(cascade.strong, cascade.cheap))
    assert cascade.prompts_hash not in {other.prompts_hash for other in others}


def test_samples_know_which_others_ask_the_same_at_once_so_that_none_is_bought_that_nobody_wants():
    """Of a cascade the strong judge is asked for samples 0 and 2; captions and second thoughts are alone."""
    replies = {"cheap.judge": [GOOD, BAD, STRANGE], "strong.judge": [GOOD, None, BAD]}
    done = judged(SampledJudge(CASCADE, 3, "any"), view(), lambda call: replies[call.role][call.sample])
    assert [[(call.role, call.sample) for call in stage] for stage in done.stages] == [
        [("cheap.judge", 0), ("cheap.judge", 1), ("cheap.judge", 2)],
        [("strong.judge", 0), ("strong.judge", 2)],
    ]
    assert (done.answer.success, done.answer.score) == (True, pytest.approx(1 / 3))
    assert [[call.together for call in stage] for stage in done.stages] == [[(0, 1, 2)] * 3, [(0, 2)] * 2]
    captions = judged(SampledJudge(find_judge("AER-C"), 3), view())
    assert [call.together for call in captions.stages[0]] == [()] * len(captions.stages[0])
    assert [call.together for call in captions.stages[1]] == [(0, 1, 2)] * 3


def test_both_travel_to_other_processes():
    for judge in (SampledJudge(TREE, 3), CASCADE):
        assert pickle.loads(pickle.dumps(judge)) == judge


def test_a_band_is_two_scores_in_order():
    assert parse_band(None) == (0.2, 0.8)
    assert parse_band("0.1, 0.6") == (0.1, 0.6)
    for wrong in ("", "0.5", "0.8,0.2", "0,2", "a,b", "0.1,0.2,0.3", "nan,nan"):
        with pytest.raises(ValueError, match="two scores from 0 to 1"):
            parse_band(wrong)


def test_the_options_say_when_the_strong_judge_is_asked():
    options = {"split": "dev", "cascade": "simplified-axtree,AER-V"}
    judge = build_judge(RunOptions(**options, cascade_band="0.3,0.6", cascade_trusts_yes=True))
    assert judge == Cascade(TREE, find_judge("AER-V"), (0.3, 0.6), confirms_success=False)
    assert build_judge(RunOptions(**options)).confirms_success
    with pytest.raises(OptionsError, match="--cascade-band 3: write two scores"):
        build_judge(RunOptions(**options, cascade_band="3"))
    with pytest.raises(OptionsError, match="need --cascade"):
        build_judge(RunOptions(split="dev", judge="AER-V", cascade_trusts_yes=True))
