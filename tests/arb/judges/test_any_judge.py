"""What holds of every judge: it judges every recorded run, and whatever is missing or is said, it answers."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.vocabulary import STATES
from arb.judges.registry import find_judge
from arb.judges.types import Image, Message, Reply, View, ViewStep
from arb.judges.views import Views
from dataset_script import sample
from tests.support.judges import READABLE_BY_EVERY_JUDGE, image, judged, judges, view

ASKING = [name for name, judge in judges().items() if hasattr(judge, "ask")]
ONE_OF_EACH_WANTS = list({find_judge(name).wants: name for name in ASKING}.values())

TEXTS = st.none() | st.text(max_size=20) | st.just("{goal} {0} {{")
STEPS = st.lists(
    st.builds(
        ViewStep,
        number=st.integers(1, 99),
        url=TEXTS,
        action=TEXTS,
        reasoning=TEXTS,
        error=TEXTS,
        axtree=TEXTS,
        axtree_pruned=TEXTS,
        screenshot=st.sampled_from([None, image(1)]),
    ),
    max_size=4,
)
VIEWS = st.builds(View, st.text(max_size=20), st.sampled_from([(), (image(2),)]), STEPS.map(tuple))
REPLIES = st.builds(
    Reply,
    text=TEXTS | st.just(READABLE_BY_EVERY_JUDGE),
    state=st.sampled_from(["ok", "ok", "ok", "refused", "too_long", "error"]),
    finish_reason=st.sampled_from([None, "stop", "length", "content_filter"]),
    refusal=st.none() | st.just("no"),
)


@pytest.fixture(scope="module")
def shown():
    """The views of the sample, each made once for the same wants."""
    views = Views(Path(sample.__file__).parent / "data")
    made = {}
    return lambda wants: made.setdefault(wants, [views.view(each, wants) for each in views.ids()])


@pytest.mark.parametrize("name", ASKING)
def test_every_judge_judges_every_run_of_the_sample(name, shown):
    judge = find_judge(name)
    answers = [judged(judge, each).answer for each in shown(judge.wants)]
    assert len(answers) == 72
    assert {(answer.state, answer.success) for answer in answers} == {("ok", name != "never-successful")}


@pytest.mark.parametrize("name", ONE_OF_EACH_WANTS)
@given(seen=VIEWS, data=st.data())
def test_whatever_is_missing_and_whatever_models_say_there_is_an_answer_in_one_state(name, seen, data):
    done = judged(find_judge(name), seen, lambda call: data.draw(REPLIES))
    assert done.answer.state in STATES
    for call in done.calls:
        for messages in (call.messages, call.shorter or call.messages):
            assert all(_can_be_sent(message) for message in messages)


def _can_be_sent(message: Message) -> bool:
    """Whether there is content, each part a text or a picture, and no text is empty."""
    content = (message.content,) if isinstance(message.content, str) else message.content
    return bool(content) and all(isinstance(part, Image) or part.strip() for part in content)


def test_the_same_run_gives_the_same_calls_so_that_the_cache_finds_them_again():
    for name in ASKING:
        judge = find_judge(name)
        assert judged(judge, view()).calls == judged(judge, view()).calls
