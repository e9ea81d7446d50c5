"""Counting tokens: with a tokenizer where there is one, by a stated rule where not, and never too few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.base import Image, Message, ModelSettings, OptionsError
from judges.engine.tokens import PER_CALL, PER_MESSAGE, TokenCounters, estimate, token_ceiling
from tests.judges.shown import image
from tests.judges.tiny_tokenizer import train_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(["the agent clicked the button", "a tree of a page with a button"], 300)


def test_the_estimate_counts_words_digits_marks_and_lines():
    assert estimate("") == 0
    assert estimate("the page") == 2
    assert estimate("international") == 2  # eight letters and five
    assert estimate("12345") == 2
    assert estimate("[a1]\n") == 5  # [ a 1 ] and the line
    assert estimate("häuser") == 3  # h, ä, user


def test_a_call_is_its_texts_its_pictures_and_what_stands_around_them(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    messages = (Message("system", "the button"), Message("user", ("a page", image(), "a tree")))
    model = ModelSettings("gpt-4o")
    texts = sum(len(tokenizer.encode(text).ids) for text in ("the button", "a page", "a tree"))
    counted = TokenCounters(str(tmp_path)).expected(model, messages)
    assert counted == PER_CALL + 2 * PER_MESSAGE + texts + 255  # a picture of one tile: 85 + 170


@pytest.mark.parametrize("named", ["folder", "file"])
def test_a_tokenizer_is_named_by_its_folder_or_its_file(tokenizer, tmp_path, named):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    counter = TokenCounters(str(tmp_path if named == "folder" else tmp_path / "tokenizer.json")).of(
        ModelSettings("whatever")
    )
    assert counter.is_exact
    assert "tokenizer.json" in counter.name
    assert counter.count("the button") == len(tokenizer.encode("the button").ids)


def test_a_local_model_brings_its_own_tokenizer(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert TokenCounters().of(ModelSettings(str(tmp_path), provider="transformers")).is_exact


def test_a_model_fetched_before_is_counted_with_its_tokenizer(tokenizer, tmp_path, monkeypatch):
    fetched = tmp_path / "models--org--model"
    (fetched / "refs").mkdir(parents=True)
    (fetched / "refs/main").write_text("abc")
    (fetched / "snapshots/abc").mkdir(parents=True)
    tokenizer.save(str(fetched / "snapshots/abc/tokenizer.json"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert TokenCounters().of(ModelSettings("org/model", provider="vllm")).is_exact
    assert not TokenCounters().of(ModelSettings("org/other", provider="vllm")).is_exact


def test_without_a_tokenizer_it_is_an_estimate_that_says_so():
    counter = TokenCounters().of(ModelSettings("org/nobody-has-it", provider="vllm"))
    assert not counter.is_exact
    assert "estimate" in counter.name


def test_a_tokenizer_that_is_none_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    for bad in (str(tmp_path), str(tmp_path / "nowhere"), "org/not-fetched", "///"):
        with pytest.raises(OptionsError, match="--tokenizer"):
            TokenCounters(bad)


@given(st.lists(st.text(), min_size=1, max_size=4), st.integers(0, 2))
def test_the_most_is_never_passed_by_a_tokenizer_of_bytes(texts, pictures):
    """A byte is a token at worst; a template adds a few around each message."""
    shown: list[str | Image] = [*texts, *[image()] * pictures]
    messages = (Message("system", texts[0]), Message("user", tuple(shown)))
    worst = sum(len(text.encode("utf-8", "surrogatepass")) for text in (texts[0], *texts))
    model = ModelSettings("gpt-4o")
    assert token_ceiling(model, messages) >= worst + 255 * pictures + 2 * 12 + 64
    assert token_ceiling(model, messages) >= TokenCounters().expected(
        ModelSettings("gpt-4o", provider="any"), messages
    )
