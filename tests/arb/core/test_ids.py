import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.core.ids import TrajectoryId, reading_key, task_key

# What a part may hold: anything printable but the slash and outer blanks. The two words that spellings drop
# are put in by the tests that are about them.
parts = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="/\x7f"), min_size=1
).filter(lambda part: part == part.strip() and ".resized." not in part and ".improved." not in part)
names = st.from_regex(r"[a-z]{1,12}", fullmatch=True)
numbers = st.integers(0, 9999)


@given(parts, parts, parts)
def test_parsing_undoes_writing(folder, agent, task_id):
    written = f"{folder}/{agent}/{task_id}"
    assert TrajectoryId.parse(written) == TrajectoryId(folder, agent, task_id)
    assert str(TrajectoryId.parse(written)) == written


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused_with_a_value_error(text):
    try:
        parsed = TrajectoryId.parse(text)
    except ValueError:
        assert text.strip().count("/") != 2 or "" in text.strip().split("/")
    else:
        assert str(parsed) == text.strip()


@given(names, names, numbers, st.sampled_from(["resized", "improved"]))
def test_spellings_with_and_without_the_word_meet_in_one_key(benchmark, agent, number, word):
    short = f"{benchmark}/{agent}/{benchmark}.{number}"
    long = f"{benchmark}/{agent}/{benchmark}.{word}.{number}"
    assert reading_key(long) == reading_key(short) == reading_key(f"  {short}\n")
    assert TrajectoryId.parse(long).task == TrajectoryId.parse(short).task


@given(names, names, numbers, numbers)
def test_different_tasks_never_meet(benchmark, agent, one, other):
    keys = {reading_key(f"{benchmark}/{agent}/{benchmark}.resized.{number}") for number in (one, other)}
    assert len(keys) == len({one, other})


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("visualwebarena.resized.7", "visualwebarena.7"),
        ("assistantbench.improved.validation.3", "assistantbench.validation.3"),
        ("webarena.24", "webarena.24"),
        ("resized.7", "resized.7"),  # a word is dropped between two dots only
    ],
)
def test_task_key_drops_the_two_words(written, key):
    assert task_key(written) == key


@pytest.mark.parametrize("text", ["", "a", "a/b", "a/b/c/d", "/b/c", "a//c", "a/b/", "   "])
def test_ids_without_three_parts_are_refused(text):
    with pytest.raises(ValueError, match="expected <benchmark>/<agent>/<task_id>"):
        TrajectoryId.parse(text)


@pytest.mark.parametrize(
    ("written", "benchmark"),
    [
        ("workarena/agent/workarena.servicenow.sort-l2", "workarena++"),
        ("workarena/agent/workarena.servicenow.sort", "workarena"),
        ("workarena/agent/workarena.servicenow.l2-sort", "workarena"),
        ("webarena/agent/webarena.1-l2", "webarena"),
    ],
)
def test_only_second_level_workarena_tasks_are_workarena_plus_plus(written, benchmark):
    assert TrajectoryId.parse(written).benchmark == benchmark
