"""Prompts on disk: each text once, without the bytes of pictures, whole after any death."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arb.judges.engine.prompt_store import PromptReader, PromptStoreError, PromptWriter, prompt_of
from arb.judges.types import Message
from tests.support.judges import image

PICTURE = image(7)
TEXTS = st.text() | st.just("half a pair \ud83d and a line\n end")
CONTENTS = TEXTS | st.lists(TEXTS | st.just(PICTURE), max_size=3).map(tuple)
PROMPTS = st.lists(st.builds(Message, st.sampled_from(["system", "user"]), CONTENTS), max_size=3).map(
    prompt_of
)
LONG = prompt_of((Message("system", "Judge."), Message("user", ("a tree " * 2_000, PICTURE, "Now."))))
OTHER = prompt_of((Message("system", "Judge."), Message("user", "another")))


def added(path, *prompts) -> list[str]:
    writer = PromptWriter(path)
    try:
        return writer.add(prompts)
    finally:
        writer.close()


def read(path, names) -> list:
    reader = PromptReader(path)
    try:
        return [reader.get(name) for name in names]
    finally:
        reader.close()


@given(st.lists(PROMPTS, max_size=4))
def test_a_prompt_comes_back_as_it_was_added(tmp_path_factory, prompts):
    path = tmp_path_factory.mktemp("prompts") / "prompts.jsonl"
    names = added(path, *prompts)
    if prompts:
        assert read(path, names) == prompts
        assert [a == b for a in names for b in names] == [a == b for a in prompts for b in prompts]


def test_a_text_and_a_list_of_one_text_are_two_prompts(tmp_path):
    one, other = prompt_of((Message("user", "a"),)), prompt_of((Message("user", ("a",)),))
    names = added(tmp_path / "p", one, other)
    assert names[0] != names[1] and read(tmp_path / "p", names) == [one, other]


def test_what_is_there_is_not_written_again_by_this_process_or_the_next(tmp_path):
    path = tmp_path / "p"
    first = added(path, LONG, OTHER, LONG)
    size = path.stat().st_size
    assert first[0] == first[2]
    assert added(path, OTHER, LONG) == [first[1], first[0]] and path.stat().st_size == size
    names = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(names) == 4 + 2  # "Judge.", the tree, "Now.", "another", and two prompts


def test_texts_are_small_and_pictures_are_named_not_stored(tmp_path):
    path = tmp_path / "p"
    (name,) = added(path, LONG)
    assert path.stat().st_size < 2_000 < len(LONG[1][1][0])
    stored = read(path, [name])[0][1][1][1]
    expected = {
        "sha256": PICTURE.sha256,
        "media_type": "image/png",
        "width": 8,
        "height": 6,
        "detail": "auto",
    }
    assert stored == expected


def test_nothing_is_made_for_a_run_that_sends_nothing(tmp_path):
    assert added(tmp_path / "p") == []
    assert not (tmp_path / "p").exists()


def test_cut_at_any_byte_the_file_is_whole_and_takes_the_rest_again(tmp_path):
    path = tmp_path / "p"
    names = added(path, OTHER, LONG)
    content = path.read_bytes()
    for cut in range(0, len(content), 13):
        path.write_bytes(content[:cut])
        assert added(path, OTHER, LONG) == names
        assert read(path, names) == [OTHER, LONG]
        assert sorted(path.read_bytes().splitlines()) == sorted(content.splitlines())


@pytest.mark.parametrize(
    ("old", "new"), [('"zlib":"eAH', '"zlib":"eAF'), ('"user"', '"tool"'), ('{"text":"', "{'text':'")]
)
def test_a_damaged_line_is_an_error_that_names_it_never_another_prompt(tmp_path, old, new):
    path = tmp_path / "p"
    names = added(path, OTHER)
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))
    with pytest.raises(PromptStoreError, match=r"[0-9a-f]{64} (is damaged|is not in)"):
        read(path, names)
