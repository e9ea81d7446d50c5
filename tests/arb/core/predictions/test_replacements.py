"""Tests of the one replacement that corrects wrong ids."""

import pytest

from arb.core.predictions.replacements import find_replacement

IDS = [
    f"{bench}/GenericAgent-{agent}/{bench}.{n}"
    for bench in ("web", "work")
    for agent in ("A-1", "B-2")
    for n in range(5)
]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda one: f"data/{one}", "20 ids have the prefix 'data/'; remove it."),
        (lambda one: f"{one}.json", "20 ids have the suffix '.json'; remove it."),
        (lambda one: one.replace("work/", "wa/"), "10 ids have the prefix 'wa'; replace it by 'work'."),
        (lambda one: one.replace("-B-2/", "-b2/") if "-B-2" in one else one,
         "10 ids have the agent 'GenericAgent-b2'; replace it by 'GenericAgent-B-2'."),
        (lambda one: one.replace("GenericAgent-B-2", "b-2"),
         "10 ids have the agent 'b-2'; replace it by 'GenericAgent-B-2'."),
        (lambda one: one.removeprefix("work/"), "10 ids lack the prefix 'work/'; add it."),
    ],
)  # fmt: skip
def test_one_replacement_that_corrects_all_wrong_ids_is_found(change, sentence):
    wrong = [changed for one in IDS if (changed := change(one)) not in IDS]
    found = find_replacement(wrong, IDS)
    assert found.sentence() == sentence
    assert [found.apply(text) for text in wrong] == [one for one in IDS if change(one) not in IDS]


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        ["data/" + IDS[0]],  # one id has its own suggestion
        [one[::-1] for one in IDS],
        ["work/nobody/work.1", "work/nobody/work.2"],  # any agent would give the id of a run
        ["/", "//", "", "x" * 10_000],
    ],
)
def test_ids_without_such_a_replacement_have_none(wrong):
    assert find_replacement(wrong, IDS) is None
